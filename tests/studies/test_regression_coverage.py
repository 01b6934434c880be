"""95% intervals of regressions hold the coefficients of known populations; those that forget the noise do not."""

from math import sqrt
from typing import Any

import pytest

from sfumato.studies.regression.fieller import fieller_limits
from tests.studies import simulated_regressions as simulated
from tests.studies.simulated_regressions import Seen

LEAST = 0.945
STRAYS = 6.2
"""Standard errors of a share of runs: beyond them by chance in fewer than 1e-9 of tries."""
FEW, MANY = 3_000, 120_000


def bound(runs: int, least: float = LEAST) -> float:
    return least - STRAYS * sqrt(least * (1 - least) / runs)


def judged(seen: Seen) -> None:
    assert seen.covered >= bound(seen.runs), seen


LINEAR: list[dict[str, Any]] = [
    {"wards": 0, "rows": 200, "epsilon": 1, "delta": 1e-6},
    {"wards": 0, "rows": 200, "epsilon": 3, "delta": 0.0},
    {"wards": 4, "rows": 200, "epsilon": 3, "delta": 1e-6},
    {"wards": 0, "rows": 200, "epsilon": 0.3, "delta": 1e-6},
    {"wards": 0, "rows": 1000, "epsilon": 1, "delta": 1e-6},
    {"wards": 0, "rows": 1000, "epsilon": 1, "delta": 0.0},
    {"wards": 4, "rows": 1000, "epsilon": 1, "delta": 1e-6},
    {"wards": 0, "rows": 5000, "epsilon": 1, "delta": 1e-6},
]


def linear(case: dict[str, Any], runs: int) -> Seen:
    asked = {name: value for name, value in case.items() if name != "wards"}
    return simulated.linear_coverage(simulated.design(wards=case["wards"]), runs=runs, **asked)


@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("case", LINEAR[:3], ids=str)
def test_coefficients_of_a_linear_regression_are_covered(case: dict[str, Any]) -> None:
    seen = linear(case, FEW)
    judged(seen)
    assert seen.naive < 0.5, seen  # the same fit with the noise left out of its standard errors


@pytest.mark.long
@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("case", LINEAR, ids=str)
def test_coefficients_of_a_linear_regression_are_covered_in_many_runs(case: dict[str, Any]) -> None:
    judged(linear(case, MANY))


def without_doubt(*given: Any) -> Any:
    """A broken copy: the information is taken as if it were known exactly, as Wald's intervals do."""
    estimates, total, doubt, leaning, reach = given
    return fieller_limits(estimates, total, 0 * doubt, 0 * leaning, reach)


CLOSE: list[dict[str, Any]] = [
    {"rows": rows, "epsilon": epsilon, "correlation": correlation}
    for correlation in (0.95, 0.8, 1.0)
    for rows, epsilon in ((1000, 3), (200, 1), (200, 3), (1000, 1), (5000, 1))
]


@pytest.mark.alpha(1e-9)
def test_opposite_coefficients_of_close_numbers_are_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {"runs": FEW, "delta": 1e-6, **CLOSE[0]}
    judged(simulated.linear_coverage(simulated.close_design(), **asked))
    monkeypatch.setattr(simulated, "fieller_limits", without_doubt)
    assert simulated.linear_coverage(simulated.close_design(), **asked).covered < 0.92


@pytest.mark.long
@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("case", CLOSE, ids=str)
def test_opposite_coefficients_of_close_numbers_are_covered_in_many_runs(case: dict[str, Any]) -> None:
    seen = simulated.linear_coverage(simulated.close_design(), runs=10_000, delta=1e-6, **case)
    print(case, seen)
    judged(seen)


ALIKE: list[dict[str, Any]] = [
    {"rows": rows, "epsilon": epsilon, "base": -0.3, "alike": alike, "opposite": opposite}
    for alike, opposite in ((0.9, 1.0), (0.98, 2.0), (0.9, 2.0), (1.0, 2.0))
    for rows, epsilon in ((200, 1), (1000, 0.3), (1000, 1))
]


@pytest.mark.long
@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("case", ALIKE, ids=str)
def test_factors_that_are_nearly_one_are_covered_in_many_runs(case: dict[str, Any]) -> None:
    seen = simulated.logistic_coverage(runs=10_000, **case)
    print(case, seen)
    judged(seen)


@pytest.mark.alpha(1e-9)
def test_factors_that_are_nearly_one_are_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {"runs": FEW, "rows": 1000, "epsilon": 1, "base": -0.3, "alike": 0.98, "opposite": 2.5}
    judged(simulated.logistic_coverage(**asked))
    monkeypatch.setattr(simulated, "fieller_limits", without_doubt)
    assert simulated.logistic_coverage(**asked).covered < 0.92


LOGISTIC: list[dict[str, Any]] = [
    {"rows": 200, "epsilon": 1, "base": -0.3},
    {"rows": 200, "epsilon": 0.3, "base": -0.3},
    {"rows": 200, "epsilon": 1, "base": -2.0},
    {"rows": 1000, "epsilon": 0.3, "base": -2.0},
    {"rows": 1000, "epsilon": 1, "base": -0.3},
]


@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("case", LOGISTIC[:2], ids=str)
def test_coefficients_of_a_logistic_regression_are_covered(case: dict[str, Any]) -> None:
    seen = simulated.logistic_coverage(runs=FEW, **case)
    judged(seen)
    if case["epsilon"] < 1:
        assert seen.naive < 0.85, seen


@pytest.mark.long
@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("case", LOGISTIC, ids=str)
def test_coefficients_of_a_logistic_regression_are_covered_in_many_runs(case: dict[str, Any]) -> None:
    judged(simulated.logistic_coverage(runs=MANY, **case))


POISSON: list[dict[str, Any]] = [
    {"rows": 200, "epsilon": 1, "base": 1.0, "spread": True},
    {"rows": 1000, "epsilon": 1, "base": 0.0, "spread": False},
    {"rows": 1000, "epsilon": 3, "base": 1.0, "spread": True},
]


@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("case", POISSON[:1], ids=str)
def test_coefficients_of_a_poisson_regression_are_covered(case: dict[str, Any]) -> None:
    seen = simulated.poisson_coverage(runs=FEW, **case)
    judged(seen)
    assert seen.naive < 0.85, seen


@pytest.mark.long
@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("case", POISSON, ids=str)
def test_coefficients_of_a_poisson_regression_are_covered_in_many_runs(case: dict[str, Any]) -> None:
    judged(simulated.poisson_coverage(runs=MANY, **case))


SCORES: list[dict[str, Any]] = [
    {"rows": 200, "epsilon": 0.3, "events": 0.5, "apart": 0.0},
    {"rows": 1000, "epsilon": 3, "events": 0.1, "apart": 6.0},
    {"rows": 200, "epsilon": 1, "events": 0.2, "apart": 2.0},
    {"rows": 1000, "epsilon": 1, "events": 0.2, "apart": 2.0},
    {"rows": 5000, "epsilon": 1, "events": 0.1, "apart": 6.0},
]


@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("case", SCORES[:2], ids=str)
def test_areas_and_shares_are_covered(case: dict[str, Any]) -> None:
    area, forgotten, shares = simulated.score_coverage(runs=FEW, **case)
    assert area >= bound(FEW), area
    assert shares >= bound(FEW // 10), shares
    if case["epsilon"] < 1:
        assert forgotten < 0.85, forgotten


@pytest.mark.long
@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("case", SCORES, ids=str)
def test_areas_and_shares_are_covered_in_many_runs(case: dict[str, Any]) -> None:
    runs, times = 2_000, 6  # each run looks at 2,001 areas
    found = [simulated.score_coverage(runs=runs, seed=seed, **case) for seed in range(times)]
    for place, tries in ((0, runs * times), (2, runs * times // 10)):
        assert sum(each[place] for each in found) / len(found) >= bound(tries), found
