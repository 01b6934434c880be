"""Intervals, bands and tests of survival hold what they say; copies without noise in them do not.

All runs are drawn from fixed seeds. The tables of the full sizes are in docs/proofs/survival.md.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, norm

from sfumato.studies.exit_cells import ExitNoise, Floats, StudySteps, at_risk
from sfumato.studies.grouped_cox import hazard_ratios, scores_at
from sfumato.studies.log_rank import clear_of_noise, log_rank_score
from sfumato.studies.survival_curve import (
    difference_limits,
    falling,
    hazard_limits,
    limits,
    restricted_mean,
    survival_curve,
    uniform_factor,
)
from tests.studies.exits import drawn, exit_law, with_noise

SIZES = [(number, epsilon) for number in (30, 200, 1000) for epsilon in (0.3, 1.0, 3.0)]
BATCH, FULL = 500, 120_000
COVER, ALPHA = 0.945, 1e-9
YEARS = [(200, 1.0), (1000, 0.3), (1000, 1.0)]
"""For which a year of days is simulated at length."""


def promised(steps: int, number: int, epsilon: float) -> float:
    """Of bands, mean times, differences and ratios: 94.5% where rows are many beside the noise; else 93%, in a note."""
    return COVER if number >= 200 and number >= 12 * np.sqrt(steps) / epsilon else 0.93


def refuted(share: float, runs: int, cover: float = COVER) -> bool:
    """Whether so few hits would be rarer than α if this coverage were true."""
    return bool(binom.cdf(round(share * runs), runs, cover) < ALPHA)


def batches(runs: int) -> list[int]:
    return [BATCH] * (runs // BATCH)


def point_coverage(steps: int, number: int, epsilon: float, runs: int, seed: int) -> dict[str, float]:
    """The least coverage over six times of pointwise intervals, and that of the restricted mean."""
    generator = np.random.default_rng(seed)
    law, survival = exit_law(steps)
    points = np.unique([0, steps // 10, steps // 4, steps // 2, 3 * steps // 4, steps - 1])
    hazard = np.arange(1, steps + 1) * (1 - survival[0])
    lengths = np.append(np.ones(steps - 1), 0.0)
    mean = 1 + survival[:-1].sum()
    curve_hits, hazard_hits, mean_hits = np.zeros(len(points)), np.zeros(len(points)), 0
    for size in batches(runs):
        cells, noise = with_noise(generator, drawn(generator, law, number, size), epsilon)
        curve = survival_curve(cells, noise, points.tolist())
        low, high = limits(curve, 1.96)
        curve_hits += ((low <= survival[points] + 1e-12) & (survival[points] - 1e-12 <= high)).sum(axis=0)
        low, high = hazard_limits(curve, 1.96)
        hazard_hits += ((low <= hazard[points]) & (hazard[points] <= high)).sum(axis=0)
        _, _, low, high = restricted_mean(cells, noise, lengths, 1.0, 1.96)
        mean_hits += int(((low <= mean) & (mean <= high)).sum())
    return {"curve": curve_hits.min() / runs, "hazard": hazard_hits.min() / runs, "mean": mean_hits / runs}


def size_of_test(steps: int, number: int, epsilon: float, runs: int, seed: int, *, told: bool = True) -> float:
    """How often equal groups are told apart; ``told`` whether the test knows of the noise."""
    generator = np.random.default_rng(seed)
    law, _ = exit_law(steps)
    rejected = 0
    for size in batches(runs):
        exact = np.stack([drawn(generator, law, number, size) for _ in range(2)], axis=1)
        cells, noise = with_noise(generator, exact, epsilon)
        if not told:
            noise = ExitNoise(variance=1e-9, steps=noise.steps, widths=noise.widths)
        rejected += int((log_rank_score(cells, noise).p < 0.05).sum())
    return rejected / runs


@pytest.mark.parametrize(("number", "epsilon"), SIZES)
def test_points_hazards_and_mean_times_are_covered(number: int, epsilon: float) -> None:
    found = point_coverage(30, number, epsilon, 3000, seed=1)
    assert found["curve"] > 0.93  # the least of six points, each 95% less 5 deviations of 3,000 runs
    assert found["hazard"] > 0.93
    assert found["mean"] > (0.93 if number >= 200 else 0.915)


def test_points_of_a_year_of_days_are_covered() -> None:
    found = point_coverage(365, 200, 1.0, 500, seed=2)
    assert min(found.values()) > 0.925


@pytest.mark.long
@pytest.mark.parametrize(("number", "epsilon"), SIZES)
@pytest.mark.parametrize("steps", [30, 365])
@pytest.mark.alpha(2e-8)
def test_coverage_at_full_size(steps: int, number: int, epsilon: float) -> None:
    runs = FULL if steps == 30 else 40_000 if (number, epsilon) in YEARS else 8_000
    found = point_coverage(steps, number, epsilon, runs, seed=3)
    assert not refuted(min(found["curve"], found["hazard"]), runs), found  # at each of six times
    assert not refuted(found["mean"], runs, promised(steps, number, epsilon)), found


def test_intervals_at_99_percent_have_the_tails_of_laplace_noise() -> None:
    """The first step of 1,000 at ε = 0.3, where one noise is most of the error; a copy with normal tails is refuted."""
    generator = np.random.default_rng(19)
    law, survival = exit_law(30)
    hits, runs = np.zeros(2), 60_000
    for size in batches(runs):
        curve = survival_curve(*with_noise(generator, drawn(generator, law, 1000, size), 0.3), [0])
        for place, each in enumerate((curve, replace(curve, tails=0 * curve.tails))):
            low, high = limits(each, float(norm.isf(0.005)))
            hits[place] += ((low <= survival[0]) & (survival[0] <= high)).sum()
    assert not refuted(hits[0] / runs, runs, 0.99)
    assert refuted(hits[1] / runs, runs, 0.99)


def clamped_coverage(steps: int, number: int, epsilon: float) -> float:
    """What practice without care does: negative cells are set to 0, and Greenwood's variance knows of no noise."""
    generator = np.random.default_rng(4)
    law, survival = exit_law(steps)
    noisy, _ = with_noise(generator, drawn(generator, law, number, 300), epsilon)
    cells = np.maximum(noisy, 0.0)
    risk = np.maximum(at_risk(cells), 1e-9)
    share = np.clip(cells[:, 0] / risk, 0.0, 1 - 1e-9)
    curve = np.cumprod(1 - share, axis=-1)
    error = curve * np.sqrt(np.cumsum(share / (risk * (1 - share)), axis=-1))
    middle = steps // 2
    return float((np.abs(curve[:, middle] - survival[middle]) <= 1.96 * error[:, middle]).mean())


def test_clamped_cells_with_greenwoods_variance_do_not_cover() -> None:
    assert clamped_coverage(30, 1000, 0.3) < 0.87
    assert clamped_coverage(365, 1000, 0.3) < 0.2


@pytest.mark.parametrize(("steps", "number", "epsilon"), [(30, 30, 1.0), (30, 200, 0.3), (30, 1000, 1.0)])
def test_log_rank_rejects_equal_groups_as_often_as_it_says(steps: int, number: int, epsilon: float) -> None:
    assert size_of_test(steps, number, epsilon, 4000, seed=5) < 0.066


def test_log_rank_without_the_noise_rejects_too_often() -> None:
    assert size_of_test(30, 200, 0.3, 1000, seed=6, told=False) > 0.15


@pytest.mark.long
@pytest.mark.parametrize(("number", "epsilon"), SIZES)
@pytest.mark.parametrize("steps", [30, 365])
@pytest.mark.alpha(2e-8)
def test_size_of_log_rank_at_full_size(steps: int, number: int, epsilon: float) -> None:
    runs = FULL if steps == 30 else 10_000
    found = size_of_test(steps, number, epsilon, runs, seed=7)
    assert not refuted(1 - found, runs), found
    if number >= 200 and number >= 6 * np.sqrt(steps) / epsilon:
        assert not refuted(found, runs, 0.045), found


def test_log_rank_of_three_groups_and_of_unequal_ones() -> None:
    generator = np.random.default_rng(8)
    law, _ = exit_law(30)
    exact = np.stack([drawn(generator, law, number, 2000) for number in (800, 300, 300)], axis=1)
    cells, noise = with_noise(generator, exact, 0.5)
    found = log_rank_score(cells, noise)
    assert found.freedom == 2
    assert 0.035 < (found.p < 0.05).mean() < 0.067


def test_log_rank_sees_a_difference_and_has_no_verdict_in_pure_noise() -> None:
    generator = np.random.default_rng(9)
    arms = [exit_law(30, hazard=hazard)[0] for hazard in (1.0, 0.5)]
    exact = np.stack([drawn(generator, law, 500, 200) for law in arms], axis=1)
    assert (log_rank_score(*with_noise(generator, exact, 1.0)).p < 0.05).mean() > 0.95
    few = np.stack([drawn(generator, law, 5, 200) for law in arms], axis=1)
    lost = log_rank_score(*with_noise(generator, few, 0.1))
    assert not lost.verdict[lost.used == 0].any()
    assert (lost.p[lost.used == 0] == 1).all()
    assert (lost.used == 0).mean() > 0.8


def difference_coverage(number: int, epsilon: float, runs: int, seed: int) -> tuple[float, float]:
    """Of the difference of survival in the middle, and of that of mean times, between two groups that differ."""
    generator = np.random.default_rng(seed)
    laws = [exit_law(30, hazard=hazard) for hazard in (1.0, 0.6)]
    lengths = np.append(np.ones(29), 0.0)
    truth = [np.array([survival[15], survival[:-1].sum()]) for _, survival in laws]
    hits = np.zeros(2)
    for size in batches(runs):
        found = []
        for law, _ in laws:
            cells, noise = with_noise(generator, drawn(generator, law, number, size), epsilon)
            curve = survival_curve(cells, noise, [15])
            ends = (each[:, 0] for each in limits(curve, 1.96))
            value = np.where(curve.estimable[:, 0], curve.survival[:, 15], np.nan)
            mean, _, low, high = restricted_mean(cells, noise, lengths, 1.0, 1.96)
            found.append(((value, *ends), (mean, low, high)))
        for place in (0, 1):
            _, lower, upper = difference_limits(found[1][place], found[0][place])
            gap = truth[1][place] - truth[0][place]
            hits[place] += ((lower <= gap) & (gap <= upper)).sum()
    return float(hits[0] / runs), float(hits[1] / runs)


@pytest.mark.parametrize(("number", "epsilon"), [(30, 3.0), (200, 0.3), (1000, 1.0)])
def test_differences_between_groups_are_covered(number: int, epsilon: float) -> None:
    assert min(difference_coverage(number, epsilon, 2000, seed=14)) > 0.92


@pytest.mark.long
@pytest.mark.parametrize(("number", "epsilon"), SIZES)
@pytest.mark.alpha(2e-8)
def test_coverage_of_differences_at_full_size(number: int, epsilon: float) -> None:
    found = min(difference_coverage(number, epsilon, FULL, seed=15))
    assert not refuted(found, FULL, promised(30, number, epsilon)), found


def band_coverage(steps: int, number: int, epsilon: float, runs: int, seed: int) -> tuple[float, float]:
    """How often the whole curve lies in the band, and in pointwise intervals taken for one.

    A band takes at least the factor of one point, and at most that of Bonferroni for all steps. Only where the first
    does not hold the curve, and the second does, its own factor decides: what is counted is the same.
    """
    generator = np.random.default_rng(seed)
    law, survival = exit_law(steps)
    least, most = 1.85, float(norm.isf(0.025 / steps)) + 0.3  # the factor is simulated: some room on either side
    hits, lot = np.zeros(2), max(1, min(BATCH, 10**6 // steps**2))
    for start in range(0, runs, lot):
        exact = drawn(generator, law, number, min(lot, runs - start))
        cells, noise = with_noise(generator, exact, epsilon)
        curve = survival_curve(cells, noise)
        held = [_holds(limits(curve, factor), survival) for factor in (least, 1.96, most)]
        hits += [held[0].sum(), held[1].sum()]
        for run in np.flatnonzero(held[2] & ~held[0]):
            one = survival_curve(cells[run], noise)
            ends = limits(one, uniform_factor(one, noise, 0.95, generator))
            hits[0] += _holds(tuple(end[None] for end in ends), survival)[0]
    return float(hits[0] / runs), float(hits[1] / runs)


def _holds(ends: tuple[Floats, ...], survival: Floats) -> npt.NDArray[np.bool_]:
    """Whether limits hold the whole curve as they are shown; making them fall can only help."""
    low, high = ends
    found = ((low <= survival + 1e-12) & (survival - 1e-12 <= high)).all(axis=-1)
    for run in np.flatnonzero(~found):
        inside = (falling(low[run]) <= survival + 1e-12) & (survival - 1e-12 <= falling(high[run]))
        found[run] = inside.all()
    return np.asarray(found)


def test_a_band_holds_the_whole_curve_and_points_do_not() -> None:
    band, points = band_coverage(30, 200, 1.0, 600, seed=10)
    assert not refuted(band, 600)
    assert refuted(points, 600)


@pytest.mark.long
@pytest.mark.parametrize(("number", "epsilon"), SIZES)
@pytest.mark.alpha(2e-8)
def test_bands_at_full_size(number: int, epsilon: float) -> None:
    runs = FULL if number >= 200 and epsilon == 1 else 10_000
    band, _ = band_coverage(30, number, epsilon, runs, seed=11)
    assert not refuted(band, runs, promised(30, number, epsilon)), band


@pytest.mark.long
@pytest.mark.parametrize(("number", "epsilon"), YEARS)
@pytest.mark.alpha(2e-8)
def test_bands_of_a_year_of_days(number: int, epsilon: float) -> None:
    band, _ = band_coverage(365, number, epsilon, 1000, seed=17)
    assert not refuted(band, 1000, promised(365, number, epsilon)), band


def ratio_coverage(number: int, epsilon: float, beta: float, runs: int, seed: int, steps: int = 30) -> float:
    """How often the interval of a hazard ratio holds it.

    Where the score at the truth is within the factor, the interval holds the truth; only others are worked out.
    """
    generator = np.random.default_rng(seed)
    arms: list[Floats] = [exit_law(steps, hazard=hazard)[0] for hazard in (float(np.exp(beta)), 1.0)]
    held = 0
    for size in batches(runs):
        exact = np.stack([drawn(generator, law, number, size) for law in arms], axis=1)
        cells, noise = with_noise(generator, exact, epsilon)
        sure = _scored_within(cells, noise, beta)
        if noise.widths != (1,):
            sure &= ~clear_of_noise(cells, noise)  # where single steps are taken
        rest = hazard_ratios(cells[~sure], noise, 1.96)
        held += int(sure.sum() + ((rest.low <= beta) & (beta <= rest.high)).sum())
    return held / runs


def _scored_within(cells: Floats, noise: ExitNoise, beta: float) -> npt.NDArray[np.bool_]:
    score, variance, sound = scores_at(cells, StudySteps(noise=noise), np.array([beta]))
    return np.asarray((np.abs(score[:, 0]) <= 1.95 * np.sqrt(variance[:, 0])) | ~sound)


@pytest.mark.parametrize("beta", [0.0, -0.5])
def test_hazard_ratios_are_covered(beta: float) -> None:
    assert not refuted(ratio_coverage(200, 1.0, beta, 2000, seed=12), 2000)


def test_an_interval_of_a_ratio_holds_it_where_the_score_is_small() -> None:
    """What :func:`ratio_coverage` takes for granted, over all runs."""
    generator = np.random.default_rng(18)
    exact = np.stack([drawn(generator, exit_law(30)[0], 60, 200) for _ in range(2)], axis=1)
    cells, noise = with_noise(generator, exact, 1.0)
    found = hazard_ratios(cells, noise, 1.96)
    sure = _scored_within(cells, noise, 0.0)
    assert sure.mean() > 0.8
    assert ((found.low <= 0) & (found.high >= 0))[sure].all()


@pytest.mark.long
@pytest.mark.parametrize("beta", [0.0, -0.5])
@pytest.mark.parametrize(("number", "epsilon"), [size for size in SIZES if size[0] >= 200])
@pytest.mark.alpha(2e-8)
def test_coverage_of_hazard_ratios_at_full_size(number: int, epsilon: float, beta: float) -> None:
    found = ratio_coverage(number, epsilon, beta, FULL, seed=13)
    assert not refuted(found, FULL, promised(30, number, epsilon)), found


def test_mean_times_are_covered_where_the_curve_stops_before_the_horizon() -> None:
    """Early events, and heavy censoring: of 120 steps the last are lost in noise. What may be left is in the limits."""
    generator = np.random.default_rng(16)
    place = (np.arange(120) + 0.5) / 120
    event, lost = 1 - np.exp(-6 * np.exp(-8 * place) / 120), np.full(120, 1 - np.exp(-2 / 120))
    alive = np.append(1.0, np.cumprod((1 - event) * (1 - lost))[:-1])
    law = np.stack([alive * event, alive * (1 - event) * lost])
    law[1, -1] += 1 - law.sum()
    survival, lengths = np.cumprod(1 - event), np.append(np.ones(119), 0.0)
    cells, noise = with_noise(generator, drawn(generator, law, 200, 400), 1.0)
    estimate, _, low, high = restricted_mean(cells, noise, lengths, 1.0, 1.96)
    mean = 1 + survival[:-1].sum()
    assert np.isnan(estimate).mean() > 0.8
    assert ((low <= mean) & (mean <= high)).mean() > 0.94


@pytest.mark.parametrize("falls", [False, True])
def test_unlike_censoring_is_no_difference(*, falls: bool) -> None:
    """Many rows over many steps, censored at different times: half a block for all rejected 24% and 19% of these.

    By the mean number at risk in a block it was 48% where the hazard falls inside blocks: single steps are needed.
    """
    generator = np.random.default_rng(21)
    steps, runs = 200, 400
    place = (np.arange(steps) + 0.5) / steps
    hazard = 6 * np.exp(-8 * place) if falls else 3.6 * place**2
    late = np.full(steps, 1e-7) if falls else np.where(place > 0.6, 6.0, 0.05)
    laws = []
    for lost in (late, 5 * np.exp(-5 * place)):
        event, gone = -np.expm1(-hazard / steps), -np.expm1(-lost / steps)
        alive = np.cumprod(np.append(1.0, (1 - event) * (1 - gone)))
        law = np.stack([alive[:-1] * event, alive[:-1] * (1 - event) * gone])
        law[1, -1] += alive[-1]
        laws.append(law)
    exact = np.stack([drawn(generator, law, 20_000, runs) for law in laws], axis=1)
    cells, noise = with_noise(generator, exact, 1.0)
    assert (log_rank_score(cells, noise).p < 0.05).mean() < 0.102  # 5% and 4.75 standard errors
