"""No neighbour moves what a stream measures further than it claims: brute force over all patterns of short streams."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import Relation, Unit, event, user
from sfumato.mechanisms.matrix.steps.buffers import Buffers
from sfumato.mechanisms.matrix.steps.doubling import Doubling
from sfumato.mechanisms.matrix.steps.pattern import ADDED, SWAPPED, Pattern
from sfumato.mechanisms.matrix.steps.rows import Rows
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz
from sfumato.mechanisms.matrix.steps.tree import Tree
from sfumato.streams.strategy_encoder import Strategy, encoder_of
from sfumato.streams.total import RunningTotal
from tests.streams.patterns import differences, farthest

pytestmark = pytest.mark.kills

T = 6
EXACT: list[Strategy] = [Toeplitz(form=form, horizon=T, bits=6) for form in ("square root", "increments", "totals")]
BOUNDS: list[Strategy] = [
    Tree(arity=2, horizon=T, bits=1),
    Tree(arity=3, horizon=T, bits=0),
    Rows(rows=((8,), (4, 9), (3, -4, 8), (2, 3, 4, 8), (1, 2, 3, 4, 8), (-1, 1, 2, 3, 4, 9)), bits=3),
    Doubling(first=2, blocks=2, bits=6),
]
PATTERNS = [(1, 1), (2, 1), (2, 3), (3, 2), (6, 1), (2, 7)]


def claimed(strategy: Strategy, times: int, separation: int, *, swapped: bool) -> tuple[int, int]:
    pattern = Pattern(times=times, separation=separation, change=SWAPPED if swapped else ADDED)
    return strategy.squared(pattern), strategy.absolute(pattern)


def found(strategy: Strategy, times: int, separation: int, *, swapped: bool) -> tuple[int, int]:
    ways = differences(strategy.horizon, times=times, separation=separation, each=1, swapped=swapped)
    return farthest(strategy, ways)


@pytest.mark.parametrize(("times", "separation"), PATTERNS)
@pytest.mark.parametrize("strategy", EXACT, ids=lambda one: one.form)
def test_a_toeplitz_strategy_is_moved_as_far_as_claimed_and_no_further(
    strategy: Toeplitz, times: int, separation: int
) -> None:
    assert found(strategy, times, separation, swapped=False) == claimed(strategy, times, separation, swapped=False)
    most, claim = (f(strategy, times, separation, swapped=True) for f in (found, claimed))
    assert most[0] <= claim[0]
    assert most[1] <= claim[1]


@pytest.mark.parametrize(("times", "separation"), PATTERNS)
@pytest.mark.parametrize("strategy", BOUNDS, ids=lambda one: type(one).__name__)
def test_no_other_strategy_is_moved_further_than_claimed(strategy: Strategy, times: int, separation: int) -> None:
    for swapped in (False, True):
        most, claim = (f(strategy, times, separation, swapped=swapped) for f in (found, claimed))
        assert most[0] <= claim[0]
        assert most[1] <= claim[1]
    if times == 1:  # one step is exact everywhere
        assert found(strategy, 1, 1, swapped=False) == claimed(strategy, 1, 1, swapped=False)


def test_what_would_be_too_little_is_found() -> None:
    """The twins: a claim for one step is broken by two, one for far steps by near ones, one for adding by a swap."""
    root = EXACT[0]
    assert found(root, 2, 1, swapped=False)[0] > claimed(root, 1, 1, swapped=False)[0]
    assert found(root, 2, 1, swapped=False)[0] > claimed(root, 2, 3, swapped=False)[0]
    assert found(root, 1, 1, swapped=True)[0] > claimed(root, 1, 1, swapped=False)[0]
    assert found(root, 1, 1, swapped=True)[1] > claimed(root, 1, 1, swapped=False)[1]
    assert found(EXACT[2], 6, 1, swapped=False)[0] > 6 * claimed(EXACT[2], 1, 1, swapped=False)[0]


@pytest.mark.parametrize("times", [1, 2])
def test_buffers_with_all_their_rounding_are_moved_no_further_than_claimed(times: int) -> None:
    """Not linear, because each measurement is rounded: so from many streams, across the end of a block."""
    said = Buffers(
        horizon=300,
        decays=(Fraction(1, 2), Fraction(15, 16)),
        weights=(Fraction(1, 4), Fraction(1, 8)),
        bits=12,
        largest=3,
    )
    pattern = Pattern(times=times, separation=9, change=ADDED)
    worst = 0
    for start, shift in product((0, 7, 250, 256), range(3)):
        base = (np.arange(300) * (3 + shift) // 2) % 3
        other = base.copy()
        for place in range(start, min(300, start + 9 * times), 9):
            other[place] += 1
        one, two = (encoder_of(said).measure(np.minimum(x, 3)) for x in (base, other))
        worst = max(worst, int(((one - two) ** 2).sum()))
    assert worst <= said.squared(pattern)
    assert worst > 0.9 * said.squared(pattern)  # the claim is not idle
    alone = Pattern(times=1, separation=9, change=ADDED)
    assert times == 1 or worst > said.squared(alone)  # the twin: a claim for one step is broken by two
    assert worst > 4**12  # and one for the step itself by what the buffers hold


def total(horizon: int, *, times: int, each: int = 1, separation: int = 1, lower: int = 0) -> RunningTotal:
    return RunningTotal(
        dataset=Dataset(name="s", edition="1"),
        horizon=horizon,
        told=horizon,
        lower=lower,
        upper=9,
        each=each,
        times=times,
        separation=separation,
        groups=(),
    )


def series(unit: Unit, horizon: int, people: int) -> list[tuple[int, int]]:
    """Squared and absolute moves of the occupancy series, over all matrices of people and steps."""
    found = []
    for cells in product((0, 1), repeat=people * horizon):
        x = np.array(cells).reshape(people, horizon)
        others = []
        if unit.KIND == "unit.event":
            for place in zip(*np.nonzero(x), strict=True):
                less = x.copy()
                less[place] = 0
                if unit.relation is Relation.ADD_REMOVE:
                    others.append(less)
                    continue
                for where in zip(*np.nonzero(less == 0), strict=True):
                    moved = less.copy()
                    moved[where] = 1
                    others.append(moved)
        else:
            others = [np.delete(x, row, axis=0) for row in range(people)]
        found += [((d := x.sum(axis=0) - y.sum(axis=0)) @ d, np.abs(d).sum()) for y in others]
    return [(int(a), int(b)) for a, b in found]


@pytest.mark.claim("S0-22")
@pytest.mark.claim("S4-08")
@pytest.mark.claim("S4-09")
@pytest.mark.parametrize("horizon", [1, 2, 3, 4])
def test_the_series_moves_by_one_for_an_event_and_by_its_length_for_a_user(horizon: int) -> None:
    people = 3 if horizon < 4 else 2
    moves = series(event(relation="add/remove"), horizon, people)
    said = total(horizon, times=1).sensitivity(event(relation="add/remove"), None)
    assert (max(a for a, _ in moves), max(b for _, b in moves)) == (1, 1) == (said.l2.squared, said.l1.value)  # type: ignore[union-attr]
    whole = series(user("id", relation="add/remove"), horizon, people)
    limit = Limit(groups=horizon, rows_per_group=1)
    said = total(horizon, times=horizon).sensitivity(user("id", relation="add/remove"), limit)
    assert (max(a for a, _ in whole), max(b for _, b in whole)) == (horizon, horizon)
    assert (said.l2.squared, said.l1.value) == (horizon, horizon)  # type: ignore[union-attr]
    if horizon > 1:  # a moved event; and m contributions of a person
        moved = series(event(relation="replace"), horizon, people)
        said = total(horizon, times=1).sensitivity(event(relation="replace"), None)
        assert (max(a for a, _ in moved), max(b for _, b in moved)) == (2, 2) == (said.l2.squared, said.l1.value)  # type: ignore[union-attr]
        held = total(horizon, times=2).sensitivity(user("id", relation="add/remove"), Limit(groups=2, rows_per_group=1))
        assert (held.l2.squared, held.l1.value) == (2, 2)  # type: ignore[union-attr]


@pytest.mark.claim("S4-10")
def test_cumulative_counts_at_user_level() -> None:
    for steps in range(1, 7):
        totals = Toeplitz(form="totals", horizon=steps, bits=0)
        assert found(totals, steps, 1, swapped=False) == (
            steps * (steps + 1) * (2 * steps + 1) // 6,
            steps * (steps + 1) // 2,
        )
        assert found(totals, 1, 1, swapped=False) == (steps, steps)
    for steps, direct, better in ((1000, 18271, 1000), (100, 581.7, 100)):
        every = Pattern(times=steps, separation=1, change=ADDED)
        totals, increments = (Toeplitz(form=form, horizon=steps, bits=0) for form in ("totals", "increments"))
        assert totals.squared(every) ** 0.5 == pytest.approx(direct, rel=1e-4)
        assert (increments.squared(every) * steps) ** 0.5 == pytest.approx(better)  # σ·√T at the last step
    one = Pattern(times=1, separation=1, change=ADDED)
    root = Toeplitz(form="square root", horizon=1000, bits=20)
    last = (root.squared(one) * sum((c / 2**20) ** 2 for c in root.column)) ** 0.5 / 2**20
    assert last == pytest.approx(3.27, abs=0.005)
    assert Toeplitz(form="totals", horizon=1000, bits=0).squared(one) ** 0.5 == pytest.approx(31.6, abs=0.03)
