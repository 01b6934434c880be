"""Limits after Fieller: they are the score test turned around, and coefficients that noise leaves open have no end."""

from fractions import Fraction
from math import inf, isnan

import numpy as np
import pyarrow as pa
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


def regression(data: pa.Table, formula: str, epsilon: str) -> RegressionResult:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=100), name="trial")
    table = vault.table(
        data,
        name="patients",
        version="1",
        keys={"sex": ["F", "M"], "died": [False, True]},
        bounds={"age": (0, 100), "months": (0, 1200)},
    )
    return table.logistic_regression(formula, pieces=3).release(epsilon=epsilon)


def test_two_columns_that_are_one_have_no_estimate_and_others_may_have_one() -> None:
    data = patients(4000)
    data = data.append_column("months", pa.array(12 * np.asarray(data["age"])))
    tries = [regression(data, "died ~ age + months + sex", f"{4 + place}/2") for place in range(6)]
    for found in tries:
        for name in ("age", "months"):
            assert found.interval()[name] == (-inf, inf) or not isnan(found.coefficients[name])
    opened = [found for found in tries if found.covariance is not None and isnan(found.coefficients["age"])]
    assert opened, "noise makes the information positive in half of them"
    for found in opened:
        assert isnan(found.p_values["months"])
        assert isnan(found.standard_errors["age"])
        assert "No estimate for " in found.explain()
        assert found.interval()["age"] == (-inf, inf)
        assert "没有估计值" in found.summary("zh")
    some = [found for found in opened if not isnan(found.coefficients["sex[M]"])]
    assert some
    for found in some:
        low, high = found.interval()["sex[M]"]
        assert -inf < low < high < inf
        drawn = found.picture()
        assert drawn is not None
        assert [row.at for row in drawn.rows] == ["sex[M]"]


def test_a_test_rejects_where_the_interval_leaves_0_out() -> None:
    decided = set()
    for place in range(8):
        found = regression(patients(300), "died ~ age + sex", f"{4 + place}/10")
        for confidence in ("4/5", "19/20", "99/100"):
            level = float(Fraction(confidence))
            for name, (low, high) in found.interval(confidence).items():
                p = found.p_values[name]
                if isnan(p) or not np.isfinite(high - low):
                    continue
                assert (p < 1 - level) == (not low <= 0 <= high), (name, p, low, high)
                decided.add(p < 1 - level)
    assert decided == {True, False}
