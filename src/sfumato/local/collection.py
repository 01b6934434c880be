"""A collection: what is asked, how often, and what it costs a person; the one document that client and server share."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core import events
from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.core.exact import natural
from sfumato.errors import InvalidInput
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.kary import KaryResponse
from sfumato.local.local_hash import LocalHash
from sfumato.local.means import MEANS, DuchiMean, HybridMean, PiecewiseMean
from sfumato.local.projective import ProjectiveResponse
from sfumato.local.subset import SubsetSelection
from sfumato.local.unary import OptimisedUnary, SymmetricUnary

__all__ = ["ORACLES", "Collection", "UserCost", "collection_from_json"]

ORACLES = (
    KaryResponse,
    SymmetricUnary,
    OptimisedUnary,
    LocalHash,
    SubsetSelection,
    HadamardResponse,
    ProjectiveResponse,
)

EVERYTHING = "whatever the person reported, and when it changed"
VALUES_ONLY = (
    "which values the person had, not when they changed: a new report shows that the value is another one, and the "
    "same report that it may be the same"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCost:
    """What all reports of one person cost together, and what that protects; in words too."""

    epsilon: Fraction
    reports: int
    protects: str

    def explain(self) -> str:
        """One sentence for the person who is asked."""
        return f"All {self.reports} reports together cost ε = {self.epsilon}. Protected: {self.protects}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A question, the number of reports that one person sends, and whether they are memoised.

    Guarantee: ε for one report; for all reports of a person ``cost()``, which is what counts. Without memoisation T
    reports cost T·ε, also where the value never changes. With it, the same value gets the same report: ``distinct``
    values cost distinct·ε against an adversary who knows when the value changed; the times of change are *not*
    protected. Everything here is public. Proof: docs/proofs/local_oracles.md

    >>> asked = Collection(name="smoking", ask=KaryResponse(epsilon=1, values=2), labels=("no", "yes"), reports=12)
    >>> asked.cost().epsilon, collection_from_json(asked.to_json()) == asked
    (Fraction(12, 1), True)
    """

    KIND: ClassVar[str] = "local.collection"
    VERSION: ClassVar[int] = 1
    name: str
    ask: (
        KaryResponse
        | SymmetricUnary
        | OptimisedUnary
        | LocalHash
        | SubsetSelection
        | HadamardResponse
        | ProjectiveResponse
        | DuchiMean
        | PiecewiseMean
        | HybridMean
    )
    labels: tuple[str, ...] | None = None
    reports: int = 1
    memoised: bool = False
    distinct: int | None = None

    def __post_init__(self) -> None:
        natural(self.reports, "reports")
        if not isinstance(self.ask, (*ORACLES, *MEANS)):
            raise InvalidInput("ask must be one of the oracles or means of sfumato.local; nothing was done.")
        if self.labels is not None:
            self._check_labels(self.labels)
        if self.memoised and isinstance(self.ask, MEANS):
            raise InvalidInput("a mean is not memoised here; nothing was done. Ask for one report, or for T of them.")
        if self.distinct is not None and not self.memoised:
            raise InvalidInput("distinct counts memoised values; nothing was done. Give memoised=True or leave it out.")
        if self.memoised:
            most = min(self.reports, self.ask.values) if not isinstance(self.ask, MEANS) else self.reports
            object.__setattr__(self, "distinct", min(natural(self.distinct or most, "distinct"), most))

    def _check_labels(self, labels: Iterable[str]) -> None:
        object.__setattr__(self, "labels", tuple(labels))
        if isinstance(self.ask, MEANS) or len(self.labels or ()) != self.ask.values:
            raise InvalidInput("there must be one label for each value, and none for a mean; nothing was done.")
        if len(set(self.labels or ())) != len(self.labels or ()):
            raise InvalidInput("two labels are the same; nothing was done. Give each value a label of its own.")

    def cost(self) -> UserCost:
        """What all reports of one person cost, at user level."""
        return UserCost(
            epsilon=self.charged * self.ask.epsilon,
            reports=self.reports,
            protects=VALUES_ONLY if self.memoised else EVERYTHING,
        )

    @property
    def charged(self) -> int:
        """How many reports are drawn anew, and so paid for: all of them, or one for each of ``distinct`` values."""
        return self.reports if self.distinct is None else self.distinct

    def loss(self) -> events.Repeated:
        """The event of all reports of one person: ``reports`` times that of one, ``distinct`` times if memoised."""
        return events.Repeated(event=self.ask.loss(), times=self.charged)

    def index(self, label: str) -> int:
        """The number of a label; a label that is none is refused without repeating it."""
        if self.labels is None:
            raise InvalidInput("this collection has no labels; nothing was reported. Give the number of the value.")
        places = [place for place, own in enumerate(self.labels) if own == label]  # as long for the last as the first
        if not places:
            raise InvalidInput("the value is none of the labels; nothing was reported.")
        return places[0]

    def to_json(self) -> str:
        """Write the document as canonical JSON."""
        return canonical(encode(self))


_REGISTRY = Registry((Collection, *ORACLES, *MEANS))


def collection_from_json(text: str) -> Collection:
    """Read a collection; an unknown kind, a newer version or a foreign field is refused by name."""
    collection = _REGISTRY.decode(parse(text), "collection")
    if not isinstance(collection, Collection):
        raise InvalidInput(f"collection.kind = {collection.KIND!r} is not a collection; it was not read.")
    return collection
