"""Columns of an answer: what core knows of the figures that are computed above it (:mod:`sfumato.inference`)."""

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from sfumato.core.exact import Exact
from sfumato.core.foreign import Frame

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.core.release import Release

__all__ = ["AnswerFigure", "AnswerRatio", "ResultColumn", "Value"]

Value = Any  # a whole number, a fraction, a float or a chosen key: the class of a column says which
Operand = Any  # a release, a figure or a number; others are refused


class ResultColumn(Protocol):
    """Numbers with their labels, the releases that they were computed from, and their error."""

    @property
    def labels(self) -> Mapping[str, tuple[str | int | bool, ...]]:
        """What each number is about."""
        ...

    @property
    def measure(self) -> str:
        """What the numbers are called."""
        ...

    @property
    def sources(self) -> "tuple[Release, ...]":
        """The releases that they were computed from."""
        ...

    @property
    def measured(self) -> bool:
        """Whether the numbers carry noise of a known law, and so have intervals."""
        ...

    @property
    def values(self) -> tuple[Value, ...]:
        """The numbers as they were computed."""
        ...

    def interval(
        self, confidence: Exact = Fraction(19, 20), *, joint: bool = False, of: str | None = None
    ) -> list[tuple[Value, Value]]:
        """Low and high for each number, ``of`` the population or of the data; with ``joint`` all hold at once."""
        ...

    @property
    def estimates_population(self) -> bool:
        """Whether the numbers estimate values of a population, so that sampling is part of their interval."""
        ...

    def explain(self, language: str = "en", audience: str = "public") -> str:
        """Say in plain words what was computed from which releases, how exact it is and what is guaranteed."""
        ...

    def to_arrow(self, confidence: Exact = Fraction(19, 20)) -> "pa.Table":
        """Labels, numbers and intervals as an Arrow table."""
        ...

    def to_pandas(self, confidence: Exact = Fraction(19, 20)) -> Frame:
        """The same table for pandas, which must be installed."""
        ...

    def to_polars(self, confidence: Exact = Fraction(19, 20)) -> Frame:
        """The same table for Polars, which must be installed."""
        ...


class AnswerFigure(ResultColumn, Protocol):
    """A column that can be computed with; the result carries the error of the noise along."""

    def total(self) -> "AnswerFigure":
        """The sum of all numbers."""
        ...

    def at(self, **labels: str | int | bool) -> "AnswerFigure":
        """The numbers with these labels."""
        ...

    def __add__(self, other: Operand, /) -> "AnswerFigure": ...

    def __radd__(self, other: Operand, /) -> "AnswerFigure": ...

    def __sub__(self, other: Operand, /) -> "AnswerFigure": ...

    def __rsub__(self, other: Operand, /) -> "AnswerFigure": ...

    def __mul__(self, factor: Operand, /) -> "AnswerFigure": ...

    def __rmul__(self, factor: Operand, /) -> "AnswerFigure": ...

    def __truediv__(self, other: Operand, /) -> "AnswerFigure | AnswerRatio": ...


class AnswerRatio(ResultColumn, Protocol):
    """One figure over another."""

    def at(self, **labels: str | int | bool) -> "AnswerRatio":
        """The numbers with these labels."""
        ...
