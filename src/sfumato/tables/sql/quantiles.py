"""Quantiles in SQL: MEDIAN and the like, which are measures among others, each with an interval."""

from collections.abc import Iterator
from fractions import Fraction

from sqlglot import exp

from sfumato.engines.expressions import Term, when
from sfumato.errors import InvalidInput
from sfumato.tables.queries.quantiles import level_name
from sfumato.tables.sql.refusals import AGGREGATES, name_of, only, refused, unknown
from sfumato.tables.sql.rows import RowScope, constant

__all__ = ["is_quantile", "quantile_of"]

QUANTILES = ("MEDIAN", "QUANTILE", "PERCENTILE_CONT", "PERCENTILE_DISC")


def is_quantile(node: exp.Expression) -> bool:
    """Whether an aggregate is a quantile, perhaps with FILTER or WITHIN GROUP."""
    return any(name_of(call) in QUANTILES for call in _calls(node))


def _calls(node: exp.Expression) -> Iterator[exp.Anonymous]:
    """The aggregates in something."""
    return (part for part in node.walk() if isinstance(part, exp.Anonymous) and name_of(part) in AGGREGATES)


def quantile_of(node: exp.Expression, rows: RowScope) -> tuple[str, Term, Fraction]:
    """The name that a quantile has in the answer, its value and its level."""
    value, level = _read(node, rows)
    return level_name(level), value, level


def _read(node: exp.Expression, rows: RowScope) -> tuple[Term, Fraction]:
    """The value and the level of one quantile."""
    match node:
        case exp.Paren():
            only(node, "this")
            return _read(node.this, rows)
        case exp.Filter():
            only(node, "this", "expression")
            value, level = _read(node.this, rows)
            return when(rows.condition(node.expression.this)).then(value), level
        case exp.WithinGroup(this=exp.Anonymous() as function) if name_of(function).startswith("PERCENTILE"):
            only(node, "this", "expression")
            return rows.value(_ordered(node.expression)), _level(_arguments(function, 1)[0])
        case exp.Anonymous() if name_of(node) == "MEDIAN":
            return rows.value(_arguments(node, 1)[0]), Fraction(1, 2)
        case exp.Anonymous() if name_of(node) == "QUANTILE":
            of, at = _arguments(node, 2)
            return rows.value(of), _level(at)
        case exp.Anonymous() if name_of(node) in QUANTILES:
            raise InvalidInput(f"{name_of(node)}(…) needs WITHIN GROUP (ORDER BY a value); nothing was done.")
        case exp.Window():
            raise refused("OVER")
    raise unknown(node)


def _ordered(node: exp.Expression) -> exp.Expression:
    """The one value that is ordered by, upwards."""
    if not isinstance(node, exp.Order) or len(node.expressions) != 1:
        raise refused("WITHIN GROUP by several values")
    only(node, "expressions")
    (by,) = node.expressions
    if not isinstance(by, exp.Ordered) or by.args.get("desc"):
        raise refused("WITHIN GROUP in descending order")
    only(by, "this", "nulls_first")
    inner: exp.Expression = by.this
    return inner


def _arguments(node: exp.Anonymous, number: int) -> list[exp.Expression]:
    only(node, "this", "expressions")
    if len(node.expressions) != number:
        raise InvalidInput(
            f"{name_of(node)} was given {len(node.expressions)} values; nothing was done. It takes {number}."
        )
    given: list[exp.Expression] = node.expressions
    return given


def _level(node: exp.Expression) -> Fraction:
    level = constant(node)
    if isinstance(level, bool) or not isinstance(level, int | Fraction):
        raise InvalidInput("the level of a quantile is a number between 0 and 1; nothing was done.")
    return Fraction(level)
