"""The numbers that streams state about privacy, each by itself: what a changed operator or constant would change."""

from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from math import ceil, isqrt
from typing import Any

import pytest

from sfumato.core import events
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import edge, event, node, record, user
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.mechanisms.matrix.steps.buffers import Buffers
from sfumato.mechanisms.matrix.steps.doubling import Doubling
from sfumato.mechanisms.matrix.steps.rows import Rows
from sfumato.mechanisms.matrix.steps.tree import Tree
from sfumato.streams import Alarms, Pattern, RunningTotal, SeriesNoise, Toeplitz
from sfumato.streams.people import People

pytestmark = pytest.mark.kills

DATA = Dataset(name="er", edition="1")
PLUS, SWAP = "add/remove", "replace"


def total(*, lower: int = 0, separation: int = 1) -> RunningTotal:
    return RunningTotal(
        dataset=DATA,
        horizon=9,
        told=9,
        lower=lower,
        upper=9,
        each=3,
        times=2,
        separation=separation,
        groups=(),
    )


def alarms(watched: str, *, lower: int = 0, separation: int = 1) -> Alarms:
    return Alarms(
        dataset=DATA,
        watched=watched,
        threshold=5,
        drift=1,
        alarms=2,
        horizon=9,
        told=0,
        lower=lower,
        upper=9,
        each=3,
        times=2,
        separation=separation,
    )


@pytest.mark.parametrize("make", [event, record, edge])
def test_a_series_moves_by_what_its_steps_add_up_to(make: Any) -> None:
    assert total().sensitivity(make(relation=PLUS), None) == Sensitivity.of(l0=2, l1=6, l2_squared=18, linf=3)
    assert total().sensitivity(make(relation=SWAP), None) == Sensitivity.of(l0=4, l1=12, l2_squared=36, linf=3)
    assert total(lower=-1).sensitivity(make(relation=PLUS), None).linf == Sensitivity.of(linf=3).linf


def test_a_person_is_held_to_the_limit_that_the_query_states() -> None:
    limit = Limit(groups=2, rows_per_group=3)
    for apart in (1, 4):
        moved = total(separation=apart).sensitivity(user("id", relation=PLUS), limit)
        assert moved == Sensitivity.of(l0=2, l1=6, l2_squared=18, linf=3)
        alarms("step", separation=apart).sensitivity(user("id", relation=PLUS), limit)
    for apart in (0, 2, 4):  # which nobody enforces for events
        for asked in (total, partial(alarms, "step")):
            with pytest.raises((Unsupported, InvalidInput)):
                asked(separation=apart).sensitivity(event(relation=PLUS), None)
    for asked in (total(), alarms("step")):
        for other in (None, Limit(groups=2, rows_per_group=2), Limit(groups=3, rows_per_group=3)):
            with pytest.raises(Refused, match="must be"):
                asked.sensitivity(user("id", relation=PLUS), other)
        with pytest.raises(Unsupported, match="protect"):
            asked.sensitivity(event(relation=PLUS), limit)
        with pytest.raises(Unsupported, match="protect"):
            asked.sensitivity(node(max_degree=3, relation=PLUS), None)


def test_steps_below_zero_are_not_offered_under_replace() -> None:
    for asked in (total(lower=-1), alarms("step", lower=-1)):
        with pytest.raises(Unsupported, match="below 0"):
            asked.sensitivity(event(relation=SWAP), None)
        asked.sensitivity(event(relation=PLUS), None)


def test_what_is_watched_moves_by_a_step_or_by_all_of_them() -> None:
    for relation in (PLUS, SWAP):
        unit = event(relation=relation)
        assert alarms("step").sensitivity(unit, None) == Sensitivity.of(linf=3)
        assert alarms("total").sensitivity(unit, None) == Sensitivity.of(linf=6)
        assert alarms("cusum").sensitivity(unit, None) == Sensitivity.of(linf=6)


def test_the_loss_is_that_of_the_strategy_at_the_distance_of_the_unit() -> None:
    root = Toeplitz(form="square root", horizon=3, bits=3)  # columns 8, 4, 3
    for change, swap in (("added", 1), ("swapped", 2)):
        one = Pattern(times=1, separation=1, change=change)
        moved = Sensitivity.of(linf=3, l1=100, l2_squared=100)
        spread = SeriesNoise(strategy=root, pattern=one, norm="l2", noise=Fraction(5))
        assert spread.loss(moved) == events.Gaussian(l2_squared=swap * 9 * Fraction(89), sigma_squared=Fraction(25))
        pure = SeriesNoise(strategy=root, pattern=one, norm="l1", noise=Fraction(5))
        assert pure.loss(moved) == events.DiscreteLaplace(l1=swap * Fraction(45), scale=Fraction(5))


@pytest.mark.few(1)
@pytest.mark.parametrize(("times", "separation", "each"), [(1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 3, 2), (3, 2, 2)])
def test_a_person_counts_in_the_pattern_that_is_charged_and_nobody_moves_another(
    times: int, separation: int, each: int
) -> None:
    """All ways in which a person can appear in six steps of up to three events, in two groups, beside another one."""
    others = [{"sb": 2}, {"sb": 1}]
    for visits in product(range(4), repeat=6):
        with_, without = (People(times=times, separation=separation, each=each) for _ in range(2))
        moves = []
        for step, many in enumerate(visits):
            here = with_.counted(step, [{**others[0], "sa": many // 2}, {**others[1], "sa": many - many // 2}])
            there = without.counted(step, others)
            assert step or there == [min(2, each), min(1, each - min(2, each))]
            assert all(a >= b for a, b in zip(here, there, strict=True))
            moves.append(sum(here) - sum(there))
        counted = [step for step, move in enumerate(moves) if move]
        assert max(moves) <= each
        assert len(counted) <= times
        assert all(later - earlier >= separation for earlier, later in pairwise(counted))
        # as much as the limit allows, from the first event on: an idle rule would pass the lines above
        wanted, last = [0] * 6, -separation
        for step, many in enumerate(visits):
            if many and sum(map(bool, wanted)) < times and step - last >= separation:
                wanted[step], last = min(many, each), step
        assert moves == wanted
        again = People(times=times, separation=separation, each=each, state=with_.state())
        assert again.state() == with_.state()


def mixed(said: Buffers, count: int) -> list[Fraction]:
    """c_0, c_1, …, exactly."""
    pairs = list(zip(said.decays, said.weights, strict=True))
    return [Fraction(1), *(sum((w * d ** (k - 1) for d, w in pairs), Fraction(0)) for k in range(1, count))]


@pytest.mark.parametrize("change", ["added", "swapped"])
@pytest.mark.parametrize(("times", "separation"), [(1, 1), (2, 1), (3, 2), (5, 4)])
@pytest.mark.parametrize("horizon", [1, 2, 7, 40])
def test_buffers_are_charged_for_their_mix_and_for_what_is_rounded(
    horizon: int, times: int, separation: int, change: str
) -> None:
    """Worked out another way: every c_k as a fraction, every unit at its earliest places."""
    said = Buffers(
        horizon=horizon,
        decays=(Fraction(1, 2), Fraction(7, 8)),
        weights=(Fraction(1, 4), Fraction(3, 16)),
        bits=3,
        largest=2,
    )
    swap = 1 if change == "added" else 2
    pattern = Pattern(times=times, separation=separation, change=change)
    c = mixed(said, horizon)
    up = [ceil(one * 8) for one in c] if times > 1 else [one * 8 for one in c]
    places = range(0, min(horizon, times * separation), separation)
    moved = [sum(up[step - place] for place in places if place <= step) for step in range(horizon)]
    linear, slack = swap * ceil(sum(move * move for move in moved)), said.slack
    rounding = slack**2 * horizon * swap * times
    assert said.squared(pattern) == linear + rounding + 2 * (isqrt(linear * rounding) + 1)
    whole = sum(sum([ceil(one * 8) for one in c][: horizon - place]) for place in places)
    assert said.absolute(pattern) == swap * whole + slack * horizon * swap * times


def test_what_buffers_round_is_bounded_by_all_that_floats_can_do() -> None:
    """2·(½ + ½) for two roundings of two measurements, and twice what the floats of a block and its buffers lose."""
    said = Buffers(
        horizon=9, decays=(Fraction(1, 2), Fraction(15, 16)), weights=(Fraction(1, 4),) * 2, bits=20, largest=2**20
    )
    size = 1 + Fraction(1, 4) * 2 + Fraction(1, 4) * 16
    assert said.slack == 2 + ceil(2 * 2**40 * size * (256 + 2 + 16) * Fraction(1, 2**53))


def test_a_long_stream_of_persons_is_charged_by_the_triangle_inequality() -> None:
    said = Buffers(horizon=2**18 + 1, decays=(Fraction(1, 2),), weights=(Fraction(1, 3),), bits=3, largest=1)
    one, two, three = (Pattern(times=times, separation=1, change="added") for times in (1, 2, 3))
    alone = ceil((1 + Fraction(1, 9) / (1 - Fraction(1, 4))) * 64)  # 1 + Σ (⅓·½^(k−1))², to the last bit
    for pattern, linear in ((one, alone), (two, 4 * alone), (three, 9 * alone)):
        rounding = said.slack**2 * said.horizon * pattern.times
        assert said.squared(pattern) == linear + rounding + 2 * (isqrt(linear * rounding) + 1)
        every = ceil((1 + Fraction(1, 3) / (1 - Fraction(1, 2))) * 8)
        assert said.absolute(pattern) == pattern.times * (every + said.slack * said.horizon)


def test_other_strategies_charge_these_numbers() -> None:
    rows = Rows(rows=((4,), (2, 3), (1, -1, 5)), bits=2)
    tree, doubled = Tree(arity=2, horizon=6, bits=1), Doubling(first=2, blocks=2, bits=4)
    columns = [sum(one**2 for one in doubled.column(block)) for block in range(2)]
    sums = [sum(doubled.column(block)) for block in range(2)]
    for swap, change in ((1, "added"), (2, "swapped")):
        for times in (1, 2, 4):
            pattern = Pattern(times=times, separation=1, change=change)
            held = min(times, 3)
            assert rows.squared(pattern) == (swap * held) ** 2 * 25
            assert rows.absolute(pattern) == swap * held * 7
            assert doubled.squared(pattern) == swap * times**2 * max(columns)
            assert doubled.absolute(pattern) == swap * times * max(sums)
            assert tree.absolute(pattern) == swap * times * 3 * 2
        # four steps in a row: four blocks of one, two full blocks of two, one full block of four
        assert tree.squared(Pattern(times=4, separation=1, change=change)) == swap * (4 + 8 + 16) * 4
        # two steps, three apart: never two in one block of two, and perhaps both in a block of four
        assert tree.squared(Pattern(times=2, separation=3, change=change)) == swap * (2 + 2 + 4) * 4
        # seven steps of eight: three blocks of two are full and one of four, and three steps lie in another of four
        whole = Tree(arity=2, horizon=8, bits=0)
        assert whole.squared(Pattern(times=7, separation=1, change=change)) == swap * (7 + 3 * 4 + 1 + 16 + 9 + 49)
        assert whole.squared(Pattern(times=6, separation=1, change=change)) == swap * (6 + 3 * 4 + 16 + 4 + 36)
        # as many as fit into six steps, five apart: two
        assert tree.squared(Pattern(times=9, separation=5, change=change)) == swap * (2 + 2 + 2) * 4
        assert tree.absolute(Pattern(times=9, separation=5, change=change)) == swap * 2 * 3 * 2
