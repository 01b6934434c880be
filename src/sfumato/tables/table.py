"""Tables: the handle that an analyst builds questions with; it holds public facts and no rows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.core.query import Dataset
from sfumato.core.question import Gate, Question
from sfumato.engines.expressions import AllOf, AnyOf, Compare, Expression, Missing, Not, OneOf
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.tables.queries.count import Count, Keys

__all__ = ["Table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows about people, behind a gate.

    Public: the name, the version, the declared keys and bounds. Each method returns a new table or a question;
    nothing is read and nothing is spent until a question is released.
    """

    gate: Gate
    dataset: Dataset
    keys: Mapping[str, Keys]
    bounds: Mapping[str, tuple[Fraction, Fraction]]
    predicate: Expression | None = None
    by: tuple[Keys, ...] = ()

    def where(self, predicate: Expression) -> "Table":
        """Keep the rows that meet a predicate, such as ``sf.col("age") >= 65``; several calls must all be met."""
        if not isinstance(predicate, Compare | OneOf | Missing | Not | AllOf | AnyOf):
            raise InvalidInput(
                f"where(...) takes a predicate such as sf.col('age') >= 65 and was given {type(predicate).__name__}; "
                "nothing was done."
            )
        return replace(self, predicate=predicate if self.predicate is None else self.predicate & predicate)

    def group_by(self, *columns: str) -> "Table":
        """Ask for one number for each value of these columns; their values must have been declared as keys."""
        for column in columns:
            if column not in self.keys:
                declared = ", ".join(sorted(self.keys)) or "none"
                raise NotDeclared(
                    f"values of {column!r} are not declared, and reading them off the data would tell who is in it. "
                    f"Nothing was done. Declare keys={{{column!r}: [...]}} for the table (declared: {declared})."
                )
        return replace(self, by=self.by + tuple(self.keys[column] for column in columns))

    def count(self) -> Question:
        """Ask how many rows there are, in each group."""
        return Question(query=Count(dataset=self.dataset, where=self.predicate, by=self.by), gate=self.gate)
