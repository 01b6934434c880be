"""Receipts: that the answer in a certificate is an entry of a ledger's record, shown without the record.

A certificate says who signed. A receipt beside it leads from the certificate, through the entry that stores it, to the
root of the tree of entries in a signed head. Whoever holds the key could still sign a head that nobody else ever sees:
an entry is final once a *published* head covers it.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sfumato.core.documents import Json, Registry, canonical, encode, parse
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, Refused, SfumatoError
from sfumato.governance.anchor import Head, SignedHead
from sfumato.governance.entries import KEYS, Committed, LedgerOpened, Row
from sfumato.governance.entry_tree import (
    EMPTY_LEAF,
    Node,
    consistency_holds,
    consistency_path,
    inclusion_holds,
    inclusion_path,
    leaf_hash,
    node_hash,
    nothing,
)
from sfumato.governance.keyring import KeyRing
from sfumato.governance.receipt_keys import KeyStep, ring_shown
from sfumato.governance.transaction import Transaction

__all__ = ["Link", "Receipt", "ReceiptCheck", "check_receipt", "issued", "place_of_certificate", "stored_nodes"]

HASH = 64  # hexadecimal digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Another head of the same ledger, and the hashes that show that the later of the two goes on from the other."""

    KIND: ClassVar[str] = "ledger.receipt_link"
    VERSION: ClassVar[int] = 1
    head: SignedHead
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The way from a certificate to a signed head.

    ``number``, ``previous`` and ``nonce`` are those of the row, ``said`` is its entry without the certificate (when it
    was stored, its charge, the canonical question): with the certificate they give the leaf. ``path`` leads from there
    to the tree of ``head``, and ``links`` from ``head`` to heads that were published. Where the ledger has a root,
    ``keys`` are all its documents, from the opening on, each with its own path. Public: all of it. Of other entries it
    shows hashes, each with a random part in it, from which nothing can be guessed.
    """

    KIND: ClassVar[str] = "ledger.receipt"
    VERSION: ClassVar[int] = 2
    number: int
    previous: str
    nonce: str
    said: str
    path: tuple[str, ...]
    head: SignedHead
    links: tuple[Link, ...] = ()
    keys: tuple[KeyStep, ...] = ()

    @classmethod
    def read(cls, text: str) -> "Receipt":
        """Read what :attr:`text` or :meth:`save` wrote; what is not a receipt is refused."""
        read = _RECEIPTS.decode(parse(text), "receipt")
        if not isinstance(read, cls):
            raise InvalidInput("this is not a receipt; nothing was verified. Get one: sfumato receipt CERTIFICATE")
        return read

    @property
    def text(self) -> str:
        """The receipt as canonical JSON."""
        return canonical(encode(self))

    def save(self, path: str | Path) -> Path:
        """Write the receipt to a file, indented, and return its path."""
        target = Path(path)
        shown = json.dumps(json.loads(self.text), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
        target.write_text(shown + "\n", encoding="utf-8")
        return target

    @property
    def ring(self) -> KeyRing:
        """Who may do what, as of its head; refused where it shows no root."""
        return ring_shown(self.keys, self.head.head)

    @property
    def at(self) -> str:
        """When the entry was made, as the entry says."""
        said = parse(self.said)
        at = said.get("at") if isinstance(said, dict) else None
        if not isinstance(at, str):
            raise InvalidInput("the receipt is not of an entry that stores an answer; nothing was verified.")
        return at

    def leaf(self, certificate: str) -> bytes:
        """The leaf of the entry that would store this certificate, by its canonical text."""
        said = parse(self.said)
        if not isinstance(said, dict) or said.get("kind") != Committed.KIND or "certificate" in said:
            raise InvalidInput("the receipt is not of an entry that stores an answer; nothing was verified.")
        body = canonical(said | {"certificate": certificate})
        return leaf_hash(Row(self.number, Committed.KIND, body, self.previous, "", self.nonce).expected)


_RECEIPTS = Registry((Head, SignedHead, Link, KeyStep, Receipt))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptCheck:
    """What a receipt shows of a certificate: nothing where there are ``problems``.

    ``signed`` says that the head of the receipt is signed by the key that the reader trusts, or by one that the trusted
    root certified for where it stands (``rooted``). ``final`` is the published head that covers the entry, if one does.
    """

    number: int
    head: Head
    problems: tuple[str, ...]
    signed: bool
    final: Head | None
    published: tuple[str, ...]
    rooted: bool = False

    @property
    def holds(self) -> bool:
        """Whether the entry is in the tree of the receipt's head, and all heads agree."""
        return not self.problems

    def __str__(self) -> str:
        if self.problems:
            return "\n".join(f"receipt: {problem}" for problem in self.problems)
        by = "a key that the trusted root certified for that" if self.rooted else "the trusted key"
        who = f"signed by {by}" if self.signed else "not authenticated: no trusted key was given"
        lines = [
            f"receipt: entry {self.number} of ledger {self.head.ledger}, as of its head of entry {self.head.number} "
            f"({self.head.at}), which is {who}",
            *(f"published: {line}" for line in self.published),
        ]
        if self.final is None:
            lines.append(
                "not final: no published head covers the entry. Whoever holds the key of the ledger can sign a head "
                "that nobody else saw; compare with one that was published"
            )
        else:
            lines.append(f"final: whoever changes entry {self.number} contradicts the published head")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Trusted:
    """Whose signature a reader believes: one key's, those of the keys that a root certified, or nobody's."""

    key: str | None = None
    ring: KeyRing | None = None

    def refuses(self, head: SignedHead) -> str | None:
        """By whom a head should be signed and is not; None where it is, or nobody is trusted."""
        if self.ring is not None:
            return None if self.ring.signed(head) else "a key that the trusted root had certified for that"
        return None if self.key is None or head.holds(self.key) else "the trusted key of the ledger"


def _trusted(receipt: Receipt, key: str | None, root: str | None) -> tuple[_Trusted, list[str]]:
    if root is None:
        return _Trusted(key=key), []
    try:
        ring = receipt.ring
    except SfumatoError as wrong:
        return _Trusted(), [f"{wrong} Get a new one: sfumato receipt CERTIFICATE"]
    if root not in ring.roots:
        return _Trusted(), ["the root that is trusted is not a root of the ledger of the receipt"]
    return _Trusted(ring=ring), []


def check_receipt(
    certificate: str,
    receipt: Receipt,
    *,
    key: str | None = None,
    root: str | None = None,
    heads: Sequence[SignedHead] = (),
) -> ReceiptCheck:
    """Whether a receipt shows that the certificate, by its text, is in a ledger; needs no ledger and no network.

    ``key`` is the public key of the ledger that the reader trusts, or ``root`` that of its root: then heads are
    believed by the keys that the receipt shows to be certified where they stand. ``heads`` are those that the reader
    got where they were published. Guarantee: where it holds and is ``final``, every record that goes on from the
    published head stores exactly this certificate in that entry. Assumes: SHA-256 has no collisions. The certificate
    itself is verified by :func:`sfumato.reports.verify.verify`, and the key that signed it is another matter than the
    key of the ledger.
    """
    said = receipt.head.head
    trusted, problems = _trusted(receipt, key, root)
    problems += _head_problems(receipt.head, said.ledger, trusted, "the head in the receipt")
    problems += _inclusion_problems(certificate, receipt)
    published, final = [], None
    for head in heads:
        wrong, words, covers = _compared(receipt, head, trusted)
        problems += wrong
        published += words
        final = head.head if covers and final is None else final
    return ReceiptCheck(
        number=receipt.number,
        head=said,
        problems=tuple(problems),
        signed=trusted != _Trusted() and trusted.refuses(receipt.head) is None,
        final=None if problems else final,
        published=tuple(published),
        rooted=root is not None,
    )


def _head_problems(head: SignedHead, ledger: str, trusted: _Trusted, what: str) -> list[str]:
    problems, missing = [], trusted.refuses(head)
    if missing is not None:
        problems.append(f"{what} is not signed by {missing}")
    if head.head.ledger != ledger:
        problems.append(f"{what} is of ledger {head.head.ledger}, and the receipt of ledger {ledger}")
    if len(head.head.tree) != HASH:
        problems.append(f"{what} states no tree of entries: it was signed before heads stated one. Get a newer one")
    return problems


def _inclusion_problems(certificate: str, receipt: Receipt) -> list[str]:
    head = receipt.head.head
    try:
        document = parse(certificate)
        charged, text = _ledger_of(document), canonical(document)
    except SfumatoError:
        return ["the certificate cannot be read"]
    if charged != head.ledger:
        return [f"the certificate was charged to ledger {charged!r}, and the receipt is of ledger {head.ledger}"]
    try:
        path, root = [_bytes(each) for each in receipt.path], _bytes(head.tree)
        held = inclusion_holds(receipt.leaf(text), receipt.number - 1, head.number, path, root)
    except SfumatoError as wrong:
        return [str(wrong)]
    if held:
        return []
    return [
        f"this certificate is not what entry {receipt.number} stores in the tree of the signed head: the receipt "
        "belongs to another certificate or was altered, or the certificate was made without the ledger"
    ]


def _compared(receipt: Receipt, published: SignedHead, trusted: _Trusted) -> tuple[list[str], list[str], bool]:
    """What is wrong with a published head, what it shows, and whether it covers the entry of the receipt."""
    ours, theirs = receipt.head.head, published.head
    name = f"the published head of entry {theirs.number}"
    problems = _head_problems(published, ours.ledger, trusted, name)
    if problems:
        return problems, [], False
    if theirs.number == ours.number:
        if theirs != ours:
            wrong = f"{name} and the receipt's head of the same entry are different: the ledger has two histories"
            return [wrong], [], False
        return [], [f"the receipt's head is {name}"], True
    link = next((each for each in receipt.links if each.head.head == theirs), None)
    if link is None:
        wrong = f"the receipt does not lead to {name}. Get one that does: sfumato receipt CERTIFICATE --head FILE"
        return [wrong], [], False
    before, after = sorted((ours, theirs), key=lambda head: head.number)
    try:
        roots, path = (_bytes(before.tree), _bytes(after.tree)), [_bytes(each) for each in link.path]
    except InvalidInput as wrong_form:
        return [str(wrong_form)], [], False
    if not consistency_holds(before.number, after.number, *roots, path):
        wrong = (
            f"the receipt does not show that its head and {name} are of one history: it was altered, or there are two"
        )
        return [wrong], [], False
    if receipt.number > theirs.number:
        return [], [f"the receipt's head goes on from {name}; entry {receipt.number} came after it"], False
    return [], [f"{name} and the receipt's head are of one history"], True


def _ledger_of(document: Json) -> object:
    """The ledger that a certificate says it was charged to."""
    part: Json = document
    for name in ("statement", "account", "ledger"):
        part = part.get(name) if isinstance(part, dict) else None
    return part


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InvalidInput("the receipt or its head holds something else than hashes; nothing was verified.") from None


# ----------------------------------------------------------------------------------------------- from the ledger itself


def place_of_certificate(transaction: Transaction, certificate: str) -> int:
    """The number of the entry that stores a certificate, by its canonical text; looks through all stored answers."""
    document = parse(certificate)
    statement = document.get("statement") if isinstance(document, dict) else None
    identifier = statement.get("identifier") if isinstance(statement, dict) else None
    if not isinstance(identifier, str) or not identifier.isalnum():
        raise InvalidInput("this is not the certificate of a release; no receipt was made.")
    for row in transaction.rows_with(Committed.KIND, identifier):
        entry = row.entry
        if isinstance(entry, Committed) and entry.certificate == certificate:
            return row.number
    raise NotDeclared(
        f"this ledger never stored the certificate of release {identifier}; no receipt was made. Ask the ledger that "
        "it states; if that is this one, the certificate is forged, or its entry was lost."
    )


def issued(
    transaction: Transaction,
    number: int,
    head: SignedHead,
    *,
    holds: Callable[[SignedHead], bool],
    heads: Sequence[SignedHead] = (),
    rooted: bool = False,
) -> Receipt:
    """The receipt of an answer, by the number of its entry, as of the signed head of a transaction that is proven.

    ``heads`` are published ones that it shall lead to; ``holds`` says which of them the ledger signed; of a ledger
    that is ``rooted`` it shows the documents of the root. What the
    database says of the tree is not believed: the proof is held to the signed root before it is handed out. Takes
    O(log n); where the stored subtrees do not lead to the root, they are worked out again from all digests, and where
    those do not either, it is refused.
    """
    row = transaction.row(number)
    entry = None if row is None else row.entry
    if row is None or not isinstance(entry, Committed):
        raise NotDeclared(f"entry {number} of this ledger does not store an answer; no receipt was made.")
    if not row.nonce:
        raise Refused(
            f"entry {number} is from before entries had a random part, and a proof could tell what stands in those "
            "beside it; no receipt was made."
        )
    for published in heads:
        name = f"the head of entry {published.head.number}"
        problems = _head_problems(published, head.head.ledger, _Trusted(), name)
        if not holds(published):
            problems.append(f"{name} is not signed by a key of this ledger")
        if problems or published.head.number > head.head.number:
            reason = "; ".join(problems) or f"the record ends at entry {head.head.number}, before that head"
            raise Refused(f"{reason}. No receipt was made.")
    said = parse(row.body)
    rest = {name: value for name, value in said.items() if name != "certificate"} if isinstance(said, dict) else {}
    keys = list(_key_rows(transaction, head.head.number)) if rooted else []
    for nodes in (lambda: stored_nodes(transaction), lambda: _worked_out(transaction, head.head.number)):
        made = _made(row, canonical(rest), head, heads, keys, nodes)
        if made is not None and not _wrong(made, entry.certificate, heads):
            return made
    raise LedgerError(
        f"the record does not lead from entry {number} to its signed head, or not to a published one: somebody wrote "
        "to the database, or the entry of a published head was lost and given up. No receipt was made. Find the place: "
        "sfumato ledger verify"
    )


def _key_rows(transaction: Transaction, most: int) -> Iterator[Row]:
    """The rows by which a root says whose key does what; that none is left out follows from the numbers in them."""
    kinds = {LedgerOpened.KIND, *(cls.KIND for cls in KEYS)}
    return (row for row in transaction.rows_of(sorted(kinds)) if row.number <= most)


def _made(
    row: Row,
    said: str,
    head: SignedHead,
    heads: Sequence[SignedHead],
    keys: Sequence[Row],
    nodes: Callable[[], Node],
) -> Receipt | None:
    """A receipt from some nodes; None where there are none to make it from."""
    size = head.head.number
    try:
        node = nodes()
        links = [Link(head=each, path=_hex(consistency_path(each.head.number, size, node))) for each in heads]
        path = _hex(inclusion_path(row.number - 1, size, node))
        steps = [
            KeyStep(number=each.number, previous=each.previous, nonce=each.nonce, body=each.body, path=way)
            for each in keys
            for way in (_hex(inclusion_path(each.number - 1, size, node)),)
        ]
    except LedgerError:
        return None
    return Receipt(
        number=row.number,
        previous=row.previous,
        nonce=row.nonce,
        said=said,
        path=path,
        head=head,
        links=tuple(links),
        keys=tuple(steps),
    )


def _wrong(receipt: Receipt, certificate: str, heads: Sequence[SignedHead]) -> bool:
    head = receipt.head.head
    path = [bytes.fromhex(each) for each in receipt.path]
    held = inclusion_holds(receipt.leaf(certificate), receipt.number - 1, head.number, path, bytes.fromhex(head.tree))
    try:
        shown = not receipt.keys or receipt.ring.signed(receipt.head)
    except SfumatoError:
        shown = False
    return not held or not shown or any(_compared(receipt, each, _Trusted())[0] for each in heads)


def stored_nodes(transaction: Transaction) -> Node:
    """The subtrees as rows carry them, to be proven; those that end in lost entries are put together."""

    def node(level: int, index: int) -> bytes:
        end, size = (index + 1) << level, 1 << level
        row = transaction.row_until(end)
        if row is None or row.number <= end - size:
            return nothing(level)
        if row.number < end:
            return node_hash(node(level - 1, 2 * index), node(level - 1, 2 * index + 1))
        if level == 0:
            return leaf_hash(row.digest)
        try:
            return bytes.fromhex(row.subtrees[(level - 1) * HASH : level * HASH])
        except ValueError:
            raise LedgerError(
                f"entry {end} carries something else than hashes of subtrees; nothing was done."
            ) from None

    return node


def _worked_out(transaction: Transaction, size: int) -> Node:
    """All complete subtrees, from the digests of all rows."""
    leaves = [EMPTY_LEAF] * size
    for row in transaction.rows():
        if row.number <= size:
            leaves[row.number - 1] = leaf_hash(row.digest)
    levels = [leaves]
    while len(levels[-1]) > 1:
        below = levels[-1]
        levels.append([node_hash(below[place], below[place + 1]) for place in range(0, len(below) - 1, 2)])
    return lambda level, index: levels[level][index]


def _hex(path: tuple[bytes, ...]) -> tuple[str, ...]:
    return tuple(each.hex() for each in path)
