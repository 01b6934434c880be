"""Every study of a table refuses several rows of a person, in the same words and before anything is read or spent."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import Refused
from sfumato.tables.table import Table

STUDIES: dict[str, Callable[[Table], object]] = {
    "batches": lambda t: t.compare_batches("crp"),
    "two samples": lambda t: t.two_sample("crp", by="arm"),
    "contingency": lambda t: t.contingency("arm", "died"),
    "linear": lambda t: t.linear_regression(outcome="crp", covariates=["week"]),
    "logistic": lambda t: t.logistic_regression(outcome="died", covariates=["arm"]),
    "survival": lambda t: t.survival("week", "died", by="arm"),
    "score": lambda t: t.auc("crp", "died"),
}


def persons(limit: sf.Limit) -> tuple[sf.Vault, Table]:
    generator = np.random.default_rng(3)
    rows = pa.table(
        {
            "id": np.repeat(np.arange(40), 2),
            "arm": np.array(["a", "b"])[generator.integers(0, 2, 80)],
            "lot": np.array(["L0", "L1"])[generator.integers(0, 2, 80)],
            "week": generator.integers(0, 10, 80),
            "died": generator.random(80) < 0.5,
            "crp": generator.random(80),
        }
    )
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
    table = vault.table(
        rows,
        name="t",
        version="1",
        limit=limit,
        keys={"arm": ["a", "b"], "lot": ["L0", "L1"], "died": [False, True]},
        bounds={"week": (0, 9), "crp": (0, 1)},
        provenance={"batch": "lot"},
    )
    return vault, table


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("limit", [sf.Limit(groups=1, rows_per_group=2), sf.Limit(groups=2, rows_per_group=1)])
def test_several_rows_of_a_person_are_refused_in_the_same_words(study: str, limit: sf.Limit) -> None:
    vault, table = persons(limit)
    if study == "linear" and limit.rows_per_group == 1:  # all rows are one group there
        STUDIES[study](table)
        return
    with pytest.raises(Refused, match="takes one row of each person, and here a person can have several rows, up to 2"):
        STUDIES[study](table)
    assert vault.spent.epsilon == 0


@pytest.mark.parametrize("study", STUDIES)
def test_one_row_of_a_person_is_taken(study: str) -> None:
    _, table = persons(sf.Limit(groups=1, rows_per_group=1, row="visit"))
    STUDIES[study](table)
    many = persons(sf.Limit(groups=2, rows_per_group=2))[1]
    single = many.per_person(
        arm=sf.first("arm", by="week"),
        lot=sf.first("lot", by="week"),
        week=sf.max("week"),
        died=sf.any(sf.col("died") == True),  # noqa: E712 - a condition
        crp=sf.mean("crp"),
    ).with_keys(arm=["a", "b"], lot=["L0", "L1"], died=[False, True])
    STUDIES[study](single)
