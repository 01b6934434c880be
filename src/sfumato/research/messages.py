"""What a script and the research environment say to each other: one document for each request, and for each reply.

A question travels as the text of its query, which is a declaration without data, and a model as the text of its
network; an answer as its signed certificate, with noisy weights where it is a model. Nothing else crosses, in either
direction.
"""

from dataclasses import dataclass
from typing import ClassVar

from sfumato import errors
from sfumato.core import units
from sfumato.core.budget import Budget
from sfumato.core.documents import Document, Registry
from sfumato.core.limits import Limit, Noun
from sfumato.core.units import Unit
from sfumato.errors import EngineFailed, SfumatoError

__all__ = [
    "AREA",
    "RESEARCH_MESSAGES",
    "AllowanceReply",
    "AllowanceRequest",
    "AskedQuestion",
    "CertificateReply",
    "CostReply",
    "FittingRequest",
    "JoinRequest",
    "ModelReply",
    "OfferedTable",
    "ProjectReply",
    "QuestionRequest",
    "RefusalReply",
    "TrainingRequest",
]

AREA = "research_message."


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """The first message: the project that is asked for; None where the connection belongs to one."""

    KIND: ClassVar[str] = "research_message.join"
    VERSION: ClassVar[int] = 1
    project: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTable:
    """A table of the project: its schema as TOML, with the columns that were approved."""

    KIND: ClassVar[str] = "research_message.table"
    VERSION: ClassVar[int] = 1
    name: str
    schema: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectReply:
    """What may be asked, who is protected, the account, and the key that answers are signed with."""

    KIND: ClassVar[str] = "research_message.project"
    VERSION: ClassVar[int] = 1
    name: str
    purpose: str
    account: str
    unit: Unit
    key: str
    tables: tuple[OfferedTable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A query as the text of its document, what it may cost, and how it is asked."""

    KIND: ClassVar[str] = "research_message.question"
    VERSION: ClassVar[int] = 1
    query: str
    spend: Budget
    limit: Limit | None
    fresh: bool
    idempotency: str | None
    reads: tuple[str, str] | None
    even_if_useless: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRequest:
    """Answer one question: charge, then read."""

    KIND: ClassVar[str] = "research_message.ask"
    VERSION: ClassVar[int] = 1
    question: AskedQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateReply:
    """The certificate of an answer, what it cost now, and whether it was stored before."""

    KIND: ClassVar[str] = "research_message.certificate"
    VERSION: ClassVar[int] = 1
    certificate: str
    charged: Budget
    repeated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FittingRequest:
    """What several questions would cost together; refused where that does not fit."""

    KIND: ClassVar[str] = "research_message.fits"
    VERSION: ClassVar[int] = 1
    questions: tuple[AskedQuestion, ...]
    known: tuple[bool, ...]
    reads: tuple[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReply:
    """What they would cost."""

    KIND: ClassVar[str] = "research_message.cost"
    VERSION: ClassVar[int] = 1
    cost: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowanceRequest:
    """How the account of the project stands."""

    KIND: ClassVar[str] = "research_message.allowance"
    VERSION: ClassVar[int] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowanceReply:
    """What was allowed, and what may still be asked for."""

    KIND: ClassVar[str] = "research_message.allowance_is"
    VERSION: ClassVar[int] = 1
    budget: Budget
    left: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """Train a network on a table: the text of its declaration, how many units there are, epochs and the cost."""

    KIND: ClassVar[str] = "research_message.train"
    VERSION: ClassVar[int] = 1
    table: str
    network: str
    n_units: int
    epochs: int
    spend: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """The certificate of a model, its weights as a safetensors file in base 64, and what it cost."""

    KIND: ClassVar[str] = "research_message.model"
    VERSION: ClassVar[int] = 1
    certificate: str
    weights: str
    charged: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalReply:
    """A refusal: the name of the error in :mod:`sfumato.errors`, and its words."""

    KIND: ClassVar[str] = "research_message.refusal"
    VERSION: ClassVar[int] = 1
    error: str
    words: str

    @classmethod
    def of(cls, wrong: SfumatoError) -> "RefusalReply":
        """What was raised, as it travels; a class of its own travels as the one it is made from."""
        name = next(each.__name__ for each in type(wrong).__mro__ if each.__name__ in errors.__all__)
        return cls(error=name, words=str(wrong))

    @property
    def raised(self) -> SfumatoError:
        """The same error on the other side.

        >>> type(RefusalReply(error="Refused", words="…").raised).__name__
        'Refused'
        """
        known = {name: getattr(errors, name) for name in errors.__all__}
        found: SfumatoError = known.get(self.error, EngineFailed)(self.words)
        return found


_SAID: tuple[type[Document], ...] = (
    *(JoinRequest, QuestionRequest, FittingRequest, AllowanceRequest, TrainingRequest),
    *(ProjectReply, CertificateReply, ModelReply, CostReply, AllowanceReply, RefusalReply, OfferedTable, AskedQuestion),
)
RESEARCH_MESSAGES = Registry(
    (
        *(units.Record, units.User, units.Family, units.Event, units.Edge, units.Node, units.Weight, units.Client),
        *(Budget, Limit, Noun, *_SAID),
    )
)
"""All that is read off a connection."""
