"""The ledger of an institution: its accounts, populations and datasets, in a database with an anchor."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from pathlib import Path

from sfumato.core.budget import Budget
from sfumato.core.events import PrivacyEvent
from sfumato.core.exact import Exact
from sfumato.core.query import Dataset, check_name
from sfumato.core.release import Release
from sfumato.core.signature import SigningKey, read_public_key
from sfumato.core.units import Unit, describe
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, Refused
from sfumato.governance.agreements import Agreement
from sfumato.governance.anchor import SignedHead
from sfumato.governance.anchor_database import DatabaseAnchor, anchor_at
from sfumato.governance.balances import Balance
from sfumato.governance.board import Board
from sfumato.governance.decision_state import DecisionState
from sfumato.governance.durable import DurableLedger
from sfumato.governance.entries import (
    AccountOpened,
    BoardSeated,
    ClockConfirmed,
    DatasetDeclared,
    Entry,
    Expired,
    PopulationDeclared,
    Repriced,
    Row,
)
from sfumato.governance.governed import Found, Governed
from sfumato.governance.key_documents import Role, SignedByRoot
from sfumato.governance.keyed import Keyed
from sfumato.governance.leasing import Lease
from sfumato.governance.ledger_state import (
    Charge,
    account_line,
    dataset_line,
    population_line,
)
from sfumato.governance.opening import (
    Key,
    brought_up_to_date,
    check_administered,
    closed_on_error,
    existing,
    first_entries,
    migrated_from,
    opened_in,
    private_key,
    public_key_of,
    record_of,
    role_key,
    unsigned_in,
)
from sfumato.governance.recovery import Seen, agreed, entered_anew, loss_of
from sfumato.governance.researched import Researched
from sfumato.governance.seen_head import SeenHead
from sfumato.governance.signed_record import SignedRecord, account_in, system_clock
from sfumato.governance.spelling import check_new, check_spelling
from sfumato.governance.state_map import EMPTY
from sfumato.governance.store import Store
from sfumato.governance.terms import check_cap, check_unit, filter_of, levels_of, people, written
from sfumato.governance.transaction import Transaction
from sfumato.governance.verified import Verified
from sfumato.governance.verify import checked_state

__all__ = ["Ledger"]


class Ledger(Governed, Keyed, Verified, Researched):
    """All budgets of an institution.

    Guarantee: what counts against each account, dataset and population never exceeds its cap, however many threads and
    processes spend at once and wherever one of them is killed; a database that is older than its anchor is refused.
    Assumes: the anchor is kept apart from the database, and whoever can write to both, or holds the key, is trusted.
    With a root there are several keys, each trusted with its role alone (:class:`~sfumato.governance.keyed.Keyed`).
    """

    def __init__(self, record: SignedRecord, *, release: Key | None = None, witness: str | None = None) -> None:
        self.record = record
        self.lease = Lease(record, witness)
        self.identifier = record.identifier
        self._release = release

    def __repr__(self) -> str:
        return f"<Ledger {self.identifier}>"

    @classmethod
    def create(
        cls,
        url: str | Path,
        *,
        key: Key,
        anchor: str | Path,
        root: Key | None = None,
        next_root: str | Path | None = None,
        release: Key | None = None,
        administer: Key | None = None,
        clock: Callable[[], datetime] = system_clock,
        witness: str | None = None,
    ) -> "Ledger":
        """Make a ledger in an empty database; ``anchor`` is a new file, best on another disk, or another database.

        With a ``root`` keys have roles: ``key`` charges and signs heads, ``release`` signs certificates, ``administer``
        declares; the root vouches for all three and is then kept apart. ``next_root`` is the public key of the root
        that may take its place one day; without it none can. Without a root ``key`` does everything.
        """
        if root is None and any(said is not None for said in (next_root, release, administer)):
            raise NotDeclared("keys with roles come from a root: say root=…. Nothing was made.")
        signing, store, place = private_key(key), Store(url), anchor_at(anchor)
        if isinstance(place, DatabaseAnchor) and place.store.url == store.url:
            raise InvalidInput("the anchor would lie in the ledger's own database; nothing was made. Name another one.")
        with closed_on_error(store):
            if place.last() is not None:
                raise LedgerError(f"the anchor {place.name} exists already; nothing was made. Give a new one.")
            at, identifier = written(clock()), secrets.token_hex(16)
            roles = {"release": release, "administer": administer}
            opened, certified = first_entries(at, identifier, signing, root, next_root, roles)
            store.create()
            record = record_of(store, place, signing, opened, clock, root=opened.root, administer=administer)
            with store.writing() as transaction:
                transaction.believe(record.identifier, EMPTY, record.opening)
                for entry in (opened, *certified):
                    first = transaction.append(entry, record.signed)
            place.create(first)
        return cls(record, release=release, witness=witness)

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        key: Key,
        anchor: str | Path,
        root: str | Path | None = None,
        release: Key | None = None,
        administer: Key | None = None,
        clock: Callable[[], datetime] = system_clock,
        witness: str | None = None,
    ) -> "Ledger":
        """Open a ledger, after comparing it with its anchor; one that lost entries is refused.

        What came after the anchored head is believed by the signatures of its rows. A ledger of older tables is
        replayed from its first entry and held to its anchor before they are brought up to date. Where a ledger has a
        root, its public key is ``root``, and ``key`` charges; ``release`` and ``administer`` are read when they are
        needed. Administrative entries that nobody with that role signed are refused here as far as they are filed as
        what they are; all of them are named by :meth:`verify`. ``witness`` is where the witness is asked that the
        record names, if it names one.
        """
        ledger = cls.unchecked(
            url,
            key=key,
            anchor=anchor,
            root=root,
            release=release,
            administer=administer,
            clock=clock,
            witness=witness,
        )
        record = ledger.record
        with closed_on_error(record.store):
            with record.reading() as transaction:
                head = record.head(transaction)
                transaction.entry_at(head.head.number, head.head.digest)  # an end that is gone is noticed at once
                check_administered(transaction, record)
            # A process may have been killed between the record and the anchor.
            record.advance(head, durable=True)
        return ledger

    @classmethod
    def read(
        cls,
        url: str | Path,
        *,
        key: str | Path,
        anchor: str | Path | None = None,
        head: SignedHead | None = None,
        clock: Callable[[], datetime] = system_clock,
        checked: bool = True,
    ) -> "Ledger":
        """Open a ledger for reading, with a public key alone (its 64 digits, or its file); nothing can be written.

        ``key`` is the ledger's, or that of its root where it has one.

        Guarantee: what is shown was signed by the owner of ``key``, and is not older than the ``anchor``, or than the
        published ``head``, and never goes back while this ledger is open. Assumes: of a ledger that is opened without
        both, an old copy would not be noticed (:attr:`held_to_nothing`). One that is not ``checked`` is compared with
        nothing at first: only to verify a ledger that might be refused.
        """
        trusted = read_public_key(key)
        place = SeenHead(head) if anchor is None else anchor_at(anchor)
        store = existing(url, reads=True)
        with closed_on_error(store):
            if not store.current():
                raise LedgerError(
                    f"the tables of {store.name} are those of an older or newer sfumato, and a reader does not change "
                    "them. Nothing was read. Have the owner of the ledger open it once with this version."
                )
            with store.reading() as transaction:
                record = record_of(store, place, None, opened_in(transaction, store), clock, root=trusted)
            if checked:
                with record.reading() as transaction:
                    end = transaction.end()
                    transaction.entry_at(end.number, end.digest)  # an end that is gone is noticed at once
                    if head is not None and anchor is not None:
                        record.proven(transaction, head)
        return cls(record)

    @classmethod
    def recover(
        cls,
        url: str | Path,
        *,
        key: Key,
        anchor: str | Path,
        reason: str,
        root: str | Path | None = None,
        charge: Budget | None = None,
        approvals: Mapping[str, SigningKey | None] | None = None,
        agreements: Sequence[Agreement] = (),
        board: Board | None = None,
        clock: Callable[[], datetime] = system_clock,
        witness: str | None = None,
        witness_lost: bool = False,
        documents: Sequence[SignedByRoot] = (),
    ) -> "Ledger":
        """Go on after entries were lost, by a decision that is recorded with its reason.

        Where a board is seated, ``approvals`` name a quorum of its members, each with the key that the board knows, or
        ``agreements`` are what they signed elsewhere (:meth:`agreement`). A board from before acts were signed may have
        too few keys for that: ``board`` is then the same one with keys.

        Every balance is charged what the anchor says was charged in the lost entries, and at least ``charge``: no
        balance can have lost more. Where the record went another way than the anchor, the anchor's whole sum is taken.
        Where the anchor is lost too, nobody knows what was charged, and everything that is left under every cap is: a
        published head does not help, since more may have come after it. Answers and declarations in the lost entries
        are gone; certificates still verify. Charges that are open count, and nobody goes on with them: what they paid
        for may have been delivered. Every row is checked first, and the stored state is written anew from the record.
        Of a backup from before rows were signed nobody knows whether they are the ledger's own: nothing is left
        after it, and where the anchor is newer than that it is refused. Keys that were revoked in the lost entries are
        valid again, and whoever stole one can make an anchor that states a small loss. So where keys have roles and no
        witness is named, ``documents`` are all those of the root that were lost, in their order, which are entered
        anew, and the root's word on how many it has signed (:func:`~sfumato.governance.recovery.vouched`): without it
        an anchor that states lost entries is refused, and so is one whose key a document revokes. Versions of data
        that were declared before are closed, since a lost entry may have closed them: declare new ones
        (:meth:`declare_version`).

        Where the record names a witness, it is asked: then every balance is charged what the witness has seen and the
        record does not hold, and its lease, for what may have come after; an old anchor beside an old database does
        not hide that. Where the witness is lost too (``witness_lost``), everything that is left is charged. The entry
        says how the gap is known.
        """
        if not reason.strip():
            raise NotDeclared("a recovery is a decision: say why in reason='…'. Nothing was changed.")
        signing, store, place, trusted = private_key(key), existing(url), anchor_at(anchor), public_key_of(root)
        with closed_on_error(store):
            last = place.readable()
            with store.rewriting() as (transaction, older):
                record = record_of(store, place, signing, opened_in(transaction, store), clock, root=trusted)
                unsigned = unsigned_in(older)
                if unsigned and last is not None and last.head.state:
                    raise Refused(
                        f"{store.name} is a backup from before rows were signed, and its anchor is from after that: "
                        "anybody may have written its rows. Nothing was changed. Bring a newer backup back."
                    )
                state = checked_state(transaction.rows(), heads=(), key=record.public_key, unsigned=unsigned)
                seen = Seen(witness, lost=witness_lost)
                entry = loss_of(
                    record, transaction, state, last, reason, charge, seen, whole=unsigned, documents=documents
                )
                entry = agreed(record, entry, approvals or {}, agreements)
                moved: list[Entry] = [] if older is None else [migrated_from(state, older)]
                before, later = entered_anew(documents, entry.at, len(moved) + (board is not None))
                moved += before
                if board is not None:
                    moved.append(BoardSeated(at=entry.at, board=board, by="recovery", reason=reason, proposal=None))
                after = record.rewrite(transaction, state, [*moved, entry, *later])
            if last is None:
                place.set_aside()
                place.create(after)
            else:
                place.advance(after, durable=True)
        return cls(record, witness=witness)

    @classmethod
    def agreement(
        cls,
        url: str | Path,
        *,
        key: Key,
        anchor: str | Path,
        reason: str,
        root: str | Path | None = None,
        charge: Budget | None = None,
        board: Board | None = None,
        clock: Callable[[], datetime] = system_clock,
        witness: str | None = None,
        witness_lost: bool = False,
        documents: Sequence[SignedByRoot] = (),
    ) -> Agreement:
        """A paper on which members agree to a recovery, as :meth:`recover` would carry it out now; changes nothing."""
        signing, store, place, trusted = private_key(key), existing(url), anchor_at(anchor), public_key_of(root)
        with closed_on_error(store):
            if not store.current():
                raise Refused(f"{store.name} is a backup of older tables: its members agree with their keys, at it.")
            with store.reading() as transaction:
                record = record_of(store, place, signing, opened_in(transaction, store), clock, root=trusted)
                state = checked_state(transaction.rows(), heads=(), key=record.public_key)
                seen = Seen(witness, lost=witness_lost)
                last = place.readable()
                entry = loss_of(
                    record, transaction, state, last, reason, charge, seen, whole=False, documents=documents
                )
        store.close()
        known = state.decided.sitting().board if board is None else board
        return Agreement.to(entry, record.identifier, known.keys)

    @property
    def key(self) -> SigningKey:
        """The key that signs heads, and without a root everything else; a reader has none."""
        return self.record.signing

    @property
    def release_key(self) -> SigningKey:
        """The key that signs the certificates of vaults that are given no other: that of the role, if one was given."""
        return self.key if self._release is None else role_key(self._release, Role.RELEASE)

    def check_release_key(self, public: str) -> None:
        """Refuse a key that may not sign certificates now, where keys have roles."""
        if self.record.opening is None:
            return
        with self.record.reading() as transaction:
            ring, end = transaction.decision_state().keys, transaction.end()
        if ring is not None:
            ring.check(Role.RELEASE, public, end.number + 1, end.at)

    @property
    def public_key(self) -> str:
        """The public key by which the heads of this ledger are believed; that of a root, where it has one."""
        return self.record.public_key

    @property
    def held_to_nothing(self) -> bool:
        """Whether an old copy of the database would not be noticed: neither an anchor nor a head was given."""
        return isinstance(self.record.anchor, SeenHead) and not self.record.anchor.given

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
            check_new(transaction, account_line(path), levels[-1].rpartition("/")[2], "the name of an account")
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
            check_new(transaction, population_line(name), name, "the name of a population")
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
            if balance is None:
                check_new(transaction, dataset_line(dataset.name), dataset.name, "the name of a dataset")
            check_spelling([dataset.edition], "the version of a dataset")
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
        reads: tuple[str, str] | None = None,
    ) -> "DurableLedger":
        """One account, as a vault charges it. ``reader`` turns the text of a stored certificate into a release.

        ``purpose`` and ``recipient`` are what its releases are for and who gets them; datasets with terms ask for them.
        ``reads`` are the first and the last day of the data, of charges that do not say them themselves.
        """
        with self.record.reading() as transaction:
            check_unit(account_in(transaction, path), unit)
        return DurableLedger(self, path, unit, reader, purpose, recipient, reads)

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

        They go on counting, unless they were queued and never started: then nothing was read. Where entries were lost
        since, nobody knows that, and they count.
        """
        done = []
        with self.record.writing() as writing:
            at = writing.time()
            for stale in writing.transaction.stale(at):
                counted = stale.started or writing.transaction.uncertain(stale)
                writing.append(Expired(at=at, charge=stale.number, counted=counted))
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
        key: Key,
        anchor: str | Path,
        root: str | Path | None = None,
        release: Key | None = None,
        administer: Key | None = None,
        clock: Callable[[], datetime] = system_clock,
        witness: str | None = None,
    ) -> "Ledger":
        """Open a ledger without comparing it with its anchor: only to verify one that might be refused."""
        signing, store, place, trusted = private_key(key), existing(url), anchor_at(anchor), public_key_of(root)
        with closed_on_error(store):
            if not store.current():
                brought_up_to_date(store, place, signing, trusted, clock)
            with store.reading() as transaction:
                opened = opened_in(transaction, store)
            record = record_of(store, place, signing, opened, clock, root=trusted, administer=administer)
        return cls(record, release=release, witness=witness)

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

    def _look(self, make: Callable[[Transaction, str], Found]) -> Found:
        with self.record.reading() as transaction:
            return make(transaction, self.record.time(transaction))
