"""The ledger of an institution: its accounts, populations and datasets, in a database with an anchor."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path

from sfumato.core.budget import Budget
from sfumato.core.events import PrivacyEvent
from sfumato.core.exact import Exact
from sfumato.core.query import Dataset, check_name
from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.core.units import Unit, describe
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, Refused
from sfumato.governance.anchor import Anchor, SignedHead
from sfumato.governance.anchor_database import DatabaseAnchor, anchor_at
from sfumato.governance.balances import Balance
from sfumato.governance.decision_state import DecisionState, agreed
from sfumato.governance.durable import DurableLedger
from sfumato.governance.entries import (
    AccountOpened,
    ClockConfirmed,
    DatasetDeclared,
    Entry,
    Expired,
    LedgerOpened,
    Migrated,
    PopulationDeclared,
    Recovered,
    Repriced,
    Row,
    WitnessNamed,
)
from sfumato.governance.governed import Governed
from sfumato.governance.leasing import Lease
from sfumato.governance.leaves import map_of
from sfumato.governance.ledger_state import (
    Charge,
    MemoryLedgerState,
    account_line,
    dataset_line,
    end_of,
    population_line,
)
from sfumato.governance.recovery import seen_loss
from sfumato.governance.signed_record import SignedRecord, account_in, system_clock
from sfumato.governance.state_map import EMPTY
from sfumato.governance.store import Store
from sfumato.governance.terms import check_cap, check_unit, filter_of, levels_of, people, written
from sfumato.governance.transaction import Transaction
from sfumato.governance.verify import LedgerFinding, check, checked_state
from sfumato.governance.witnessed import WitnessedHead, witnessed_findings

__all__ = ["Ledger"]


class Ledger(Governed):
    """All budgets of an institution.

    Guarantee: what counts against each account, dataset and population never exceeds its cap, however many threads and
    processes spend at once and wherever one of them is killed; a database that is older than its anchor is refused.
    Assumes: the anchor is kept apart from the database, and whoever can write to both, or holds the key, is trusted.
    """

    def __init__(self, record: SignedRecord, witness: str | None = None) -> None:
        self.record = record
        self.lease = Lease(record, witness)
        self.identifier = record.identifier

    def __repr__(self) -> str:
        return f"<Ledger {self.identifier}>"

    @classmethod
    def create(
        cls,
        url: str | Path,
        *,
        key: SigningKey | str | Path,
        anchor: str | Path,
        clock: Callable[[], datetime] = system_clock,
        witness: str | None = None,
    ) -> "Ledger":
        """Make a ledger in an empty database; ``anchor`` is a new file, best on another disk, or another database."""
        signing, store, place = _key(key), Store(url), anchor_at(anchor)
        if isinstance(place, DatabaseAnchor) and place.store.url == store.url:
            raise InvalidInput("the anchor would lie in the ledger's own database; nothing was made. Name another one.")
        with _closed_on_error(store):
            if place.last() is not None:
                raise LedgerError(f"the anchor {place.name} exists already; nothing was made. Give a new one.")
            store.create()
            record = SignedRecord(store, place, signing, secrets.token_hex(16), clock)
            with store.writing() as transaction:
                transaction.believe(record.identifier, EMPTY)
                entry = LedgerOpened(at=written(clock()), identifier=record.identifier, key=signing.public_text)
                first = transaction.append(entry, record.signed)
            place.create(first)
        return cls(record, witness)

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        key: SigningKey | str | Path,
        anchor: str | Path,
        clock: Callable[[], datetime] = system_clock,
        witness: str | None = None,
    ) -> "Ledger":
        """Open a ledger, after comparing it with its anchor; one that lost entries is refused.

        What came after the anchored head is believed by the signatures of its rows. A ledger of older tables is
        replayed from its first entry and held to its anchor before they are brought up to date. ``witness`` is where
        the witness is asked that the record names, if it names one.
        """
        ledger = cls.unchecked(url, key=key, anchor=anchor, clock=clock, witness=witness)
        record = ledger.record
        with _closed_on_error(record.store):
            with record.reading() as transaction:
                head = record.head(transaction)
                transaction.entry_at(head.head.number, head.head.digest)  # an end that is gone is noticed at once
            # A process may have been killed between the record and the anchor.
            record.advance(head, durable=True)
        return ledger

    @classmethod
    def recover(
        cls,
        url: str | Path,
        *,
        key: SigningKey | str | Path,
        anchor: str | Path,
        reason: str,
        charge: Budget | None = None,
        approvals: Mapping[str, SigningKey | None] | None = None,
        clock: Callable[[], datetime] = system_clock,
        witness: str | None = None,
        witness_lost: bool = False,
    ) -> "Ledger":
        """Go on after entries were lost, by a decision that is recorded with its reason.

        Where a board is seated, ``approvals`` name a quorum of its members, each with the key that the board knows.

        Every balance is charged what the anchor says was charged in the lost entries, and at least ``charge``: no
        balance can have lost more. Where the record went another way than the anchor, the anchor's whole sum is taken.
        Where the anchor is lost too, nobody knows what was charged, and everything that is left under every cap is: a
        published head does not help, since more may have come after it. Answers and declarations in the lost entries
        are gone; certificates still verify. Every row is checked first, and the stored state is written anew from the
        record. Of a backup from before rows were signed nobody knows whether they are the ledger's own: nothing is left
        after it, and where the anchor is newer than that it is refused.

        Where the record names a witness, it is asked: then every balance is charged what the witness has seen and the
        record does not hold, and its lease, for what may have come after; an old anchor beside an old database does
        not hide that. Where the witness is lost too (``witness_lost``), everything that is left is charged. The entry
        says how the gap is known.
        """
        if not reason.strip():
            raise NotDeclared("a recovery is a decision: say why in reason='…'. Nothing was changed.")
        signing, store, place = _key(key), _existing(url), anchor_at(anchor)
        with _closed_on_error(store):
            last = place.readable()
            with store.rewriting() as (transaction, older):
                record = SignedRecord(store, place, signing, _identifier(transaction, signing, store), clock)
                if older is not None and last is not None and last.head.state:
                    raise Refused(
                        f"{store.name} is a backup from before rows were signed, and its anchor is from after that: "
                        "anybody may have written its rows. Nothing was changed. Bring a newer backup back."
                    )
                state = checked_state(transaction.rows(), heads=(), key=signing.public_text, unsigned=older is not None)
                digests = {} if last is None else _digests(transaction, last.head.number)
                named = state.decided.witness
                seen = None if named is None or witness_lost else seen_loss(record, transaction, named, witness)
                missed = seen is not None and not seen.held
                lost, gap = record.gap(end_of(state), digests, last, missed=missed or witness_lost)
                most, basis = charge or Budget.none(), _basis(last)
                unknown = gap is None or witness_lost
                if seen is not None:
                    unknown, basis = seen.gap is None, f"{basis}; {seen.basis}" if last is not None else seen.basis
                    most = _larger(most, seen.gap or most)
                    lost = max(lost, seen.last.signed.head.number - end_of(state).number)
                elif named is not None:
                    unknown, basis = True, "the witness is lost, or saw nothing: nobody knows what was charged"
                entry = Recovered(
                    at=written(record.clock()),
                    reason=reason,
                    anchored="" if last is None else last.text,
                    lost=lost,
                    gap=_larger(gap or Budget.none(), most),
                    whole=unknown or older is not None,
                    witnessed="" if seen is None else seen.last.text,
                    basis=basis,
                )
                given = (approvals or {}).items()
                entry = replace(
                    entry, approvals=tuple((name, agreed(record.identifier, entry, signer)) for name, signer in given)
                )
                moved = [] if older is None else [_migrated(state, older)]
                after = record.rewrite(transaction, state, [*moved, entry])
            if last is None:
                place.set_aside()
                place.create(after)
            else:
                place.advance(after, durable=True)
        return cls(record, witness)

    @property
    def key(self) -> SigningKey:
        """The key that signs heads, and the certificates of vaults that are given no other."""
        return self.record.key

    def open_account(
        self,
        path: str,
        *,
        unit: Unit,
        cap: Budget,
        reason: str,
        method: str = "basic",
        order: Exact | None = None,
    ) -> None:
        """Open a level of the tree: ``institution``, then ``institution/department``, then a project of it.

        ``method`` is the filter that decides: ``basic`` (sums of ε and δ), ``zcdp`` or ``rdp``, which keeps to one
        ``order``. A cap in ρ, ``Budget(rho=…)``, is kept by a zCDP filter with exactly that ρ. ``reason`` says why this
        cap.
        """
        levels = levels_of(path)
        check_cap(cap, reason)
        kept = filter_of(cap, method, order)

        def make(transaction: Transaction, at: str) -> list[Entry]:
            if transaction.balance(account_line(path)) is not None:
                raise Refused(f"the account {path!r} is open already; nothing was changed.")
            for level in levels[:-1]:
                above = account_in(transaction, level)
                if people(above.unit) != people(unit):
                    raise Refused(
                        f"{level!r} protects {describe(above.unit)} and {path!r} would protect {describe(unit)}: their "
                        "losses do not add up. Nothing was changed. Open a separate tree for each unit."
                    )
            return [AccountOpened(at=at, path=path, unit=unit, cap=cap.without_rho, reason=reason, **kept)]

        self._enter(make)

    def declare_population(
        self,
        name: str,
        *,
        unit: Unit,
        cap: Budget,
        reason: str,
        method: str = "basic",
        order: Exact | None = None,
    ) -> None:
        """Declare people, and the cap that everything known about them shares; ``method`` as for an account."""
        check_name(name, "the name of a population")
        check_cap(cap, reason)
        kept = filter_of(cap, method, order)

        def make(transaction: Transaction, at: str) -> list[Entry]:
            if transaction.balance(population_line(name)) is not None:
                raise Refused(f"the population {name!r} is declared already; nothing was changed.")
            return [PopulationDeclared(at=at, name=name, unit=unit, cap=cap.without_rho, reason=reason, **kept)]

        self._enter(make)

    def declare_dataset(self, dataset: Dataset, *, population: str, cap: Budget) -> None:
        """Declare a version of a dataset; said again it changes nothing, said differently it is refused."""
        check_cap(cap, "declared")
        if cap.rho is not None:
            raise Refused(
                f"the cap of a dataset is kept as sums of ε and δ, and {dataset.name!r} would have one in ρ; nothing "
                "was changed. State it as ε and δ, and put ρ on the account or on the population."
            )

        def make(transaction: Transaction, at: str) -> list[Entry]:
            if transaction.balance(population_line(population)) is None:
                raise NotDeclared(f"the population {population!r} is not declared; nothing was changed. Declare it.")
            balance, about = transaction.balance(dataset_line(dataset.name)), transaction.population(dataset.name)
            if balance is not None and balance.cap != cap:
                raise Refused(
                    f"the dataset {dataset.name!r} has a cap of {balance.cap}, which all its versions share; nothing "
                    "was changed. A raise is a decision of the board."
                )
            if about is not None and about != population:
                raise Refused(
                    f"{dataset.name!r} is about {about!r}, and a new version is about the same people; nothing was "
                    "changed."
                )
            if transaction.edition(dataset) is not None:
                return []
            return [DatasetDeclared(at=at, dataset=dataset, population=population, cap=cap)]

        self._enter(make)

    def declare_version(self, dataset: Dataset) -> None:
        """Declare a new version of a dataset that is known: its people and its cap are those of the others."""
        with self.record.reading() as transaction:
            about, balance = transaction.population(dataset.name), transaction.balance(dataset_line(dataset.name))
        if about is None or balance is None:
            raise NotDeclared(f"the dataset {dataset.name!r} is not declared; nothing was changed. Declare it first.")
        self.declare_dataset(dataset, population=about, cap=balance.cap)

    def account(
        self,
        path: str,
        *,
        unit: Unit,
        reader: Callable[[str], Release] | None = None,
        purpose: str | None = None,
        recipient: str | None = None,
    ) -> "DurableLedger":
        """One account, as a vault charges it. ``reader`` turns the text of a stored certificate into a release.

        ``purpose`` and ``recipient`` are what its releases are for and who gets them; datasets with terms ask for them.
        """
        with self.record.reading() as transaction:
            check_unit(account_in(transaction, path), unit)
        return DurableLedger(self, path, unit, reader, purpose, recipient)

    def balance(self, path: str) -> Balance:
        """How an account stands."""
        with self.record.reading() as transaction:
            return account_in(transaction, path)

    def balances(self) -> list[Balance]:
        """How every account, dataset and population stands."""
        with self.record.reading() as transaction:
            return transaction.balances()

    def charge(self, number: int) -> Charge:
        """A charge and what became of it."""
        with self.record.reading() as transaction:
            return transaction.known(number)

    def reprice(self, number: int, *, cost: Budget, reason: str, event: PrivacyEvent | None = None) -> None:
        """Count a past charge at what it really cost, after a claim was corrected; never at less than before.

        The new cost counts even beyond a cap: what was released is known. Where a filter keeps a balance, ``event``
        says what the release really was; without it the filter is used up.
        """
        if not reason.strip():
            raise NotDeclared("a new price is a correction: say in reason='…' of what. Nothing was changed.")

        def make(transaction: Transaction, at: str) -> list[Entry]:
            losses = []
            for line, loss in transaction.known(number).losses:
                balance = transaction.balance(line)
                now = None if balance is None or event is None else balance.lost(event)
                room = Fraction(0) if balance is None else balance.filter_left or Fraction(0)
                losses.append((line, loss + room if now is None else max(loss, now)))
            return [Repriced(at=at, charge=number, cost=cost, losses=tuple(losses), reason=reason)]

        self._enter(make)
        self.lease.renew_beside(at_once=True)  # it counts also beyond a lease

    def expire(self) -> tuple[int, ...]:
        """Settle stale charges and name them.

        They go on counting, unless they were queued and never started: then nothing was read.
        """
        done = []
        with self.record.writing() as writing:
            at = writing.time()
            for stale in writing.transaction.stale(at):
                writing.append(Expired(at=at, charge=stale.number, counted=stale.started))
                done.append(stale.number)
        return tuple(done)

    def confirm_clock(self, reason: str) -> None:
        """Say, on record, that nobody used the ledger since its last entry and that the clock is right.

        Needed after more than 7 days, or after more than was confirmed before. No budget is renewed by it: windows of
        time go by the days of the data, never by the clock.
        """
        if not reason.strip():
            raise NotDeclared("somebody vouches for a clock: say why in reason='…'. Nothing was changed.")
        with self.record.writing() as writing:
            since = writing.transaction.end().at
            writing.append(ClockConfirmed(at=writing.time(confirmed=True), since=since, reason=reason))

    def head(self) -> SignedHead:
        """The signed head of the record, to be published."""
        with self.record.reading() as transaction:
            return self.record.head(transaction)

    def verify(self, *heads: SignedHead, witnessed: Sequence[WitnessedHead] = ()) -> tuple[LedgerFinding, ...]:
        """All that is wrong with the record, its stored state and its anchor, held to published ``heads`` too.

        Heads that were ``witnessed`` are held to the witness that the record names, and the record to them.
        """
        anchored = self.record.anchor.readable()
        with self.record.store.reading() as transaction:  # whatever it holds
            known = heads if anchored is None else (*heads, anchored)
            found = tuple(check(transaction, heads=known, key=self.record.key.public_text))
            for head in witnessed:
                keys = [entry.key for row in transaction.rows() if isinstance(entry := _named(row), WitnessNamed)]
                problems = witnessed_findings(transaction.rows(), head, keys, self.record.key.public_text)
                found = (*found, *(LedgerFinding(entry=place, problem=problem) for place, problem in problems))
        if anchored is None:
            found = (
                *found,
                LedgerFinding(entry=0, problem=f"the anchor {self.record.anchor.name} is missing or cannot be read"),
            )
        return found

    def export(self) -> list[str]:
        """The bodies of the record, in order."""
        with self.record.reading() as transaction:
            return [row.body for row in transaction.rows()]

    def close(self) -> None:
        """Give the database's connections back."""
        self.lease.wait()
        self.record.anchor.close()
        self.record.store.close()

    @classmethod
    def unchecked(
        cls,
        url: str | Path,
        *,
        key: SigningKey | str | Path,
        anchor: str | Path,
        clock: Callable[[], datetime] = system_clock,
        witness: str | None = None,
    ) -> "Ledger":
        """Open a ledger without comparing it with its anchor: only to verify one that might be refused."""
        signing, store, place = _key(key), _existing(url), anchor_at(anchor)
        with _closed_on_error(store):
            if not store.current():
                _brought_up_to_date(store, place, signing, clock)
            with store.reading() as transaction:
                identifier = _identifier(transaction, signing, store)
        return cls(SignedRecord(store, place, signing, identifier, clock), witness)

    def decision_state(self) -> DecisionState:
        """What was decided and declared so far."""
        with self.record.reading() as transaction:
            return transaction.decision_state()

    def rows(self) -> Iterator[Row]:
        """The rows of the record, in order."""
        with self.record.reading() as transaction:
            yield from transaction.rows()

    def _enter(self, make: Callable[[Transaction, str], Sequence[Entry]]) -> None:
        with self.record.writing() as writing:
            for entry in make(writing.transaction, writing.time()):
                writing.append(entry)


@contextmanager
def _closed_on_error(store: Store) -> Iterator[None]:
    """Give the connections back where a ledger is refused: nobody else holds it."""
    try:
        yield
    except BaseException:
        store.close()
        raise


def _named(row: Row) -> Entry | None:
    return row.entry if row.kind == WitnessNamed.KIND else None


def _key(key: SigningKey | str | Path) -> SigningKey:
    return key if isinstance(key, SigningKey) else SigningKey.load(key)


def _existing(url: str | Path) -> Store:
    store = Store(url)
    with _closed_on_error(store):
        if not store.exists():
            raise LedgerError(f"there is no ledger at {store.name}; nothing was done. Make one: sfumato ledger init")
    return store


def _identifier(transaction: Transaction, key: SigningKey, store: Store) -> str:
    """What the record calls itself; the anchor has to say the same."""
    first = transaction.row(1)
    opened = None if first is None else first.entry
    if not isinstance(opened, LedgerOpened):
        raise LedgerError(f"the record of {store.name} does not begin with its opening; nothing was done.")
    if opened.key != key.public_text:
        raise LedgerError(f"{store.name} is signed with another key than this one; nothing was done.")
    return opened.identifier


def _brought_up_to_date(store: Store, place: Anchor, key: SigningKey, clock: Callable[[], datetime]) -> None:
    """Replay a ledger of older tables, hold it to its anchor, and only then sign what follows from it."""
    with store.rewriting() as (transaction, older):
        if older is None:
            return  # somebody else was faster
        record = SignedRecord(store, place, key, _identifier(transaction, key, store), clock)
        last = record.anchored()
        if last.head.state:
            raise LedgerError(
                f"the tables of {store.name} are older than its anchor {place.name}: the database was restored from a "
                "backup. Nothing was changed. Bring the newer database back, or have the board recover the ledger."
            )
        state = checked_state(transaction.rows(), heads=(last,), key=key.public_text, unsigned=True)
        end = end_of(state)
        if end.number != last.head.number:
            raise LedgerError(
                f"entries {last.head.number + 1} to {end.number} of {store.name} came after what was anchored, and "
                "rows were not signed then, so that anybody may have added them. Nothing was changed. If you know "
                "them, open the ledger once with the sfumato that wrote them, which anchors them."
            )
        record.rewrite(transaction, state, [_migrated(state, older)])


def _migrated(state: MemoryLedgerState, older: str) -> Migrated:
    end = end_of(state)
    return Migrated(at=end.at, tables=older, digest=end.digest, state=map_of(state).root())


def _digests(transaction: Transaction, number: int) -> dict[int, str]:
    row = transaction.row(number)
    return {} if row is None else {number: row.digest}


def _basis(last: SignedHead | None) -> str:
    if last is None:
        return "the anchor is lost: nobody knows what was charged"
    return f"the anchor was at entry {last.head.number}"


def _larger(one: Budget, other: Budget) -> Budget:
    return Budget(epsilon=max(one.epsilon, other.epsilon), delta=max(one.delta, other.delta))
