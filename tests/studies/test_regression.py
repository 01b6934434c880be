"""Regressions end to end: what is asked, what is refused, what comes back, beside software that sees the data."""

import csv
import re
from fractions import Fraction
from math import inf, isnan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.reports.verify import verify
from sfumato.studies.regression.design import BoundedNumber, CodedFactor, ColumnProduct, Design, product_table
from sfumato.studies.regression.result import RegressionResult, heavier, lighter
from sfumato.tables import Table
from sfumato.tables.studies_regression import model_of
from tests import parts

EXACTLY = 10**5  # an ε at which noise is next to nothing
ONE = sf.Limit(groups=1, rows_per_group=1)


def patients(rows: int = 600, *, seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(20, 90, rows), rng.choice(["F", "M"], rows)
    ward = rng.choice(["A", "B", "C"], rows)
    sbp = 100 + 0.5 * age + 5 * (sex == "M") - 4 * (ward == "B") + 0.1 * age * (sex == "M") + rng.normal(0, 8, rows)
    died = rng.random(rows) < 1 / (1 + np.exp(1.5 - 0.8 * (sex == "M") - 1.1 * (age >= 65)))
    stays = rng.poisson(np.exp(0.2 + 0.3 * (sex == "M") - 0.4 * (ward == "C")))
    score = np.clip(rng.beta(2 + 3 * died, 4), 0, 1)
    return pa.table(
        {
            "id": np.arange(rows),
            "age": age,
            "sex": sex,
            "ward": ward,
            "sbp": sbp,
            "died": died,
            "stays": stays,
            "score": score,
        }
    )


def declared(data: pa.Table, *, limit: Any = ONE, unit: Any = None) -> Table:
    unit = unit or sf.user("id", relation="add/remove")
    budget = sf.Budget(epsilon=10**6, delta="1/1000000")
    vault = sf.Vault(unit=unit, budget=budget, name="trial")
    return vault.table(
        data,
        name="patients",
        version="1",
        limit=limit,
        keys={"sex": ["F", "M"], "ward": ["A", "B", "C"], "died": [False, True]},
        bounds={"age": (0, 100), "sbp": (60, 220), "stays": (0, 20), "score": (0, 1)},
    )


def close(found: dict[str, float], expected: Any, within: float) -> None:
    assert list(found.values()) == pytest.approx(list(expected), abs=within)


# ---------------------------------------------------------------------------------------------- without noise


def test_with_next_to_no_noise_it_is_least_squares() -> None:
    parts.package("statsmodels")
    import statsmodels.formula.api as smf

    data = patients()
    found = declared(data).linear_regression("sbp ~ age * sex + C(ward)").release(epsilon=EXACTLY)
    plain = smf.ols("sbp ~ age + sex + C(ward) + age:sex", data.to_pandas()).fit()
    order = ["Intercept", "age", "sex[T.M]", "C(ward)[T.B]", "C(ward)[T.C]", "age:sex[T.M]"]
    assert found.names == ("Intercept", "age", "sex[M]", "ward[B]", "ward[C]", "age:sex[M]")
    close(found.coefficients, plain.params[order], 0.02)
    close(found.standard_errors, plain.bse[order], 0.01)
    close(found.p_values, plain.pvalues[order], 0.01)
    for (low, high), (_, row) in zip(found.interval().values(), plain.conf_int().loc[order].iterrows(), strict=True):
        assert (low, high) == pytest.approx(tuple(row), abs=0.03)


def test_with_next_to_no_noise_it_is_logistic_regression() -> None:
    parts.package("statsmodels")
    import pandas as pd
    import statsmodels.formula.api as smf

    data = patients(1500)
    study = declared(data).logistic_regression("died ~ sex + age", cuts={"age": [0, 40, 65, 100]})
    found = study.release(epsilon=EXACTLY)
    frame = data.to_pandas().assign(
        band=lambda it: pd.cut(it.age, [0, 40, 65, 100], right=False), d=lambda it: it.died * 1
    )
    plain = smf.logit("d ~ sex + band", frame).fit(disp=0)
    assert found.names == ("Intercept", "sex[M]", "age[40, 65)", "age[65, 100)")
    close(found.coefficients, plain.params, 1e-6)
    close(found.standard_errors, plain.bse, 1e-6)
    table = found.to_arrow().to_pydict()
    assert table["odds_ratio"][1:] == pytest.approx(np.exp(plain.params).tolist()[1:])
    assert all(isnan(table[name][0]) for name in ("odds_ratio", "ratio_low", "ratio_high")), "it compares nothing"
    assert f"where every number is 0: {np.exp(plain.params.iloc[0]):.3g}." in found.explain()


def test_with_next_to_no_noise_it_is_poisson_regression_with_robust_errors() -> None:
    parts.package("statsmodels")
    import statsmodels.formula.api as smf

    data = patients(1500)
    found = declared(data).poisson_regression("stays ~ sex + ward").release(epsilon=EXACTLY)
    plain = smf.poisson("stays ~ sex + ward", data.to_pandas()).fit(disp=0, cov_type="HC0")
    close(found.coefficients, plain.params, 1e-4)
    close(found.standard_errors, plain.bse, 1e-3)


def test_the_area_and_the_calibration_of_a_score_without_noise() -> None:
    data = patients(800)
    table = declared(data)
    found = table.auc("score", "died", bins=20).release(epsilon=EXACTLY)
    bins = np.minimum((data["score"].to_numpy() * 20).astype(int), 19)
    died = data["died"].to_numpy(zero_copy_only=False)
    compared = np.sign(np.subtract.outer(bins[died], bins[~died]))
    assert found.auc == pytest.approx((compared.mean() + 1) / 2)
    low, high = found.interval()
    assert low < found.auc < high
    assert high - low == pytest.approx(4 * found.standard_error, rel=0.1)
    shown = table.calibration("score", "died", bins=20).release(epsilon=EXACTLY)
    assert shown.release.statement.identifier == found.release.statement.identifier  # the same release, charged once
    columns = shown.table().columns
    for place in range(20):
        here = bins == place
        if here.sum():
            assert columns["observed"][place] == pytest.approx(died[here].mean())
            assert columns["low"][place] <= columns["observed"][place] <= columns["high"][place]


# ------------------------------------------------------------------------------------------------- with noise


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
@pytest.mark.parametrize("delta", [0, "1/1000000"])
def test_a_release_is_certified_and_its_result_is_the_same_each_time(relation: str, delta: Any) -> None:
    table = declared(patients(), unit=sf.user("id", relation=relation))
    study = table.linear_regression(outcome="sbp", covariates=["age", "sex", "ward"])
    first = study.release(epsilon=1, delta=delta)
    assert verify(first.release.certificate.document).consistent
    again = study.release(epsilon=1, delta=delta)
    assert again.coefficients == pytest.approx(first.coefficients, rel=0, abs=0, nan_ok=True)
    assert str(again) == str(first)
    kind = "mechanism.gaussian" if delta else "mechanism.laplace"
    assert kind == first.release.statement.mechanism.KIND


def test_where_noise_is_as_large_as_what_is_measured_no_standard_error_is_quoted() -> None:
    study = declared(patients(40)).linear_regression("sbp ~ age * sex + C(ward)")
    found = study.release(epsilon="1/100", even_if_useless=True)
    assert found.covariance is None
    assert all(isnan(each) for each in found.standard_errors.values())
    assert all(isnan(each) for each in found.p_values.values())
    assert set(found.interval().values()) == {(-inf, inf)}
    assert found.picture() is None
    assert "no estimate with a finite interval" in str(found)
    rows = study.preview(epsilon="1/100", rows=40).notes
    assert "no finite interval" in rows[-1]


def test_a_preview_warns_of_few_rows_and_its_share_of_noise_fits_its_width() -> None:
    """At 200 rows 8 of 25 releases had no ends, and 11.9 times the width in the median; expected sums alone say 6.7."""
    study = declared(patients(40)).linear_regression("sbp ~ age + stays + sex")

    def foreseen(rows: int) -> tuple[list[tuple[float, float]], str]:
        told = study.preview(epsilon=1, delta="1/1000000", rows=rows).notes
        found = re.findall(r"about (\d+)% .*?\(intervals ([\d.]+) times", " ".join(told))
        return [(float(share), float(width)) for share, width in found], told[-1]

    (few, last), (many, calm) = foreseen(200), foreseen(2_000)
    assert "no finite interval" in last
    assert "no finite interval" not in calm
    assert few[0][1] > 8
    assert len(many) == 2
    for share, width in many:
        assert abs(share - 100 * (1 - 1 / width**2)) < 1.5


def test_a_result_is_printed_drawn_and_told_in_both_languages() -> None:
    table = declared(patients(3000))
    results: list[Any] = [
        table.linear_regression("sbp ~ age + sex").release(epsilon=3, delta="1/1000000"),
        table.logistic_regression("died ~ sex").release(epsilon=3),
        table.poisson_regression("stays ~ sex").release(epsilon=3),
        table.auc("score", "died").release(epsilon=3),
        table.calibration("score", "died").release(epsilon=3),
    ]
    for result in results:
        assert result.picture() is not None
        for word in (result.title, *result.notes, *(part for fact in result.facts for part in fact)):
            for language in ("en", "zh-Hans"):
                assert result.word(word, language)
        assert len(str(result).splitlines()) > 5
    assert "age" in str(results[0])
    assert "standard error" in str(results[0])
    assert results[1].picture().log
    assert results[0].to_arrow().column_names[:7] == [
        "term",
        "coefficient",
        "standard_error",
        "z",
        "p",
        "low",
        "high",
    ]


def test_single_rows_need_no_limit_and_filters_hold() -> None:
    data = patients()
    table = declared(data, limit=None, unit=sf.record(relation="add/remove"))
    found = table.where(sf.col("ward") == "A").linear_regression("sbp ~ age").release(epsilon=EXACTLY)
    assert round(found.rows) == data["ward"].to_pylist().count("A")


def test_rows_with_something_missing_or_undeclared_do_not_count() -> None:
    data = pa.table(
        {
            "id": [1, 2, 3, 4, 5, 6],
            "age": [30, None, 50, 60, 70, 40],
            "sex": ["F", "M", None, "X", "M", "F"],
            "ward": ["A"] * 6,
            "sbp": [120.0, 130.0, 125.0, 118.0, float("nan"), 400.0],
            "died": [True] * 6,
            "stays": [1] * 6,
            "score": [0.5] * 6,
        }
    )
    release = declared(data).linear_regression("sbp ~ age + sex").question.release(epsilon=EXACTLY)
    sums = dict(zip(release.to_arrow()["product"].to_pylist(), map(float, release["sum"].values), strict=True))
    assert sums["1"] == pytest.approx(2, abs=1e-3)  # the first row and the last, whose outcome is held to its bound
    assert sums["sbp"] == pytest.approx((120 - 140) / 80 + 1, abs=1e-3)


def test_rows_of_one_person_are_made_one_first() -> None:
    data = patients(300)
    twice = pa.concat_tables([data, data])
    many = declared(twice, limit=sf.Limit(groups=1, rows_per_group=2))
    for study in (
        lambda: many.linear_regression("sbp ~ age"),
        lambda: many.logistic_regression("died ~ sex"),
        lambda: many.poisson_regression("stays ~ sex"),
        lambda: many.auc("score", "died"),
    ):
        with pytest.raises(Refused, match="one row of each person") as caught:
            study()
        assert "per_person" in str(caught.value)
        assert "nothing was spent" in str(caught.value)
    one = many.per_person(age=sf.max("age"), sbp=sf.mean("sbp"), sex=sf.first("sex", by="age"))
    found = one.linear_regression("sbp ~ age + sex").release(epsilon=EXACTLY)
    once = declared(data).linear_regression("sbp ~ age + sex").release(epsilon=EXACTLY)
    close(found.coefficients, once.coefficients.values(), 0.05)


# ---------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("sbp ~ scale(age)", "is computed"),
        ("sbp ~ bs(age, df=4)", "is computed"),
        ("sbp ~ np.log(age)", "is computed"),
        ("sbp ~ age**2", "is no power"),
        ("sbp ~ sex + age ^ 2", "is no power"),
        ("sbp ~ {age + 1}", "is computed"),
        ("sbp ~ age - 1", "intercept"),
        ("sbp ~ 0 + age", "intercept"),
        ("sbp ~ age:sex", "without age"),
        ("sbp + stays ~ age", "one column before"),
        ("sbp", "with one ~"),
        ("sbp ~ age + (", "could not be read"),
        ("sbp ~ sbp", "must be different columns"),
    ],
)
def test_formulas_that_look_at_data_or_make_no_model_are_refused(formula: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        declared(patients(10)).linear_regression(formula)
    assert "othing was done" in str(caught.value)


def test_columns_must_be_declared() -> None:
    table = declared(patients(10))
    with pytest.raises(NotDeclared, match="bounds of 'weight'"):
        table.linear_regression("sbp ~ weight")
    with pytest.raises(NotDeclared, match="values of the factor 'clinic'"):
        table.linear_regression("sbp ~ C(clinic)")
    with pytest.raises(NotDeclared, match="bounds of 'weight'"):
        table.logistic_regression("died ~ weight")
    with pytest.raises(NotDeclared, match="two values as declared keys"):
        table.logistic_regression("sbp ~ sex")
    with pytest.raises(InvalidInput, match="an outcome has two"):
        table.logistic_regression("ward ~ sex")
    with pytest.raises(InvalidInput, match="is no value of the outcome"):
        table.logistic_regression("died ~ sex", event="yes")
    with pytest.raises(InvalidInput, match="no covariate"):
        table.logistic_regression("died ~ sex", cuts={"age": [0, 50, 100]})
    with pytest.raises(InvalidInput, match="never negative"):
        table.with_bounds(sbp=(-1, 200)).poisson_regression("sbp ~ sex")
    with pytest.raises(InvalidInput, match="not grouped"):
        table.group_by("sex").linear_regression("sbp ~ age")
    with pytest.raises(InvalidInput, match="rising edges"):
        table.auc("score", "died", bins=[0, 1])
    for outcome, covariates in ((None, ["age"]), ("sbp", None), (None, None)):
        with pytest.raises(InvalidInput, match="takes a formula"):
            table.linear_regression(outcome=outcome, covariates=covariates)


def test_the_event_is_the_one_that_is_named() -> None:
    table = declared(patients(900))
    one = table.logistic_regression("died ~ sex").release(epsilon=EXACTLY)
    other = table.logistic_regression("died ~ sex", event=False).release(epsilon=EXACTLY)
    assert one.outcome == "died = True"
    close(other.coefficients, [-each for each in one.coefficients.values()], 1e-6)


def test_formulas_become_terms() -> None:
    assert model_of("y ~ a*b + C(`my col`)", None, None).terms == ((), ("a",), ("b",), ("my col",), ("a", "b"))
    assert model_of("y ~ 1 + a", None, None) == model_of(None, "y", ["a"])
    assert model_of("y ~ C(a)", None, None).factors == {"a"}


# ------------------------------------------------------------------------------------------------- the algebra


def test_products_that_repeat_each_other_are_added_up_once() -> None:
    number = {name: BoundedNumber(name=name, low=Fraction(0), high=Fraction(2)) for name in "xy"}
    sex, ward = CodedFactor(name="sex", levels=("F", "M")), CodedFactor(name="ward", levels=("A", "B", "C"))
    made = Design(
        outcome=number["y"], numbers=(number["x"],), factors=(sex, ward), terms=((), ("x",), ("sex",), ("ward",))
    )
    table = product_table(made)
    assert len(set(table.products)) == len(table.products) == 17
    assert table.products[0] == ColumnProduct()
    at = {name: place for place, name in enumerate(made.names)}
    assert table.places[at["sex[M]"]][at["sex[M]"]] == 0  # a sign times itself is 1
    assert table.places[at["ward[B]"]][at["ward[B]"]] == table.places[at["ward[B]"]][0]
    assert table.places[at["ward[B]"]][at["ward[C]"]] == -1


def test_heavier_tails_and_back() -> None:
    excess = np.array([0.0, 0.7, 3.0])
    for z in (0.5, 1.5, 1.96, 3.3):
        assert lighter(heavier(z, excess), excess) == pytest.approx([z] * 3, abs=1e-9)


# ------------------------------------------------------------------------------------------------- real data


@pytest.mark.alpha(1e-9)
def test_beside_plain_software_on_patients_with_heart_disease() -> None:
    parts.package("statsmodels")
    import pandas as pd
    import statsmodels.formula.api as smf

    names = [
        "age",
        "sex",
        "cp",
        "trestbps",
        "chol",
        "fbs",
        "restecg",
        "thalach",
        "exang",
        "oldpeak",
        "slope",
        "ca",
        "thal",
        "num",
    ]
    path = parts.dataset("uci-heart-disease/processed.cleveland.data")
    with path.open() as file:
        rows = [row for row in csv.reader(file) if len(row) == len(names)]
    frame = pd.DataFrame(rows, columns=names)[["age", "sex", "thalach", "num"]].astype(float)
    frame = frame.assign(ill=frame.num > 0, sex=frame.sex.map({0.0: "F", 1.0: "M"})).drop(columns="num")
    vault = sf.Vault(
        unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=99, delta="1/1000000"), name="heart"
    )
    table = vault.table(
        pa.Table.from_pandas(frame, preserve_index=False),
        name="heart",
        version="1",
        keys={"sex": ["F", "M"], "ill": [False, True]},
        bounds={"age": (25, 80), "thalach": (70, 205)},
    )
    plain = smf.ols("thalach ~ age + sex", frame).fit()
    found = table.linear_regression("thalach ~ age + sex").release(epsilon=8, delta="1/1000000")
    for name, value in zip(found.names, plain.params[["Intercept", "age", "sex[T.M]"]], strict=True):
        assert abs(found.coefficients[name] - value) < 6.5 * found.standard_errors[name]
    odds = smf.logit("ill ~ sex", frame.assign(ill=frame.ill * 1)).fit(disp=0)
    seen = table.logistic_regression("ill ~ sex").release(epsilon=3)
    assert abs(seen.coefficients["sex[M]"] - odds.params["sex[T.M]"]) < 6.5 * seen.standard_errors["sex[M]"]
    assert isinstance(seen, RegressionResult)
