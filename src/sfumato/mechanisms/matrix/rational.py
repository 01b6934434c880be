"""Least squares in whole numbers, without NumPy: exact, for laws and checks; gls.py is the fast one that answers."""

from collections.abc import Sequence
from fractions import Fraction

from sfumato.errors import InvalidInput, Refused

__all__ = ["all_least_squares", "least_squares"]


def least_squares(strategy: Sequence[Sequence[int]], question: Sequence[int]) -> tuple[Fraction, ...]:
    """The factors r with r·A = q and the least Σr²: r·y is the best unbiased linear answer from y = A·x + z.

    r = A·u for any u with AᵀA·u = q; there is one exactly where q lies in the row space of A.
    Proof: docs/proofs/matrix.md

    >>> least_squares([[1, 0], [0, 1], [1, 1]], [1, 1])
    (Fraction(1, 3), Fraction(1, 3), Fraction(2, 3))
    """
    return all_least_squares(strategy, [question])[0]


def all_least_squares(
    strategy: Sequence[Sequence[int]], questions: Sequence[Sequence[int]]
) -> list[tuple[Fraction, ...]]:
    """The factors of several questions, with one elimination for all of them.

    >>> all_least_squares([[2, 0], [0, 1]], [[1, 0], [1, 1]])
    [(Fraction(1, 2), Fraction(0, 1)), (Fraction(1, 2), Fraction(1, 1))]
    """
    columns = list(zip(*strategy, strict=True))
    for question in questions:
        if len(columns) != len(question):
            raise InvalidInput(
                f"query and strategy are about {len(question)} and {len(columns)} counts; nothing was done."
            )
    gram = [[_dot(one, other) for other in columns] for one in columns]
    asked = zip(*questions, strict=True)
    solutions = _solved([[*row, *wanted] for row, wanted in zip(gram, asked, strict=True)])
    return [
        tuple(
            sum((u * entry for u, entry in zip(solution, row, strict=True) if entry), Fraction(0)) for row in strategy
        )
        for solution in solutions
    ]


def _solved(table: list[list[int]]) -> list[list[Fraction]]:
    """Solve [G | Q], G symmetric and not negative, by Bareiss's elimination: all its divisions are exact."""
    size, last = len(table), 1
    pivots: list[int] = []
    for column in range(size):
        done = len(pivots)
        found = next((i for i in range(done, size) if table[i][column]), None)
        if found is None:
            continue
        table[done], table[found] = table[found], table[done]
        top, pivot = table[done], table[done][column]
        for i in range(done + 1, size):
            below, factor = table[i], table[i][column]
            if not factor and pivot == last:
                continue
            table[i] = [(pivot * x - factor * y) // last for x, y in zip(below, top, strict=True)]
        last = pivot
        pivots.append(column)
    if any(any(row[size:]) for row in table[len(pivots) :]):
        raise Refused(
            f"the strategy has rank {len(pivots)} and its row space does not contain the query: no unbiased estimate "
            "exists. Nothing was estimated. Measure more, or ask only for what was measured."
        )
    return [_back(table, pivots, size, place) for place in range(size, len(table[0]))]


def _back(table: list[list[int]], pivots: list[int], size: int, asked: int) -> list[Fraction]:
    """Substitute from the last row to the first, for the question in one column."""
    solution = [Fraction(0)] * size
    for place, column in reversed(list(enumerate(pivots))):
        row = table[place]
        rest = sum((row[j] * solution[j] for j in range(column + 1, size) if row[j]), Fraction(0))
        solution[column] = (row[asked] - rest) / row[column]
    return solution


def _dot(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(one, other, strict=True))
