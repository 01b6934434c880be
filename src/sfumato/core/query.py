"""The vocabulary of the architecture: dataset, query, mechanism and law, as small Protocols that any area can meet."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.events import PrivacyEvent
from sfumato.core.exact import Exact
from sfumato.core.finding import Finding
from sfumato.core.limits import Limit
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.core.columns import ResultColumn
    from sfumato.core.release import Release
    from sfumato.core.statement import Statement

__all__ = [
    "Answer",
    "Dataset",
    "DrawnMechanism",
    "Fitted",
    "Law",
    "Mechanism",
    "Query",
    "ReleasedQuery",
    "SquaredError",
    "check_name",
]

Answer = tuple[tuple[int, ...], tuple[tuple[str | int | bool, ...], ...]]
"""The noisy numbers, and the keys that were found."""


def check_name(text: object, what: str) -> None:
    """Refuse a public name that is empty, endless, or cannot be written down."""
    if not isinstance(text, str) or not text.strip() or len(text) > 500:
        raise InvalidInput(f"{what} must be a non-empty text of at most 500 characters; nothing was done.")
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise InvalidInput(f"{what} holds half a surrogate pair, which has no bytes; nothing was done.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """The public name of some data, and the label of its version: given by the steward, never a hash of content."""

    KIND: ClassVar[str] = "dataset"
    VERSION: ClassVar[int] = 1
    name: str
    edition: str

    def __post_init__(self) -> None:
        for label, text in (("name", self.name), ("version", self.edition)):
            check_name(text, f"the {label} of a dataset")


@runtime_checkable
class Query(Protocol):
    """What is asked of one dataset: a pure declaration that holds no data and can be written down.

    ``ANSWERED_BY`` lists the kinds of mechanism that may answer it: another one's loss would say nothing of it.
    """

    KIND: ClassVar[str]
    VERSION: ClassVar[int]
    ANSWERED_BY: ClassVar[tuple[str, ...]]

    @property
    def dataset(self) -> Dataset:
        """The data that is asked."""
        ...

    @property
    def size(self) -> int | None:
        """How many numbers the answer has, a public fact; None where the answer itself tells."""
        ...

    @property
    def measure(self) -> str | None:
        """The name of the one column that the numbers themselves are; None where columns are computed from them."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns of the answer."""
        ...

    def labels(self) -> Mapping[str, Sequence[str | int | bool]]:
        """The public columns that say what each number is about, in the order of the numbers."""
        ...

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit, held to ``limit``, can move the answer."""
        ...

    def columns(self, release: "Release") -> "Mapping[str, ResultColumn]":
        """The columns of the answer as figures with intervals, by name: post-processing of the release."""
        ...

    def describe(self, said: "Statement") -> Description:
        """What a reader must know of the answer that a statement holds: message keys and values, read off it alone."""
        ...

    def check_answer(self, said: "Statement") -> Iterator[Finding]:
        """What is wrong with an answer that claims to be for this query, found from its statement alone."""
        ...

    def expected(self, law: "Law", confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin to expect of each column where it is known beforehand, from public facts alone.

        ``rows`` is how many rows a group is expected to have, for columns whose error depends on that.
        """
        ...


class Fitted(Query, Protocol):
    """A query that knows which mechanism and which numbers fit it."""

    def misfit(self, mechanism: "Mechanism", unit: Unit, values: tuple[int, ...]) -> str | None:
        """What is wrong with a mechanism or an answer that claims to be for this query; None if nothing is."""
        ...


@runtime_checkable
class SquaredError(Protocol):
    """A query that knows beforehand the mean squared errors of columns that are computed from its numbers."""

    def expected_mse(self, law: "Law", *, rows: int | None) -> Mapping[str, Fraction]:
        """The mean squared error to expect of each column where it is known beforehand, from public facts alone."""
        ...


@runtime_checkable
class Law(Protocol):
    """The distribution of the error of one number."""

    KIND: ClassVar[str]
    VERSION: ClassVar[int]

    def margin(self, confidence: Exact, *, numbers: int = 1) -> int:
        """The least m such that all of ``numbers`` errors lie within ±m with this confidence."""
        ...

    def covers(self, margin: int, confidence: Exact, *, numbers: int = 1) -> bool:
        """Whether ``numbers`` errors all lie within ±margin with at least this confidence."""
        ...

    @property
    def variance(self) -> Fraction:
        """The variance of the error, rounded up."""
        ...

    @property
    def mean_absolute_error(self) -> Fraction:
        """The expected size of the error, rounded up."""
        ...


@runtime_checkable
class Mechanism(Protocol):
    """What is added to an exact answer: its loss for the accountant, its error distribution for the reader.

    One that draws its whole answer at once is a :class:`DrawnMechanism`; those of sessions draw step by step.
    """

    KIND: ClassVar[str]
    VERSION: ClassVar[int]

    @property
    def law(self) -> Law:
        """The distribution of the error."""
        ...

    def loss(self, moved: Sensitivity) -> PrivacyEvent:
        """What happens to the privacy of a unit that moves the answer this far."""
        ...


@runtime_checkable
class DrawnMechanism(Mechanism, Protocol):
    """A mechanism that draws one answer from what was read: what a release needs, whatever the kind of data."""

    def draw(self, exact: Any, words: Any) -> Answer:  # each takes what its own query reads, and random words
        """The answer; ``words`` are random bits (:class:`sfumato.noise.Words`). Sensitive: ``exact``."""
        ...


@runtime_checkable
class ReleasedQuery(Query, Protocol):
    """A query that one release answers; those of sessions are answered step by step."""

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The mechanism with the least error that a spend allows; it may cost less than the spend, never more."""
        ...
