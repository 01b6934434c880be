"""What a study cannot be asked is refused before anything is spent, in words that say what can: formulas, columns."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, NotDeclared, SfumatoError
from sfumato.tables.table import Table

ROWS = 60
SPEND = {"epsilon": 1}


@pytest.fixture(scope="module")
def table() -> Table:
    place = np.arange(ROWS)
    rows = {
        "arm": np.array(["a", "b"])[place % 2],
        "ward": np.array(["x", "y", "z"])[place % 3],
        "died": place % 5 == 0,
        "age": 20 + place,
        "sbp": 100.0 + place,
        "stays": place % 4,
        "day": place % 31,
        "risk": place / ROWS,
    }
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=10), name="trial")
    return vault.table(
        pa.table(rows),
        name="trial",
        version="1",
        keys={"arm": ["a", "b"], "ward": ["x", "y", "z"], "died": [False, True]},
        bounds={"age": (18, 100), "sbp": (70, 220), "stays": (0, 10), "day": (0, 30), "risk": (0, 1)},
        provenance={"batch": "ward"},
    )


def spent(table: Table) -> object:
    return table._gate.spent.epsilon  # type: ignore[attr-defined]


FORMULAS = {
    "sbp ~ age | ward": "random effects",
    "sbp ~ age + (1 | ward)": "random effects",
    "~ age": "no outcome",
    "sbp ~": "nothing after",
    "sbp ~ .": "all columns",
    "sbp ~ . + age": "all columns",
    "sbp": "with one ~",
    "sbp ~ age ~ ward": "with one ~",
    "sbp + age ~ ward": "one column before",
    "sbp ~ age +": "could not be read",
    "sbp ~ (age": "could not be read",
    "sbp ~ 2*age": "could not be read",
    "sbp ~ age, ward": "could not be read",
    "sbp ~ age**2": "asks for a power",
}
STUDIES = ("linear_regression", "logistic_regression", "poisson_regression")


@pytest.mark.parametrize("formula", FORMULAS)
def test_an_odd_formula_is_refused_in_words_that_say_what_is_understood(table: Table, formula: str) -> None:
    for study in STUDIES:
        with pytest.raises(InvalidInput) as refused:
            getattr(table, study)(formula)
        told = str(refused.value)
        assert FORMULAS[formula] in told
        assert "Understood is 'outcome ~ a + b'" in told
        assert "C(name)" in told
        assert "\x1b" not in told, "signs that colour a terminal"
        assert "\n" not in told
        assert "nothing was" in told.lower()
    assert spent(table) == 0


@pytest.mark.parametrize("formula", ["sbp ~ age:arm", "died ~ ward:arm", "stays ~ ward:arm", "sbp ~ age / arm"])
def test_a_product_without_its_parts_says_how_to_ask_for_it(table: Table, formula: str) -> None:
    study = {"sbp": table.linear_regression, "died": table.logistic_regression, "stays": table.poisson_regression}
    with pytest.raises(InvalidInput, match=r"asked without .*[Ss]ay \w+\*\w+"):
        study[formula.split()[0]](formula)
    assert spent(table) == 0


def test_names_in_backticks_and_dots_in_names_are_no_odd_formula(table: Table) -> None:
    assert table.linear_regression("`sbp` ~ `age`").question.query.design.names == ("Intercept", "age")  # type: ignore[attr-defined]
    with pytest.raises(NotDeclared, match=r"'blood\.pressure'"):
        table.linear_regression("sbp ~ blood.pressure")
    with pytest.raises(NotDeclared, match=r"'a \| b'"):
        table.linear_regression("sbp ~ `a | b`")


MISNAMED: dict[str, tuple[Callable[[Table], object], str, str]] = {
    "two_sample outcome": (lambda t: t.two_sample("deid", by="arm").release(**SPEND), "deid", "died"),
    "two_sample condition": (lambda t: t.two_sample(sf.col("sbpp") > 140, by="arm").release(**SPEND), "sbpp", "sbp"),
    "two_sample means": (lambda t: t.two_sample("sbpp", by="arm", test="welch"), "sbpp", "sbp"),
    "two_sample ranks": (lambda t: t.two_sample("sbpp", by="arm", test="rank"), "sbpp", "sbp"),
    "two_sample by": (lambda t: t.two_sample("died", by="amr"), "amr", "arm"),
    "two_sample groups": (lambda t: t.two_sample("died", by="amr", groups=("a", "b")), "amr", "arm"),
    "two_sample blocks": (lambda t: t.two_sample("died", by="arm", blocks="wrad"), "wrad", "ward"),
    "contingency rows": (lambda t: t.contingency("wrad", "arm"), "wrad", "ward"),
    "contingency columns": (lambda t: t.contingency("ward", "armm").release(**SPEND), "armm", "arm"),
    "linear outcome": (lambda t: t.linear_regression("sbpp ~ age"), "sbpp", "sbp"),
    "linear covariate": (lambda t: t.linear_regression("sbp ~ aeg"), "aeg", "age"),
    "linear factor": (lambda t: t.linear_regression("sbp ~ C(wrad)"), "wrad", "ward"),
    "robust outcome": (lambda t: t.linear_regression("sbpp ~ age", robust=True), "sbpp", "sbp"),
    "logistic outcome": (lambda t: t.logistic_regression("deid ~ age"), "deid", "died"),
    "logistic covariate": (lambda t: t.logistic_regression("died ~ wrad"), "wrad", "ward"),
    "logistic cuts": (lambda t: t.logistic_regression("died ~ age", cuts={"aeg": [18, 50, 99]}), "aeg", "age"),
    "poisson outcome": (lambda t: t.poisson_regression("stay ~ age"), "stay", "stays"),
    "poisson covariate": (lambda t: t.poisson_regression("stays ~ wrad"), "wrad", "ward"),
    "survival time": (lambda t: t.survival("dya", "died"), "dya", "day"),
    "survival computed time": (lambda t: t.survival(sf.col("dya") + 1, "died"), "dya", "day"),
    "survival event": (lambda t: t.survival("day", "deid").release(**SPEND), "deid", "died"),
    "survival group": (lambda t: t.survival("day", "died", by="amr"), "amr", "arm"),
    "area score": (lambda t: t.auc("rsik", "died"), "rsik", "risk"),
    "area outcome": (lambda t: t.auc("risk", "deid"), "deid", "died"),
    "calibration outcome": (lambda t: t.calibration("risk", "deid"), "deid", "died"),
    "batches value": (lambda t: t.compare_batches("sbpp"), "sbpp", "sbp"),
    "batches field": (lambda t: t.compare_batches("sbp", by="bacth"), "bacth", "batch"),
}


@pytest.mark.parametrize("case", MISNAMED)
def test_a_column_that_does_not_exist_is_named_beside_those_that_do(table: Table, case: str) -> None:
    asked, wrong, right = MISNAMED[case]
    with pytest.raises(SfumatoError) as refused:
        asked(table)
    told = str(refused.value)
    assert wrong in told
    assert f"Did you mean '{right}'?" in told
    assert right in told.split("Did you mean")[0], "those that there are"
    assert "nothing was" in told.lower()
    assert spent(table) == 0


def test_a_group_that_does_not_exist_is_named_beside_those_that_do(table: Table) -> None:
    with pytest.raises(NotDeclared, match=r"no declared group 'c' \(declared: a, b\)"):
        table.two_sample("died", by="arm", groups=("a", "c"))


@pytest.mark.parametrize("robust", ["HC3", "HC1", 1, None])
def test_a_kind_of_robust_standard_error_is_refused_with_the_reason(table: Table, robust: object) -> None:
    with pytest.raises(InvalidInput, match="leverage of each row"):
        table.linear_regression("sbp ~ age", robust=robust)  # type: ignore[arg-type]
    assert spent(table) == 0


@pytest.mark.parametrize("until", [31, 300, 30.5])
def test_survival_beyond_the_declared_bounds_is_refused_before_any_charge(table: Table, until: float) -> None:
    with pytest.raises(InvalidInput, match=r"beyond the declared bounds of day, 0 to 30"):
        table.survival("day", "died", until=until)
    assert spent(table) == 0
    assert table.survival("day", "died", until=30).question.query is not None
