"""What is wrong with an answer that a statement gives to its query."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from sfumato.core.query import Mechanism
from sfumato.core.statement import Statement
from sfumato.core.units import Unit

__all__ = ["ChecksAnswer", "ChecksMechanism", "answer_problems", "whole_answer"]


@runtime_checkable
class ChecksAnswer(Protocol):
    """A query whose answers have a form of their own."""

    def check_answer(self, said: Statement) -> Iterator[tuple[str, str]]:
        """The fields of a statement that cannot belong to an answer of this query, each with its problem."""
        ...


@runtime_checkable
class ChecksMechanism(Protocol):
    """A query that only some mechanisms of their kind answer."""

    def misfit(self, mechanism: Mechanism, unit: Unit, values: tuple[int, ...]) -> str | None:
        """What is wrong with a mechanism, or with numbers, that are said to answer this; None if nothing is."""
        ...


def answer_problems(said: Statement) -> Iterator[tuple[str, str]]:
    """The fields of a statement that its query refuses, each with its problem; nothing where all is well."""
    if isinstance(said.query, ChecksAnswer):
        yield from said.query.check_answer(said)
    else:
        yield from whole_answer(said)
    if isinstance(said.query, ChecksMechanism):
        problem = said.query.misfit(said.mechanism, said.unit, said.values)
        if problem is not None:
            yield "mechanism", problem


def whole_answer(said: Statement) -> Iterator[tuple[str, str]]:
    """As many numbers as the query says, and no keys that were found."""
    if said.query.size is not None and len(said.values) != said.query.size:
        yield "values", f"must hold {said.query.size} numbers, one for each cell"
    if said.found:
        yield "found", "must be empty: the query does not look for keys"
