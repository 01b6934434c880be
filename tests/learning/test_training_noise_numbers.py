"""The numbers that adaptive clips, correlated noise and evaluations state about privacy, each by itself; no torch."""

from fractions import Fraction
from math import isqrt
from typing import Any

import pytest

from sfumato.core import enclosures, events
from sfumato.core.budget import Budget
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import event, record, user
from sfumato.errors import Refused, Unsupported, WrongNorm
from sfumato.learning.adaptive import AdaptiveClip, AdaptiveSums, together, units_moved
from sfumato.learning.correlated import CorrelatedSums, Cycle
from sfumato.learning.evaluation import Evaluations

pytestmark = pytest.mark.kills

PLUS, PERSON = record(relation="add/remove"), user("id", relation="add/remove")
HAIR = Fraction(129, 128)


def adaptive(
    *, rate: Fraction = Fraction(1, 4), z: Fraction = Fraction(2), noise: Fraction = Fraction(5)
) -> AdaptiveSums:
    return AdaptiveSums(
        multiplier=z, steps=10, rate=rate, parameters=100, clip=Fraction(3), follow=AdaptiveClip(noise=noise)
    )


def correlated(**changed: Any) -> CorrelatedSums:
    said = {"steps": 6, "rate": Fraction(1, 2), "parameters": 16, "clip": Fraction(3), "bands": 3}
    return CorrelatedSums(**{"multiplier": Fraction(2), **said, **changed})


def evaluations(units: str = "record", *, times: int = 3, records: int = 1) -> Evaluations:
    return Evaluations(
        dataset=Dataset(name="held", edition="1"),
        units=units,
        evaluations=4,
        number=100,
        times=times,
        records=records,
    )


def test_the_count_is_a_gaussian_of_so_many_halves_and_a_hair() -> None:
    assert AdaptiveClip(noise=Fraction(5)).multiplier(1) == 10 / HAIR
    assert AdaptiveClip(noise=Fraction(5)).multiplier(3) == 10 / (3 * HAIR)


def test_multipliers_read_as_one_have_the_sum_of_their_inverse_squares() -> None:
    assert together(Fraction(3), Fraction(4)) == Fraction(144, 25)
    assert together(Fraction(2)) == 4
    assert AdaptiveClip(noise=Fraction(5)).squared(Fraction(2), moved=3) == 1 / (Fraction(1, 4) + (3 * HAIR / 10) ** 2)


@pytest.mark.parametrize("z", [Fraction(1, 2), Fraction(3)])
@pytest.mark.parametrize("moved", [1, 4])
def test_the_sums_get_what_the_count_leaves(z: Fraction, moved: int) -> None:
    follow = AdaptiveClip(noise=Fraction(20))
    exact = 1 / (1 / z**2 - (moved * HAIR / 40) ** 2)
    root = enclosures.sqrt(exact)
    assert root.low < follow.for_sums(z, moved=moved) < root.high * Fraction(10**6 + 2, 10**6)


def test_a_count_that_leaves_nothing_is_refused() -> None:
    edge = AdaptiveClip(noise=HAIR / 2)  # of multiplier 1
    for z in (Fraction(1), Fraction(2)):
        with pytest.raises(Refused, match="Its noise must be above"):
            edge.for_sums(z, moved=1)
    with pytest.raises(Refused, match=r"above 1\.512;"):  # 3 · 1.0078…/2
        AdaptiveClip(noise=HAIR).for_sums(Fraction(1), moved=3)
    assert edge.for_sums(Fraction(99, 100), moved=1) > 7


def test_units_are_told_from_the_l2_bound_in_clips() -> None:
    assert units_moved(Sensitivity.of(l2_squared=81), Fraction(3)) == 3
    assert units_moved(Sensitivity.of(l2_squared=Fraction(1, 4)), Fraction(1, 2)) == 1
    for squared, clip in ((0, 1), (2, 1), (1, 2), (Fraction(9, 4), 1)):
        with pytest.raises(Refused, match="whole number of clips"):
            units_moved(Sensitivity.of(l2_squared=squared), Fraction(clip))
    with pytest.raises(WrongNorm):
        units_moved(Sensitivity.of(l1=1), Fraction(1))


@pytest.mark.parametrize("moved", [1, 2])
def test_the_event_of_an_adaptive_run(moved: int) -> None:
    z = 1 / (Fraction(1, 4) + (moved * HAIR / 10) ** 2)
    step = events.Gaussian(l2_squared=Fraction(1), sigma_squared=z)
    bound = Sensitivity.of(l2_squared=(3 * moved) ** 2)
    sampled = events.PoissonSampled(rate=Fraction(1, 4), event=step)
    assert adaptive().loss(bound) == events.Repeated(event=sampled, times=10)
    assert adaptive(rate=Fraction(1)).loss(bound) == events.Repeated(event=step, times=10)


def test_a_cycle_counts_every_unit_so_often_and_so_far_apart() -> None:
    for steps, buckets, times in ((10, 4, 3), (8, 4, 2), (3, 4, 1), (9, 1, 9)):
        pattern = Cycle(steps=steps, buckets=buckets).pattern
        assert (pattern.times, pattern.separation, pattern.squares) == (times, buckets, 1)


def test_how_far_a_unit_moves_all_measurements() -> None:
    """c = 1, 1/2, 3/8: a unit at steps 1, 3 and 5 of six moves them by 1, 1/2, 11/8, 1/2, 11/8, 1/2."""
    said = correlated()
    assert said.column == (1024, 512, 384)
    assert said.squared == 1 + 2 * Fraction(11, 8) ** 2 + 3 * Fraction(1, 4)
    assert said.after(6) == said.squared
    assert said.after(2) == 1 + Fraction(1, 4)
    assert said.after(3) == 1 + Fraction(1, 4) + Fraction(11, 8) ** 2
    assert correlated(bands=1).squared == 3
    assert correlated(rate=Fraction(1, 6)).squared == 1 + Fraction(1, 4) + Fraction(9, 64)


def test_the_whole_run_is_one_gaussian() -> None:
    gaussian = events.Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(4))
    assert correlated().loss(Sensitivity.of(l2_squared=9)) == gaussian
    assert correlated(multiplier=Fraction(3)).loss(Sensitivity.of(l2_squared=36)).sigma_squared == 9
    with pytest.raises(Refused, match="whole number of clips"):
        correlated().loss(Sensitivity.of(l2_squared=8))


@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize("z", [Fraction(1, 2), Fraction(4)])
@pytest.mark.parametrize("size", [16, 10**8])
def test_the_noise_is_z_times_the_move_rounding_included(units: int, z: Fraction, size: int) -> None:
    """2^20 steps of the lattice are z times m·(C·(1 + η)/g + √d·17/256)·√squared + √(active·d), and no wider."""
    said = correlated(multiplier=z, parameters=size)
    pitch = said.pitch(Sensitivity.of(l2_squared=9 * units**2))
    active = min(6, units * 3 * 3)
    root, wide = enclosures.sqrt(said.squared).high, enclosures.sqrt(Fraction(active * size)).high
    moved = units * (3 * HAIR / pitch + isqrt(size) * Fraction(17, 256)) * root + wide
    assert z * moved <= 2**20 < z * moved * Fraction(10**6 + 2, 10**6)


def test_active_steps_are_those_that_hold_a_place_of_the_unit() -> None:
    long = correlated(steps=100, rate=Fraction(1, 50), bands=7)
    assert (long.active(1), long.active(3), correlated().active(1)) == (14, 42, 6)


def test_what_leaves_no_room_for_rounding_is_refused() -> None:
    """A quarter of 2^20/z steps may go to rounding, and not a hair more: 17/256·√d·√squared + √(active·d)."""
    finer = enclosures.sqrt(Fraction(16)).high * Fraction(17, 256) * enclosures.sqrt(correlated().squared).high
    most = Fraction(2**20, 4) / (finer + enclosures.sqrt(Fraction(6 * 16)).high)
    assert correlated(multiplier=most).multiplier == most
    with pytest.raises(Refused, match="no room for rounding"):
        correlated(multiplier=most * Fraction(10**9 + 1, 10**9))


def test_evaluations_move_by_their_times() -> None:
    limit = Limit(groups=3, rows_per_group=1)
    assert evaluations().sensitivity(PERSON, limit) == Sensitivity.of(l0=4, l1=12, l2_squared=36, linf=3)
    assert evaluations(times=1).sensitivity(PLUS, None) == Sensitivity.of(l0=4, l1=4, l2_squared=4, linf=1)
    one = evaluations("user", times=1, records=5)
    assert one.sensitivity(PERSON, Limit(groups=1, rows_per_group=5)).linf == Sensitivity.of(linf=1).linf
    for wrong in (None, Limit(groups=2, rows_per_group=1), Limit(groups=3, rows_per_group=2)):
        with pytest.raises(Refused, match="the limit"):
            evaluations().sensitivity(PERSON, wrong)
    with pytest.raises(Refused, match="the limit"):
        one.sensitivity(PERSON, Limit(groups=5, rows_per_group=1))
    with pytest.raises(Refused, match="the limit"):
        evaluations(times=1).sensitivity(PLUS, Limit(groups=1, rows_per_group=1))
    with pytest.raises(Unsupported):
        evaluations().sensitivity(event(relation="add/remove"), None)


def test_the_noise_of_evaluations_is_for_all_of_them() -> None:
    alone = evaluations(times=1).mechanism(PLUS, Budget(epsilon=1, delta=1e-5))
    assert alone.l2_squared == 4
    assert 2 * Fraction("3.7306") < alone.sigma < 2 * Fraction("3.7307")
