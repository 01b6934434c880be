"""What is asked of each group, in the analyst's words: ``n=sf.count()``, ``sbp=sf.mean("sbp")``.

An :class:`Asked` knows nothing of a table. The table gives it a name and the public range of its values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato.engines.expressions import Expression, Term, Value, bounds_of, term, written
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.tables.measures import (
    Association,
    Average,
    Measure,
    PersonCount,
    Proportion,
    Quotient,
    Ranged,
    RowCount,
    Total,
    Variation,
)

__all__ = [
    "Asked",
    "correlation",
    "count",
    "covariance",
    "mean",
    "persons",
    "proportion",
    "ranged",
    "ratio",
    "standard_deviation",
    "sum_of",
    "variance",
]

Bounds = Mapping[str, tuple[Fraction, Fraction]]
Named = Callable[[str, Bounds], Measure]


@dataclass(frozen=True, slots=True)
class Asked:
    """A measure that still needs a name and the bounds of a table.

    >>> count().bound("n", {}).name
    'n'
    """

    bound: Named


def count(where: Expression | None = None) -> Asked:
    """How many rows there are, or how many meet a condition.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(old=sf.count(sf.col("age") >= 65)).query.measures[0].KIND
    'measure.count'
    """
    if where is not None and not isinstance(where, Expression):
        raise InvalidInput("count(where=...) takes a predicate such as sf.col('age') >= 65; nothing was done.")
    return Asked(lambda name, _: RowCount(name=name, condition=where))


def persons() -> Asked:
    """How many persons have a row.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(persons=sf.persons()).query.measures[0].KIND
    'measure.persons'
    """
    return Asked(lambda name, _: PersonCount(name=name))


def sum_of(value: str | Term) -> Asked:
    """The sum of a column, or of a value computed from columns; rows without one add nothing.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(years=sf.sum("age")).query.measures[0].KIND
    'measure.sum'
    """
    return Asked(lambda name, bounds: Total(name=name, of=ranged(value, bounds)))


def mean(value: str | Term) -> Asked:
    """The mean over the rows that have a value.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(sbp=sf.mean("sbp")).query.measures[0].KIND
    'measure.mean'
    """
    return Asked(lambda name, bounds: Average(name=name, of=ranged(value, bounds)))


def variance(value: str | Term) -> Asked:
    """The variance over the rows that have a value: the mean of squared distances from the mean.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(spread=sf.variance("sbp")).query.measures[0].KIND
    'measure.variance'
    """
    return Asked(lambda name, bounds: Variation(name=name, of=ranged(value, bounds)))


def standard_deviation(value: str | Term) -> Asked:
    """The root of the variance.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(spread=sf.standard_deviation("sbp")).query.measures[0].KIND
    'measure.variance'
    """
    return Asked(lambda name, bounds: Variation(name=name, of=ranged(value, bounds), root=True))


def proportion(condition: Expression) -> Asked:
    """The share of the rows that meet a condition.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(old=sf.proportion(sf.col("age") >= 65)).query.measures[0].KIND
    'measure.proportion'
    """
    if not isinstance(condition, Expression):
        raise InvalidInput("proportion(...) takes a predicate such as sf.col('age') >= 65; nothing was done.")
    return Asked(lambda name, _: Proportion(name=name, condition=condition))


def ratio(over: str | Term, under: str | Term) -> Asked:
    """The sum of one value over the sum of another.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(by_age=sf.ratio("sbp", "age")).query.measures[0].KIND
    'measure.ratio'
    """
    return Asked(lambda name, bounds: Quotient(name=name, over=ranged(over, bounds), under=ranged(under, bounds)))


def covariance(first: str | Term, second: str | Term) -> Asked:
    """The covariance over the rows that have both values.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(together=sf.covariance("sbp", "age")).query.measures[0].KIND
    'measure.covariance'
    """
    return Asked(
        lambda name, bounds: Association(name=name, first=ranged(first, bounds), second=ranged(second, bounds))
    )


def correlation(first: str | Term, second: str | Term) -> Asked:
    """The correlation over the rows that have both values.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(together=sf.correlation("sbp", "age")).query.measures[0].KIND
    'measure.covariance'
    """
    return Asked(
        lambda name, bounds: Association(
            name=name, first=ranged(first, bounds), second=ranged(second, bounds), scaled=True
        )
    )


def ranged(value: str | Term, bounds: Bounds) -> Ranged:
    """A value with the range that follows from the declared bounds of its columns.

    >>> found = ranged("age", {"age": (Fraction(0), Fraction(120))})
    >>> found.low, found.high
    (Fraction(0, 1), Fraction(120, 1))
    """
    node: Value = term(_column(value)).node
    found = bounds_of(node, bounds)
    if found is None:
        declared = ", ".join(sorted(bounds)) or "none"
        raise NotDeclared(
            f"the range of {written(node)} does not follow from declared bounds, and reading it off the data would "
            f"tell about people in it. Nothing was done. Declare bounds={{column: (low, high)}} for the table "
            f"(declared: {declared}), or clip the value: sf.col('x').clip(0, 100)."
        )
    return Ranged(value=node, low=found[0], high=found[1])


def _column(value: str | Term) -> object:
    from sfumato.engines.expressions import col

    return col(value) if isinstance(value, str) else value
