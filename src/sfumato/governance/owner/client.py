"""An account that an owner process keeps, as a vault of another process charges it."""

import os
import socket
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from sfumato.core.budget import Budget
from sfumato.core.documents import Document
from sfumato.core.events import PrivacyEvent
from sfumato.core.ledger import Reservation, State
from sfumato.core.one_at_a_time import one_at_a_time
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.core.stored import Stored
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, Refused
from sfumato.governance.owner import messages as said
from sfumato.governance.owner.frames import Broken, Frames, Gone, Peer, Stalled, overflow_uid, peer_of
from sfumato.governance.settings import OWNER as PREFIX

__all__ = ["PREFIX", "RemoteLedger", "check_owner", "is_socket", "socket_of"]

NO_KEY = (
    "an owner process hands out no key, and a vault that charges through it signs with one of its own; nothing was "
    "done. Make one: sfumato key new release.key, and say key='release.key' (--key release.key)."
)
PATIENCE = 150.0
"""Seconds to wait for a reply: an owner may wait for other writers of its database, and for its disk."""

Reply = TypeVar("Reply")
_connections: "weakref.WeakSet[_Connection]" = weakref.WeakSet()
_asking: set[tuple[str, str]] = set()  # the questions that this process holds through an owner


def is_socket(given: object) -> bool:
    """Whether an address is that of an owner process.

    >>> is_socket("unix:/run/sfumato/ledger.sock"), is_socket("ledger.db")
    (True, False)
    """
    return isinstance(given, str | Path) and str(given).startswith(PREFIX)


def socket_of(given: str | Path) -> Path:
    """The socket that an address names.

    >>> socket_of("unix:/run/sfumato/ledger.sock").as_posix()
    '/run/sfumato/ledger.sock'
    """
    place = str(given).removeprefix(PREFIX)
    if not is_socket(given) or not place.strip("/") or "\0" in place:
        raise InvalidInput("an owner process is named by its socket, unix:/path/to/socket; nothing was done.")
    return Path("/" + place.lstrip("/")) if place.startswith("/") else Path(place).absolute()


class _Connection:
    """One connection to an owner process, for one account."""

    def __init__(self, place: Path, hello: said.HelloRequest, credentials: Callable[[socket.socket], Peer]) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        weakref.finalize(self, self._socket.close)
        _connections.add(self)
        try:
            self._socket.settimeout(PATIENCE)
            self._socket.connect(str(place))
            check_owner(place, credentials(self._socket))
        except OSError as wrong:
            self.close()
            raise LedgerError(
                f"no owner process answers at {place}: {wrong.strerror}. Nothing was read and nothing was spent. Have "
                "it started: sfumato ledger serve"
            ) from None
        except BaseException:
            self.close()
            raise
        self._frames, self.waiting = Frames(self._socket), False
        try:
            self.ledger = self.asked(hello, said.WelcomeReply).ledger
        except (Gone, Stalled):
            self.close()
            raise LedgerError(
                f"the owner process at {place} ended the connection at once; nothing was read and nothing was spent. "
                "Try again."
            ) from None
        except BaseException:
            self.close()
            raise

    def asked(self, request: Document, kind: type[Reply], *, patience: float | None = PATIENCE) -> Reply:
        """The reply to a request; a refusal is raised. A connection that is left ``waiting`` is of no more use."""
        packed = self._frames.packed(request)
        self.waiting = True
        with suppress(Gone):  # a refusal may lie there to be read
            self._frames.write(packed, within=PATIENCE)
        try:
            reply = self._frames.read(wait=patience, within=PATIENCE)
        except Broken as wrong:
            raise LedgerError(f"what answers is not an owner process of this version: {wrong}.") from None
        if isinstance(reply, said.ErrorReply):
            self.waiting = False
            raise reply.raised
        if not isinstance(reply, kind):
            raise LedgerError("what answers is not an owner process of this version; nothing it said is believed.")
        self.waiting = False
        return reply

    @property
    def gone(self) -> bool:
        """Whether the owner has ended it."""
        return self._frames.gone()

    def close(self) -> None:
        """End it; in a forked process it goes on for the other one."""
        self._socket.close()


class RemoteLedger:
    """One account of a ledger that an owner process keeps (:class:`~sfumato.core.ledger.AccountLedger`).

    Guarantee: what :class:`~sfumato.governance.durable.DurableLedger` guarantees, kept by the owner. A request that may
    have charged is sent again under its idempotency key alone. A charge belongs to the connection of this object: where
    that ends, what was open counts, and what was made under a key can be gone on with. Assumes: the socket lies in a
    folder of the owner's, which is checked.
    """

    def __init__(
        self,
        address: str | Path,
        path: str,
        *,
        unit: Unit,
        reader: Callable[[str], Release] | None = None,
        purpose: str | None = None,
        recipient: str | None = None,
        reads: tuple[str, str] | None = None,
        signer: str | None = None,
        credentials: Callable[[socket.socket], Peer] = peer_of,
    ) -> None:
        self.place, self.path, self.unit = socket_of(address), path, unit
        self._reader, self._credentials = reader, credentials
        self._hello = said.HelloRequest(
            account=path, unit=unit, purpose=purpose, recipient=recipient, reads=reads, signer=signer
        )
        self._turn, self._process = threading.RLock(), os.getpid()
        self._connection: _Connection | None = self._connected()
        self._home = self._connection.ledger

    def __repr__(self) -> str:
        return f"<RemoteLedger {self.path!r} at {PREFIX}{self.place}>"

    @property
    def key(self) -> SigningKey:
        """None is handed out: a vault signs with a key of its own."""
        raise NotDeclared(NO_KEY)

    def signed_by(self, public: str) -> "RemoteLedger":
        """This account for a vault whose certificates are signed with that key: the one that the owner was told of."""
        if self._hello.signer != public:
            raise InvalidInput("the owner process was told of another key than the vault's; nothing was done.")
        return self

    @property
    def home(self) -> str:
        """Which ledger this is."""
        return self._home

    @property
    def budget(self) -> Budget:
        """The cap of the account itself."""
        return self._read(said.AmountsRequest(), said.AmountsReply).budget

    @property
    def spent(self) -> Budget:
        """What counts as spent by the account, open reservations included."""
        return self._read(said.AmountsRequest(), said.AmountsReply).spent

    @property
    def left(self) -> Budget:
        """What may still be asked for."""
        return self._read(said.AmountsRequest(), said.AmountsReply).left

    def disconnect(self) -> None:
        """End the connection: what is open on it counts. Whatever is asked later connects anew."""
        with self._one_request():
            self._end()

    @contextmanager
    def asking(self, question: str) -> Iterator[None]:
        """Hold a question against all others who ask it of this ledger; they wait.

        It is held by a connection of its own, so that the owner lets go of it when this process ends.
        """
        held = (str(self.place), question)
        with one_at_a_time(("owner", *held)):
            if held in _asking:  # this thread holds it already
                yield
                return
            connection = self._connected()
            _asking.add(held)
            try:
                try:
                    connection.asked(said.AskRequest(question=question), said.DoneReply, patience=None)
                except (Gone, Stalled):
                    raise self._lost("nothing was read and nothing was spent") from None
                yield
            finally:
                _asking.discard(held)
                connection.close()

    # -------------------------------------------------------------------------------------------------------- charges

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
        """Charge before anything is read, or refuse with the numbers and change nothing."""
        request = said.ReserveRequest(
            cost=cost,
            datasets=tuple(datasets),
            event=event,
            idempotency=idempotency,
            queued=queued,
            seconds=None if lasts is None else max(1, int(lasts.total_seconds())),
            reads=reads,
            question=question,
        )
        unknown = "no row was read; whether it was charged is not known: if it was, it counts"
        return _reservation(self._ask(request, said.ReservedReply, again=idempotency is not None, lost=unknown))

    def check_fits(
        self,
        charges: Sequence[tuple[Budget, PrivacyEvent | None]],
        *,
        datasets: Sequence[Dataset] = (),
        reads: tuple[str, str] | None = None,
    ) -> None:
        """Refuse charges that do not fit together as the account stands now; changes nothing and holds nothing back."""
        costs, events = tuple(cost for cost, _ in charges), tuple(event for _, event in charges)
        self._read(said.FitsRequest(costs=costs, events=events, datasets=tuple(datasets), reads=reads), said.DoneReply)

    def start(self, reservation: Reservation) -> None:
        """Say, durably, that rows are read from now on for a queued charge."""
        self._ask(said.StartRequest(number=reservation.number), said.DoneReply, lost="no row was read")

    def commit(self, reservation: Reservation, key: str, release: Release) -> None:
        """Store the answer and settle its charge in one step, before it is delivered."""
        text = release.certificate.text
        request = said.CommitRequest(number=reservation.number, question=key, certificate=text)
        self._ask(request, said.DoneReply, lost="nothing may be delivered, and the charge counts")

    def release(self, reservation: Reservation) -> None:
        """Give a charge back: one that was queued and never started."""
        request = said.ReleaseRequest(number=reservation.number)
        self._ask(request, said.DoneReply, lost="whether the charge was given back is not known: if not, it counts")

    def named(self, idempotency: str) -> State | None:
        """What became of the charge under an idempotency key of this user; None if there is none."""
        return self._read(said.NamedRequest(idempotency=idempotency), said.StateReply).state

    def again(self, number: int, question: str) -> Reservation:
        """The open charge of a question, by its number, for a session that goes on; charges nothing."""
        return _reservation(self._read(said.AgainRequest(number=number, question=question), said.ReservedReply))

    def advance(self, reservation: Reservation, place: int, holder: str, *, datasets: Sequence[Dataset] = ()) -> None:
        """Take the next place in the count of an open charge, or refuse."""
        if type(place) is not int:
            raise InvalidInput("a place in a count is a whole number from 0, with a holder; nothing was released.")
        request = said.AdvanceRequest(number=reservation.number, place=place, holder=holder, datasets=tuple(datasets))
        self._ask(request, said.DoneReply, lost="nothing was released, and the charge counts")

    def check_running(self, reservation: Reservation, *, datasets: Sequence[Dataset] = ()) -> None:
        """Refuse to go on where a charge does not stand any more, or a dataset was closed."""
        request = said.RunningRequest(number=reservation.number, datasets=tuple(datasets))
        self._ask(request, said.DoneReply, lost="nothing was released, and the charge counts")

    # -------------------------------------------------------------------------------------------------------- answers

    def stored(
        self, key: str, datasets: Sequence[Dataset] = (), *, reads: tuple[str, str] | None = None
    ) -> Release | None:
        """The answer given to the same question before, if there is one and its terms and days allow it."""
        return self._release(said.StoredRequest(question=key, datasets=tuple(datasets), reads=reads))

    def given(self, reservation: Reservation) -> Release | None:
        """The answer that a charge was settled with; None while it is open."""
        return self._release(said.GivenRequest(number=reservation.number))

    def settled(self, number: int, question: str) -> Release | None:
        """The answer that the charge of a question, by its number, was settled with; None while it is open."""
        return self._release(said.SettledRequest(number=number, question=question))

    def _release(self, request: Document) -> Release | None:
        text = self._read(request, said.AnswerReply).certificate
        if text is None:
            return None
        if self._reader is None:
            raise NotDeclared("this account was opened without a reader of certificates; nothing was delivered.")
        return self._reader(text)

    # ----------------------------------------------------------------------------------------------------------- data

    def close(self, datasets: Sequence[Dataset], stored: Mapping[Dataset, Stored]) -> bool:
        """Let no row of these versions, nor under other names declared before, be read any more; False if closed."""
        names = tuple((dataset, tuple(sorted(what.names))) for dataset, what in stored.items())
        request = said.CloseRequest(datasets=tuple(datasets), stored=names)
        return self._ask(request, said.TruthReply, lost="no number was released, and the charge counts").truth

    def closed(self, dataset: Dataset) -> bool:
        """Whether a version was closed."""
        return self._read(said.ClosedRequest(dataset=dataset), said.TruthReply).truth

    def shut(self, dataset: Dataset, stored: Stored) -> bool:
        """Whether the rows of a version were closed under another name since the ledger knows the version."""
        request = said.ShutRequest(dataset=dataset, names=tuple(sorted(stored.names)))
        return self._read(request, said.TruthReply).truth

    # ----------------------------------------------------------------------------------------------------- connection

    def _read(self, request: Document, kind: type[Reply]) -> Reply:
        """Ask what changes nothing: after a lost connection once more."""
        return self._ask(request, kind, again=True, lost="nothing was read and nothing was spent")

    def _ask(self, request: Document, kind: type[Reply], *, again: bool = False, lost: str) -> Reply:
        """Ask the owner, one request at a time; ``again`` says that the same twice is the same as once."""
        with self._one_request():
            try:
                return self._once(request, kind)
            except (Gone, Stalled):
                if not again:
                    raise self._lost(lost) from None
            try:
                return self._once(request, kind)
            except (Gone, Stalled):
                raise self._lost(lost) from None

    def _once(self, request: Document, kind: type[Reply]) -> Reply:
        connection = self._current()
        try:
            return connection.asked(request, kind)
        finally:
            if connection.waiting:  # its reply may still come, and must not be taken for that of another request
                self._end()

    @contextmanager
    def _one_request(self) -> Iterator[None]:
        """The turn of a thread; a forked process has turns, and a connection, of its own."""
        if self._process != os.getpid():
            self._turn, self._connection, self._process = threading.RLock(), None, os.getpid()
        with self._turn:
            yield

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _current(self) -> _Connection:
        """The connection, made anew where the owner ended it: what was open on it counts then."""
        connection = self._connection
        if connection is not None and connection.gone:
            self._end()
            connection = None
        if connection is None:
            connection = self._connected()
            if connection.ledger != self._home:
                connection.close()
                raise LedgerError(
                    f"the owner process at {self.place} serves another ledger than before; nothing was read and "
                    "nothing was spent. Make another vault."
                )
            self._connection = connection
        return connection

    def _connected(self) -> _Connection:
        return _Connection(self.place, self._hello, self._credentials)

    def _lost(self, outcome: str) -> LedgerError:
        return LedgerError(f"the owner process at {self.place} ended the connection; {outcome}. Try again.")


def _reservation(reply: said.ReservedReply) -> Reservation:
    return Reservation(number=reply.number, cost=reply.cost, account=reply.account, reads=reply.reads)


def check_owner(place: Path, peer: Peer) -> None:
    """Refuse a process that is not of the user whose folder the socket lies in: it could say that all was charged."""
    owner = place.parent.stat().st_uid
    if peer.uid != owner or owner == overflow_uid():
        raise Refused(
            f"the process that answers at {place} is one of user {peer.uid}, and the folder belongs to user {owner}; "
            "nothing was read and nothing was spent. An owner process keeps its socket in a folder of its own."
        )


def _forked() -> None:
    """A process that was forked off shares no connection: what it holds ends with the process that opened it."""
    for connection in tuple(_connections):
        connection.close()
    _asking.clear()


os.register_at_fork(after_in_child=_forked)
