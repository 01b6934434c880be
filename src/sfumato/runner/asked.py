"""What a planned release asks: its question, and what follows from it and the schema for the plan."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import cast

from sfumato.core.budget import Budget
from sfumato.core.documents import Json, canonical, encode, parse
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Query
from sfumato.core.question import Question
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.governance.digest import digest_of
from sfumato.governance.plans import Margin, PlannedRelease
from sfumato.tables.measures.quantile import QuantileValue
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count
from sfumato.tables.schema import ColumnFacts, Schema
from sfumato.vault import Vault

__all__ = ["ANY_PERIOD", "SqlQuestion", "is_asked", "tests_of"]

ANY_PERIOD = "{period}"
"""Stands for the version of the data in what is said of all periods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlQuestion:
    """A question in SQL about a table with a schema, for a unit.

    Guarantee: sensitivities follow from the question, the unit and the schema's limit; nobody types them. No data is
    opened.
    """

    sql: str
    schema: Schema
    question: Question
    unit: Unit

    @classmethod
    def of(cls, sql: str, schema: Schema, unit: Unit, cap: Budget) -> "SqlQuestion":
        """Read the question; one that a plan cannot hold is refused."""
        gate = Vault(unit=unit, budget=cap, name="a plan", population=schema.population)
        question = gate.table("period.parquet", schema=schema, version=ANY_PERIOD).sql(sql)
        query = question.query
        binned = isinstance(query, Aggregate) and any(isinstance(one, QuantileValue) for one in query.measures)
        if binned or not isinstance(query, Count | Aggregate):
            raise Unsupported(
                "a plan holds counts, sums and what is computed from them; quantiles and other choices are not planned "
                "yet. Nothing was planned."
            )
        return cls(sql=sql, schema=schema, question=question, unit=unit)

    @property
    def query(self) -> Count | Aggregate:
        """The query, about any period."""
        query = self.question.query
        if not isinstance(query, Count | Aggregate):
            raise Unsupported(f"a plan cannot hold {type(query).__name__}; nothing was planned.")
        return query

    @property
    def dataset(self) -> str:
        """The name of the dataset."""
        return self.query.dataset.name

    @property
    def counts(self) -> bool:
        """Whether all numbers are counts, so that a margin in whole numbers is one of the answer itself."""
        query = self.query
        return isinstance(query, Count) or all(each.counts for each in query.measures)

    @property
    def adds_up(self) -> bool:
        """Whether the answers of parts of a period add up to that of the whole: counts of rows do, of persons not."""
        query = self.query
        return isinstance(query, Count) or all(each.adds_up for each in query.measures)

    @property
    def limit_of_l1(self) -> Fraction:
        """How far one unit moves one release in l1."""
        moved = self.query.sensitivity(self.unit, self._limit)
        if moved.l1 is None or moved.l1.value == 0:
            raise Refused("this question has no l1 sensitivity; nothing was planned.")
        return moved.l1.value

    @property
    def limit_of_l2_squared(self) -> Fraction | None:
        """The same in l2, squared."""
        moved = self.query.sensitivity(self.unit, self._limit)
        return None if moved.l2 is None else moved.l2.squared

    @property
    def _limit(self) -> Limit | None:
        limit: Limit | None = self.schema.declaration(self.unit)["limit"]
        return limit

    def text(self, **beside: str | int | None) -> str:
        """What is asked of which data, with a digest of all that the SQL and the schema come to."""
        return canonical({"sql": self.sql, "query": _digest(self.query), "schema": _facts(self.schema), **beside})

    def same_as(self, other: "SqlQuestion") -> bool:
        """Whether both ask the same."""
        return self.query == other.query

    def price(self, *, rows: int | None, column: str | None) -> Callable[[PlannedRelease], Fraction]:
        """The least ε that keeps a margin, for answers that are not counts."""

        def least(release: PlannedRelease) -> Fraction:
            if not isinstance(release.wanted, Margin):
                raise InvalidInput(f"{release.name!r} has no margin to be priced by; nothing was planned.")
            return self.question.epsilon_for(
                margin=release.wanted.margin,
                confidence=release.wanted.confidence,
                joint=True,
                rows=rows,
                column=column,
            )

        return least


def is_asked(query: Query, text: str | None) -> bool:
    """Whether a query is the one that a planned release asks by its text (:meth:`SqlQuestion.text`), of any period."""
    try:
        asked = None if text is None else parse(text)
    except InvalidInput:
        return False  # planned in other words than a file's: nothing says which query was meant
    return isinstance(query, Count | Aggregate) and isinstance(asked, dict) and asked.get("query") == _digest(query)


def tests_of(text: str | None) -> str | None:
    """The tests that stood in a plan beside a planned release; None where there were none."""
    try:
        asked = None if text is None else parse(text)
    except InvalidInput:
        return None
    found = asked.get("tests") if isinstance(asked, dict) else None
    return found if isinstance(found, str) else None


def _facts(schema: Schema) -> str:
    """A digest of the schema; what it does not say leaves the digest as it was before there was such a word."""
    plain = replace(schema, columns=tuple(replace(column, bounds=None) for column in schema.columns))
    body = cast(dict[str, Json], encode(plain))
    body["columns"] = [_column_facts(column) for column in schema.columns]
    if not schema.derived:
        del body["derived"]
    if not schema.cells.said:
        del body["cells"]
    if not schema.provenance:
        del body["provenance"]
    return hashlib.sha256(canonical(body).encode()).hexdigest()[:32]


def _column_facts(column: ColumnFacts) -> dict[str, Json]:
    """A column without the words that it does not use; a period by its days."""
    body = cast(dict[str, Json], encode(replace(column, bounds=None)))
    ends = column.bounds or ()
    body["bounds"] = [end.isoformat() if isinstance(end, date) else encode(end) for end in ends] or None
    return {name: said for name, said in body.items() if name not in ("zone", "cells") or said is not None}


def _digest(query: Count | Aggregate) -> str:
    return digest_of(replace(query, dataset=Dataset(name=query.dataset.name, edition=ANY_PERIOD)))
