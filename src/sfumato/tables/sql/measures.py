"""Aggregates: what stands in SELECT beside the keys, as measures that a table can be asked for."""

import inspect
from dataclasses import dataclass

from sqlglot import exp

from sfumato.engines.expressions import Expression, Named, Term, when
from sfumato.errors import InvalidInput
from sfumato.tables.measure import Asked
from sfumato.tables.measures import ASKED, MEASURES
from sfumato.tables.measures.person_count import persons
from sfumato.tables.measures.quotient import ratio
from sfumato.tables.measures.row_count import count
from sfumato.tables.sql.refusals import AGGREGATES, name_of, only, refused, unknown
from sfumato.tables.sql.rows import RowScope

__all__ = ["Aggregates", "NamedMeasure", "is_aggregate"]

FUNCTIONS = {function: name for measure in MEASURES for function, name in measure.SQL.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedMeasure:
    """A measure, the name that it has without an alias, and whether it counts, and counts all rows."""

    name: str
    asked: Asked
    counts: bool = False
    plain_count: bool = False


def is_aggregate(node: exp.Expression) -> bool:
    """Whether something is, or holds, an aggregate."""
    return any(
        isinstance(part, exp.Filter | exp.WithinGroup | exp.Window)
        or (isinstance(part, exp.Anonymous) and name_of(part) in AGGREGATES)
        for part in node.walk()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """Reads aggregates over rows; ``unit`` is the column that identifies persons, where there is one."""

    rows: RowScope
    unit: str | None

    def read(self, node: exp.Expression) -> NamedMeasure:
        """One aggregate, or the quotient of two sums."""
        match node:
            case exp.Paren():
                only(node, "this")
                return self.read(node.this)
            case exp.Filter():
                only(node, "this", "expression")
                return self._function(node.this, self.rows.condition(node.expression.this))
            case exp.Anonymous():
                return self._function(node, None)
            case exp.Div() if name_of(node.this) == name_of(node.expression) == "SUM":
                over, under = (self._one(side) for side in (node.this, node.expression))
                return NamedMeasure(name="ratio", asked=ratio(over, under))
            case exp.Window() | exp.Subquery() | exp.WithinGroup():
                raise unknown(node)
        raise refused("arithmetic on aggregates")

    def _function(self, node: exp.Expression, kept: Expression | None) -> NamedMeasure:
        name = name_of(node)
        if not isinstance(node, exp.Anonymous) or name not in AGGREGATES:
            raise unknown(node)
        only(node, "this", "expressions")
        if name == "COUNT":
            return self._count(node, kept)
        if name not in FUNCTIONS:
            raise unknown(node)
        called = FUNCTIONS[name]
        if name == "SUM" and len(node.expressions) == 1 and self.rows.is_condition(node.expressions[0]):
            met = self.rows.condition(node.expressions[0])
            return NamedMeasure(name=called, asked=count(met if kept is None else kept & met))
        first, *others = self._several(node, len(inspect.signature(ASKED[called]).parameters))
        return NamedMeasure(name=called, asked=ASKED[called](_where(kept, first), *others))

    def _count(self, node: exp.Anonymous, kept: Expression | None) -> NamedMeasure:
        if len(node.expressions) != 1:
            raise InvalidInput("COUNT takes * or one value; nothing was done.")
        (of,) = node.expressions
        match of:
            case exp.Star():
                only(of)
                return NamedMeasure(name="count", asked=count(kept), counts=True, plain_count=kept is None)
            case exp.Literal() | exp.Boolean():
                return NamedMeasure(name="count", asked=count(kept), counts=True, plain_count=kept is None)
            case exp.Distinct():
                return self._persons(of, kept)
        present = ~self.rows.value(of).isnull()
        return NamedMeasure(name="count", asked=count(present if kept is None else kept & present), counts=True)

    def _persons(self, node: exp.Distinct, kept: Expression | None) -> NamedMeasure:
        only(node, "expressions")
        if len(node.expressions) != 1 or self.unit is None:
            raise unknown(node)
        of = self.rows.value(node.expressions[0]).node
        if of != Named(column=self.unit):
            raise unknown(node)
        if kept is not None:
            raise refused("COUNT(DISTINCT …) with FILTER")
        return NamedMeasure(name="persons", asked=persons(), counts=True)

    def _one(self, node: exp.Expression) -> Term:
        (value,) = self._several(node, 1)
        return value

    def _several(self, node: exp.Expression, number: int) -> list[Term]:
        if len(node.expressions) != number:
            raise InvalidInput(
                f"{name_of(node)} was given {len(node.expressions)} values; nothing was done. It takes {number}."
            )
        return [
            self.rows.as_whole(each) if self.rows.is_condition(each) else self.rows.value(each)
            for each in node.expressions
        ]


def _where(kept: Expression | None, value: Term) -> Term:
    """The value where a condition holds; missing, and so left out, elsewhere."""
    return value if kept is None else when(kept).then(value)
