"""What a root key signs: who holds which key for which role, what ends that, and which root comes next.

A root signs rarely and is kept apart. Each document names its ledger and has the next number, so that it can be entered
once and in its turn: an old one cannot be entered again, and none can be left out.
"""

import hashlib
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import ClassVar

from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.core.signature import SigningKey, read_public_key, signature_holds
from sfumato.errors import InvalidInput

__all__ = [
    "NONE",
    "KeyCertificate",
    "KeyRevocation",
    "Role",
    "RootDocument",
    "RootStanding",
    "RootSuccession",
    "SignedByRoot",
    "opening_text",
    "root_hash",
]

NONE = ""
"""In the place of a hash: no successor was named, so that this root can never be changed."""


class Role(Enum):
    """What a key may do: sign heads, sign certificates of releases, or declare and administer."""

    CHARGE = "charge"
    RELEASE = "release"
    ADMINISTER = "administer"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCertificate:
    """The root's word that a key may act in a role, from the entry that holds this on, until a last day if it has one.

    ``holder`` is the name of a person or a machine; two certificates for one key give it two roles.
    """

    KIND: ClassVar[str] = "key.certificate"
    VERSION: ClassVar[int] = 1
    ledger: str
    number: int
    role: Role
    key: str
    holder: str
    until: str | None = None

    def __post_init__(self) -> None:
        read_public_key(self.key)
        if not self.holder.strip():
            raise InvalidInput("a key certificate names who holds the key; nothing was signed. Say holder='…'.")
        if self.until is not None:
            _check_day(self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRevocation:
    """The root's word that a key acts in a role no more, after the entry that holds this: whatever its time says."""

    KIND: ClassVar[str] = "key.revocation"
    VERSION: ClassVar[int] = 1
    ledger: str
    number: int
    role: Role
    key: str
    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise InvalidInput("a revocation says why: reason='…'. Nothing was signed.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RootSuccession:
    """A new root in the place of ``previous``, signed by the new one: the hash that was recorded before names it.

    ``next_root`` is the hash of the root after it, or empty where there will be none.
    """

    KIND: ClassVar[str] = "key.succession"
    VERSION: ClassVar[int] = 1
    ledger: str
    number: int
    previous: str
    root: str
    next_root: str

    def __post_init__(self) -> None:
        read_public_key(self.root)
        _check_hash(self.next_root)


RootDocument = KeyCertificate | KeyRevocation | RootSuccession


@dataclass(frozen=True, slots=True, kw_only=True)
class RootStanding:
    """The root's word, for one recovery, on how many documents it has signed for a ledger: none can be left out then.

    ``number`` is that of the last one. ``after`` is the digest of the last entry that is left of the record, and
    ``anchored`` that of the head in the anchor, so that a word of earlier days does not hold. No record holds it.
    """

    KIND: ClassVar[str] = "key.standing"
    VERSION: ClassVar[int] = 1
    ledger: str
    number: int
    after: str
    anchored: str

    def __post_init__(self) -> None:
        if self.number < 0:
            raise InvalidInput("a root has signed no document, or some; nothing was signed.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedByRoot:
    """A document and the root's signature: what travels as a file beside the public key that it is about.

    >>> root, key = SigningKey.new(), SigningKey.new()
    >>> said = KeyCertificate(ledger="a", number=1, role=Role.RELEASE, key=key.public_text, holder="the press office")
    >>> SignedByRoot.read(SignedByRoot.sign(said, root).text).holds(root.public_text)
    True
    """

    KIND: ClassVar[str] = "key.signed"
    VERSION: ClassVar[int] = 1
    said: KeyCertificate | KeyRevocation | RootSuccession | RootStanding
    signature: str

    @classmethod
    def sign(cls, said: RootDocument | RootStanding, root: SigningKey) -> "SignedByRoot":
        """Sign a document with a root key."""
        return cls(said=said, signature=root.sign(_text(said)))

    @classmethod
    def read(cls, text: str) -> "SignedByRoot":
        """Read what :attr:`text` wrote."""
        read = _DOCUMENTS.decode(parse(text), "key document")
        if not isinstance(read, SignedByRoot):
            raise InvalidInput("this is not a document that a root key signed; nothing was done with it.")
        return read

    @property
    def text(self) -> str:
        """The document as canonical JSON."""
        return canonical(encode(self))

    def holds(self, root: str) -> bool:
        """Whether the owner of a root key signed this."""
        return signature_holds(root, self.signature, _text(self.said))


_DOCUMENTS = Registry((KeyCertificate, KeyRevocation, RootSuccession, RootStanding, SignedByRoot))


def root_hash(public: str) -> str:
    """What is recorded of the next root: a hash of its public key, so that not even that can be attacked beforehand.

    >>> root_hash(SigningKey.new().public_text) == root_hash(SigningKey.new().public_text)
    False
    """
    return hashlib.sha256(canonical(["the next root of a ledger", public]).encode()).hexdigest()


def opening_text(ledger: str, key: str, root: str, next_root: str) -> bytes:
    """What a root signs when a ledger is made: its name, the first key that charges, and the hash of the next root."""
    return canonical(["the opening of a ledger", ledger, key, root, next_root]).encode()


def _text(said: RootDocument | RootStanding) -> bytes:
    return canonical(encode(said)).encode()


def _check_day(text: str) -> None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise InvalidInput(f"the last day of a key is a day such as 2027-12-31, and not {text!r}; nothing was signed.")


def _check_hash(text: str) -> None:
    if text != NONE and (len(text) != 64 or set(text) - set("0123456789abcdef")):
        raise InvalidInput("the hash of a root is 64 hexadecimal digits, or empty; nothing was signed.")
