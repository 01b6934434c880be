"""Verification: whether the record, its stored state and its anchor agree, and if not, where.

A digest covers all rows above it. One signature that holds for the end of a run of rows whose chain holds therefore
speaks for all of them: whoever could change one of them without breaking the chain could find collisions of SHA-256. So
one signature in :data:`RUN` is checked, and each where a chain is broken or a signature does not hold.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf
from typing import Any  # stored rows by keys, with values of four kinds

from sfumato.core.documents import Json, encode
from sfumato.errors import LedgerError, SfumatoError
from sfumato.governance.anchor import SignedHead
from sfumato.governance.charging import Lines, check_charge
from sfumato.governance.entries import (
    CHARGING,
    KEYS,
    START,
    Acted,
    Entry,
    LedgerOpened,
    Migrated,
    Recovered,
    Reserved,
    Row,
)
from sfumato.governance.entry_tree import Frontier, entered
from sfumato.governance.keyring import KeyRing
from sfumato.governance.leaves import map_of
from sfumato.governance.ledger_state import MemoryLedgerState, Totals, admit, apply, end_of
from sfumato.governance.state_map import StateMap
from sfumato.governance.stored_answer import entry_of
from sfumato.governance.transaction import Transaction

__all__ = ["LedgerFinding", "check", "check_record", "checked_state"]

_TOLD = {Recovered.KIND, Migrated.KIND, *(cls.KIND for cls in KEYS)}
"""Entries that are read also where nothing is replayed: they say how numbers go on, and which signatures there are."""

RUN = 1000
"""Rows for which one signature speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFinding:
    """What is wrong, and with which entry; 0 stands for the record as a whole."""

    entry: int
    problem: str

    def __str__(self) -> str:
        return f"entry {self.entry}: {self.problem}" if self.entry else self.problem


def check(
    transaction: Transaction, *, heads: tuple[SignedHead, ...], key: str | None = None
) -> Iterator[LedgerFinding]:
    """All that is wrong with a ledger and its stored state: see :func:`check_record`."""
    return check_record(transaction.rows(), heads=heads, key=key, kept=transaction)


def checked_state(
    rows: Iterable[Row], *, heads: tuple[SignedHead, ...], key: str, unsigned: bool = False
) -> MemoryLedgerState:
    """The state that follows from a record in which nothing is wrong; else an error that names the first finding."""
    state = MemoryLedgerState()
    for finding in check_record(rows, heads=heads, key=key, unsigned=unsigned, state=state):
        raise LedgerError(f"the record does not hold, and nothing was changed: {finding}")
    return state


def check_record(
    rows: Iterable[Row],
    *,
    heads: tuple[SignedHead, ...],
    key: str | None = None,
    kept: Transaction | None = None,
    unsigned: bool = False,
    every_signature: bool = False,
    replayed: bool = True,
    state: MemoryLedgerState | None = None,
) -> Iterator[LedgerFinding]:
    """Everything that is wrong with a record; an auditor needs no more than its export and the heads.

    ``heads`` are signed heads to hold it to: the anchor's, and any that were published. ``key`` is the public key that
    the reader trusts, that of a root where the ledger has one; without it the one that the record states. ``kept`` is
    the stored state, if it is to follow from it too. ``unsigned`` rows are those of exports and databases from before
    rows were signed. ``state`` is an empty one to replay in; one that was replayed before goes on after its head. With
    ``every_signature`` that of each row is checked, though those below speak for it. Not ``replayed``, the chain and
    the signatures alone are looked at, and no entry is read but those that say which keys sign. Time and memory grow
    linearly with the record.
    """
    state, readable = MemoryLedgerState() if state is None else state, replayed
    number, digest = (0, START) if state.head is None else (state.head.number, state.head.digest)
    trusted, mapped = key, _Mapped(state)
    lines: Lines = {}
    ring = state.decided.keys
    bare: list[int] = []
    digests: dict[int, str] = {} if state.head is None else {number: digest}
    signed = _Signed(every=every_signature)
    wanted = list(heads)
    nearest = min((head.head.number for head in wanted), default=inf)
    for row in rows:
        told = replayed or row.number != number + 1 or row.number == 1 or _tells(row, ring)
        entry = _safe(row) if told else None
        expected = row.expected
        if row.number != number + 1 or row.previous != digest or row.digest != expected or not _filed(row, entry):
            for finding in _linked(row, entry, number, digest):
                signed.every = True
                yield finding
        if isinstance(entry, Recovered) and entry.after and not _agreed_here(entry.after, number, digests):
            yield LedgerFinding(entry=row.number, problem="is a recovery that was agreed to for another record")
        number, digest = row.number, row.digest
        digests[number] = digest
        bound = entry.bound if isinstance(entry, Acted) else None
        if bound is not None and digests.get(bound.head) != bound.digest:
            yield LedgerFinding(entry=number, problem="is a ballot that was signed for another record than this one")
        reached = [head for head in wanted if head.head.number <= number] if number >= nearest else []
        if reached:
            wanted = [head for head in wanted if head.head.number > number]
            nearest = min((head.head.number for head in wanted), default=inf)
        given_up = [head for head in reached if _given_up(head, row, entry)] if reached else reached
        for head in reached:
            if head not in given_up and (head.head.number, head.head.digest) != (row.number, row.digest):
                yield LedgerFinding(entry=head.head.number, problem="is not the one that a signed head states")
        if ring is not None or number == 1:
            ring = _certified(ring, row, entry)
        if row.number == 1 and isinstance(entry, LedgerOpened) and entry.root is not None:
            if ring is None:
                yield LedgerFinding(entry=1, problem="is not signed by the root that it names")
        elif row.number == 1 and isinstance(entry, LedgerOpened):
            trusted = entry.key if trusted is None else trusted
            if trusted != entry.key:
                yield LedgerFinding(entry=1, problem="states another key than the one that is trusted")
        elif row.number == 1:
            yield LedgerFinding(entry=1, problem="does not open a ledger")
        if readable:
            before = state.head
            problem = _entered(state, row, entry, lines)
            readable = problem is None
            if kept is not None and _completed(state, before, row) != row.subtrees:
                yield LedgerFinding(
                    entry=row.number, problem="carries other subtrees of the tree of entries than follow from it"
                )
            if problem is not None:
                yield LedgerFinding(entry=row.number, problem=problem)
        if row.head:
            problem = _stated(row, state.head if readable else None) if replayed else None
            if problem is not None:
                yield LedgerFinding(entry=row.number, problem=problem)
            elif signed.holds_back(row, ring):
                yield from signed.end(trusted, ring)
            if isinstance(entry, Migrated):
                bare.clear()  # those before it were replayed by who signed this one
        elif not unsigned:
            bare.append(row.number)
        for head in reached if readable else ():
            if head.head.digest == row.digest and head.head.state not in ("", mapped.now().root()):
                yield LedgerFinding(entry=row.number, problem="leads to another state than a signed head states")
            if head.head.digest == row.digest and head.head.tree not in ("", end_of(state).tree):
                yield LedgerFinding(entry=row.number, problem="ends another tree of entries than a signed head states")
        for head in given_up if replayed else ():
            after = state.head
            if isinstance(entry, Recovered) and entry.whole:
                continue
            if after is None or after.epsilon < head.head.epsilon or after.delta < head.head.delta:
                yield LedgerFinding(
                    entry=row.number, problem="gave up a signed head without charging what that head states"
                )
    yield from signed.end(trusted, ring)
    if bare:
        yield LedgerFinding(
            entry=bare[0], problem=f"is not signed, nor are {len(bare) - 1} others: somebody added them to the database"
        )
    for head in wanted:
        place = head.head.number
        yield LedgerFinding(
            entry=place, problem=f"is missing: a signed head states it, and the record ends at {number}"
        )
    if ring is not None and trusted is not None and trusted not in ring.roots:
        yield LedgerFinding(entry=1, problem="the key that is trusted is not a root of this ledger: give its root")
    for head in heads:
        if not _holds(head, trusted, ring):
            yield LedgerFinding(entry=head.head.number, problem="the signature of a head of this entry does not hold")
    if readable and kept is not None:
        try:
            yield from _compared(state, mapped.now(), kept)
        except (SfumatoError, ValueError) as wrong:
            yield LedgerFinding(entry=0, problem=f"the stored state cannot be read: {wrong}")


def _tells(row: Row, ring: KeyRing | None) -> bool:
    """Whether a row says how numbers go on or, where there is a root, whose signatures hold: by its text too."""
    return row.kind in _TOLD or (ring is not None and any(f'"{cls.KIND}"' in row.body for cls in KEYS))


def _agreed_here(after: str, number: int, digests: dict[int, str]) -> bool:
    """Whether a record ended so when its recovery was agreed to; at most two entries come between (tables, keys)."""
    return after in {digests.get(each) for each in range(number - 2, number + 1)}


def _given_up(head: SignedHead, row: Row, entry: Entry | None) -> bool:
    """Whether a recovery went on after the entry of a head was lost."""
    return isinstance(entry, Recovered) and row.number - entry.lost <= head.head.number < row.number


def _entered(state: MemoryLedgerState, row: Row, entry: Entry | None, known: Lines) -> str | None:
    """Enter a row into the replayed state; what keeps it from being entered, if anything does."""
    try:
        entry = row.entry if entry is None else entry
        charged = None
        if not isinstance(entry, CHARGING):
            known.clear()
        if isinstance(entry, Reserved):
            check_charge(state, entry, known)
            charged = admit(state, entry)
        apply(state, row, entry, charged)
    except SfumatoError as wrong:
        return str(wrong).replace("\n", " ")
    return None


def _certified(ring: KeyRing | None, row: Row, entry: Entry | None) -> KeyRing | None:
    """The key ring with what an entry certifies, also where the state can be replayed no more; None without a root."""
    try:
        if isinstance(entry, LedgerOpened) and row.number == 1:
            return KeyRing.opened(entry)
        return ring.after(row.number, entry) if ring is not None and isinstance(entry, KEYS) else ring
    except SfumatoError:
        return ring  # which the replay names


def _holds(head: SignedHead, trusted: str | None, ring: KeyRing | None) -> bool:
    """Whether a head was signed by the key that is trusted, or by one that a root certified for where it stands."""
    return ring.signed(head) if ring is not None else trusted is not None and head.holds(trusted)


def _stated(row: Row, end: Totals | None) -> str | None:
    """Whether the signed head of a row states something else than the row and what follows from the record."""
    if end is not None and row.head.startswith(_beginning(row, end)) and _ends(row, end):
        return None
    try:
        head = json.loads(row.head)["head"]
        stated = (head["number"], head["digest"])
        sums = (head["at"], head["epsilon"], head["delta"], head.get("decisions", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "carries something else than a signed head"
    if stated != (row.number, row.digest):
        return "carries a signature that does not hold for it"
    if end is not None and sums != (end.at, encode(end.epsilon), encode(end.delta), end.decisions):
        return "was signed with other sums or decisions than follow from the record"
    if end is not None and head.get("tree", "") not in ("", end.tree):  # heads before version 3 state none
        return "was signed with another tree of entries than follows from the record"
    return None


def _completed(state: MemoryLedgerState, before: Totals | None, row: Row) -> str:
    """The subtrees that a row completes, as they are stored; of a row that has no place in the tree, what it carries.

    ``before`` is the head that it came after: a row that was entered has made the tree already.
    """
    if state.head is not None and state.head is not before:
        return state.head.frontier.subtrees
    try:
        return entered(Frontier() if before is None else before.frontier, row.number, row.digest).subtrees
    except LedgerError:
        return row.subtrees


def _beginning(row: Row, end: Totals) -> str:
    """What the text of a head begins with as this code writes it; one that begins otherwise is read."""
    return (
        f'{{"head":{{"at":"{end.at}","decisions":"{end.decisions}","delta":"{_written(end.delta)}",'
        f'"digest":"{row.digest}","epsilon":"{_written(end.epsilon)}","kind":"'
    )


def _written(amount: Fraction) -> Json:
    """A sum as heads state it; most entries leave sums as they are, so that the last ones are kept, each itself."""
    for known, text in tuple(_WRITTEN):  # taken at once: another thread may verify at the same time
        if known is amount:
            return text
    text = encode(amount)
    _WRITTEN.append((amount, text))
    return text


_WRITTEN: deque[tuple[Fraction, Json]] = deque(maxlen=4)


def _ends(row: Row, end: Totals) -> bool:
    """Whether the rest of it states the number and the tree, as this code writes them."""
    return f',"number":{row.number},"state":"' in row.head and f'","tree":"{end.tree}","version":' in row.head


@dataclass(slots=True)
class _Signed:
    """The rows whose signed heads were not checked yet: the last one speaks for those above it, if its own holds.

    Where keys have roles each speaks for itself: who signed a row may have been revoked before it.
    """

    every: bool
    waiting: list[tuple[int, str, str]] = field(default_factory=list)

    def holds_back(self, row: Row, ring: KeyRing | None) -> bool:
        """Remember a row; whether a run of them is to be checked now."""
        self.waiting.append((row.number, row.digest, row.head))
        return self.every or ring is not None or len(self.waiting) >= RUN

    def end(self, trusted: str | None, ring: KeyRing | None) -> Iterator[LedgerFinding]:
        """Check those that wait."""
        rows, self.waiting = self.waiting, []
        if rows and not self.every and ring is None and _signed_row(*rows[-1], trusted, ring):
            return
        for row in rows:
            if not _signed_row(*row, trusted, ring):
                yield LedgerFinding(entry=row[0], problem="carries a signature that does not hold for it")


def _signed_row(number: int, digest: str, head: str, trusted: str | None, ring: KeyRing | None) -> bool:
    try:
        signed = SignedHead.read(head)
    except SfumatoError:
        return False
    return (signed.head.number, signed.head.digest) == (number, digest) and _holds(signed, trusted, ring)


@dataclass(slots=True)
class _Mapped:
    """The map of a state that is replayed, made again only where the state has gone on."""

    state: MemoryLedgerState
    made: StateMap | None = None
    at: Totals | None = None

    def now(self) -> StateMap:
        """The map of the state as it is."""
        if self.made is None or self.at is not self.state.head:
            self.made, self.at = map_of(self.state), self.state.head
        return self.made


def _filed(row: Row, entry: Entry | None) -> bool:
    """Whether a row is filed as what it is."""
    return entry is None or row.kind == entry.KIND


def _linked(row: Row, entry: Entry | None, number: int, digest: str) -> Iterator[LedgerFinding]:
    jumps = isinstance(entry, Recovered) and row.number == number + 1 + entry.lost
    if row.number != number + 1 and not jumps:
        missing = f"{number + 1} is" if row.number == number + 2 else f"{number + 1} to {row.number - 1} are"
        yield LedgerFinding(entry=row.number, problem=f"does not follow entry {number}: {missing} missing")
    if row.previous != digest:
        yield LedgerFinding(
            entry=row.number, problem="does not follow the entry before it: one was edited, removed or moved"
        )
    if row.digest != row.expected:
        yield LedgerFinding(
            entry=row.number, problem="was edited: its digest is not that of its number, place and text"
        )
    if entry is not None and not _filed(row, entry):
        yield LedgerFinding(entry=row.number, problem=f"is filed as {row.kind!r} and is {entry.KIND!r}")


def _safe(row: Row) -> Entry | None:
    try:
        return entry_of(row)
    except SfumatoError:
        return None


def _compared(replayed: MemoryLedgerState, made: StateMap, transaction: Transaction) -> Iterator[LedgerFinding]:
    """Where the stored state differs from the replayed one."""
    end = None if replayed.head is None else replace(replayed.head, state=made.root())
    if transaction.totals() != end:
        yield LedgerFinding(entry=0, problem="the head in the stored state is not the end of the record")
    tables: tuple[tuple[str, dict[Any, Any], Iterable[tuple[Any, Any]]], ...] = (
        ("balance", dict(replayed.kept), ((balance.name, balance) for balance in transaction.balances())),
        ("dataset", dict(replayed.editions), ((edition.dataset, edition) for edition in transaction.editions())),
        ("charge", dict(replayed.charges), ((charge.number, charge) for charge in transaction.charges())),
        ("answer", dict(replayed.answers), transaction.answers()),
        ("node", dict(made.changed), transaction.nodes()),
    )
    for what, expected, found in tables:
        differ = [name for name, value in found if expected.pop(name, None) != value]
        for name in sorted({*differ, *expected}, key=str):
            yield LedgerFinding(
                entry=0, problem=f"the {what} {name} in the stored state does not follow from the record"
            )
