"""Consistency of several releases: sums agree, no release alone is more exact, the intervals hold. α = 1e-9."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.errors import InvalidInput
from sfumato.streams.post.seasons import consistent
from tests.streams.released import inside, often_enough, released

HOURS = np.tile(np.array([1, 0, 0, 2, 9, 20, 31, 12]), 6)  # days of eight hours
DAYS = HOURS.reshape(-1, 8).sum(axis=1)


@pytest.mark.few(1)
@pytest.mark.parametrize("delta", [1e-7, 0])
def test_hours_add_up_to_days_and_weeks(delta: float) -> None:
    fit = consistent(released(HOURS, delta=delta), (released(DAYS, delta=delta), 8))
    hours, days, weeks = (np.array(fit.by(width).values) for width in (1, 8, 24))
    assert hours.reshape(-1, 8).sum(axis=1) == pytest.approx(days)
    assert days.reshape(-1, 3).sum(axis=1) == pytest.approx(weeks)
    assert fit.by(8).labels == {"step": (1, 2, 3, 4, 5, 6)}
    assert fit.by(7).labels == {"step": (1, 2, 3, 4, 5, 6)}  # the six steps left over make no seventh


def test_one_running_total_is_consistent_as_it_is() -> None:
    release = released(HOURS)
    totals = np.array(release["total"].values)
    assert np.cumsum(consistent(release).by(1).values) == pytest.approx(totals, abs=1e-4)


def test_the_fit_has_the_variance_that_theory_gives_it_and_not_more_than_either_alone() -> None:
    hours, days = released(HOURS, delta=1e-7), released(DAYS, delta=1e-7)
    both = consistent(hours, (days, 8)).by(8).interval()
    alone = [consistent(hours).by(8).interval(), consistent(days).by(1).interval()]
    width = [np.diff(np.array(ends, dtype=float), axis=1).ravel() for ends in (both, *alone)]
    assert (width[0] < width[1]).all()
    assert (width[0] < width[2]).all()


@pytest.mark.long
@pytest.mark.alpha(2e-9)
def test_the_intervals_cover_and_a_twin_without_one_of_the_noises_does_not() -> None:
    """Days from hours and days, over independent draws; the twin counts the noise of the hours alone."""
    held, twin = [], []
    for _ in range(60):
        found = consistent(released(HOURS[:16], epsilon=0.25), (released(DAYS[:2]), 8)).by(8)
        held.append(inside(DAYS[:1], found.interval()[:1]))
        less = replace(found, parts=found.parts[:1])
        twin.append(inside(DAYS[:1], less.interval()[:1]))
    assert often_enough(held)
    assert not often_enough(twin)


def test_groups_add_up_to_their_total() -> None:
    by_group = np.stack([HOURS[:16], 2 * HOURS[:16], HOURS[:16] + 3], axis=1)
    whole = released(by_group.sum(axis=1), epsilon=2)
    fit = consistent(released(by_group), whole)
    apart, together = fit.by(4), fit.by(4, by_group=False)
    assert np.array(apart.values).reshape(-1, 3).sum(axis=1) == pytest.approx(np.array(together.values))
    assert apart.labels["group"][:3] == ("g0", "g1", "g2")
    alone = consistent(released(by_group)).by(4)
    wide, narrow = (np.diff(np.array(each.interval(), dtype=float), axis=1).mean() for each in (alone, apart))
    assert narrow < wide


def test_laplace_and_gaussian_noise_go_together() -> None:
    found = consistent(released(HOURS[:16], delta=0, epsilon=20), (released(DAYS[:2]), 8)).by(8)
    assert inside(DAYS[:2], found.interval(confidence=1 - 1e-9)).all()


@pytest.mark.long
@pytest.mark.alpha(2e-9)
def test_from_zero_on_it_is_less_wrong_and_covers_as_often() -> None:
    quiet = np.zeros(24, dtype=np.int64)
    quiet[10] = 400
    loud = released(np.repeat(quiet[:, None], 24, axis=1))
    plain, held = consistent(loud).by(1), consistent(loud, non_negative=True).by(1)
    exact = np.repeat(quiet, 24)
    assert min(held.values) >= 0
    assert ((np.array(held.values) - exact) ** 2).sum() < 0.7 * ((np.array(plain.values) - exact) ** 2).sum()
    step = slice(12 * 24, 13 * 24)
    assert often_enough(inside(exact[step], held.interval()[step]))
    for value, (low, high), (least, most) in zip(held.values, held.interval(), plain.interval(), strict=True):
        assert (low, high) == (min(max(least, 0.0), value), max(most, value, 0.0))  # what the linear fit knows, no more
    halves = consistent(loud, non_negative=True).by(12, by_group=False)
    assert inside([24 * 400, 0], halves.interval(1 - 1e-9)).all()


def test_releases_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(InvalidInput, match="needs a release"):
        consistent()
    with pytest.raises(InvalidInput, match="finest steps"):
        consistent((released(DAYS), 8))
    with pytest.raises(InvalidInput, match="different groups"):
        consistent(released(np.ones((4, 2), dtype=int)), released(np.ones((4, 3), dtype=int)))
    with pytest.raises(InvalidInput, match="post-processing takes releases"):
        consistent([1, 2])  # type: ignore[arg-type]
