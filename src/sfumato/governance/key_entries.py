"""The entries that a root signs: who holds which key, what ends that, and which root comes next."""

from dataclasses import dataclass
from typing import ClassVar

from sfumato.governance.key_documents import SignedByRoot

__all__ = ["KeyCertified", "KeyRevoked", "RootRotated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCertified:
    """The root's word that a key acts in a role, from this entry on."""

    KIND: ClassVar[str] = "ledger.key_certified"
    VERSION: ClassVar[int] = 1
    at: str
    signed: SignedByRoot


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRevoked:
    """The root's word that a key acts in a role no more, after this entry."""

    KIND: ClassVar[str] = "ledger.key_revoked"
    VERSION: ClassVar[int] = 1
    at: str
    signed: SignedByRoot


@dataclass(frozen=True, slots=True, kw_only=True)
class RootRotated:
    """The root whose hash was recorded before takes the place of the one that named it."""

    KIND: ClassVar[str] = "ledger.root_rotated"
    VERSION: ClassVar[int] = 1
    at: str
    signed: SignedByRoot
