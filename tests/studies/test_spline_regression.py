"""Regressions with numeric covariates end to end, beside software that sees the data, and what is refused."""

from math import inf, isnan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.reports.verify import verify
from sfumato.studies.regression.splines import STEPS, UNIT, SplineBasis, to_cells, to_nodes
from sfumato.tables import SplineCounts
from tests import parts
from tests.studies.test_regression import EXACTLY, ONE, close, declared, patients

# ---------------------------------------------------------------------------------------------------- the splines


@pytest.mark.parametrize(("pieces", "degree"), [(1, 2), (1, 3), (2, 3), (3, 3), (8, 3), (64, 3)])
def test_weights_are_whole_not_negative_and_add_up_to_one_row(pieces: int, degree: int) -> None:
    basis = SplineBasis(pieces=pieces, degree=degree)
    weights, first = basis.table.weights, basis.table.first
    assert len(weights) == STEPS + 1
    assert weights.min() >= 0
    assert set(weights.sum(axis=1).tolist()) == {UNIT}
    assert weights[0].tolist() == [UNIT] + [0] * degree
    assert weights[-1].tolist() == [0] * degree + [UNIT]
    assert first.min() == 0
    assert first.max() + degree == basis.size - 1


def test_projected_functions_are_those_that_splines_can_follow() -> None:
    basis = SplineBasis(pieces=3)
    places = np.arange(0, STEPS + 1, 997)
    at = places / STEPS
    for power in range(4):
        coefficients = to_cells((basis.nodes**power)[None], [basis])[0]
        assert basis.at(places) @ coefficients == pytest.approx(at**power, abs=1e-6)
    rng = np.random.default_rng(1)
    counts = rng.random((2, basis.size * basis.size))
    values = np.add.outer(basis.nodes, basis.nodes**2).ravel()
    both = [basis, basis]
    assert to_nodes(counts, both) @ values == pytest.approx(counts @ to_cells(values[None], both)[0])


def test_an_outcome_is_told_with_its_squares() -> None:
    basis = SplineBasis(pieces=1, degree=2)
    places = np.arange(0, STEPS + 1, 331)
    shares, at = basis.at(places), places / STEPS
    assert shares @ [0, 0.5, 1] == pytest.approx(at, abs=1e-8)
    assert shares @ [0, 0, 1] == pytest.approx(at**2, abs=1e-8)


# ---------------------------------------------------------------------------------------------------- without noise


def test_with_next_to_no_noise_it_is_logistic_regression_on_numbers() -> None:
    parts.package("statsmodels")
    import statsmodels.formula.api as smf

    data = patients(1500)
    study = declared(data).logistic_regression("died ~ age * C(sex) + score")
    found = study.release(epsilon=EXACTLY)
    frame = data.to_pandas().assign(d=lambda it: it.died * 1)
    plain = smf.logit("d ~ age + score + sex + age:sex", frame).fit(disp=0)
    order = ["Intercept", "age", "sex[T.M]", "score", "age:sex[T.M]"]
    assert found.names == ("Intercept", "age", "sex[M]", "score", "age:sex[M]")
    off = np.abs(found.estimates - plain.params[order].to_numpy())
    assert (off <= found.shift + 0.02 * plain.bse[order].to_numpy()).all(), off  # within what splines are said to shift
    assert found.standard_errors["age"] == pytest.approx(plain.bse["age"], rel=0.02)
    assert found.p_values["score"] < 1e-6
    for low, high in found.interval().values():
        assert low < high
    assert found.splines == SplineBasis(pieces=6).size
    finer = declared(data).logistic_regression("died ~ age * C(sex) + score", pieces=20).release(epsilon=EXACTLY)
    close(finer.coefficients, plain.params[order], 0.003)
    close(finer.standard_errors, plain.bse[order], 0.003)
    assert (finer.shift < 0.01 * found.shift).all()


def test_with_next_to_no_noise_it_is_poisson_regression_on_numbers() -> None:
    parts.package("statsmodels")
    import statsmodels.formula.api as smf

    data = patients(1500)
    found = declared(data).poisson_regression("stays ~ age + sex + C(ward)").release(epsilon=EXACTLY)
    plain = smf.poisson("stays ~ age + sex + ward", data.to_pandas()).fit(disp=0, cov_type="HC1")
    order = ["Intercept", "age", "sex[T.M]", "ward[T.B]", "ward[T.C]"]
    close(found.coefficients, plain.params[order], 1e-3)
    close(found.standard_errors, plain.bse[order], 1e-3)
    assert "rate_ratio" in found.to_arrow().column_names


def uneven(rows: int = 1500, *, seed: int = 5) -> pa.Table:
    """Patients whose pressure varies ten times as much at high ages as at low ones."""
    data = patients(rows, seed=seed)
    rng, age = np.random.default_rng(seed), data["age"].to_numpy()
    sbp = np.clip(110 + 0.3 * age + rng.normal(0, 1, rows) * (2 + 0.004 * age**2), 60, 220)
    return data.set_column(data.column_names.index("sbp"), "sbp", pa.array(sbp))


def test_with_next_to_no_noise_robust_errors_are_those_of_a_sandwich() -> None:
    parts.package("statsmodels")
    import statsmodels.formula.api as smf

    data = uneven()
    table = declared(data)
    found = table.linear_regression("sbp ~ age * sex + C(ward)", robust=True).release(epsilon=EXACTLY)
    plain = smf.ols("sbp ~ age + sex + ward + age:sex", data.to_pandas()).fit(cov_type="HC1")
    order = ["Intercept", "age", "sex[T.M]", "ward[T.B]", "ward[T.C]", "age:sex[T.M]"]
    close(found.coefficients, plain.params[order], 0.01)
    assert list(found.standard_errors.values()) == pytest.approx(list(plain.bse[order]), rel=0.01)
    without = table.linear_regression("sbp ~ age * sex + C(ward)").release(epsilon=EXACTLY)
    assert without.standard_errors["age"] < 0.9 * found.standard_errors["age"]  # too small: it takes one variance


# ------------------------------------------------------------------------------------------------------ with noise


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_a_release_is_certified_and_another_formula_of_the_same_columns_is_free(relation: str) -> None:
    table = declared(patients(2000), unit=sf.user("id", relation=relation))
    study = table.logistic_regression("died ~ age + C(sex)")
    query = study.question.query
    assert isinstance(query, SplineCounts)
    first = study.release(epsilon=1)
    assert verify(first.release.certificate.document).consistent
    assert str(study.release(epsilon=1)) == str(first)
    more = table.logistic_regression("died ~ age * C(sex)").release(epsilon=1)
    assert more.release.statement.identifier == first.release.statement.identifier  # the same release, charged once
    assert len(more.names) == len(first.names) + 1


def test_the_noise_of_a_row_is_that_of_a_count_however_many_numbers() -> None:
    table = declared(patients(50), limit=None, unit=sf.record(relation="add/remove"))
    laws = [
        table.logistic_regression(formula).question.preview(epsilon=1).mechanism.law
        for formula in ("died ~ age", "died ~ age + score + stays")
    ]
    assert laws[0] == laws[1]


def test_a_preview_tells_how_much_of_the_error_is_noise() -> None:
    study = declared(patients(100)).logistic_regression("died ~ age + sex")
    notes = study.preview(epsilon=1, rows=5000).notes
    assert notes[0].startswith("There are 44 counts of spread rows; each has noise of standard deviation 1.41 rows")
    assert "about 3% with an outcome as frequent as not" in notes[1]
    assert "Say rows=" in study.preview(epsilon=1).notes[-1]
    assert "no finite interval" in study.preview(epsilon="1/20", rows=100).notes[-1]


def test_where_noise_is_as_large_as_what_is_measured_no_standard_error_is_quoted() -> None:
    study = declared(patients(40)).poisson_regression("stays ~ age + score + ward")
    found = study.release(epsilon="1/100", even_if_useless=True)
    assert found.covariance is None
    assert all(isnan(each) for each in found.p_values.values())
    assert set(found.interval().values()) == {(-inf, inf)}


def test_a_result_is_printed_drawn_and_told_in_both_languages() -> None:
    table = declared(patients(3000))
    results: list[Any] = [
        table.logistic_regression("died ~ age + score").release(epsilon=3),
        table.poisson_regression("stays ~ age").release(epsilon=3),
        table.linear_regression("sbp ~ age + sex", robust=True).release(epsilon=3),
    ]
    for result in results:
        assert result.picture() is not None
        for word in (result.title, *result.notes, *(part for fact in result.facts for part in fact)):
            for language in ("en", "zh-Hans"):
                assert result.word(word, language)
        assert "spread over" in str(result)
    assert "robust" in str(results[2])
    assert "the residual variance may depend on the covariates" in " ".join(str(results[2]).split())


def test_intervals_and_p_values_agree_also_where_splines_shift() -> None:
    found = declared(patients(3000)).logistic_regression("died ~ age + score", pieces=1).release(epsilon=3)
    assert (found.shift > 0).all()
    for name, (low, high) in found.interval().items():
        assert (low <= 0 <= high) == (found.p_values[name] >= 0.05), name


def test_rows_with_something_missing_or_undeclared_do_not_count() -> None:
    data = pa.table(
        {
            "id": [1, 2, 3, 4, 5],
            "age": [30.0, None, float("nan"), 500.0, 40.0],
            "sex": ["F", "M", "F", "M", None],
            "ward": ["A"] * 5,
            "sbp": [120.0] * 5,
            "died": [True] * 5,
            "stays": [1] * 5,
            "score": [0.5] * 5,
        }
    )
    release = declared(data).logistic_regression("died ~ age + C(sex)").question.release(epsilon=EXACTLY)
    shown = release.to_arrow().to_pydict()
    assert sum(map(float, shown["rows"])) == pytest.approx(2, abs=1e-2)
    held = [float(rows) for rows, age, sex in zip(shown["rows"], shown["age"], shown["sex"], strict=True) if sex == "M"]
    assert max(held) == pytest.approx(1, abs=1e-3)  # 500 is held to the bound, where one spline has it all


def test_rows_of_one_person_are_made_one_first() -> None:
    many = declared(patients(100), limit=sf.Limit(groups=1, rows_per_group=2))
    for study in (
        lambda: many.logistic_regression("died ~ age"),
        lambda: many.poisson_regression("stays ~ age"),
        lambda: many.linear_regression("sbp ~ age", robust=True),
    ):
        with pytest.raises(Refused, match="one row of each person"):
            study()


# --------------------------------------------------------------------------------------------------- what is refused


def test_what_makes_no_question_is_refused() -> None:
    table = declared(patients(10)).with_bounds(a=(0, 1), b=(0, 1))
    with pytest.raises(InvalidInput, match="at most 4 can be"):
        table.logistic_regression("died ~ age + score + stays + a + b")
    with pytest.raises(InvalidInput, match="at most 4 can be"):
        table.linear_regression("sbp ~ age + score + stays + a + b", robust=True)
    with pytest.raises(InvalidInput, match="noise would leave nothing"):
        table.logistic_regression("died ~ age + score + stays", pieces=40)
    with pytest.raises(InvalidInput, match="no covariate here is a number"):
        table.logistic_regression("died ~ sex", pieces=4)
    with pytest.raises(InvalidInput, match="no covariate here is a number"):
        table.poisson_regression("stays ~ sex", pieces=4)
    with pytest.raises(InvalidInput, match="robust=True"):
        table.linear_regression("sbp ~ age", pieces=4)
    with pytest.raises(InvalidInput, match="pieces"):
        table.logistic_regression("died ~ age", pieces=0)
    with pytest.raises(InvalidInput, match="never negative"):
        table.with_bounds(sbp=(-1, 200)).poisson_regression("sbp ~ age")
    with pytest.raises(NotDeclared, match="bounds of 'weight'"):
        table.poisson_regression("stays ~ weight")
    with pytest.raises(InvalidInput, match="different columns"):
        table.poisson_regression("stays ~ stays")
    with pytest.raises(InvalidInput, match="not grouped"):
        table.group_by("sex").logistic_regression("died ~ age")


def test_a_column_with_bounds_and_keys_is_a_number_unless_it_is_named_a_factor() -> None:
    table = declared(patients(10)).with_keys(stays=[0, 1, 2])
    assert table.logistic_regression("died ~ stays").question.query.KIND == "query.spline_counts"
    assert table.logistic_regression("died ~ C(stays)").question.query.KIND == "query.count"
    both = table.logistic_regression("died ~ age + C(stays)").question.query
    assert [keys.column for keys in both.by] == ["stays", "died"]
    cut = table.logistic_regression("died ~ age + score", cuts={"age": [0, 50, 101]}).question.query
    assert [keys.column for keys in cut.by] == ["age", "died"]


def test_the_event_is_the_one_that_is_named() -> None:
    table = declared(patients(900))
    one = table.logistic_regression("died ~ age").release(epsilon=EXACTLY)
    other = table.logistic_regression("died ~ age", event=False).release(epsilon=EXACTLY)
    assert one.outcome == "died = True"
    close(other.coefficients, [-each for each in one.coefficients.values()], 1e-4)
    assert ONE.rows == 1
