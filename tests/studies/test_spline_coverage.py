"""95% intervals of regressions on numbers hold the coefficients of known populations; without the noise they do not."""

from math import sqrt
from typing import Any

import numpy as np
import pytest

from sfumato.studies.regression import spline_fit
from sfumato.studies.regression.spline_fit import SplineFit, fit_splines, furthest_shift, logistic
from tests.studies import simulated_splines as simulated
from tests.studies.simulated_regressions import Seen
from tests.studies.simulated_splines import Setting

LEAST = 0.945
STRAYS = 6.2
"""Standard errors of a share of runs: beyond them by chance in fewer than 1e-9 of tries."""
FEW, MANY = 1_200, 10_000


def judged(seen: Seen) -> None:
    assert seen.covered >= LEAST - STRAYS * sqrt(LEAST * (1 - LEAST) / seen.runs), seen


HALF, RARE = Setting(truth=(-0.3, 1.0, 0.3)), Setting(truth=(-2.0, 1.0, 0.3), shape="skew")
TWO = Setting(truth=(-0.3, 1.5, -1.0, 0.3), numbers=2, pieces=6)
COUNTS = Setting(truth=(0.8, 0.5, 0.2))
VALUES = Setting(truth=(-0.1, 0.35, 0.1), pieces=3)
CASES: dict[str, tuple[Any, Setting, dict[str, Any]]] = {
    f"{name} {rows} {epsilon}": (function, setting, {"rows": rows, "epsilon": epsilon, **more})
    for name, function, setting, more, trials in (
        ("logistic", simulated.logistic_splines, HALF, {}, [(200, 0.3), (200, 1), (200, 3), (1000, 0.3), (1000, 1)]),
        ("rare", simulated.logistic_splines, RARE, {}, [(200, 1), (200, 3), (1000, 0.3), (1000, 1)]),
        ("two numbers", simulated.logistic_splines, TWO, {}, [(200, 3), (1000, 1)]),
        (
            "poisson",
            simulated.poisson_splines,
            COUNTS,
            {"spread_out": True},
            [(200, 1), (200, 3), (1000, 0.3), (1000, 1)],
        ),
        ("robust", simulated.robust_splines, VALUES, {}, [(200, 0.3), (200, 1), (200, 3), (1000, 1), (1000, 3)]),
    )
    for rows, epsilon in trials
}
QUICK = {"logistic 200 0.3": 0.6, "poisson 200 1": 0.4, "robust 200 1": 0.5}
"""Cases of every run, each with the most that a copy may cover which leaves the noise out of its standard errors."""


@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("case", QUICK)
def test_coefficients_of_numbers_are_covered(case: str) -> None:
    function, setting, asked = CASES[case]
    seen = function(setting, runs=FEW, **asked)
    judged(seen)
    assert seen.naive < QUICK[case], seen


@pytest.mark.long
@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("case", CASES)
def test_coefficients_of_numbers_are_covered_in_many_runs(case: str) -> None:
    function, setting, asked = CASES[case]
    judged(function(setting, runs=MANY // (4 if setting.numbers > 1 else 1), **asked))


@pytest.mark.alpha(1e-9)
def test_one_variance_for_all_rows_does_not_cover_where_it_grows_and_a_robust_one_does() -> None:
    asked = {"runs": 1_200, "rows": 400, "epsilon": 100}  # hardly any noise: it is the variance that is judged
    judged(simulated.robust_splines(VALUES, **asked))
    assert simulated.one_variance(VALUES, **asked) < 0.9


def test_what_splines_cannot_follow_is_within_what_is_said() -> None:
    rng = np.random.default_rng(1)
    for pieces, steep in ((1, 2.0), (2, 3.0), (4, 6.0)):
        setting = Setting(truth=(0.5, steep, 0.3), pieces=pieces, shape="whole")
        made = setting.made
        numbers, sex = setting.rows(1, 40_000, rng)
        p = 1 / (1 + np.exp(-(0.5 + steep * numbers[0] + 0.3 * (2 * sex - 1))))
        counts = simulated.spread(made, numbers, sex, [p, 1 - p])  # expected outcomes: the truth solves the score
        fit = fit_splines(made, logistic(), counts[0], 0.0)
        assert isinstance(fit, SplineFit)
        bound = np.abs(fit.inverse) @ furthest_shift(made, logistic(), fit, counts[0])
        off = np.abs(fit.estimates - setting.truth)
        assert (off <= bound + 1e-6).all(), (pieces, off, bound)
        assert off.max() > 1e-4 or pieces > 2, off  # a bound of 0 would be found out


class Close(Setting):
    """Two numbers with a correlation of 0.95: little tells their coefficients apart."""

    def rows(self, runs: int, rows: int, rng: np.random.Generator) -> Any:
        one, two = rng.standard_normal((2, runs, rows))
        pair = [0.4 * one, 0.4 * (0.95 * one + sqrt(1 - 0.95**2) * two)]
        return [np.clip(each, -1, 1) for each in pair], rng.integers(0, 2, (runs, rows))


def close(runs: int, epsilon: float) -> Seen:
    return simulated.logistic_splines(
        Close(truth=(-0.3, 0.5, 0.5, 0.3), numbers=2, pieces=6), runs=runs, rows=5000, epsilon=epsilon
    )  # type: ignore[arg-type]


def judged_late(*given: Any) -> Any:
    """A broken copy: all is clear before the search, and solutions that noise drove far off look well known."""
    made, at = given[1], given[2]
    found = CLEARNESS(*given)
    return np.full_like(found, np.inf) if np.ptp(at.slope.reshape(-1, len(made.columns))[0]) < 1e-9 else found


CLEARNESS = spline_fit._clearness


@pytest.mark.alpha(1e-9)
def test_numbers_that_are_close_have_no_interval_where_noise_is_all_that_tells_them_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = close(150, 1).finite
    assert kept < 0.15  # 0.02
    monkeypatch.setattr(spline_fit, "_clearness", judged_late)
    assert close(150, 1).finite > 2 * kept  # 0.16 of the same samples, of which 86% cover


@pytest.mark.long
@pytest.mark.alpha(1e-9)
def test_of_numbers_that_are_close_the_finite_intervals_cover_in_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = close(3_000, 1.5)
    least = LEAST - STRAYS * sqrt(LEAST * (1 - LEAST) / (seen.finite * seen.runs))
    assert seen.covered_finite >= least, seen
    monkeypatch.setattr(spline_fit, "_clearness", judged_late)
    broken = close(3_000, 1)
    assert broken.covered_finite < least, broken


@pytest.mark.alpha(1e-9)
def test_coefficients_that_nothing_tells_of_have_no_interval() -> None:
    """Two numbers that are one: noise alone made the information of their difference positive in half of all fits."""

    class Same(Setting):
        def rows(self, runs: int, rows: int, rng: np.random.Generator) -> Any:
            one = rng.uniform(-1, 1, (runs, rows))
            return [one, one], rng.integers(0, 2, (runs, rows))

    seen = simulated.logistic_splines(
        Same(truth=(-0.3, 0.5, 0.5, 0.3), numbers=2, pieces=4), runs=200, rows=1000, epsilon=1
    )  # type: ignore[arg-type]
    assert seen.finite < 0.05, seen


SIZES: dict[str, tuple[Any, Setting, dict[str, Any]]] = {
    f"{name} {rows} {epsilon}": (function, setting, {"rows": rows, "epsilon": epsilon})
    for name, function, setting in (
        ("logistic", simulated.logistic_splines, Setting(truth=(-0.3, 0.0, 0.0))),
        ("poisson", simulated.poisson_splines, Setting(truth=(0.8, 0.0, 0.0))),
        ("robust", simulated.robust_splines, Setting(truth=(-0.1, 0.0, 0.0), pieces=3)),
    )
    for rows, epsilon in ((200, 1), (200, 3), (1000, 1))
}


@pytest.mark.long
@pytest.mark.alpha(1e-6)
@pytest.mark.parametrize("case", SIZES)
def test_tests_of_coefficients_that_are_0_reject_no_more_often_than_they_say(case: str) -> None:
    """A test at 5% rejects where the 95% interval leaves 0 out; no interval rejects nothing."""
    function, setting, asked = SIZES[case]
    seen = function(setting, runs=MANY, **asked)
    print(case, seen)
    assert 1 - seen.covered <= 0.05 + 4.75 * sqrt(0.05 * 0.95 / MANY), seen
