"""What data may be used for: purposes, legal grounds and consent as metadata that a machine checks before a release.

This checks what was declared against what was declared. It is not legal advice, and a release that passes is one that
stays inside the declarations, nothing more.
"""

import unicodedata
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import ClassVar

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput, NotDeclared, Refused

__all__ = ["DECLARATIONS", "Ground", "HipaaBasis", "SpecialCategory", "Terms", "Use", "check", "within"]

LIMITED = ("research", "public health", "health care operations")  # 45 CFR 164.514(e)(3)


class Ground(Enum):
    """The legal basis of processing (GDPR, Article 6(1))."""

    CONSENT = "consent"
    CONTRACT = "contract"
    LEGAL_OBLIGATION = "legal obligation"
    VITAL_INTERESTS = "vital interests"
    PUBLIC_TASK = "public task"
    LEGITIMATE_INTERESTS = "legitimate interests"
    NOT_SUBJECT = "not subject to the GDPR"


class SpecialCategory(Enum):
    """The condition under which data on health and the like are processed (GDPR, Article 9(2))."""

    NONE = "no special category"
    EXPLICIT_CONSENT = "explicit consent"
    HEALTH_CARE = "health care"
    PUBLIC_HEALTH = "public health"
    RESEARCH = "research or statistics"


class HipaaBasis(Enum):
    """Under what the data are used where HIPAA applies."""

    NOT_SUBJECT = "not subject to HIPAA"
    AUTHORISATION = "authorisation"
    WAIVER = "waiver of an institutional review board"
    LIMITED = "limited data set"
    EXPERT = "expert determination"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What was declared about a dataset when it was opened.

    ``purposes`` are what it may serve, as paths: ``research`` holds ``research/oncology``. ``consent`` is what the
    people agreed to, in the same form; it binds where the ground or the condition is their consent. ``forbidden`` wins
    over both. ``recipients`` are who may receive releases, empty for everybody. ``until`` is the last day of use.
    ``sites`` are where the data come from: each site's committee has to approve.

    >>> terms = Terms(dataset="visits", purposes=("research",), ground=Ground.CONSENT,
    ...               condition=SpecialCategory.EXPLICIT_CONSENT, hipaa=HipaaBasis.NOT_SUBJECT,
    ...               consent=("research/oncology",), consent_text="form 3 of 2024", forbidden=("research/insurance",),
    ...               recipients=(), until="2028-12-31", sites=("north",))
    >>> check(Use(dataset="visits", purpose="research/oncology", recipient="public"), terms, date(2026, 1, 31))
    """

    KIND: ClassVar[str] = "consent.terms"
    VERSION: ClassVar[int] = 1
    dataset: str
    purposes: tuple[str, ...]
    ground: Ground
    condition: SpecialCategory
    hipaa: HipaaBasis
    consent: tuple[str, ...]
    consent_text: str
    forbidden: tuple[str, ...]
    recipients: tuple[str, ...]
    until: str
    sites: tuple[str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.dataset, str) or not self.dataset.strip():
            raise NotDeclared("terms need the name of their dataset; nothing was declared.")
        if not self.purposes:
            raise NotDeclared(f"no purpose is declared for {self.dataset!r}; nothing was declared. Name at least one.")
        for purpose in (*self.purposes, *self.consent, *self.forbidden):
            _path(purpose)
        if self.by_consent and (not self.consent or not self.consent_text.strip()):
            raise NotDeclared(
                f"{self.dataset!r} is used by consent, and its scope and text are not declared; nothing was declared. "
                "Say what the people agreed to, and which form said so."
            )
        try:
            natural(date.fromisoformat(self.until).year, "the year of the last day")
        except (TypeError, ValueError):
            raise InvalidInput(
                f"until = {self.until!r} is not a day; nothing was declared. Write 2026-01-31."
            ) from None

    @property
    def by_consent(self) -> bool:
        """Whether use rests on what the people agreed to."""
        return (
            self.ground is Ground.CONSENT
            or self.condition is SpecialCategory.EXPLICIT_CONSENT
            or self.hipaa is HipaaBasis.AUTHORISATION
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What a release is for, and who receives it."""

    KIND: ClassVar[str] = "consent.use"
    VERSION: ClassVar[int] = 1
    dataset: str
    purpose: str
    recipient: str

    def __post_init__(self) -> None:
        if not isinstance(self.recipient, str) or not self.recipient.strip():
            raise NotDeclared("a use needs its recipient, such as 'public'; nothing was released.")
        if not isinstance(self.purpose, str) or not self.purpose.strip():
            raise NotDeclared("a release needs its purpose; nothing was released. State one that the terms hold.")
        _path(self.purpose)


DECLARATIONS = (Terms, Use)
"""What a Registry needs to read them."""


def within(purpose: str, allowed: tuple[str, ...]) -> bool:
    """Whether a purpose is one of those allowed, or a part of one.

    >>> within("research/oncology", ("research",)), within("research", ("research/oncology",))
    (True, False)
    >>> within("researchers", ("research",))
    False
    """
    steps = purpose.split("/")
    return any(steps[: len(wide.split("/"))] == wide.split("/") for wide in allowed)


def check(use: Use, terms: Terms, day: date) -> None:
    """Refuse a use outside the purposes, the consent, the recipients or the time that were declared.

    >>> narrow = Terms(dataset="visits", purposes=("care",), ground=Ground.PUBLIC_TASK,
    ...                condition=SpecialCategory.HEALTH_CARE, hipaa=HipaaBasis.NOT_SUBJECT, consent=(), consent_text="",
    ...                forbidden=(), recipients=(), until="2028-12-31", sites=())
    >>> check(Use(dataset="visits", purpose="marketing", recipient="public"), narrow, date(2026, 1, 31))
    Traceback (most recent call last):
    sfumato.errors.Refused: 'visits' may be used for care, and this release is for marketing. ...
    """
    name, purpose = terms.dataset, use.purpose
    if use.dataset != name:
        raise Refused(f"the terms are those of {name!r}, and {use.dataset!r} would be used. {_NOT_DONE}")
    if day > date.fromisoformat(terms.until):
        raise Refused(f"{name!r} may be used until {terms.until}, and today is {day.isoformat()}. {_NOT_DONE}")
    for banned in terms.forbidden:
        if within(purpose, (banned,)) or within(banned, (purpose,)):
            raise Refused(f"{name!r} must not be used for {banned}, and this release is for {purpose}. {_NOT_DONE}")
    if not within(purpose, terms.purposes):
        raise Refused(
            f"{name!r} may be used for {', '.join(terms.purposes)}, and this release is for {purpose}. {_NOT_DONE}"
        )
    if terms.by_consent and not within(purpose, terms.consent):
        raise Refused(
            f"the people in {name!r} agreed to {', '.join(terms.consent)} ({terms.consent_text}), and this release is "
            f"for {purpose}. {_NOT_DONE}"
        )
    if terms.hipaa is HipaaBasis.LIMITED and not within(purpose, LIMITED):
        raise Refused(
            f"{name!r} is a limited data set, which serves {', '.join(LIMITED)}, and this release is for {purpose}. "
            f"{_NOT_DONE}"
        )
    if terms.recipients and use.recipient not in terms.recipients:
        raise Refused(
            f"releases from {name!r} go to {', '.join(terms.recipients)}, and this one would go to {use.recipient}. "
            f"{_NOT_DONE}"
        )


_NOT_DONE = "Nothing was read and nothing was spent. Change the use, or have the board decide on new terms."


def _path(purpose: object) -> None:
    steps = purpose.split("/") if isinstance(purpose, str) else [""]
    if not all(step and step == step.strip() and step not in (".", "..") for step in steps):
        raise InvalidInput(f"{purpose!r} is not a purpose; nothing was done. Write a path such as research/oncology.")
    plain = unicodedata.normalize("NFKC", str(purpose)).casefold()
    if plain != purpose or not plain.isprintable() or any(unicodedata.category(sign) == "Cf" for sign in plain):
        raise InvalidInput(
            f"{purpose!r} could be taken for another purpose; nothing was done. Write it in small letters and with "
            "nothing that does not print."
        )
