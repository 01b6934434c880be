"""Limits after Fieller: they are the score test turned around, and coefficients that noise leaves open have no end."""

from dataclasses import replace
from fractions import Fraction
from math import inf, isnan

import numpy as np
import pytest

import sfumato as sf
from sfumato.studies.regression.fieller import fieller_limits, fieller_ratio
from sfumato.studies.regression.result import RegressionResult
from tests.studies.test_regression import patients


def test_limits_are_where_the_ratio_is_the_reach() -> None:
    rng = np.random.default_rng(5)
    estimates, total = rng.normal(0, 1, 500), rng.uniform(0.01, 2, 500)
    doubt, reach = rng.uniform(0, 0.5, 500), rng.uniform(1, 3, 500)
    leaning = rng.uniform(-1, 1, 500) * np.sqrt(total * doubt)  # a covariance is no larger
    low, high = fieller_limits(estimates, total, doubt, leaning, reach)
    bounded = np.isfinite(low)
    assert (bounded == np.isfinite(high)).all()
    assert (bounded == (reach**2 * doubt < 1)).all()
    assert 100 < bounded.sum() < 400
    for end in (low, high):
        found = fieller_ratio(end - estimates, total, doubt, leaning)
        assert found[bounded] == pytest.approx(reach[bounded], rel=1e-9)
    assert (low < estimates).all()
    assert (estimates < high).all()
    # Forgetting how noise in the information goes with that of the coefficient is found out.
    wrong = fieller_limits(estimates, total, doubt, -leaning, reach)[0]
    assert not np.allclose(wrong[bounded], low[bounded])


def test_without_doubt_they_are_those_of_wald() -> None:
    none = np.zeros(3)
    low, high = fieller_limits(np.arange(3.0), np.full(3, 0.25), none, none, 1.96)
    assert low == pytest.approx(np.arange(3) - 0.98)
    assert high == pytest.approx(np.arange(3) + 0.98)


@pytest.fixture(scope="module")
def fitted() -> RegressionResult:
    """A fit with next to no noise; what noise would make of it is put in by hand."""
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1000), name="trial")
    table = vault.table(
        patients(400),
        name="patients",
        version="1",
        keys={"sex": ["F", "M"], "died": [False, True]},
        bounds={"age": (0, 100)},
    )
    found = table.logistic_regression("died ~ age + sex", pieces=3).release(epsilon=1000)
    assert found.names == ("Intercept", "age", "sex[M]")
    return found


def test_a_coefficient_that_noise_leaves_open_has_no_estimate_and_others_have_theirs(fitted: RegressionResult) -> None:
    none = np.zeros(3)
    found = replace(fitted, doubt=np.array([0.0, 0.5, 0.0]), leaning=none)
    assert isnan(found.coefficients["age"])
    assert isnan(found.standard_errors["age"])
    assert isnan(found.p_values["age"])
    assert found.interval()["age"] == (-inf, inf)
    for name in ("Intercept", "sex[M]"):
        assert found.interval()[name] == pytest.approx(fitted.interval()[name], rel=1e-3)
        assert found.p_values[name] == pytest.approx(fitted.p_values[name], rel=1e-2)
    assert "No estimate for age:" in found.explain()
    assert "No estimate for" not in fitted.explain()
    assert "age 没有估计值" in found.explain("zh")
    drawn = found.picture()
    assert drawn is not None
    assert [row.at for row in drawn.rows] == ["sex[M]"]
    low, high = found.interval("1/2")["age"]
    assert -inf < low < high < inf, "a smaller confidence asks for less"
    lost = replace(fitted, doubt=np.ones(3), leaning=none)
    assert "There is no estimate with a finite interval" in lost.explain()
    assert lost.picture() is None


def test_information_that_is_near_its_noise_is_said(fitted: RegressionResult) -> None:
    found = replace(fitted, doubt=np.array([0.0, 0.04, 0.0]), leaning=np.zeros(3))
    assert "only 5.0 times as large as its noise" in found.explain()
    assert "as large as its noise" not in fitted.explain()
    (low, high), (before, after) = (each.interval()["age"] for each in (found, fitted))
    assert high - low > 1.05 * (after - before)


def test_a_test_rejects_where_the_interval_leaves_0_out(fitted: RegressionResult) -> None:
    rng, decided = np.random.default_rng(4), set()
    for _ in range(12):
        spread = rng.uniform(0.5, 2, 3)
        doubt = rng.uniform(0, 0.12, 3)
        found = replace(
            fitted,
            estimates=rng.normal(0, 3, 3),
            covariance=np.diag(spread),
            doubt=doubt,
            leaning=rng.uniform(-0.9, 0.9, 3) * np.sqrt(spread * doubt),
            excess=rng.uniform(0, 1, 3),
        )
        p_values = found.p_values
        for confidence in ("4/5", "9/10", "19/20"):
            for name, (low, high) in found.interval(confidence).items():
                rejected = p_values[name] < 1 - float(Fraction(confidence))
                assert rejected == (not low <= 0 <= high), (name, p_values[name], low, high)
                decided.add(rejected)
    assert decided == {True, False}
