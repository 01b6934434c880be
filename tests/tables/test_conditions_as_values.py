"""The mean of a condition is a share, its sum a number of rows; in SQL what is unknown is left out, as SQL does."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.tables.table import Table

ROWS = pa.table(
    {"id": list(range(6)), "x": pa.array([1, 5, 9, None, 7, 2]), "flag": [True, False, None, True, True, False]}
)


@pytest.fixture(scope="module")
def vault() -> sf.Vault:
    return sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="clinic")


@pytest.fixture(scope="module")
def table(vault: sf.Vault) -> Table:
    return vault.table(
        ROWS, name="visits", version="1", limit=sf.Limit(groups=1, rows_per_group=1), bounds={"x": (0, 10)}
    )


def test_mean_and_sum_of_a_condition_are_the_share_and_the_count(table: Table) -> None:
    large = sf.col("x") >= 5
    asked = table.agg(share=sf.mean(large), n=sf.sum(large)).query.measures
    assert asked == table.agg(share=sf.proportion(large), n=sf.count(large)).query.measures
    assert table.mean(large).query.names == ("mean",)
    assert table.sum(large).query.names == ("sum",)
    release = table.sum(large).release(epsilon=1000)
    assert release["sum"].values == (3,)


@pytest.mark.parametrize(
    ("value", "share", "number"),
    [
        ("x >= 5", 3 / 5, 3),
        ("NOT x >= 5", 2 / 5, 2),
        ("x BETWEEN 2 AND 7 OR x IS NULL", 4 / 6, 4),
        ("flag = TRUE", 3 / 5, 3),
        ("(x IN (1, 2))", 2 / 5, 2),
    ],
)
def test_sql_takes_conditions_as_values_and_leaves_out_what_is_unknown(
    table: Table, value: str, share: float, number: int
) -> None:
    asked = table.sql("SELECT AVG(?) AS share, SUM(?) AS n FROM visits".replace("?", value))
    release = asked.release(epsilon=1000, fresh=True)
    assert float(release["share"].values[0]) == pytest.approx(share, abs=0.02)
    assert round(release["n"].values[0]) == number


def test_a_column_of_truth_values_is_a_condition_by_itself(table: Table) -> None:
    same = table.where(sf.col("flag") == True)  # noqa: E712
    assert table.where(sf.col("flag")).predicate == same.predicate
    assert table.where(sf.col("flag")).count().release(epsilon=1000).values == (3,)
    with pytest.raises(InvalidInput, match="holds whole numbers and cannot be compared"):
        table.where(sf.col("x")).count().release(epsilon=1)


def test_a_filter_goes_with_a_condition(table: Table) -> None:
    release = table.sql("SELECT SUM(x >= 5) FILTER (WHERE flag) AS n FROM visits").release(epsilon=1000)
    assert release["n"].values == (1,)
