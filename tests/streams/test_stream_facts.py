"""The numbers that streams state about privacy, each by itself: what a changed operator or constant would change."""

from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import pytest

from sfumato.core import events
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import edge, event, node, record, user
from sfumato.errors import Refused, Unsupported
from sfumato.streams import Alarms, Pattern, RunningTotal, SeriesNoise, Toeplitz
from sfumato.streams.people import People

pytestmark = pytest.mark.kills

DATA = Dataset(name="er", edition="1")
PLUS, SWAP = "add/remove", "replace"


def total(*, lower: int = 0) -> RunningTotal:
    return RunningTotal(dataset=DATA, horizon=9, told=9, lower=lower, upper=9, each=3, times=2, separation=4, groups=())


def alarms(watched: str, *, lower: int = 0) -> Alarms:
    return Alarms(
        dataset=DATA, watched=watched, threshold=5, drift=1, alarms=2, told=0, lower=lower, upper=9, each=3, times=2,
        separation=4,
    )  # fmt: skip


@pytest.mark.parametrize("make", [event, record, edge])
def test_a_series_moves_by_what_its_steps_add_up_to(make: Any) -> None:
    assert total().sensitivity(make(relation=PLUS), None) == Sensitivity.of(l0=2, l1=6, l2_squared=18, linf=3)
    assert total().sensitivity(make(relation=SWAP), None) == Sensitivity.of(l0=4, l1=12, l2_squared=36, linf=3)
    assert total(lower=-1).sensitivity(make(relation=PLUS), None).linf == Sensitivity.of(linf=3).linf


def test_a_person_is_held_to_the_limit_that_the_query_states() -> None:
    limit = Limit(groups=2, rows_per_group=3)
    assert total().sensitivity(user("id", relation=PLUS), limit) == Sensitivity.of(l0=2, l1=6, l2_squared=18, linf=3)
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
