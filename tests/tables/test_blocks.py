"""How far one row moves a gauge, and one unit an answer: the claims are what enumeration finds, no more and no less.

Nothing is asked of an engine, so that the file is fast enough to run against every mutant of the claims;
``tests/laws/test_gauge_neighbours.py`` holds the engine to the same claims.
"""

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from sfumato.core.limits import Limit
from sfumato.core.units import Relation, family, record, user
from sfumato.engines.expressions import col
from sfumato.engines.lattice import Lattice
from sfumato.engines.sufficient_statistics import (
    Everyone,
    Gauge,
    Histogram,
    Persons,
    Powers,
    Products,
    RowIndicator,
    Signed,
    Split,
)
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.tables.clamped import Clamped
from sfumato.tables.contribution import Contribution, Move, Reach, contribution, joint_reach
from sfumato.tables.measure import Measure
from sfumato.tables.measures.association import Association
from sfumato.tables.measures.average import MeanValue
from sfumato.tables.measures.person_count import PersonCount
from sfumato.tables.measures.proportion import Proportion
from sfumato.tables.measures.quotient import Quotient
from sfumato.tables.measures.row_count import RowCount
from sfumato.tables.measures.total import Total
from sfumato.tables.measures.variation import Variation
from sfumato.tables.statistic_plan import ROOT, STEPS, Key, _reach, blocks_of
from tests.laws import gauge_by_hand as by_hand

pytestmark = pytest.mark.kills

GOOD = col("good") == True  # noqa: E712


def lattice(name: str, steps: int) -> Lattice:
    return Lattice(value=col(name).node, low=Fraction(0), high=Fraction(steps), steps=steps)


GAUGES: list[Gauge | Histogram] = [
    RowIndicator(height=1),
    RowIndicator(height=3, condition=GOOD),
    Persons(height=3),
    Split(height=5, condition=GOOD),
    Powers(lattice=lattice("x", 3), degree=1),
    Powers(lattice=lattice("x", 3), degree=1, missing=True),
    Powers(lattice=lattice("x", 3), degree=2),
    Powers(lattice=lattice("x", 3), degree=2, missing=True),
    Products(first=lattice("x", 3), second=lattice("y", 2), degree=1),
    Products(first=lattice("x", 3), second=lattice("y", 2), degree=2),
    Signed(lattice=lattice("x", 5), zero=2),
    Signed(lattice=lattice("x", 5), zero=4),
    Signed(lattice=lattice("x", 5), zero=0),
    Signed(lattice=lattice("x", 5), zero=-2),
    Signed(lattice=lattice("x", 5), zero=7),
    Everyone(lattice=lattice("x", 3), degree=1),
    Everyone(lattice=lattice("x", 15), degree=2),
    Histogram(lattice=lattice("x", 2), height=1),
    Histogram(lattice=lattice("x", 3), height=5),
]
VALUES: list[float | None] = [None, *map(float, range(16))]
ROWS = [{"x": x, "y": y, "good": good} for x in VALUES for y in (None, 0.0, 1.0, 2.0) for good in (True, False)]


def norms(moves: np.ndarray) -> dict[str, int]:
    """The largest of each norm among rows of moves."""
    sizes = np.abs(moves)
    return {
        "l1": int(sizes.sum(axis=1).max()),
        "l2_squared": int((sizes**2).sum(axis=1).max()),
        "linf": int(sizes.max()),
    }


def as_dict(move: Move) -> dict[str, Fraction | int]:
    return {"l1": move.l1, "l2_squared": move.l2_squared, "linf": move.linf}


@pytest.mark.parametrize("gauge", GAUGES, ids=lambda it: type(it).__name__)
def test_one_row_moves_a_gauge_as_far_as_claimed_and_no_further(gauge: Gauge | Histogram) -> None:
    parts = {tuple(by_hand.of_record(gauge, by_hand.of_row(gauge, row))) for row in ROWS}
    rows = np.array(sorted(parts))
    with_none = np.array(sorted(parts | {(0,) * rows.shape[1]}))  # whoever replaces may have no row that counts
    between = (with_none[:, None] - with_none[None]).reshape(-1, rows.shape[1])
    claim = _reach(gauge)
    assert claim.numbers == rows.shape[1]
    assert as_dict(claim.alone) == norms(rows)
    assert as_dict(claim.met) == norms(between)
    assert claim.once is isinstance(gauge, Persons)


def test_a_person_of_many_rows_stays_within_the_claim_for_so_many() -> None:
    """Sums of the rows of one person, from one to five, held to the limit: alone, and against any other person."""
    for gauge in GAUGES:
        few = {tuple(by_hand.of_row(gauge, row)) for row in ROWS}
        for rows in (1, 2):
            persons = {(0,) * _reach(gauge).numbers}
            for one, two in product(sorted(few), repeat=2):
                for often in (1, 2, 4):
                    sums = [a + often * b for a, b in zip(one, two, strict=True)]
                    persons.add(tuple(by_hand.of_person(gauge, sums, rows)))
            held = np.array(sorted(persons))[:: max(1, len(persons) // 300)]
            claim, worth = _reach(gauge), 1 if isinstance(gauge, Persons | Everyone) else rows
            between = norms((held[:, None] - held[None]).reshape(-1, held.shape[1]))
            for norm, power in (("l1", 1), ("l2_squared", 2), ("linf", 1)):
                assert norms(held)[norm] <= worth**power * as_dict(claim.alone)[norm]
                assert between[norm] <= worth**power * as_dict(claim.met)[norm]


def test_the_curve_of_everyone_is_longest_at_a_third_and_at_a_fifth() -> None:
    """Every two points of a fine lattice on (2t(1 − t), t²): no two are further apart than these."""
    steps = 300
    place = np.arange(steps + 1)
    curve = np.stack([2 * place * (steps - place), place**2], axis=1)
    between = np.abs(curve[:, None] - curve[None])
    l1, squares = between.sum(axis=2), (between**2).sum(axis=2)
    assert np.argwhere(l1 == l1.max()).tolist() == [[100, 300], [300, 100]]
    assert np.argwhere(squares == squares.max()).tolist() == [[60, 300], [300, 60]]
    met = _reach(Everyone(lattice=lattice("x", steps), degree=2)).met
    assert (met.l1, met.l2_squared, met.linf) == (l1.max(), squares.max(), between.max())


def test_a_gauge_without_a_bound_is_refused() -> None:
    with pytest.raises(InvalidInput, match="there is no bound for a object"):
        _reach(object())  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="there is no bound for a Everyone"):
        _reach(Everyone(lattice=lattice("x", 3), degree=3))


# ------------------------------------------------------------------------------------------------- units and cells

THIRD = Fraction(1, 3)
# What one row can add: its corners, and the reach that says so. Thirds, so that no number hides behind 1.
CORNERS: dict[str, tuple[list[tuple[int, ...]], Reach]] = {
    "rows": ([(1,)], _reach(RowIndicator(height=1))),
    "split": ([(1, 0), (0, 1)], _reach(Split(height=1, condition=GOOD))),
    "both signs": ([(1,), (-1,)], _reach(Signed(lattice=lattice("x", 2), zero=1))),
    "more up than down": ([(3,), (-1,)], _reach(Signed(lattice=lattice("x", 4), zero=1))),
    "persons": ([(1,)], _reach(Persons(height=1))),
}


def scaled(reach: Reach, by: Fraction) -> Reach:
    def move(one: Move) -> Move:
        return Move(l1=one.l1 * by, l2_squared=one.l2_squared * by**2, linf=one.linf * by)

    return Reach(numbers=reach.numbers, alone=move(reach.alone), met=move(reach.met), once=reach.once)


def persons(corners: Iterable[tuple[int, ...]], *, groups: int, rows: int, cells: int) -> np.ndarray:
    """All that one person can add: up to ``groups`` cells, each full of one corner."""
    corners = [np.array(corner) * rows for corner in corners]
    width, found = len(corners[0]), []
    for several in range(min(groups, cells) + 1):
        for chosen in combinations(range(cells), several):
            for kinds in product(corners, repeat=several):
                vector = np.zeros((cells, width), dtype=np.int64)
                vector[list(chosen)] = kinds if several else vector[:0]
                found.append(vector.reshape(-1))
    return np.array(found)


def touched(*, units: int, groups: int, cells: int) -> int:
    """How many cells so many persons reach together, at most."""
    return max(
        len({cell for some in choice for cell in some})
        for choice in product(combinations(range(cells), min(groups, cells)), repeat=units)
    )


@pytest.mark.parametrize("relation", Relation, ids=lambda it: it.value)
@pytest.mark.parametrize("name", CORNERS)
def test_one_person_moves_an_answer_as_far_as_claimed_and_no_further(name: str, relation: Relation) -> None:
    corners, reach = CORNERS[name]
    for groups, rows, cells in product((1, 2, 3), (1, 2), (1, 2, 3, 4)):
        worth = 1 if name == "persons" else rows
        alone = persons(corners, groups=groups, rows=worth, cells=cells)
        moves = alone
        units = 1
        if relation is Relation.REPLACE:
            moves, units = (alone[:, None] - alone[None]).reshape(-1, alone.shape[1]), 2
        found = norms(moves)
        for members, unit in product((1, 2), (Fraction(1), THIRD)):
            given = Contribution(groups=groups, rows=rows, members=members, relation=relation)
            claim = joint_reach([scaled(reach, unit)], given, cells=cells)
            if members * units < 4:
                assert claim.l0.count == reach.numbers * touched(units=members * units, groups=groups, cells=cells)
            # A family is at its worst where all its members do the same.
            assert claim.l1.value == members * found["l1"] * unit
            assert claim.l2.squared == members**2 * found["l2_squared"] * unit**2
            assert claim.linf.value == members * found["linf"] * unit


def test_four_persons_reach_four_times_as_many_cells_while_there_are_some() -> None:
    for cells, reached in ((20, 12), (11, 11)):
        given = Contribution(groups=3, rows=1, members=2, relation=Relation.REPLACE)
        assert joint_reach([CORNERS["split"][1]], given, cells=cells).l0.count == 2 * reached


def test_what_several_blocks_move_adds_up() -> None:
    one, two, three = (CORNERS[name][1] for name in ("rows", "more up than down", "persons"))
    for relation, cells, l1, squares in (
        (Relation.ADD_REMOVE, 5, 2 * 2 * (1 + 3) + 2, 2 * 4 * (1 + 9) + 2),
        (Relation.REPLACE, 5, 4 * 2 * (1 + 3) + 4, 4 * 4 * (1 + 9) + 4),
        (Relation.REPLACE, 2, 2 * 2 * (1 + 4) + 2, 2 * 4 * (1 + 16) + 2),
    ):
        claim = joint_reach(
            [one, two, three], Contribution(groups=2, rows=2, members=1, relation=relation), cells=cells
        )
        assert (claim.l1.value, claim.l2.squared) == (l1, squares)
        assert claim.linf.value == (8 if relation is Relation.REPLACE else 6)
        assert claim.l0.count == 3 * (2 if relation is Relation.ADD_REMOVE else min(4, cells))


@pytest.mark.parametrize("relation", Relation, ids=lambda it: it.value)
def test_what_counts_of_a_unit_is_its_limit(relation: Relation) -> None:
    limit = Limit(groups=3, rows_per_group=5)
    for unit, given, expected in (
        (record(relation=relation), None, (1, 1, 1)),
        (user("id", relation=relation), limit, (3, 5, 1)),
        (family(4, "id", relation=relation), limit, (3, 5, 4)),
    ):
        found = contribution(unit, given)
        assert (found.groups, found.rows, found.members, found.relation) == (*expected, relation)
    with pytest.raises(Refused, match="means nothing for single rows"):
        contribution(record(relation=relation), limit)
    with pytest.raises(NotDeclared, match="needs a limit"):
        contribution(user("id", relation=relation), None)


# ------------------------------------------------------------------------------------- which blocks tell which measures


def ranged(name: str, low: int = 0, high: int = 10) -> Clamped:
    return Clamped(value=col(name).node, low=Fraction(low), high=Fraction(high))


X, Y = ranged("x"), ranged("y", -5, 5)


def kinds(*measures: Measure, number: int | None = None) -> list[str]:
    return [block.key.kind for block in blocks_of(measures, number=number)]


@pytest.mark.parametrize(
    ("measures", "expected"),
    [
        ((RowCount(name="n"),), ["rows"]),
        ((RowCount(name="n"), MeanValue(name="m", of=X)), ["powers"]),
        ((RowCount(name="n"), Total(name="s", of=X)), ["powers"]),
        ((Total(name="s", of=X),), ["signed"]),
        ((Total(name="s", of=X), Total(name="t", of=X)), ["signed"]),
        ((MeanValue(name="m", of=X), Variation(name="v", of=X), Total(name="s", of=X)), ["powers"]),
        ((RowCount(name="n"), Proportion(name="p", condition=GOOD)), ["split"]),
        ((PersonCount(name="p"), RowCount(name="n", condition=GOOD)), ["persons", "rows"]),
        ((Quotient(name="q", over=X, under=Y),), ["signed", "signed"]),
        ((Association(name="c", first=X, second=Y), Association(name="r", first=X, second=Y, scaled=True)),
         ["products"]),
    ],
)  # fmt: skip
def test_measures_share_what_they_can(measures: tuple[Measure, ...], expected: list[str]) -> None:
    assert kinds(*measures) == expected


def test_every_block_of_a_question_has_the_same_height() -> None:
    every = [
        *(RowCount(name="n"), RowCount(name="g", condition=GOOD), PersonCount(name="p")),
        *(MeanValue(name="m", of=X), Variation(name="v", of=Y), Proportion(name="q", condition=GOOD)),
        Association(name="c", first=X, second=Y, scaled=True),
    ]
    found = blocks_of(every)
    assert {block.height for block in found} == {STEPS} == {ROOT**2}
    assert all(block.reach.alone.linf == STEPS for block in found)
    assert len({block.key for block in found}) == len(found) == 6


@pytest.mark.parametrize(("low", "high"), [(-5, 5), (-1, 3), (0, 7), (2, 7), (-7, -2), (-7, 0)])
def test_a_sum_is_measured_from_0_in_steps_of_its_larger_bound(low: int, high: int) -> None:
    (block,) = blocks_of([Total(name="s", of=ranged("x", low, high))])
    assert block.key == Key("signed", (ranged("x", low, high),))
    gauge: Any = block.gauge
    step = (gauge.lattice.high - gauge.lattice.low) / gauge.lattice.steps
    assert block.reach.alone.linf * step == max(abs(low), abs(high))
    assert gauge.lattice.low <= low < high <= gauge.lattice.high
    assert max(low - gauge.lattice.low, gauge.lattice.high - high) < step
    assert 0 <= block.reach.met.linf * step - (max(high, 0) - min(low, 0)) < 2 * step


def test_a_public_number_is_for_sums_means_and_variances_alone() -> None:
    assert kinds(MeanValue(name="m", of=X), Total(name="s", of=X), number=5) == ["everyone"]
    assert kinds(MeanValue(name="m", of=X), Variation(name="v", of=Y), number=5) == ["everyone", "everyone"]
    with pytest.raises(Refused, match="cannot be asked where every unit counts once"):
        kinds(RowCount(name="n"), number=5)
