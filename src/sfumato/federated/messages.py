"""Messages of a secure sum: bytes that any transport carries, signed by the site that sends them.

A message is the length of its head, the head (canonical JSON), raw numbers, and an Ed25519 signature of the digest of
all that. The head names the phase, the sender and the digest of the round's terms: one of another round does not hold.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from sfumato.core.documents import Json, canonical, parse
from sfumato.core.signature import SigningKey, signature_holds
from sfumato.errors import InvalidInput, Refused
from sfumato.federated.terms import RoundTerms

__all__ = [
    "SumMessage",
    "SumPhase",
    "fingerprint",
    "mark_of",
    "marked",
    "opened",
    "packed",
    "sealed",
    "signed_by",
    "unpacked",
]

_SIGNED = b"sfumato secure sum message 1\0"
_LENGTH, _SIGNATURE = 8, 64


class SumPhase(Enum):
    """The five phases of a round, in their order, and its end."""

    ADVERTISE = "advertise"
    SHARE = "share"
    MASK = "mask"
    AGREE = "agree"
    REVEAL = "reveal"
    DONE = "done"

    @property
    def order(self) -> int:
        """How many phases come before it."""
        return list(SumPhase).index(self)

    @property
    def next(self) -> "SumPhase":
        """The phase after it."""
        return list(SumPhase)[self.order + 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class SumMessage:
    """A message whose signature held: ``sender`` is the number of its site from 1 on, ``raw`` the message itself.

    ``mark`` is its fingerprint, the same as :func:`mark_of`.
    """

    phase: SumPhase
    sender: int
    body: Json
    payload: bytes
    raw: bytes
    mark: str


def sealed(terms: RoundTerms, key: SigningKey, phase: SumPhase, body: Json, payload: bytes = b"") -> bytes:
    """One signed message of a site."""
    return marked(terms, key, phase, body, payload)[0]


def marked(terms: RoundTerms, key: SigningKey, phase: SumPhase, body: Json, payload: bytes) -> tuple[bytes, str]:
    """One signed message of a site, and its fingerprint, which is had on the way."""
    sender = terms.place(key.public_text)
    head: Json = {"body": body, "phase": phase.value, "sender": sender, "terms": terms.digest.hex()}
    text = canonical(head).encode()
    said = len(text).to_bytes(_LENGTH, "big") + text + payload
    digest = _digest(said)
    signature = bytes.fromhex(key.sign(_SIGNED + digest))
    return said + signature, fingerprint(digest + signature)


def opened(terms: RoundTerms, phase: SumPhase, data: bytes, *, proven: bool = False) -> SumMessage:
    """Read a message of a phase of a round; one of another round, another phase or another hand is refused.

    ``proven`` leaves the signature out, for bytes whose signature held before.
    """
    said, signature = memoryview(data)[:-_SIGNATURE], data[-_SIGNATURE:]
    size = int.from_bytes(said[:_LENGTH], "big")
    text = bytes(said[_LENGTH : _LENGTH + size])
    if len(said) < _LENGTH or len(text) < size:
        raise InvalidInput("this is not a message of a secure sum: it was cut short. It was not read.")
    try:
        head = parse(text.decode())
    except UnicodeDecodeError:
        raise InvalidInput("this is not a message of a secure sum; it was not read.") from None
    match head:
        case {"body": body, "phase": str(named), "sender": int(sender), "terms": str(named_terms), **rest} if not rest:
            pass
        case _:
            raise InvalidInput("this is not a message of a secure sum; it was not read.")
    if named_terms != terms.digest.hex():
        raise Refused("this message belongs to another round, roster or run; it was not used.")
    if named != phase.value:
        raise Refused(
            f"this message belongs to the phase {named!r} and the round is in {phase.value!r}; it was not used."
        )
    if not 1 <= sender <= len(terms.roster):
        raise Refused("this message names a sender that the roster has not; it was not used.")
    digest = _digest(said)
    if not proven and not signed_by(terms.roster[sender - 1], signature, digest):
        raise Refused(f"this message is not signed by site {sender}, whose name it bears; it was not used.")
    return SumMessage(
        phase=phase,
        sender=sender,
        body=body,
        payload=bytes(said[_LENGTH + size :]),
        raw=data,
        mark=fingerprint(digest + signature),
    )


@lru_cache(maxsize=1024)
def signed_by(key: str, signature: bytes, digest: bytes) -> bool:
    """Whether a signature of a message holds: a function of these three alone, found once for each.

    Where several parties of a round live in one process, each asks the same of the same messages.
    """
    return signature_holds(key, signature.hex(), _SIGNED + digest)


def packed(parts: Sequence[bytes]) -> bytes:
    """Several texts of bytes as one.

    >>> unpacked(packed([b"a", b""]))
    (b'a', b'')
    """
    return b"".join(piece for part in parts for piece in (len(part).to_bytes(_LENGTH, "big"), part))


def unpacked(data: bytes) -> tuple[bytes, ...]:
    """The texts that :func:`packed` made one of."""
    parts, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + _LENGTH], "big")
        at += _LENGTH
        if at + size > len(data):
            raise InvalidInput("a message was cut short on its way; it was not used.")
        parts.append(data[at : at + size])
        at += size
    return tuple(parts)


def fingerprint(data: bytes) -> str:
    """SHA-256 as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def mark_of(data: bytes) -> str:
    """The fingerprint of a whole message."""
    return fingerprint(_digest(memoryview(data)[:-_SIGNATURE]) + data[-_SIGNATURE:])


def _digest(said: bytes | memoryview) -> bytes:
    """BLAKE2b, which is faster than SHA-256 on long texts where processors have no help for the latter."""
    return hashlib.blake2b(said, digest_size=32).digest()
