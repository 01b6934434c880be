"""Findings: what is wrong with a document, and in which field of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.core.query import Fitted, Query
    from sfumato.core.statement import Statement

__all__ = ["Finding", "check_fit", "check_numbers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, and the field where it is wrong."""

    field: str
    problem: str


def check_numbers(query: "Query", said: "Statement") -> Iterator[Finding]:
    """The check of an answer of numbers alone: as many as the query asks for, and no keys.

    A query whose answers are all such numbers takes it as its ``check_answer``.
    """
    if query.size is not None and len(said.values) != query.size:
        yield Finding(field="statement.values", problem=f"must hold {query.size} numbers, one for each cell")
    if said.found:
        yield Finding(field="statement.found", problem="must be empty: the query does not look for keys")


def check_fit(query: "Fitted", said: "Statement") -> Iterator[Finding]:
    """The same for a query that knows besides which mechanism and which numbers fit it."""
    yield from check_numbers(query, said)
    problem = query.misfit(said.mechanism, said.unit, said.values)
    if problem is not None:
        yield Finding(field="statement.mechanism", problem=problem)
