"""One account of a durable ledger, as a vault charges it.

Order of a charge: reserve (durable, then anchored), read and draw, store the answer and commit in one transaction,
deliver. Whatever stops in between leaves the charge counted.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.budget import Budget
from sfumato.core.days import check_days
from sfumato.core.documents import canonical
from sfumato.core.events import PrivacyEvent
from sfumato.core.ledger import Reservation, State, check_next
from sfumato.core.one_at_a_time import one_at_a_time
from sfumato.core.query import Dataset, check_name
from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.core.statement import Account
from sfumato.core.stored import Stored
from sfumato.core.units import Unit
from sfumato.errors import LedgerError, NotDeclared, Refused
from sfumato.governance.balances import Balance, check_together
from sfumato.governance.charging import approvals_of, lines_of, standing_lines, window_balances
from sfumato.governance.entries import Advanced, Committed, DataClosed, DatasetClosed, Released, Reserved, Started
from sfumato.governance.key_documents import Role
from sfumato.governance.ledger_state import (
    Charge,
    account_line,
    admit,
    drawn_on,
    question_key,
    request_of,
)
from sfumato.governance.signed_record import Writing, account_in
from sfumato.governance.terms import after
from sfumato.governance.transaction import Transaction

if TYPE_CHECKING:
    from sfumato.governance.ledger import Ledger

__all__ = ["DurableLedger", "certificate_at"]


@dataclass(frozen=True, slots=True)
class DurableLedger:
    """One account of a ledger, as the gate charges it (:class:`~sfumato.core.ledger.AccountLedger`).

    Guarantee: a charge counts against the account and all levels above it, each dataset and each population that it
    touches, in one transaction, before a row is read; or against none. Safe for threads, processes and after a fork.
    """

    ledger: "Ledger"
    path: str
    unit: Unit
    reader: Callable[[str], Release] | None = None
    purpose: str | None = None
    recipient: str | None = None
    reads: tuple[str, str] | None = None
    """The first and the last day of the data, of charges that do not say it themselves."""
    signer: str | None = None
    """The public key that signs certificates: where keys have roles, held to its own before anything is charged."""
    custody: str | None = None
    """Who keeps the ledger, as releases state it: None where the process that reads the data does."""

    def __post_init__(self) -> None:
        if self.reads is not None:
            check_days(self.reads)

    @property
    def key(self) -> SigningKey:
        """The key that signs certificates where a vault is given no other: the ledger's own, or that of the role."""
        return self.ledger.release_key

    def signed_by(self, public: str) -> "DurableLedger":
        """This account for a vault whose certificates are signed with that key, if it may sign them."""
        self.ledger.check_release_key(public)
        return replace(self, signer=public)

    @property
    def budget(self) -> Budget:
        """The cap of the account itself."""
        return self.ledger.balance(self.path).cap

    @property
    def spent(self) -> Budget:
        """What counts as spent by the account, open reservations included."""
        return self.ledger.balance(self.path).spent

    @property
    def left(self) -> Budget:
        """What may still be asked for: the least that the account and the levels above it have left."""
        return self.left_for(())

    @property
    def home(self) -> str:
        """Which ledger this is."""
        return self.ledger.identifier

    def left_for(self, datasets: Sequence[Dataset]) -> Budget:
        """What may still be asked for of these datasets: the least over all balances that would be charged."""
        with self.ledger.record.reading() as transaction:
            lines = standing_lines(transaction, self.path, unit=self.unit, datasets=datasets)
            found = [transaction.balance(line) for line in lines]
            found += window_balances(transaction, self.path, self.reads)
        rooms = [balance.left for balance in found if balance is not None]
        return Budget(epsilon=min(room.epsilon for room in rooms), delta=min(room.delta for room in rooms))

    def answer(self, question: str) -> str | None:
        """The certificate that answers a canonical question, if it was asked before."""
        with self.ledger.record.reading() as transaction:
            found = transaction.answer(question_key(question))
            return None if found is None else certificate_at(transaction, *found, question)

    def answer_of(self, reservation: Reservation) -> str | None:
        """The certificate that a charge was committed with: what a retry hands out."""
        with self.ledger.record.reading() as transaction:
            charge = transaction.known(reservation.number)
            return None if charge.answer is None else certificate_at(transaction, charge.answer, charge.answered, None)

    def given(self, reservation: Reservation) -> Release | None:
        """The answer that a charge was settled with; None while it is open."""
        return self._read(self.answer_of(reservation))

    def stored(
        self, key: str, datasets: Sequence[Dataset] = (), *, reads: tuple[str, str] | None = None
    ) -> Release | None:
        """The answer given to the same question before, if there is one and its datasets may still be used like this.

        It costs nothing, and still goes to somebody for some purpose: terms and vetoes hold for it too. One that was
        charged for other days of the data than are stated now is refused.
        """
        return self._read(self.stored_text(key, datasets, reads=reads))

    def stored_text(
        self, key: str, datasets: Sequence[Dataset] = (), *, reads: tuple[str, str] | None = None
    ) -> str | None:
        """The same by the text of its certificate."""
        text = self.answer(key)
        if text is None:
            return None
        self.check_use(datasets)
        paid, stated = self.paid_for(key), reads or self.reads
        if paid is not None and None not in (paid.reads, stated) and paid.reads != stated:
            raise Refused(
                f"the same question was charged as one that reads {_days(paid.reads)}, and is asked now as one that "
                f"reads {_days(stated)}: one of the two is wrong, and the stored answer is not delivered. Nothing was "
                "read and nothing was spent. State the days that the data hold; where they have changed, declare a new "
                "version."
            )
        return text

    def paid_for(self, question: str) -> Reserved | None:
        """The charge behind a stored answer, as it was entered; None where there is no answer."""
        with self.ledger.record.reading() as transaction:
            found = transaction.answer(question_key(question))
            answer = None if found is None else transaction.entry_at(*found)
            charge = transaction.known(answer.charge) if isinstance(answer, Committed) else None
            entry = None if charge is None else transaction.entry_at(charge.number, charge.digest)
        return entry if isinstance(entry, Reserved) else None

    def check_use(self, datasets: Sequence[Dataset]) -> None:
        """Refuse datasets that may not be used like this now, by terms, vetoes and the board; writes nothing."""
        with self.ledger.record.reading() as transaction:
            self._permitted(transaction, datasets, self.ledger.record.time(transaction), Budget.none())

    @contextmanager
    def asking(self, question: str) -> Iterator[None]:
        """Hold a canonical question against all others who ask it of this ledger, in any thread and process; they wait.

        Guarantee: who comes next finds the answer stored, or the data closed; where the one before was killed, its
        charge counts, and the next pays its own.
        """
        with one_at_a_time((self.ledger.identifier, question)), self.ledger.record.store.asking(question_key(question)):
            yield

    def _read(self, text: str | None) -> Release | None:
        if text is None:
            return None
        if self.reader is None:
            raise NotDeclared("this account was opened without a reader of certificates; take answer(…) instead.")
        return self.reader(text)

    def reserve(
        self,
        cost: Budget,
        *,
        datasets: Sequence[Dataset] = (),
        event: PrivacyEvent | None = None,
        idempotency: str | None = None,
        queued: bool = False,
        lasts: timedelta | None = None,
        reads: tuple[str, str] | None = None,
        question: str | None = None,
    ) -> Reservation:
        """Charge before anything is read, or refuse with the numbers and change nothing.

        ``datasets`` are all private ones that will be read. ``event`` says what filters of ρ or Rényi loss count. The
        same ``idempotency`` key gives the same reservation again. A ``queued`` charge must be :meth:`start`-ed before
        a row is read; after ``lasts`` a charge is stale (:meth:`Ledger.expire`). ``reads`` are the first and the last
        day of the data, which an account with windows of time needs, where they are not those of this account view.
        ``question`` is the canonical question: under one key no other can be asked.
        """
        if not datasets:
            raise NotDeclared("a charge names the datasets that will be read; nothing was read and nothing was spent.")
        if idempotency is not None:
            check_name(idempotency, "an idempotency key")
        if reads is None:
            reads = self.reads
        else:
            check_days(reads)
        asked = tuple(sorted(set(datasets), key=lambda each: (each.name, each.edition)))

        def charged() -> tuple[Reservation, bool]:
            return self._reserved(
                cost,
                asked=asked,
                event=event,
                idempotency=idempotency,
                queued=queued,
                lasts=lasts,
                reads=reads,
                question=question,
            )

        reservation, found = self.ledger.lease.within(charged)
        if found:
            self.ledger.lease.renew()
        return reservation

    def _reserved(
        self,
        cost: Budget,
        *,
        asked: tuple[Dataset, ...],
        event: PrivacyEvent | None,
        idempotency: str | None,
        queued: bool,
        lasts: timedelta | None,
        reads: tuple[str, str] | None,
        question: str | None,
    ) -> tuple[Reservation, bool]:
        """The charge, and whether it is one that was open before: then the witness is asked before anybody draws."""
        found = False
        with self.ledger.record.writing() as writing:
            transaction, at = writing.transaction, writing.time()
            self._check_signer(transaction, at)
            lines = lines_of(transaction, self.path, unit=self.unit, datasets=asked, cost=cost, reads=reads)
            entry = Reserved(
                at=at,
                account=self._stated(transaction, account_in(transaction, self.path)),
                unit=self.unit,
                datasets=asked,
                lines=lines,
                cost=cost,
                rho=None,
                idempotency=idempotency,
                queued=queued,
                expires=None if lasts is None else after(at, lasts),
                purpose=self.purpose,
                recipient=self.recipient,
                approvals=self._permitted(transaction, asked, at, cost),
                reads=reads,
                question=None if question is None else question_key(question),
                losses=self._losses(transaction, lines, event),
            )
            known = None if idempotency is None else transaction.charge_named(idempotency)
            if known is not None:
                number, account = known.number, _same(transaction, known, entry)
                found = self._found_open(writing, known)
                if not found:
                    writing.confirm()
            else:
                charged = admit(transaction, entry)
                self.ledger.lease.admit(transaction, cost)
                own = account_line(self.path)
                account = self._stated(transaction, next(balance for balance in charged if balance.name == own))
                number = writing.append(replace(entry, account=account), charged).head.number
        return Reservation(number=number, cost=cost, account=account, reads=reads), found

    def check_fits(
        self,
        charges: Sequence[tuple[Budget, PrivacyEvent | None]],
        *,
        datasets: Sequence[Dataset] = (),
        reads: tuple[str, str] | None = None,
    ) -> None:
        """Refuse charges that do not fit together as all that they count against stands now; writes nothing.

        It holds nothing back: whoever else charges the account meanwhile may take what was left.
        """
        reads = self.reads if reads is None else reads
        if reads is not None:
            check_days(reads)
        draws: list[tuple[Balance, Budget, Fraction | None]] = []
        with self.ledger.record.reading() as transaction:
            at = self.ledger.record.time(transaction)
            self._check_signer(transaction, at)
            for cost, event in charges:
                self._permitted(transaction, datasets, at, cost)
                self.ledger.lease.check_size(transaction, cost)
                lines = lines_of(transaction, self.path, unit=self.unit, datasets=datasets, cost=cost, reads=reads)
                losses = dict(self._losses(transaction, lines, event))
                draws += [(*drawn_on(transaction, line, cost), losses.get(line)) for line in lines]
        check_together(draws)

    def _found_open(self, writing: Writing, charge: Charge) -> bool:
        """Enter that rows may be read once more for a charge that was open before, where a witness is named.

        A copy of database and anchor holds the charge too. The entry has a random part, so that a witness who has seen
        that of one copy refuses the other; and it counts against the lease, since somebody may be drawing already.
        """
        transaction = writing.transaction
        if charge.state is not State.RESERVED or not charge.started:
            return False
        self.ledger.lease.admit(transaction, charge.cost)
        if transaction.decision_state().witness is None:
            return False
        writing.append(Started(at=writing.time(), charge=charge.number))
        return True

    def start(self, reservation: Reservation) -> None:
        """Say, durably, that rows are read from now on for a queued charge.

        One that the witness has seen waiting, a copy may hold too: then the witness is asked before a row is read. One
        that was started before is gone on with, as where it is found by its key.
        """
        if self.ledger.lease.within(lambda: self._started(reservation.number)):
            self.ledger.lease.renew()

    def _started(self, number: int) -> bool:
        """Enter the start of a queued charge; whether the witness is asked before anybody draws."""
        with self.ledger.record.writing() as writing:
            charge = writing.transaction.reserved(number)
            if charge.started:
                return self._found_open(writing, charge)
            seen = self.ledger.lease.has_seen(writing.transaction, charge.number)
            writing.append(Started(at=writing.time(), charge=charge.number))
        return seen

    def charge_named(self, idempotency: str) -> Charge | None:
        """The charge that was made under an idempotency key, if there is one."""
        with self.ledger.record.reading() as transaction:
            return transaction.charge_named(idempotency)

    def answer_named(self, idempotency: str) -> str | None:
        """The certificate that answers the charge under an idempotency key; None where it has none."""
        with self.ledger.record.reading() as transaction:
            charge = transaction.charge_named(idempotency)
            if charge is None or charge.answer is None:
                return None
            return certificate_at(transaction, charge.answer, charge.answered, None)

    def named(self, idempotency: str) -> State | None:
        """What became of the charge under an idempotency key; None if there is none."""
        charge = self.charge_named(idempotency)
        return None if charge is None else charge.state

    def again(self, number: int, question: str) -> Reservation:
        """The open charge of a question, by its number, for a stream that goes on; charges nothing."""
        with self.ledger.record.reading() as transaction:
            named, charge = transaction.decision_state().witness, transaction.known(number)
            transaction.check_certain(charge)
            if charge.state is not State.RESERVED:
                raise Refused(
                    f"what charge {number} pays for was closed; nothing was read and nothing was spent. What a stream "
                    "released is kept: ask for released(…)."
                )
        found = self._made_for(number, question)
        if named is not None:
            self.ledger.lease.within(lambda: self._gone_on_with(number))
            self.ledger.lease.renew()
        return found

    def _gone_on_with(self, number: int) -> None:
        with self.ledger.record.writing() as writing:
            self._found_open(writing, writing.transaction.reserved(number))

    def settled(self, number: int, question: str) -> Release | None:
        """The answer that the charge of a question, by its number, was settled with; None while it is open."""
        return self.given(self._made_for(number, question))

    def _made_for(self, number: int, question: str) -> Reservation:
        with self.ledger.record.reading() as transaction:
            charge = transaction.charge(number)
            entry = None if charge is None else transaction.entry_at(number, charge.digest)
        named = entry.question if isinstance(entry, Reserved) and entry.account.name == self.path else None
        if not isinstance(entry, Reserved) or named != question_key(question):
            raise Refused(f"charge {number} of this ledger was made for something else; nothing was read or spent.")
        return Reservation(number=number, cost=entry.cost, account=entry.account, reads=entry.reads)

    def advance(self, reservation: Reservation, place: int, holder: str, *, datasets: Sequence[Dataset] = ()) -> None:
        """Take the next place in the count of an open charge, for a state of a stream that goes on.

        Guarantee: a place belongs to one ``holder`` for ever, and the count only moves forward; taken again by its
        holder it changes nothing. Refused where a later place was taken, or this one by another; where ``datasets`` may
        not be used any more, so that a veto, or a version that was closed, ends a stream; and after a recovery.
        """
        # Not waited for: the record is durable, and the next who opens the ledger anchors its end.
        with self.ledger.record.writing(durable=False) as writing:
            charge, at = self._running(writing.transaction, reservation, datasets)
            last = None if charge.place is None else (charge.place, charge.holder)
            if check_next(charge.number, place, holder, last):
                writing.append(Advanced(at=at, charge=charge.number, place=place, holder=holder))

    def check_running(self, reservation: Reservation, *, datasets: Sequence[Dataset] = ()) -> None:
        """Refuse what :meth:`advance` would refuse of a stream that has no count; writes nothing."""
        with self.ledger.record.reading() as transaction:
            self._running(transaction, reservation, datasets)

    def _running(
        self, transaction: Transaction, reservation: Reservation, datasets: Sequence[Dataset]
    ) -> tuple[Charge, str]:
        """The open charge of a stream that may go on, and the time."""
        charge, at = transaction.reserved(reservation.number), self.ledger.record.time(transaction)
        editions = [transaction.edition(dataset) for dataset in datasets]
        if not charge.started or any(edition is None or edition.closed for edition in editions):
            raise Refused(f"what charge {charge.number} pays for may not be read; nothing was released.")
        self._permitted(transaction, datasets, at, Budget.none())
        return charge, at

    def commit(self, reservation: Reservation, key: str, release: Release) -> None:
        """Store the answer and settle its charge in one step, before it is delivered."""
        said = release.statement
        if (said.spend, said.account, said.reads) != (reservation.cost, reservation.account, reservation.reads):
            raise Refused(
                f"the release does not state the charge {reservation.number} that was made for it; nothing was stored, "
                "nothing may be delivered, and the charge counts."
            )
        self.commit_text(reservation, key, release.certificate.text)

    def commit_text(self, reservation: Reservation, question: str, certificate: str) -> None:
        """The same for an answer of any kind, by the text of its certificate."""
        # Not waited for: what must outlive a crash of the machine is the charge, and that was anchored durably.
        with self.ledger.record.writing(durable=False) as writing:
            charge = writing.transaction.reserved(reservation.number)
            if not charge.started:
                raise LedgerError(f"charge {charge.number} is queued and was never started; nothing was stored.")
            at = writing.time()
            self._check_signer(writing.transaction, at)
            writing.append(Committed(at=at, charge=charge.number, question=question, certificate=certificate))
        self.ledger.lease.renew_beside()

    def release(self, reservation: Reservation) -> None:
        """Give a charge back: one that was queued and never started, so that no row was read for it."""
        with self.ledger.record.writing(durable=False) as writing:
            charge = writing.transaction.reserved(reservation.number)
            if charge.started:
                raise Refused(
                    f"rows may have been read for charge {charge.number}: it counts. Nothing was changed. "
                    "Only a charge that was queued and never started is given back."
                )
            writing.append(Released(at=writing.time(), charge=charge.number))

    def close(self, datasets: Sequence[Dataset], stored: Mapping[Dataset, Stored], *, of_others: bool = True) -> bool:
        """Let no row of these versions, nor under other names declared before, be read any more; False if closed.

        Where it is not known that rows lie where somebody says, not ``of_others``: then versions that are about the
        people of these datasets are closed under other names, and no others.
        """
        with self.ledger.record.writing() as writing:
            first = not any(_shut(writing.transaction, dataset, what) for dataset, what in stored.items())
            for dataset in datasets:
                edition = writing.transaction.edition(dataset)
                first = first and not (edition is not None and edition.closed)
                if edition is not None and not edition.closed:
                    writing.append(DatasetClosed(at=writing.time(), dataset=dataset))
            names = {
                name if of_others else _about(writing.transaction, dataset, name)
                for dataset, what in stored.items()
                for name in what.names
            }
            if names:
                writing.append(DataClosed(at=writing.time(), names=tuple(sorted(names))))
        return first

    def closed(self, dataset: Dataset) -> bool:
        """Whether a version was closed."""
        with self.ledger.record.reading() as transaction:
            edition = transaction.edition(dataset)
        return edition is not None and edition.closed

    def shut(self, dataset: Dataset, stored: Stored) -> bool:
        """Whether the rows of a version were closed under another name since the ledger knows the version."""
        with self.ledger.record.reading() as transaction:
            return _shut(transaction, dataset, stored)

    def _check_signer(self, transaction: Transaction, at: str) -> None:
        """Refuse a key that may not sign certificates in the next entry, where keys have roles."""
        if self.signer is not None and self.ledger.record.opening is not None:
            keys = transaction.decision_state().keys or self.ledger.record.opening
            keys.check(Role.RELEASE, self.signer, transaction.end().number + 1, at)

    def _stated(self, transaction: Transaction, balance: Balance) -> Account:
        """How the account stands, as releases state it, and who keeps its ledger and watches over it."""
        named = transaction.decision_state().witness
        stated = balance.account(self.path, self.ledger.identifier)
        return replace(stated, custody=self.custody, witness=None if named is None else named.key)

    def _permitted(
        self, transaction: Transaction, datasets: Sequence[Dataset], at: str, cost: Budget
    ) -> tuple[int, ...]:
        return approvals_of(transaction, datasets, purpose=self.purpose, recipient=self.recipient, at=at, cost=cost)

    @staticmethod
    def _losses(
        transaction: Transaction, lines: Sequence[str], event: PrivacyEvent | None
    ) -> tuple[tuple[str, Fraction], ...]:
        """What an event counts against each line that a filter keeps; what a filter cannot hold is refused."""
        found = ((line, transaction.balance(line)) for line in lines)
        lost = ((line, None if balance is None else balance.lost(event)) for line, balance in found)
        return tuple((line, loss) for line, loss in lost if loss is not None)


def _shut(transaction: Transaction, dataset: Dataset, stored: Stored) -> bool:
    closed = transaction.decision_state().closed
    names = {*stored.names, *(_about(transaction, dataset, name) for name in stored.names)} if closed else set()
    last = max((closed.get(name, 0) for name in names), default=0)
    return last > 0 and transaction.declared(dataset) < last


def _days(reads: tuple[str, str] | None) -> str:
    return "" if reads is None else "/".join(reads)


def _about(transaction: Transaction, dataset: Dataset, name: str) -> str:
    """The name of stored rows among those of the people that a dataset is about."""
    return hashlib.sha256(canonical([transaction.population(dataset.name) or "", name]).encode()).hexdigest()


def _same(transaction: Transaction, known: Charge, asked: Reserved) -> Account:
    """The account of a charge that is asked for again under its idempotency key."""
    if known.request != request_of(asked):
        raise Refused(
            f"the idempotency key of charge {known.number} is used for another request; nothing was read and nothing "
            "was spent. Give each request its own key."
        )
    if known.state in (State.RELEASED, State.EXPIRED):
        raise LedgerError(
            f"charge {known.number} under this idempotency key is {known.state.value}; nothing was read and nothing "
            "more was spent. Ask again with a new key."
        )
    transaction.check_certain(known)
    entry = transaction.entry_at(known.number, known.digest)
    if not isinstance(entry, Reserved):
        raise LedgerError(f"charge {known.number} is not in the record; nothing was read and nothing was spent.")
    return entry.account


def certificate_at(transaction: Transaction, number: int, digest: str | None, question: str | None) -> str:
    """The certificate that an entry of the record stores, held to its digest and, if said, to its question."""
    entry = transaction.entry_at(number, digest or "")
    if not isinstance(entry, Committed) or question not in (None, entry.question):
        raise LedgerError(f"entry {number} is not the answer that the stored state says it is; nothing was delivered.")
    return entry.certificate
