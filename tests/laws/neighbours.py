"""Neighbours of tiny tables by brute force, and the law that no query moves further between them than it claims.

One *neighbourhood* is a table from which a unit was taken (``rest``), and that table with any unit put in its place
(``plus``). Under add/remove the rest and each plus are neighbours; under replace, every two of the plus are.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, combinations_with_replacement
from typing import NamedTuple

import numpy as np

from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Relation


class Visit(NamedTuple):
    """One row."""

    person: str | int | None
    zip: str | None
    ward: int | None
    urgent: bool | None
    age: int | None


Rows = tuple[Visit, ...]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Neighbours:
    """Many small tables side by side, and which of them are neighbours."""

    worlds: tuple[Rows, ...]
    around: tuple[tuple[int, tuple[int, ...]], ...]

    @classmethod
    def of(cls, neighbourhoods: Iterable[tuple[Rows, Sequence[Rows]]]) -> "Neighbours":
        """Number all tables: for each neighbourhood the rest, then each plus."""
        worlds: list[Rows] = []
        around = []
        for rest, plus in neighbourhoods:
            first = len(worlds)
            worlds += [rest, *plus]
            around.append((first, tuple(range(first + 1, len(worlds)))))
        return cls(worlds=tuple(worlds), around=tuple(around))


Plan = Callable[[Neighbours], np.ndarray]  # one row of counts for each world


def around_records(table: Rows, rows: Sequence[Visit]) -> Neighbours:
    """Any one row out, any of ``rows`` in."""

    def neighbourhoods() -> Iterable[tuple[Rows, list[Rows]]]:
        for out in range(-1, len(table)):
            rest = tuple(row for place, row in enumerate(table) if place != out)
            yield rest, [*([table] if out >= 0 else []), *((*rest, row) for row in rows)]

    return Neighbours.of(neighbourhoods())


def around_persons(table: Rows, row_sets: Sequence[Rows], *, newcomer: str | int) -> Neighbours:
    """Any one person out with all rows; in comes a newcomer, or the same id, with any of ``row_sets``."""

    def neighbourhoods() -> Iterable[tuple[Rows, list[Rows]]]:
        for out in [None, *persons(table)]:
            rest = _without(table, [] if out is None else [out])
            ids = [newcomer] if out is None else [newcomer, out]
            yield (
                rest,
                [*([] if out is None else [table]), *(rest + owned(it, rows) for it in ids for rows in row_sets)],
            )

    return Neighbours.of(neighbourhoods())


def around_couples(table: Rows, row_sets: Sequence[Rows], *, newcomers: tuple[str | int, str | int]) -> Neighbours:
    """Any two persons out, and any two in, each with any of ``row_sets``."""

    def neighbourhoods() -> Iterable[tuple[Rows, list[Rows]]]:
        for out in [(), *combinations(persons(table), 2)]:
            rest = _without(table, out)
            one, two = (newcomers[0], out[0]) if out else newcomers
            couples = combinations_with_replacement(row_sets, 2)
            yield rest, [*([table] if out else []), *(rest + owned(one, a) + owned(two, b) for a, b in couples)]

    return Neighbours.of(neighbourhoods())


def persons(table: Rows) -> list[str | int]:
    """Everyone in a table; a row without an id is nobody's."""
    return list(dict.fromkeys(row.person for row in table if row.person is not None))


def owned(person: str | int, rows: Rows) -> Rows:
    """These rows, as rows of one person."""
    return tuple(row._replace(person=person) for row in rows)


def _without(table: Rows, out: Sequence[str | int]) -> Rows:
    return tuple(row for row in table if row.person is None or row.person not in out)


def fillings(cells: Sequence[Visit], *, groups: int, rows: int) -> list[Rows]:
    """Row sets that fill each choice of up to ``groups`` cells with ``rows`` rows each."""
    choices = chain.from_iterable(combinations(cells, several) for several in range(1, groups + 1))
    return [tuple(cell for cell in choice for _ in range(rows)) for choice in choices]


def windows(cells: Sequence[Visit], *, groups: int, rows: int) -> list[Rows]:
    """Like :func:`fillings`, for neighbouring cells alone: fewer, for the pairs of a family."""
    ring = [*cells, *cells]
    spans = {
        tuple(sorted({(start + step) % len(cells) for step in range(several)}))
        for several in range(1, min(groups, len(cells)) + 1)
        for start in range(len(cells))
    }
    return [tuple(ring[place] for place in span for _ in range(rows)) for span in sorted(spans)]


# ------------------------------------------------------------------------------------------------------- the law


def furthest(counts: np.ndarray, *, around: Neighbours, relation: Relation) -> dict[str, int]:
    """The largest move between any two neighbours, in each norm; exact, also where squares leave 64 bits."""
    most = {"l0": 0, "l1": 0, "l2 squared": 0, "linf": 0}
    for rest, plus in around.around:
        there = np.unique(counts[list(plus)], axis=0)
        match relation:
            case Relation.ADD_REMOVE:
                moved = np.abs(there - counts[rest])
            case Relation.REPLACE:
                one, other = np.triu_indices(len(there))
                moved = np.abs(there[one] - there[other])
        found = {
            "l0": (moved > 0).sum(axis=1).max(),
            "l1": moved.sum(axis=1).max(),
            "l2 squared": _largest_square(moved),
            "linf": moved.max(),
        }
        most = {norm: max(most[norm], int(found[norm])) for norm in most}
    return most


def _largest_square(moved: np.ndarray) -> int:
    """The largest sum of squares of a row, exact.

    Where 64 bits do not hold it, doubles tell which rows may have it, and whole numbers of any size what it is.
    """
    if int(moved.max(initial=0)) ** 2 * moved.shape[1] < 2**63:
        return int((moved * moved).sum(axis=1).max())
    near = (moved.astype(np.float64) ** 2).sum(axis=1)
    candidates = np.unique(moved[near >= near.max() * (1 - 1e-12)], axis=0)
    return max(sum(int(number) ** 2 for number in row) for row in candidates)


def stated(claim: Sensitivity) -> dict[str, Fraction]:
    """The bounds of a claim, by norm."""
    assert claim.l0 is not None
    assert claim.l1 is not None
    assert claim.l2 is not None
    assert claim.linf is not None
    bounds = {"l0": claim.l0.count, "l1": claim.l1.value, "l2 squared": claim.l2.squared, "linf": claim.linf.value}
    return {norm: Fraction(bound) for norm, bound in bounds.items()}


def verdict(plan: Plan, claim: Sensitivity, *, around: Neighbours, relation: Relation) -> tuple[list[str], list[str]]:
    """The :func:`violations` and the :func:`slack` of a claim."""
    found, bounds = furthest(plan(around), around=around, relation=relation), stated(claim)
    broken = [f"{norm}: {found[norm]} > {bounds[norm]}" for norm in bounds if found[norm] > bounds[norm]]
    return broken, [f"{norm}: {found[norm]} < {bounds[norm]}" for norm in bounds if found[norm] < bounds[norm]]


def violations(plan: Plan, claim: Sensitivity, *, around: Neighbours, relation: Relation) -> list[str]:
    """Every norm in which some neighbours are further apart than the claim says; empty if it holds."""
    return verdict(plan, claim, around=around, relation=relation)[0]


def slack(plan: Plan, claim: Sensitivity, *, around: Neighbours, relation: Relation) -> list[str]:
    """Every norm in which no neighbours are as far apart as the claim says: noise that nobody needs."""
    return verdict(plan, claim, around=around, relation=relation)[1]
