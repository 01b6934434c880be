"""Whether an answer could say anything: its margin against what its figures can be at all, from public facts alone."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import TypeVar, cast

from sfumato.core.description import plain
from sfumato.core.exact import decimal_up
from sfumato.core.query import Law
from sfumato.engines.expressions import Named, Value, bounds_of, inside, written
from sfumato.tables.clamped import Clamped
from sfumato.tables.measure import Measure
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count
from sfumato.tables.queries.marginals import Marginals
from sfumato.tables.question_parts import TableQuery

__all__ = ["says_nothing"]

CONFIDENCE = Fraction(19, 20)
EXAMPLE = 1_000
DISTANCES = frozenset(("value.days_between", "value.units_between", "value.seconds"))
_Part = TypeVar("_Part")


def says_nothing(query: TableQuery, law: Law, *, most_rows: int | None) -> str | None:
    """Why an answer would say nothing, and what to do about it; None where it may say something.

    It says nothing where the 95% margin of a figure is wider than all that the figure can be, even in a group of
    ``most_rows`` rows, which is the public bound on them; and where a range follows from no declaration but from the
    calendar: two dates can be 10,000 years apart.

    Guarantee: nothing is read. Public: the answer of this function.
    """
    if isinstance(query, Aggregate):
        for measure in query.measures:
            unbounded = next(filter(_of_calendar, measure.ranges), None)
            if unbounded is not None:
                return _calendar(query, measure, unbounded, law, rows=most_rows or EXAMPLE)
    margins = query.expected(law, CONFIDENCE, joint=False, rows=most_rows)
    for name, low, high in _possible(query, most_rows):
        if name in margins and margins[name] >= high - low:
            return (
                f"{name!r} would say nothing: its 95% margin would be ±{_short(margins[name])}, and all that it can be "
                f"is {plain(low)} to {plain(high)}. Spend more ε (epsilon_for(margin=…) finds how much), declare "
                "narrower bounds or a smaller limit"
            )
    return None


def _possible(query: TableQuery, most_rows: int | None) -> Iterator[tuple[str, Fraction, Fraction]]:
    """The columns whose range public facts tell, each with the least and the most that it can be."""
    match query:
        case Count() | Marginals() if most_rows is not None:
            yield query.measure, Fraction(0), Fraction(most_rows)
        case Aggregate():
            rows = most_rows if query.number is None else query.number
            for measure in query.measures:
                found = _range(measure, rows)
                if found is not None:
                    yield measure.name, *found


def _range(measure: Measure, rows: int | None) -> tuple[Fraction, Fraction] | None:
    if measure.possible is not None or rows is None:
        return measure.possible
    if measure.counts:
        return Fraction(0), Fraction(rows)
    return measure.over_rows(rows)


def _of_calendar(of: Clamped) -> bool:
    """Whether the range of a value follows from how far apart two dates can be, and from nothing that was declared."""
    if not any(_is_distance(part) for part in _all_inside(of.value)):
        return False
    return bounds_of(of.value, {}) == (of.low, of.high) and bounds_of(_without_dates(of.value), {}) is None


def _is_distance(part: object) -> bool:
    """Whether a part of an expression says how far two dates are apart; by its kind, whatever unit it counts in."""
    return getattr(part, "KIND", None) in DISTANCES


def _all_inside(value: Value) -> Iterator[object]:
    waiting: list[object] = [value]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += inside(part)  # type: ignore[arg-type]  # parts of expressions are expressions


def _without_dates(part: _Part) -> _Part:
    """The same expression with a column that has no bounds in place of each distance of dates."""
    if _is_distance(part):
        return cast("_Part", Named(column="any"))
    if isinstance(part, tuple):
        return cast("_Part", tuple(map(_without_dates, part)))
    if isinstance(part, Enum) or not is_dataclass(part):
        return part
    changed = {each.name: _without_dates(getattr(part, each.name)) for each in fields(part)}
    return replace(part, **changed)  # type: ignore[type-var]  # a dataclass, as was just asked


def _calendar(query: Aggregate, measure: Measure, of: Clamped, law: Law, *, rows: int) -> str:
    margin = query.expected(law, CONFIDENCE, joint=False, rows=rows).get(measure.name)
    error = "" if margin is None else f": in a group of {rows:,} rows its 95% margin would be ±{_short(margin)}"
    return (
        f"{measure.name!r} would say nothing: nobody declared what {written(of.value)} can be, so it is taken to be "
        f"any distance of two dates, {plain(of.low)} to {plain(of.high)}{error}. Hold it to a range: "
        "….days_since(…).clip(0, 365), in SQL GREATEST(0, LEAST(365, DATE_DIFF(…)))"
    )


def _short(margin: Fraction) -> str:
    text = decimal_up(margin, 3)
    return f"{int(text):,}" if text.isdigit() else text
