"""The contract of a measure: one column of an answer, and all that Sfumato must know to compute and explain it.

A measure is one class in one file of :mod:`sfumato.tables.measures`, where it is found by itself. It states the sums
that it needs, reads its column off them, says which margin to expect and by which words it is explained and asked for.
Nothing else in Sfumato knows its name: plans of sums, estimates, previews, SQL, reports and certificates read this
contract.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.query import check_name
from sfumato.engines.expressions import Expression
from sfumato.inference.derived import Derived
from sfumato.tables.clamped import Bounds, Clamped
from sfumato.tables.error_preview import ErrorPreview
from sfumato.tables.estimators import Reader
from sfumato.tables.needs import Need

if TYPE_CHECKING:
    from sfumato.studies.batches import BatchComparison
    from sfumato.tables.keys import Keys
    from sfumato.tables.persons import Step

__all__ = ["Asked", "Measure"]


class Measure(ABC):
    """What can be asked of the rows of a group; a frozen dataclass with a ``name`` and the values that it is about.

    Guarantee: none of its own. What is protected are the sums of :attr:`needs`, whose sensitivity is known; a column is
    a function of noisy sums and public facts. Assumes: every field is public.
    """

    __slots__ = ()

    KIND: ClassVar[str]
    VERSION: ClassVar[int]
    ASKED: ClassVar[Mapping[str, Callable[..., "Asked"]]]
    """The functions that ask for it, by their names under ``sf``."""
    SQL: ClassVar[Mapping[str, str]] = {}
    """The SQL functions of as many values that mean the same, each with the name in :attr:`ASKED`."""
    counts: ClassVar[bool] = False
    """Whether it counts rows or persons, so that its numbers are whole and a margin is one of the answer itself."""
    adds_up: ClassVar[bool] = False
    """Whether the answers of parts of the data add up to that of the whole."""
    of_public_number: ClassVar[bool] = False
    """Whether it can be computed for a public number of units, each of which counts once."""
    name: str

    def __post_init__(self) -> None:
        check_name(self.name, "the name of a measure")

    @property
    @abstractmethod
    def needs(self) -> tuple[Need, ...]:
        """The sums over rows that it is computed from."""

    @abstractmethod
    def estimate(self, reader: Reader) -> Derived:
        """The column: numbers and intervals from noisy sums."""

    @abstractmethod
    def margin(self, preview: ErrorPreview) -> Fraction | None:
        """The margin to expect before anything is read, or None where it is not known.

        Counts and sums have exact margins. A quotient needs the rows that a group is expected to have; its margin is
        what the noise alone makes of that many, at the worst place of the range.
        """

    def batch_comparison(self, reader: Reader) -> "BatchComparison | None":
        """The comparison of batches that it was asked for; None for a measure that is no such comparison."""
        del reader
        return None

    def misplaced(self, by: "Sequence[Keys]", steps: "Sequence[Step]") -> str | None:
        """Why what it says of itself does not hold where it is asked by these groups and steps; None where it does."""
        del by, steps
        return None

    @property
    @abstractmethod
    def words(self) -> str:
        """The key of the message that says what it is; the message names the :attr:`parts`."""

    @property
    def words_of_rows(self) -> str:
        """The same where single rows are protected and nothing identifies persons."""
        return self.words

    @property
    def possible(self) -> tuple[Fraction, Fraction] | None:
        """The least and the most that it can be at all; None where it can be anything."""
        return None

    def over_rows(self, rows: int) -> tuple[Fraction, Fraction] | None:
        """The least and the most that it can be in a group of up to ``rows`` rows; None where that is not known."""
        del rows
        return self.possible

    def of_whole_columns(self, columns: Container[str]) -> "Measure":
        """The same where these columns are known to hold whole numbers; for most measures that changes nothing."""
        del columns
        return self

    @property
    def parts(self) -> Mapping[str, Clamped | Expression | Fraction]:
        """The values, conditions and numbers that it is about, by the names that messages have for them."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]  # every measure is a dataclass
        return {
            "value" if name == "of" else name: part
            for name, part in fields.items()
            if isinstance(part, Clamped | Expression)
        }

    @property
    def ranges(self) -> tuple[Clamped, ...]:
        """The values that it is about."""
        return tuple(part for part in self.parts.values() if isinstance(part, Clamped))

    @property
    def conditions(self) -> tuple[Expression, ...]:
        """The conditions that it is about."""
        return tuple(part for part in self.parts.values() if isinstance(part, Expression))


@dataclass(frozen=True, slots=True)
class Asked:
    """A measure that still needs a name and the bounds of a table.

    It knows nothing of a table, which gives it a name and the public range of its values.

    >>> from sfumato.tables.measures.row_count import count
    >>> count().bound("n", {}).name
    'n'
    """

    bound: Callable[[str, Bounds], Measure]
