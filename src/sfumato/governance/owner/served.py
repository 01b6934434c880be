"""One connection at the owner: which requests it may make, and which charges are its own. It knows no socket."""

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from sfumato.core.documents import Document, Json, canonical, encode, parse
from sfumato.core.events import PrivacyEvent
from sfumato.core.ledger import Reservation, State
from sfumato.core.query import Dataset, check_name
from sfumato.core.release import Release
from sfumato.core.signature import read_public_key
from sfumato.core.statement import OWNER_PROCESS, Statement
from sfumato.core.stored import Stored
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, Refused, SfumatoError
from sfumato.gate.session import SessionQuery
from sfumato.governance.durable import DurableLedger
from sfumato.governance.entries import Expired, Reserved
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import question_key
from sfumato.governance.owner import messages as said
from sfumato.governance.owner.permissions import Permissions

__all__ = ["Holders", "ServedAccount"]

MOST_NAMES = 10_000
MOST_DATASETS = 1_000
MOST_OF_AN_EVENT = 64 * 2**10
"""Signs of a privacy event: a filter works its loss out while all other writers wait."""
MOST_SECONDS = 10 * 366 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """An open charge of a connection, and what was said when it was made."""

    reservation: Reservation
    datasets: frozenset[Dataset]
    event: PrivacyEvent | None
    question: str | None
    lasting: bool


class Holders:
    """Which connection holds an open charge; one at a time, over all connections of a server.

    Who comes right after a connection was cut waits up to ``patience`` seconds until the server has noticed its end.
    """

    def __init__(self, patience: float = 2) -> None:
        self._changed, self._held, self._patience = threading.Condition(), dict[int, object](), patience

    def take(self, number: int, holder: object) -> None:
        """Hold a charge; refused while another connection does."""
        with self._changed:
            self._changed.wait_for(lambda: self._held.get(number, holder) is holder, self._patience)
            if self._held.setdefault(number, holder) is not holder:
                raise Refused(
                    f"charge {number} is held by another connection, which alone can go on with it; nothing was read "
                    "and nothing more was spent. Wait until it has ended."
                )

    def drop(self, number: int, holder: object) -> None:
        """Hold it no more."""
        with self._changed:
            if self._held.get(number) is holder:
                del self._held[number]
                self._changed.notify_all()


class ServedAccount:
    """One account, as one connection of one user may use it.

    Guarantee: a charge can be settled, moved forward or given back by the connection that made it alone. When the
    connection ends, what it left open is closed and counts; a charge under an idempotency key stays open, for a later
    connection of the same user. Each answer is verified here before it is stored, and states the charge that pays for
    it. Nothing but charging is offered.
    """

    def __init__(
        self,
        ledger: Ledger,
        hello: said.HelloRequest,
        *,
        uid: int,
        permissions: Permissions,
        reader: Callable[[str], Release],
        holders: Holders,
    ) -> None:
        permissions.check_account(uid, hello.account)
        for text, what in ((hello.purpose, "a purpose"), (hello.recipient, "a recipient")):
            if text is not None:
                check_name(text, what)
        account = ledger.account(
            hello.account,
            unit=hello.unit,
            reader=reader,
            purpose=hello.purpose,
            recipient=hello.recipient,
            reads=hello.reads,
        )
        if hello.signer is not None:
            account = account.signed_by(read_public_key(hello.signer))
        self.account: DurableLedger = replace(account, custody=OWNER_PROCESS)
        self._ledger, self._uid, self._permissions, self._reader = ledger, uid, permissions, reader
        self._holders, self._held = holders, dict[int, _Held]()
        self._answers: dict[type, Callable[..., Document]] = {
            said.AmountsRequest: self._amounts,
            said.StoredRequest: self._stored,
            said.ReserveRequest: self._reserve,
            said.StartRequest: self._start,
            said.GivenRequest: self._given,
            said.CommitRequest: self._commit,
            said.ReleaseRequest: self._release,
            said.NamedRequest: self._named,
            said.AgainRequest: self._again,
            said.SettledRequest: self._settled,
            said.AdvanceRequest: self._advance,
            said.RunningRequest: self._running,
            said.FitsRequest: self._fits,
            said.CloseRequest: self._close,
            said.ClosedRequest: self._closed,
            said.ShutRequest: self._shut,
        }

    @property
    def holding(self) -> bool:
        """Whether a charge is open that only this connection can go on with."""
        return bool(self._held)

    def answered(self, request: Document) -> Document:
        """The reply to a request; a refusal is a reply too."""
        answer = self._answers.get(type(request))
        if answer is None:
            return said.ErrorReply.of(InvalidInput(f"{request.KIND!r} is not asked here; nothing was done."))
        try:
            _check_size(request)
            return answer(request)
        except SfumatoError as wrong:
            return said.ErrorReply.of(wrong)

    def end(self) -> tuple[int, ...]:
        """Close the charges that nobody can go on with any more, and name them; they count.

        One that was queued and never started is given back, because no row was read for it.
        """
        done: list[int] = []
        failed: SfumatoError | None = None
        for number, held in tuple(self._held.items()):
            try:
                if not held.lasting and self._closed_open(number):
                    done.append(number)
            except SfumatoError as wrong:  # it stays open, counts, and nobody can go on with it
                failed = wrong
            self._let_go(number)
        if failed is not None:
            raise failed
        return tuple(done)

    def _closed_open(self, number: int) -> bool:
        """Close a charge that is still open."""
        with self._ledger.record.writing(durable=False) as writing:
            charge = writing.transaction.known(number)
            if charge.state is State.RESERVED:
                counted = charge.started or writing.transaction.uncertain(charge)
                writing.append(Expired(at=writing.time(), charge=number, counted=counted))
                return True
        return False

    # ------------------------------------------------------------------------------------------------------ charges

    def _amounts(self, _: said.AmountsRequest) -> said.AmountsReply:
        balance = self._ledger.balance(self.account.path)
        return said.AmountsReply(budget=balance.cap, spent=balance.spent, left=self.account.left)

    def _reserve(self, asked: said.ReserveRequest) -> said.ReservedReply:
        if asked.seconds is not None and not 0 < asked.seconds <= MOST_SECONDS:
            raise InvalidInput("a charge lasts from a second to ten years; nothing was read and nothing was spent.")
        key = None if asked.idempotency is None else self._key(asked.idempotency)
        found = None if key is None else self.account.charge_named(key)
        if found is not None and found.state is State.RESERVED:
            self._holders.take(found.number, self)
        try:
            reservation = self.account.reserve(
                asked.cost,
                datasets=asked.datasets,
                event=asked.event,
                idempotency=key,
                queued=asked.queued,
                lasts=None if asked.seconds is None else timedelta(seconds=asked.seconds),
                reads=asked.reads,
                question=asked.question,
            )
        except BaseException:
            if found is not None and found.number not in self._held:
                self._holders.drop(found.number, self)
            raise
        # Somebody may have made the charge under this key a moment ago: then it is theirs, and this is refused.
        if found is None or found.state is State.RESERVED:
            self._hold(reservation, asked.datasets, event=asked.event, question=asked.question, lasting=key is not None)
        return _reserved(reservation)

    def _hold(
        self,
        reservation: Reservation,
        datasets: tuple[Dataset, ...],
        *,
        event: PrivacyEvent | None,
        question: str | None,
        lasting: bool,
    ) -> None:
        self._holders.take(reservation.number, self)
        self._held[reservation.number] = _Held(
            reservation=reservation, datasets=frozenset(datasets), event=event, question=question, lasting=lasting
        )

    def _let_go(self, number: int) -> None:
        self._held.pop(number, None)
        self._holders.drop(number, self)

    def _own(self, number: int) -> _Held:
        """An open charge of this connection; what is settled is said to be, and of others nothing is said."""
        held = self._held.get(number)
        if held is not None:
            return held
        if self._made_here(number) is not None:
            with self._ledger.record.reading() as transaction:
                transaction.reserved(number)
        raise Refused(
            f"charge {number} was not made on this connection, and belongs to the one that made it; nothing was "
            "changed. What a connection leaves open when it ends counts."
        )

    def _made_here(self, number: int) -> Reserved | None:
        """The entry of a charge of this account."""
        with self._ledger.record.reading() as transaction:
            charge = transaction.charge(number)
            entry = None if charge is None else transaction.entry_at(number, charge.digest)
        return entry if isinstance(entry, Reserved) and entry.account.name == self.account.path else None

    def _start(self, asked: said.StartRequest) -> said.DoneReply:
        self.account.start(self._own(asked.number).reservation)
        return said.DoneReply()

    def _release(self, asked: said.ReleaseRequest) -> said.DoneReply:
        self.account.release(self._own(asked.number).reservation)
        self._let_go(asked.number)
        return said.DoneReply()

    def _commit(self, asked: said.CommitRequest) -> said.DoneReply:
        held = self._own(asked.number)
        release = self._reader(asked.certificate)  # only what verifies, word by word
        signer = _signer(release)
        self._permissions.check_signer(self._uid, signer)
        if self.account.signer not in (None, signer):
            raise Refused(
                "the certificate is signed with another key than the one that was named; nothing was stored, nothing "
                f"may be delivered, and charge {asked.number} counts."
            )
        problem = _mismatch(release.statement, held, asked.question, self.account.unit)
        if problem is not None:
            raise Refused(
                f"the certificate {problem}; nothing was stored, nothing may be delivered, and charge {asked.number} "
                "counts."
            )
        # By the key that did sign, whether or not one was named, at the time of the entry.
        self.account.signed_by(signer).commit(held.reservation, asked.question, release)
        self._let_go(asked.number)
        return said.DoneReply()

    def _named(self, asked: said.NamedRequest) -> said.StateReply:
        return said.StateReply(state=self.account.named(self._key(asked.idempotency)))

    def _again(self, asked: said.AgainRequest) -> said.ReservedReply:
        held, entry = self._held.get(asked.number), self._going_on(asked)
        if held is None and entry is not None:
            if not self._is_own_key(entry.idempotency):
                raise Refused(
                    f"charge {asked.number} was made on another connection and without an idempotency key of yours, so "
                    "that nobody can go on with it; nothing was resumed, and it counts. Open what is to outlive its "
                    "connection under a key: idempotency=…"
                )
            self._holders.take(asked.number, self)
        try:
            found = self.account.again(asked.number, asked.question)
        except BaseException:
            if held is None:
                self._holders.drop(asked.number, self)
            raise
        if held is None and entry is not None:
            self._hold(found, entry.datasets, event=None, question=asked.question, lasting=True)
        return _reserved(found)

    def _going_on(self, asked: said.AgainRequest) -> Reserved | None:
        """The entry of an open charge for this question; whose it is, is known before anything is entered for it."""
        entry = self._made_here(asked.number)
        if entry is None or entry.question != question_key(asked.question):
            return None
        return entry if self._ledger.charge(asked.number).state is State.RESERVED else None

    def _advance(self, asked: said.AdvanceRequest) -> said.DoneReply:
        held = self._own(asked.number)
        datasets = tuple(held.datasets.union(asked.datasets))  # whatever the client leaves out
        self.account.advance(held.reservation, asked.place, asked.holder, datasets=datasets)
        return said.DoneReply()

    def _running(self, asked: said.RunningRequest) -> said.DoneReply:
        held = self._own(asked.number)
        self.account.check_running(held.reservation, datasets=tuple(held.datasets.union(asked.datasets)))
        return said.DoneReply()

    def _fits(self, asked: said.FitsRequest) -> said.DoneReply:
        if len(asked.costs) != len(asked.events):
            raise InvalidInput("each of several charges has a cost and an event; nothing was read or spent.")
        charges = list(zip(asked.costs, asked.events, strict=True))
        self.account.check_fits(charges, datasets=asked.datasets, reads=asked.reads)
        return said.DoneReply()

    def _key(self, idempotency: str) -> str:
        """The name under which a key of this user stands in the record: nobody else can ask for it, or take it."""
        check_name(idempotency, "an idempotency key")
        whole = f"{self._uid}:{idempotency}"
        if len(whole) <= 500:
            return whole
        return f"{self._uid}:{hashlib.sha256(idempotency.encode()).hexdigest()}"

    def _is_own_key(self, idempotency: str | None) -> bool:
        return idempotency is not None and idempotency.startswith(f"{self._uid}:")

    # ------------------------------------------------------------------------------------------------------ answers

    def _stored(self, asked: said.StoredRequest) -> said.AnswerReply:
        paid = self.account.paid_for(asked.question)
        datasets = (*asked.datasets, *(() if paid is None else paid.datasets))  # whatever the client leaves out
        return said.AnswerReply(certificate=self.account.stored_text(asked.question, datasets, reads=asked.reads))

    def _given(self, asked: said.GivenRequest) -> said.AnswerReply:
        entry = self._usable(asked.number)
        reservation = Reservation(number=asked.number, cost=entry.cost, account=entry.account)
        return said.AnswerReply(certificate=self.account.answer_of(reservation))

    def _usable(self, number: int) -> Reserved:
        """The entry of a charge of this account whose answer may go to whom this connection is for."""
        entry = self._made_here(number)
        if entry is None:
            raise Refused(f"charge {number} is not one of this account; nothing was read and nothing was spent.")
        self.account.check_use(entry.datasets)
        return entry

    def _settled(self, asked: said.SettledRequest) -> said.AnswerReply:
        self._usable(asked.number)
        release = self.account.settled(asked.number, asked.question)
        return said.AnswerReply(certificate=None if release is None else release.certificate.text)

    # --------------------------------------------------------------------------------------------------------- data

    def _close(self, asked: said.CloseRequest) -> said.TruthReply:
        paid = {dataset for held in self._held.values() for dataset in held.datasets}
        if not asked.datasets or not paid.issuperset((*asked.datasets, *(dataset for dataset, _ in asked.stored))):
            raise Refused(
                "a connection closes the datasets that an open charge of its own was made for, and no others; nothing "
                "was closed."
            )
        stored = {dataset: Stored(since=0, names=frozenset(names)) for dataset, names in asked.stored}
        # Where rows lie is the client's word alone: it reaches no further than the people it was charged for.
        return said.TruthReply(truth=self.account.close(asked.datasets, stored, of_others=False))

    def _closed(self, asked: said.ClosedRequest) -> said.TruthReply:
        return said.TruthReply(truth=self.account.closed(asked.dataset))

    def _shut(self, asked: said.ShutRequest) -> said.TruthReply:
        stored = Stored(since=0, names=frozenset(asked.names))
        return said.TruthReply(truth=self.account.shut(asked.dataset, stored))


def _check_size(request: Document) -> None:
    """Refuse a request whose work would hold up others."""
    stored = getattr(request, "stored", ())
    names = sum(len(each) for _, each in stored) + len(getattr(request, "names", ()))
    if max(len(stored), len(getattr(request, "datasets", ()))) > MOST_DATASETS or names > MOST_NAMES:
        raise InvalidInput(
            f"a request names more than {MOST_DATASETS:,} datasets, or more than {MOST_NAMES:,} places where rows lie; "
            "nothing was done."
        )
    event = getattr(request, "event", None)
    if event is not None and len(canonical(encode(event))) > MOST_OF_AN_EVENT:
        raise InvalidInput(
            f"the privacy event has more than {MOST_OF_AN_EVENT:,} signs; nothing was read and nothing was spent. "
            "State it with fewer parts or digits."
        )


def _reserved(reservation: Reservation) -> said.ReservedReply:
    return said.ReservedReply(
        number=reservation.number, cost=reservation.cost, account=reservation.account, reads=reservation.reads
    )


def _signer(release: Release) -> str:
    signature = release.certificate.document.get("signature")
    return str(signature.get("key")) if isinstance(signature, dict) else ""


def _mismatch(statement: Statement, held: _Held, question: str, unit: Unit) -> str | None:
    """Why a certificate is not the answer that a charge was made for; None if it is.

    That it states the cost and the account of the charge is checked where it is stored.
    """
    if statement.unit != unit:
        return "protects another unit than the one that was charged"
    if held.question is not None and held.question != question:
        return "answers another question than the one that was charged"
    if not held.datasets.issuperset((statement.dataset, *statement.derived)):
        return "is about data that were not charged"
    if held.event is not None and statement.event != held.event:
        return "states another privacy loss than the one that was charged"
    return None if _answers(statement, question) else "is not an answer to the question that it would be stored under"


def _answers(statement: Statement, question: str) -> bool:
    """Whether a statement answers a canonical question: whoever asks it later is given this answer.

    A session adds to its query what it told, so of that the kind and the dataset are compared.
    """
    try:
        asked = parse(question)
    except InvalidInput:
        return True  # a text that no gate asks
    if not isinstance(asked, list) or len(asked) < 5:
        return True
    limit = None if statement.limit is None else statement.limit.without_words
    derived: list[Json] = [encode(statement.derived)] if statement.derived else []
    rest = [*(encode(part) for part in (statement.unit, limit, statement.spend, statement.mechanism)), *derived]
    query = encode(statement.query)
    same = _about(asked[0]) == _about(query) if isinstance(statement.query, SessionQuery) else asked[0] == query
    return same and asked[1:] == rest


def _about(query: Json) -> tuple[Json, Json] | None:
    return (query.get("kind"), query.get("dataset")) if isinstance(query, dict) else None
