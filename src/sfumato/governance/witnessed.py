"""What a ledger and its witness say to each other, each signed by who says it: heads, extensions, answers."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from sfumato.core.budget import Budget
from sfumato.core.documents import Json, Registry, canonical, encode, parse
from sfumato.core.signature import SigningKey, signature_holds
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.governance.anchor import SignedHead
from sfumato.governance.entries import Recovered, Row
from sfumato.governance.entry_tree import Frontier, leaf_hash

__all__ = ["Extension", "LastSeen", "SignedExtension", "WitnessedHead", "grown", "witnessed_findings"]

MOST_NUMBER = 2**62
"""No record has as many entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessedHead:
    """A signed head that a witness countersigned: it has seen no other record that this one does not go on from.

    ``head`` is the text of the signed head, ``root`` that of the tree over all entries (RFC 9162) as the witness
    worked it out itself, ``lease`` what the ledger may charge beyond this head, and ``at`` the witness's own clock.
    Public: it can be printed, and later holds the record to it.
    """

    KIND: ClassVar[str] = "witness.head"
    VERSION: ClassVar[int] = 1
    head: str
    root: str
    lease: Budget
    at: str
    witness: str
    signature: str

    @classmethod
    def sign(cls, head: str, root: str, lease: Budget, at: str, key: SigningKey) -> "WitnessedHead":
        """Countersign a head."""
        text = _countersigned(head, root, lease, at, key.public_text)
        return cls(head=head, root=root, lease=lease, at=at, witness=key.public_text, signature=key.sign(text))

    @classmethod
    def read(cls, text: str) -> "WitnessedHead":
        """Read what :attr:`text` wrote; what holds no signed head is refused."""
        return _read(text, cls)

    @property
    def text(self) -> str:
        """The witnessed head as canonical JSON."""
        return canonical(encode(self))

    @property
    def signed(self) -> SignedHead:
        """The head that the ledger signed."""
        return SignedHead.read(self.head)

    def holds(self, witness: str, ledger: str) -> bool:
        """Whether the owners of both public keys signed it, each its own part."""
        return self.countersigned_by(witness) and self.signed.holds(ledger)

    def countersigned_by(self, witness: str) -> bool:
        """Whether the owner of a public key countersigned it."""
        text = _countersigned(self.head, self.root, self.lease, self.at, self.witness)
        return self.witness == witness and signature_holds(witness, self.signature, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """How a record went on ``since`` a head that the witness knows: the number and the digest of each entry after it.

    ``rows`` end with the entry of ``head``. Digests cover random nonces, so that they say nothing about what an entry
    holds. Where entries were lost, ``recovery`` is the row (number, previous, body, nonce) of the decision that gave
    up the last head of the witness.
    """

    KIND: ClassVar[str] = "witness.extension"
    VERSION: ClassVar[int] = 1
    head: str
    since: int
    rows: tuple[tuple[int, str], ...]
    lease: Budget
    recovery: tuple[int, str, str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedExtension:
    """An extension with the signature of the ledger: nobody else can tell the witness how a record went on."""

    KIND: ClassVar[str] = "witness.signed_extension"
    VERSION: ClassVar[int] = 1
    extension: Extension
    signature: str

    @classmethod
    def sign(cls, extension: Extension, key: SigningKey) -> "SignedExtension":
        """Sign an extension."""
        return cls(extension=extension, signature=key.sign(_spoken("an extension", encode(extension))))

    @classmethod
    def read(cls, text: str) -> "SignedExtension":
        """Read what :attr:`text` wrote."""
        return _read(text, cls)

    @property
    def text(self) -> str:
        """The request as canonical JSON."""
        return canonical(encode(self))

    def holds(self, ledger: str) -> bool:
        """Whether the owner of a public key signed it."""
        return signature_holds(ledger, self.signature, _spoken("an extension", encode(self.extension)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LastSeen:
    """The answer of a witness to the question what it saw last: fresh by the ``nonce`` of who asked.

    ``witnessed`` is the text of its newest head of a ledger up to entry ``upto``; empty where there is none.
    """

    KIND: ClassVar[str] = "witness.last"
    VERSION: ClassVar[int] = 1
    ledger: str
    nonce: str
    upto: int
    witnessed: str
    witness: str
    signature: str

    @classmethod
    def sign(cls, ledger: str, nonce: str, upto: int, witnessed: str, key: SigningKey) -> "LastSeen":
        """Sign an answer."""
        text = _spoken("what was seen last", [ledger, nonce, upto, witnessed])
        said = key.sign(text)
        return cls(ledger=ledger, nonce=nonce, upto=upto, witnessed=witnessed, witness=key.public_text, signature=said)

    @classmethod
    def read(cls, text: str) -> "LastSeen":
        """Read what :attr:`text` wrote."""
        return _read(text, cls)

    @property
    def text(self) -> str:
        """The answer as canonical JSON."""
        return canonical(encode(self))

    def holds(self, witness: str) -> bool:
        """Whether the owner of a public key signed it."""
        text = _spoken("what was seen last", [self.ledger, self.nonce, self.upto, self.witnessed])
        return self.witness == witness and signature_holds(witness, self.signature, text)


def grown(frontier: Frontier, rows: Iterable[tuple[int, str]]) -> Frontier:
    """A tree after more entries: numbers that a recovery left out count as lost; what does not go on is refused."""
    for number, digest in rows:
        if not frontier.size < number < MOST_NUMBER or not _is_digest(digest):
            raise InvalidInput("the rows of an extension are not entries in their order; nothing was witnessed.")
        frontier = frontier.without(number - frontier.size - 1).after(leaf_hash(digest))
    return frontier


def witnessed_findings(
    rows: Iterable[Row], witnessed: WitnessedHead, witnesses: Collection[str], *, signed: bool
) -> Iterator[tuple[int, str]]:
    """What is wrong between a record and a witnessed head: the entry and the problem.

    ``witnesses`` are the keys that the record has named, ``signed`` says that the ledger signed the head. A head that a
    recovery gave up is held to the entry of that recovery.
    """
    place = witnessed.signed.head.number
    if not signed or witnessed.witness not in witnesses or not witnessed.countersigned_by(witnessed.witness):
        yield place, "the witnessed head is not signed by this ledger and by a witness that its record names"
        return
    frontier, problem = Frontier(), ""
    for row in rows:
        if row.number <= place:
            frontier = grown(frontier, [(row.number, row.digest)])
        if not problem and row.number >= place:
            held = row.number == place and frontier.root().hex() == witnessed.root
            problem = "held" if held else "is not the end of the record that the witness has seen: it was rewritten"
        if problem == "held" or (problem and _gave_up(row, place)):
            return
    yield place, problem or f"is missing: the witness has seen it, and the record ends at {frontier.size}"


def _gave_up(row: Row, place: int) -> bool:
    """Whether a row is a recovery that knew of a witnessed head at least as far as this one, or charged everything."""
    try:
        entry = row.entry
        if not isinstance(entry, Recovered) or entry.whole:
            return isinstance(entry, Recovered)
        return bool(entry.witnessed) and WitnessedHead.read(entry.witnessed).signed.head.number >= place
    except SfumatoError:
        return False


_SAID = Registry((Budget, WitnessedHead, Extension, SignedExtension, LastSeen))


Said = TypeVar("Said", WitnessedHead, SignedExtension, LastSeen)


def _read(text: str, cls: type[Said]) -> Said:
    said = _SAID.decode(parse(text), "document")
    if not isinstance(said, cls):
        raise InvalidInput(f"this is not a document of the kind {cls.KIND!r}; nothing was done with it.")
    if isinstance(said, WitnessedHead):
        SignedHead.read(said.head)
    return said


def _spoken(what: str, said: Json) -> bytes:
    return canonical([what, said]).encode()


def _countersigned(head: str, root: str, lease: Budget, at: str, witness: str) -> bytes:
    return _spoken("a witnessed head", [head, root, encode(lease), at, witness])


def _is_digest(text: str) -> bool:
    return len(text) == 64 and all(digit in "0123456789abcdef" for digit in text)
