"""Suggestions for stewards: a limit or bounds, found by a charged private release and taken over into a declaration.

Exact extremes and exact numbers of rows are read by nobody: what a steward sees is an answer with its certificate.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.core.exact import decimal_up, natural, positive
from sfumato.core.limits import Limit
from sfumato.core.query import Query
from sfumato.core.question import Question
from sfumato.core.release import Release
from sfumato.engines.expressions import Named, Type
from sfumato.errors import InvalidInput, Refused
from sfumato.server.asking.offers import Asker
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.queries.limit_suggestion import LimitSuggestion
from sfumato.tables.queries.magnitudes import Magnitudes
from sfumato.tables.schema import Schema

__all__ = ["BOUNDS", "LIMIT", "SuggestionForm", "kind_of", "numeric", "restated", "suggestion_words"]

LIMIT, BOUNDS = "limit", "bounds"
MOST_ROWS = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionForm:
    """What a steward asks for: a limit for planned questions, or bounds of a column up to a public maximum."""

    kind: str
    epsilon: Fraction
    most: str
    planned: str = ""
    by: tuple[str, ...] = ()
    column: str = ""

    @classmethod
    def read(cls, fields: Mapping[str, str]) -> "SuggestionForm":
        """What the fields of a form say."""
        kind = fields.get("kind", "")
        if kind not in (LIMIT, BOUNDS):
            raise InvalidInput("a limit or bounds can be suggested; nothing was done.")
        return cls(
            kind=kind,
            epsilon=positive(fields.get("epsilon", "").strip() or "0", "ε"),
            most=fields.get("most", "").strip(),
            planned=fields.get("planned", "").strip(),
            by=tuple(dict.fromkeys(said for name in ("by1", "by2") if (said := fields.get(name, "").strip()))),
            column=fields.get("column", "").strip(),
        )

    def question(self, asker: Asker, account: str, dataset: str) -> Question:
        """The question that finds it, about a table without rows."""
        table = asker.table(account, dataset)
        if self.kind == LIMIT:
            grouped = table.group_by(*self.by) if self.by else table
            if not (self.most.isascii() and self.most.isdecimal() and len(self.most) < 8):
                raise InvalidInput("the most rows that a person could have is a whole number; nothing was done.")
            most = natural(int(self.most), "most", most=MOST_ROWS)
            return grouped.suggest_limit(spend=positive(self.planned or "0", "the planned ε"), most=most)
        schema = asker.held(dataset).schema
        if self.column not in {column.name for column in numeric(schema)}:
            raise InvalidInput("bounds are suggested for a column of numbers; nothing was done.")
        return table.suggest_bounds(self.column, most=positive(self.most or "0", "the largest value there could be"))


def numeric(schema: Schema) -> tuple[ColumnFacts, ...]:
    """The columns that can have bounds."""
    return tuple(each for each in schema.columns if each.type in (Type.WHOLE, Type.NUMBER) and each.name != schema.unit)


def kind_of(query: Query) -> str | None:
    """Which suggestion a question asks for, of a whole table as it is declared; None where it is none."""
    if not isinstance(query, LimitSuggestion | Magnitudes) or query.where is not None or query.joins:
        return None
    if isinstance(query, LimitSuggestion):
        return LIMIT
    return BOUNDS if isinstance(query.of.value, Named) else None


def restated(schema: Schema, release: Release) -> tuple[Schema, str]:
    """The declaration with what a release suggests in its place, and that in words: a function of the release alone.

    Guarantee: post-processing. Nothing but the stored answer is looked at, and nothing that a form says.
    """
    query = release.statement.query
    dataset = release.statement.dataset
    if (dataset.name, dataset.edition) != (schema.name, schema.edition):
        raise Refused("this answer is about another version of the data; nothing was changed.")
    if kind_of(query) is not None and isinstance(query, LimitSuggestion):
        limit = query.limit_of(tuple(map(int, release.statement.values))).in_words_of(schema.limit)
        return replace(schema, limit=limit), suggestion_words(release)
    if kind_of(query) is None or not isinstance(query, Magnitudes):
        raise Refused("this answer suggests neither a limit nor bounds of this table; nothing was changed.")
    column, pair = _bounded(query, release, schema)
    columns = tuple(replace(each, bounds=pair) if each.name == column else each for each in schema.columns)
    return replace(schema, columns=columns), suggestion_words(release)


def suggestion_words(release: Release) -> str:
    """What a release suggests, as it is shown: groups × rows, or a column with its bounds."""
    query = release.statement.query
    if isinstance(query, LimitSuggestion):
        limit: Limit = query.limit_of(tuple(map(int, release.statement.values)))
        return f"{limit.groups} × {limit.rows_per_group}"
    if isinstance(query, Magnitudes) and isinstance(query.of.value, Named):
        low, high = query.bounds_of(release.statement)
        return f"{query.of.value.column}: {_end(low)} – {_end(high)}"
    raise Refused("this answer suggests neither a limit nor bounds; nothing was done.")


def _bounded(query: Magnitudes, release: Release, schema: Schema) -> tuple[str, tuple[Fraction, Fraction]]:
    """A column and its bounds; those of whole numbers are rounded outward."""
    value = query.of.value
    name = value.column if isinstance(value, Named) else ""
    low, high = query.bounds_of(release.statement)
    column = next((each for each in schema.columns if each.name == name), None)
    if column is None or column.type not in (Type.WHOLE, Type.NUMBER):
        raise Refused("the column of this answer is not declared any more; nothing was changed.")
    if column.type is Type.WHOLE:
        return name, (Fraction(math.floor(low)), Fraction(math.ceil(high)))
    return name, (low, high)


def _end(end: Fraction) -> str:
    return f"{end.numerator:,}" if end.denominator == 1 else decimal_up(end) if end > 0 else f"-{decimal_up(-end)}"
