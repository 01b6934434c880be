"""Groups: products of keys, computed groups, the rest, histograms; each row counts in one cell or in none."""

from datetime import date
from itertools import product

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.tables import Table
from sfumato.tables.grouping import MOST_CELLS, cells_of, check_grouping, check_size, labels_of
from sfumato.tables.keys import Keys

EXACTLY = 10_000  # an ε at which noise is 0 but for a chance below e^-1000
SEX, WARD = Keys(column="sex", values=("F", "M"), other="else"), Keys(column="ward", values=(3, 1))
ROWS = [
    ("F", 1, 10, date(2026, 1, 1)),
    ("F", 3, 40, date(2026, 1, 2)),
    ("M", 1, 39, None),
    (None, 1, 64, date(2026, 1, 1)),
    ("X", 2, 65, date(2026, 5, 5)),
    ("F", None, None, date(2026, 1, 1)),
    ("f", 3, -1, date(2026, 1, 2)),
]


def table() -> Table:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="trial")
    columns = dict(zip(("sex", "ward", "age", "day"), zip(*ROWS, strict=True), strict=True))
    days = [date(2026, 1, 1), date(2026, 1, 2)]
    return vault.table(
        pa.table({name: list(values) for name, values in columns.items()}),
        name="visits",
        version="1",
        keys={"sex": ["F", "M"], "ward": [3, 1], "day": days},
        bounds={"age": (0, 120)},
    )


def test_cells_are_the_product_and_the_last_key_runs_fastest() -> None:
    assert cells_of(()) == 1
    assert cells_of((SEX, WARD)) == 6
    labels = labels_of((SEX, WARD))
    assert list(zip(labels["sex"], labels["ward"], strict=True)) == list(product(("F", "M", "else"), (3, 1)))
    assert labels_of(()) == {}


def test_columns_of_one_name_are_refused() -> None:
    check_grouping((SEX, WARD), ("n", "mean"))
    for by, names, words in (
        ((SEX, SEX), ("n",), "grouped by once only"),
        ((SEX,), ("n", "n"), "two measures have one name"),
        ((SEX,), ("sex",), "must not be called sex"),
        ((Keys(column="n_data_low", values=("a",)),), ("n",), "must not be called n_data_low"),
        ((Keys(column="n_data_high", values=("a",)),), ("n", "m"), "must not be called n_data_high"),
        ((), ("n", "n_data_low"), "the end of another one's interval"),
    ):
        with pytest.raises(InvalidInput, match=words):
            check_grouping(by, names)
    check_grouping((Keys(column="low", values=("a",)),), ("n", "m"))


def test_an_answer_has_at_most_ten_million_numbers() -> None:
    check_size(MOST_CELLS)
    with pytest.raises(InvalidInput, match=r"10,000,001 cells, more than 10,000,000; nothing was done"):
        check_size(MOST_CELLS + 1)


def test_rows_with_other_values_count_in_the_rest_or_nowhere() -> None:
    counted = {name: table().group_by("sex", other=name).count().release(epsilon=EXACTLY) for name in (None, "rest")}
    assert counted[None].values == (3, 1)
    assert counted["rest"].values == (3, 1, 3)
    assert counted["rest"].to_arrow()["sex"].to_pylist() == ["F", "M", "rest"]


def test_groups_that_are_computed() -> None:
    band = sf.col("age").cut([0, 40, 65])
    release = table().group_by(band=band).count().release(epsilon=EXACTLY)
    assert dict(zip(release.to_arrow()["band"].to_pylist(), release.values, strict=True)) == {
        "[0, 40)": 2,
        "[40, 65)": 2,
    }
    rest = table().group_by(band=band, other="beyond").count().release(epsilon=EXACTLY)
    assert rest.values == (2, 2, 3)
    both = table().group_by("sex", band=band).count().release(epsilon=EXACTLY)
    assert both.to_arrow()["sex"].to_pylist() == ["F", "F", "M", "M"]
    assert both.values == (1, 1, 1, 0)


def test_days_are_grouped_by() -> None:
    release = table().group_by("day").count().release(epsilon=EXACTLY)
    assert release.to_arrow()["day"].to_pylist() == ["2026-01-01", "2026-01-02"]
    assert release.values == (3, 2)


def test_a_histogram_counts_between_edges() -> None:
    release = table().histogram("age", [0, 10, 40, 65, 120]).release(epsilon=EXACTLY)
    assert release.values == (0, 2, 2, 1)
    assert list(release.to_arrow().column_names) == ["age", "count", "count_data_low", "count_data_high"]
    doubled = table().group_by("sex").histogram(sf.col("age") * 2, [0, 80, 1000]).release(epsilon=EXACTLY)
    assert doubled.to_arrow()["bin"].to_pylist() == ["[0, 80)", "[80, 1000)"] * 2
    assert doubled.values == (1, 1, 1, 0)


def test_what_is_computed_must_say_its_values() -> None:
    with pytest.raises(NotDeclared, match="does not follow from it; nothing was done"):
        table().group_by(double=sf.col("age") * 2)
    with pytest.raises(InvalidInput, match="takes a computed value such as"):
        table().group_by(age=sf.col("age"))
    with pytest.raises(InvalidInput, match="takes names of columns and was given"):
        table().group_by(sf.col("age").cut([0, 1]))  # type: ignore[arg-type]


def test_a_group_of_one_name_in_two_ways_is_refused() -> None:
    with pytest.raises(InvalidInput, match="grouped by once only"):
        table().group_by("sex", sex=sf.col("age").cut([0, 40])).count()
