"""What metadata need and the record does not hold: who publishes, under which licence, and where to find it."""

import re
from dataclasses import dataclass

from sfumato.core.query import check_name
from sfumato.errors import InvalidInput
from sfumato.reports.publication import Grounds

__all__ = ["Declared"]

_ADDRESS = re.compile(r"https?://[^\s<>\"{}|\\^`]+")
_LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the publisher says; whatever is None is listed as not declared.

    ``licence`` is an address or a short name such as CC-BY-4.0, ``access`` the address where the releases are found.
    ``reason`` and ``legal_basis`` are what the publication rests on; without them a pack is a draft.

    >>> Declared(licence="CC-BY-4.0", access="https://example.org/releases").missing
    ('publisher', 'region')
    """

    publisher: str | None = None
    licence: str | None = None
    access: str | None = None
    region: str | None = None
    reason: str = ""
    legal_basis: str = ""

    def __post_init__(self) -> None:
        for name in ("publisher", "licence", "access", "region"):
            value = getattr(self, name)
            if value is not None:
                check_name(value, f"the {name} of a release")
        self.grounds  # noqa: B018 - refuses anything but text
        if self.access is not None and not _ADDRESS.fullmatch(self.access):
            raise InvalidInput(f"access = {self.access!r} is not an http address; nothing was written.")
        if self.licence is not None and not (_ADDRESS.fullmatch(self.licence) or _LICENCE.fullmatch(self.licence)):
            raise InvalidInput(
                f"licence = {self.licence!r} is neither an address nor a short name such as CC-BY-4.0; "
                "nothing was written."
            )

    @property
    def grounds(self) -> Grounds:
        """The reason and the legal basis on record."""
        return Grounds(reason=self.reason, legal_basis=self.legal_basis)

    @property
    def missing(self) -> tuple[str, ...]:
        """What was not declared."""
        return tuple(name for name in ("publisher", "licence", "access", "region") if getattr(self, name) is None)
