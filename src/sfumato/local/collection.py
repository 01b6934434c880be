"""A collection: what is asked, how often, and what it costs a person; the one document that client and server share."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core import events
from sfumato.core.documents import Registry, canonical, check_types, encode, parse
from sfumato.core.exact import natural
from sfumato.errors import InvalidInput, Refused
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
    "which values the person had, only against whoever knows already which reports share a value and how many values "
    "there were. That pattern is not protected: a report unlike the one before shows a change, and the same report "
    "again shows the same value again, almost surely where there are many kinds of reports. Whoever knows the value "
    "behind one report then knows it behind all equal ones"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCost:
    """What all reports of one person cost together, and what that protects; in words too.

    ``epsilon`` holds at user level, for any two sequences of values, and is None where no number does.
    ``given_pattern`` holds for two sequences with the same pattern of equality: which reports share a value, and how
    many values there were.
    """

    epsilon: Fraction | None
    given_pattern: Fraction
    reports: int
    protects: str

    def explain(self) -> str:
        """A few sentences for the person who is asked."""
        if self.epsilon is None:
            told = (
                f"No ε bounds what all {self.reports} reports reveal together. Given which of them share a value, they "
                f"cost ε = {self.given_pattern}."
            )
        else:
            told = f"All {self.reports} reports together cost ε = {self.epsilon}."
        return f"{told} Protected: {self.protects}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A question, the number of reports that one person sends, and whether they are memoised.

    Guarantee: ε for one report; for all reports of a person ``cost()``, which is what counts. Without memoisation T
    reports cost T·ε, also where the value never changes. With it, the same value gets the same report, and at user
    level there is no ε at all unless ``distinct`` is 1: two sequences of values are distinct·ε apart where they have
    the same pattern of equality, that is, which reports share a value and how many values there were; otherwise
    reports can tell them apart for certain. Equal times of change are not enough, since a return to an earlier value
    shows too. With many kinds of reports the same report is the same value almost surely, so one week that is known
    identifies every week with that value. With ``distinct`` = 1 the first report is sent every time, and ε holds.

    Silence is seen: that a person sends nothing is not hidden, so every person needs an answer inside the domain,
    whatever the value is. Labels that are not listed report as ``other``, where that is declared (one of the labels);
    else they are refused, and so are values that are not numbers for a mean. Everything here is public.
    Proof: docs/proofs/local_oracles.md

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
    other: str | None = None

    def __post_init__(self) -> None:
        labels: object = self.labels
        if isinstance(labels, Iterable) and not isinstance(labels, str):
            object.__setattr__(self, "labels", tuple(labels))
        check_types(self, "collection")
        natural(self.reports, "reports")
        if self.labels is not None:
            self._check_labels(self.labels)
        if self.other is not None and self.other not in (self.labels or ()):
            raise InvalidInput("other must be one of the labels; nothing was done. Add it to them, or leave it out.")
        if self.memoised and isinstance(self.ask, MEANS):
            raise InvalidInput("a mean is not memoised here; nothing was done. Ask for one report, or for T of them.")
        if self.distinct is not None and not self.memoised:
            raise InvalidInput("distinct counts memoised values; nothing was done. Give memoised=True or leave it out.")
        if self.memoised:
            most = min(self.reports, self.ask.values) if not isinstance(self.ask, MEANS) else self.reports
            given = most if self.distinct is None else natural(self.distinct, "distinct")
            object.__setattr__(self, "distinct", min(given, most))

    def _check_labels(self, labels: tuple[str, ...]) -> None:
        if isinstance(self.ask, MEANS) or len(labels) != self.ask.values:
            raise InvalidInput("there must be one label for each value, and none for a mean; nothing was done.")
        if len(set(labels)) != len(labels):
            raise InvalidInput("two labels are the same; nothing was done. Give each value its own label.")

    def cost(self) -> UserCost:
        """What all reports of one person cost, at user level and given the pattern of equality."""
        epsilon = self.charged * self.ask.epsilon
        return UserCost(
            epsilon=None if self.patterned else epsilon,
            given_pattern=epsilon,
            reports=self.reports,
            protects=VALUES_ONLY if self.patterned else EVERYTHING,
        )

    @property
    def patterned(self) -> bool:
        """Whether the reports show which of them share a value: memoised, and with more than one report to repeat."""
        return self.distinct is not None and self.distinct > 1

    @property
    def charged(self) -> int:
        """How many reports are drawn anew, and so paid for: all of them, or one for each of ``distinct`` values."""
        return self.reports if self.distinct is None else self.distinct

    def loss(self) -> events.Repeated:
        """The event of all reports of one person: ``reports`` times that of one; refused where no ε holds."""
        if self.patterned:
            raise Refused(
                "at user level nothing is guaranteed beyond the pattern of memoised reports: which of them share a "
                "value and how many values there were; no event was made. cost() says what holds given the pattern; "
                "for an ε at user level give memoised=False, or distinct=1."
            )
        return events.Repeated(event=self.ask.loss(), times=self.charged)

    def index(self, label: object) -> int:
        """The number of a label; an unknown one is ``other`` where declared, else refused without repeating it."""
        if self.labels is None:
            raise InvalidInput("this collection has no labels; nothing was reported. Give the number of the value.")
        text = label if isinstance(label, str) else None
        places = [place for place, own in enumerate(self.labels) if own == text]  # as long for the last as the first
        other = [place for place, own in enumerate(self.labels) if own == self.other]
        if not places + other:
            raise InvalidInput(
                "the value is not one of the labels; nothing was reported. Every person needs one: declare other=."
            )
        return (places + other)[0]

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
