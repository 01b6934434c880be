"""What must be on record before a release is published: a reason, a legal basis, and a text for every reader.

Software can refuse to go on without them; it cannot judge them. Every way out of the building asks :func:`standing`
(pages, evidence, the results of a plan, the demonstration): what is not on record is written as a draft, and says so on
its face. What exists only to be published, such as the public registry, is refused without (:meth:`Grounds.check`).
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.documents import Json
from sfumato.core.guarantees import Approximate
from sfumato.core.release import Release, whole
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.reports.catalogue import message
from sfumato.reports.words import AUDIENCES, Explanation, Facts, write
from sfumato.reports.words.figures import exact, one_line

__all__ = ["Draft", "Grounds", "Publication", "publication", "standing"]

LONGEST = 4_000
BLANK_LETTERS = "\u115f\u1160\u3164\uffa0"  # letters by their kind, of which nothing is seen


def _stated(words: str) -> bool:
    """Whether a text says anything: it has a letter or a digit. Spaces, signs and what is invisible say nothing."""
    return any(unicodedata.category(sign)[0] in "LN" and sign not in BLANK_LETTERS for sign in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What people put on record before they publish: why this ε and no smaller one, and on which legal basis.

    Empty is what nobody stated. Public: both, in the words of whoever states them.

    >>> Grounds(reason="The plan for winter needs ±40.").missing
    ('legal_basis',)
    """

    reason: str = ""
    legal_basis: str = ""

    def __post_init__(self) -> None:
        for name in ("reason", "legal_basis"):
            value = getattr(self, name)
            if (
                not isinstance(value, str)
                or len(value) > LONGEST
                or any("\ud800" <= sign <= "\udfff" for sign in value)
            ):
                raise InvalidInput(f"{name} must be a text of at most {LONGEST:,} characters; nothing was written.")

    @property
    def missing(self) -> tuple[str, ...]:
        """What nobody stated."""
        return tuple(name for name in ("reason", "legal_basis") if not _stated(getattr(self, name)))

    def check(self, what: str) -> None:
        """Refuse what exists only to be published, while anything is missing."""
        if self.missing:
            names = " and ".join(name.replace("_", " ") for name in self.missing)
            said = ", ".join(f"{name}='…'" for name in self.missing)
            raise NotDeclared(
                f"{what} is a publication and needs its {names}, in words; nothing was published. Say {said}."
            )

    def words(self, language: str) -> tuple[str, str]:
        """What a draft says on its face in a language: that it is one, and what is missing."""
        name = self.missing[0] if len(self.missing) == 1 else "both"
        absent = message(language, f"publication.{name}")
        return message(language, "publication.draft"), message(language, "publication.missing", missing=absent)

    def line(self, language: str) -> str:
        """The same in one line."""
        draft, missing = self.words(language)
        return message(language, "publication.line", draft=draft, missing=missing)

    def document(self) -> dict[str, Json]:
        """The same for programs: whether it is on record for publication, or what is missing."""
        body: dict[str, Json] = {
            "status": "draft" if self.missing else "publication",
            "reason": None if "reason" in self.missing else self.reason.strip(),
            "legal_basis": None if "legal_basis" in self.missing else self.legal_basis.strip(),
            "missing": list(self.missing),
        }
        if not self.missing:
            return body
        return body | {"note": [self.line(language) for language in ("en", "zh")]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A release that is not on record for publication; ``grounds`` says what is missing. Public: every field."""

    release: Release
    grounds: Grounds

    def text(self, language: str, audience: str) -> str:
        """The text for one reader."""
        return self.release.explain(language, audience)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A release with what people put on record for it, and its texts by (language, audience).

    Whatever is empty blocks it. Public: every field. It says what was recorded, not whether that is right.
    """

    release: Release
    reason: str
    legal_basis: str
    texts: Mapping[tuple[str, str], Explanation]

    def __post_init__(self) -> None:
        for name, value in (("reason", self.reason), ("legal_basis", self.legal_basis)):
            if not isinstance(value, str) or not _stated(value):
                raise NotDeclared(f"a publication needs its {name}, in words; nothing was published. Say {name}='…'.")
        languages = {language for language, _ in self.texts}
        missing = [
            f"{who} ({language})"
            for language in sorted(languages)
            for who in AUDIENCES
            if not str(self.texts.get((language, who), "")).strip()
        ]
        if missing or not languages:
            raise Refused(
                f"a publication needs a text for {', '.join(missing) or 'every reader'}; nothing was published."
            )

    def text(self, language: str, audience: str) -> str:
        """The text for one reader; the board's ends with what was put on record."""
        words = str(self.texts[language, audience])
        return words if audience != "board" else f"{words}\n\n{self.recorded(language)}"

    def recorded(self, language: str) -> str:
        """What was put on record: the reason for this ε and δ, and the legal basis, in the publisher's words."""
        guarantee = self.release.statement.guarantee
        facts = {
            "epsilon": exact(self.release.statement.spend.epsilon),
            "delta": exact(guarantee.delta if isinstance(guarantee, Approximate) else Fraction(0)),
            "reason": one_line(self.reason),
            "legal_basis": one_line(self.legal_basis),
        }
        return message(language, "publication.recorded", **facts)


def publication(
    release: Release, *, reason: str = "", legal_basis: str = "", languages: Sequence[str] = ("en", "zh")
) -> Publication:
    """Put a release on record for publication, with its texts for every reader in these languages.

    ``reason`` says why this ε and no smaller one, ``legal_basis`` on which ground the publisher may publish: both are
    decisions of people, stated in their own words, and have no default.
    """
    facts = Facts.of(whole(release))
    texts = {(language, who): write(facts, language, who) for language in languages for who in AUDIENCES}
    return Publication(release=release, reason=reason, legal_basis=legal_basis, texts=texts)


def standing(release: Release, grounds: Grounds, languages: Sequence[str] = ("en", "zh")) -> Publication | Draft:
    """The gate of publication: a release on record, with its texts for every reader, or a draft.

    Guarantee: a :class:`Publication` comes out only where reason, legal basis and every text are there. Public: all.
    """
    if grounds.missing:
        return Draft(release=release, grounds=grounds)
    return publication(release, reason=grounds.reason, legal_basis=grounds.legal_basis, languages=languages)
