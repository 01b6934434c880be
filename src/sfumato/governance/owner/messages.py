"""What vaults and an owner process say to each other: one document for each request, and for each reply.

Reading is strict, as of all documents: an unknown kind, a newer version, or a field that is missing, foreign or
ill-typed is an error that names it. A new meaning is a new version.
"""

from dataclasses import dataclass
from typing import ClassVar

from sfumato import errors
from sfumato.core import events, units
from sfumato.core.budget import Budget
from sfumato.core.documents import Document, Registry
from sfumato.core.events import PrivacyEvent
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
from sfumato.core.ledger import State
from sfumato.core.query import Dataset
from sfumato.core.statement import Account
from sfumato.core.units import Unit
from sfumato.errors import LedgerError, SfumatoError

__all__ = [
    "MESSAGES",
    "AdvanceRequest",
    "AgainRequest",
    "AmountsReply",
    "AmountsRequest",
    "AnswerReply",
    "AskRequest",
    "CloseRequest",
    "ClosedRequest",
    "CommitRequest",
    "DoneReply",
    "ErrorReply",
    "FitsRequest",
    "GivenRequest",
    "HelloRequest",
    "NamedRequest",
    "ReleaseRequest",
    "ReserveRequest",
    "ReservedReply",
    "RunningRequest",
    "SettledRequest",
    "ShutRequest",
    "StartRequest",
    "StateReply",
    "StoredRequest",
    "TruthReply",
    "WelcomeReply",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class HelloRequest:
    """The first message: the account that will be charged, for whom, and what releases are for.

    ``reads`` are the days of the data, of charges that do not say it themselves; ``signer`` is the public key that will
    sign the certificates.
    """

    KIND: ClassVar[str] = "owner.hello"
    VERSION: ClassVar[int] = 1
    account: str
    unit: Unit
    purpose: str | None
    recipient: str | None
    reads: tuple[str, str] | None = None
    signer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WelcomeReply:
    """The account may be charged; ``ledger`` is the identifier of the ledger that it is in."""

    KIND: ClassVar[str] = "owner.welcome"
    VERSION: ClassVar[int] = 1
    ledger: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReply:
    """A refusal: the name of the error in :mod:`sfumato.errors`, and its words. Nothing else ever travels."""

    KIND: ClassVar[str] = "owner.error"
    VERSION: ClassVar[int] = 1
    error: str
    words: str

    @classmethod
    def of(cls, wrong: SfumatoError) -> "ErrorReply":
        """What was raised, as it travels; a class of its own travels as the one it is made from."""
        name = next(cls.__name__ for cls in type(wrong).__mro__ if cls.__name__ in errors.__all__)
        return cls(error=name, words=str(wrong))

    @property
    def raised(self) -> SfumatoError:
        """The same error on the other side.

        >>> type(ErrorReply(error="BudgetExceeded", words="…").raised).__name__
        'BudgetExceeded'
        """
        known = {name: getattr(errors, name) for name in errors.__all__}
        found: SfumatoError = known.get(self.error, LedgerError)(self.words)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneReply:
    """It was done."""

    KIND: ClassVar[str] = "owner.done"
    VERSION: ClassVar[int] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthReply:
    """Yes or no."""

    KIND: ClassVar[str] = "owner.truth"
    VERSION: ClassVar[int] = 1
    truth: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AmountsRequest:
    """How the account stands."""

    KIND: ClassVar[str] = "owner.amounts"
    VERSION: ClassVar[int] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AmountsReply:
    """What was allowed, what counts as spent, and what may still be asked for."""

    KIND: ClassVar[str] = "owner.amounts_are"
    VERSION: ClassVar[int] = 1
    budget: Budget
    spent: Budget
    left: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRequest:
    """Hold a question against all others for as long as this connection lasts; answered once it is held."""

    KIND: ClassVar[str] = "owner.ask"
    VERSION: ClassVar[int] = 1
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRequest:
    """The answer given to the same question before; ``reads`` are the days that it is said to read."""

    KIND: ClassVar[str] = "owner.stored"
    VERSION: ClassVar[int] = 2
    question: str
    datasets: tuple[Dataset, ...]
    reads: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReply:
    """The text of a certificate, or none."""

    KIND: ClassVar[str] = "owner.answer"
    VERSION: ClassVar[int] = 1
    certificate: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveRequest:
    """Charge before anything is read; ``seconds`` is how long the charge lasts without an answer."""

    KIND: ClassVar[str] = "owner.reserve"
    VERSION: ClassVar[int] = 1
    cost: Budget
    datasets: tuple[Dataset, ...]
    event: PrivacyEvent | None
    idempotency: str | None
    queued: bool
    seconds: int | None
    reads: tuple[str, str] | None
    question: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedReply:
    """The charge that was made, or found again."""

    KIND: ClassVar[str] = "owner.reserved"
    VERSION: ClassVar[int] = 1
    number: int
    cost: Budget
    account: Account
    reads: tuple[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """Rows are read from now on for a queued charge."""

    KIND: ClassVar[str] = "owner.start"
    VERSION: ClassVar[int] = 1
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenRequest:
    """The answer that a charge was settled with."""

    KIND: ClassVar[str] = "owner.given"
    VERSION: ClassVar[int] = 1
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """Store an answer, by the text of its certificate, and settle its charge."""

    KIND: ClassVar[str] = "owner.commit"
    VERSION: ClassVar[int] = 1
    number: int
    question: str
    certificate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """Give a charge back for which no row was read."""

    KIND: ClassVar[str] = "owner.release"
    VERSION: ClassVar[int] = 1
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRequest:
    """What became of the charge under an idempotency key of this user."""

    KIND: ClassVar[str] = "owner.named"
    VERSION: ClassVar[int] = 1
    idempotency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReply:
    """What became of a charge; none where there is none."""

    KIND: ClassVar[str] = "owner.state"
    VERSION: ClassVar[int] = 1
    state: State | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainRequest:
    """The open charge of a question, by its number, for a session that goes on."""

    KIND: ClassVar[str] = "owner.again"
    VERSION: ClassVar[int] = 1
    number: int
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledRequest:
    """The answer that the charge of a question, by its number, was settled with."""

    KIND: ClassVar[str] = "owner.settled"
    VERSION: ClassVar[int] = 1
    number: int
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceRequest:
    """Take the next place in the count of an open charge."""

    KIND: ClassVar[str] = "owner.advance"
    VERSION: ClassVar[int] = 1
    number: int
    place: int
    holder: str
    datasets: tuple[Dataset, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningRequest:
    """Refuse to go on where a charge does not stand any more."""

    KIND: ClassVar[str] = "owner.running"
    VERSION: ClassVar[int] = 1
    number: int
    datasets: tuple[Dataset, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitsRequest:
    """Refuse charges that do not fit together, before the first is made; each with its event."""

    KIND: ClassVar[str] = "owner.fits"
    VERSION: ClassVar[int] = 1
    costs: tuple[Budget, ...]
    events: tuple[PrivacyEvent | None, ...]
    datasets: tuple[Dataset, ...]
    reads: tuple[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseRequest:
    """Let no row of these versions be read any more; each with the names of where its rows lie."""

    KIND: ClassVar[str] = "owner.close"
    VERSION: ClassVar[int] = 1
    datasets: tuple[Dataset, ...]
    stored: tuple[tuple[Dataset, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedRequest:
    """Whether a version was closed."""

    KIND: ClassVar[str] = "owner.closed"
    VERSION: ClassVar[int] = 1
    dataset: Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutRequest:
    """Whether the rows of a version were closed under another name."""

    KIND: ClassVar[str] = "owner.shut"
    VERSION: ClassVar[int] = 1
    dataset: Dataset
    names: tuple[str, ...]


REQUESTS: tuple[type[Document], ...] = (
    *(HelloRequest, AmountsRequest, AskRequest, StoredRequest, ReserveRequest, StartRequest, GivenRequest),
    *(CommitRequest, ReleaseRequest, NamedRequest, AgainRequest, SettledRequest, AdvanceRequest, RunningRequest),
    *(FitsRequest, CloseRequest, ClosedRequest, ShutRequest),
)
REPLIES: tuple[type[Document], ...] = (
    *(WelcomeReply, ErrorReply, DoneReply, TruthReply, AmountsReply, AnswerReply, ReservedReply, StateReply),
)
MESSAGES = Registry(
    (
        *(units.Record, units.User, units.Family, units.Event, units.Edge, units.Node, units.Weight, units.Client),
        *(Budget, Dataset, Account, *events.EVENTS, Pure, Approximate, ZCDP, RDP, GDP),
        *REQUESTS,
        *REPLIES,
    )
)
"""All that is read off a socket."""
