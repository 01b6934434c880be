"""Forecasts from releases alone: the intervals take in the noise, and a twin that leaves it out fails. α = 1e-9."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from sfumato.errors import InvalidInput
from sfumato.streams.post.forecast import _row, forecast
from tests.streams.released import inside, often_enough, released

SEASON, SEASONS = 6, 9
SHAPE = 400 + np.array([0, 40, 90, 160, 80, 10])


def season_after_season(changes: float, count: int = SEASONS) -> np.ndarray:
    """A shape that comes again, with changes of its own."""
    drawn = np.random.default_rng().normal(size=count * SEASON) * changes
    return np.rint(np.tile(SHAPE, count) + drawn).astype(np.int64)


def test_the_weights_of_a_forecast_add_up_to_one_and_fall_off() -> None:
    for weight in (1.0, 0.3):
        row = _row(23, 24, 6, weight)
        assert row.sum() == pytest.approx(1)
        assert set(np.flatnonzero(row)) <= {5, 11, 17, 23}
        assert row[23] == weight
    assert _row(23, 24, 6, 0.3)[17] == pytest.approx(0.3 * 0.7)


@pytest.mark.alpha(1e-9)
def test_a_series_that_comes_again_is_forecast_with_its_shape() -> None:
    """Many seasons are better than the last one where nothing changes but the noise. By noise about one forecast in 30
    says otherwise: of ten, all with chance 2e-15."""
    made = season_after_season(0.0, SEASONS + 2)
    told = [forecast(released(made[: SEASONS * SEASON], epsilon=8), steps=9, season=SEASON) for _ in range(10)]
    assert told[0].labels["step"] == tuple(range(55, 64))
    assert inside(made[54:63], told[0].interval(confidence=1 - 1e-10)).all()
    assert min(each.weight for each in told) < 0.5


@pytest.mark.long
@pytest.mark.parametrize(("changes", "epsilon"), [(5.0, 0.1), (40.0, 2.0)])
@pytest.mark.alpha(2e-9)
def test_the_interval_covers_the_exact_number_to_come(changes: float, epsilon: float) -> None:
    """Much noise or much change: one forecast for each of 140 independent series. The test asks for 90 in 100, as the
    intervals promise about 95 and no bound. Where the noise is large, a twin that knows the change and leaves the noise
    out fails."""
    held, twin = [], []
    for _ in range(140):
        made = season_after_season(changes, SEASONS + 1)
        told = forecast(released(made[: SEASONS * SEASON], epsilon=epsilon), steps=1, season=SEASON)
        held.append(inside(made[SEASONS * SEASON :][:1], told.interval()))
        bare = replace(told, noise=(0.0,), change=(changes,))
        twin.append(inside(made[SEASONS * SEASON :][:1], bare.interval()))
    assert often_enough(held, 0.9)
    assert often_enough(twin, 0.75 if changes > 20 else 0.9) is (changes > 20)  # 90 and 39 in 100 are seen


@pytest.mark.long
@pytest.mark.alpha(1e-9)
def test_the_noise_of_a_forecast_is_that_of_its_release() -> None:
    """The spread of 150 forecasts of one exact series, beside what is stated, by the χ² law at α = 1e-9. A twin
    that counts the noise of one released step, and not of a weighed mean of them, is off."""
    made, drawn, stated = season_after_season(0.0), [], 0.0
    for _ in range(150):
        told = forecast(released(made), steps=1, season=SEASON, weight=0.3)
        drawn.append(told.values[0])
        stated = told.noise[0]
    low, high = (chi2.ppf(share, len(drawn) - 1) / len(drawn) for share in (5e-10, 1 - 5e-10))
    assert low < np.var(drawn) / stated**2 < high
    alone = forecast(released(made), steps=1, season=SEASON, weight=1.0).noise[0]
    assert not low < np.var(drawn) / alone**2 < high


def test_farther_ahead_is_no_surer_and_is_told_in_words() -> None:
    told = forecast(released(season_after_season(30.0)), steps=12, season=SEASON)
    widths = np.diff(np.array(told.interval(), dtype=float), axis=1).ravel()
    joint = np.diff(np.array(told.interval(joint=True), dtype=float), axis=1).ravel()
    assert (joint > widths).all()
    assert told.to_arrow().num_rows == 12
    assert "if the series goes on as it went" in told.explain("en")
    assert "以序列照旧延续为前提" in told.explain("zh")


def test_what_cannot_be_forecast_is_refused() -> None:
    with pytest.raises(InvalidInput, match="do not hold 3 seasons"):
        forecast(released(SHAPE), steps=1, season=6)
    with pytest.raises(InvalidInput, match="has groups"):
        forecast(released(np.ones((9, 2), dtype=int)), steps=1)
    with pytest.raises(InvalidInput, match="weight"):
        forecast(released(np.ones(9, dtype=int)), steps=1, weight=0)
