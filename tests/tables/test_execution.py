"""A query is checked against the columns before the charge, and counted after it."""

import pyarrow as pa
import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import family, record, user
from sfumato.engines.expressions import col
from sfumato.engines.sources import Source
from sfumato.errors import InvalidInput, Unsupported
from sfumato.tables.execution import Beside, check_columns, exact_numbers
from sfumato.tables.queries.count import Count, Keys

VISITS = Dataset(name="visits", edition="1")
SOURCE = Beside(
    own=Source(
        pa.table(
            {
                "id": ["p", "p", "p", "q", None],
                "zip": ["a", "a", "b", "b", "b"],
                "ward": pa.array([1, 2, 3, 1, 1], pa.int16()),
                "urgent": [True, False, None, True, True],
                "weight": [0.5, None, 1.5, 2.5, 3.5],
                "when": pa.array([0, 1, 2, 3, 4], pa.timestamp("us")),
                "ticket": pa.array([1, 2, 3, 4, 5], pa.uint64()),
            }
        )
    )
)
PERSON = user("id", relation="add/remove")
ROW = record(relation="replace")


def count(*by: Keys, where=None) -> Count:
    return Count(dataset=VISITS, where=where, by=by)


def keys(column: str, *values: str | int | bool) -> Keys:
    return Keys(column=column, values=values)


@pytest.mark.parametrize("unit", [user("ssn", relation="replace"), family(2, "ssn", relation="add/remove")])
def test_an_unknown_unit_column_is_named(unit) -> None:
    with pytest.raises(
        InvalidInput, match=r"column 'ssn' identifies the unit, and the table does not have it.*id, ticket, urgent"
    ):
        check_columns(count(), SOURCE, unit)


@pytest.mark.parametrize("column", ["weight", "urgent", "when", "ticket"])
def test_a_unit_column_must_compare_exactly(column: str) -> None:
    with pytest.raises(Unsupported, match=f"unit column '{column}' must hold text or whole numbers"):
        check_columns(count(), SOURCE, user(column, relation="add/remove"))


def test_an_unknown_key_column_is_named() -> None:
    with pytest.raises(InvalidInput, match="no column 'region' to group by"):
        check_columns(count(keys("region", "a")), SOURCE, PERSON)


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("zip", 1, "'zip' are whole numbers and the column holds texts"),
        ("zip", True, "'zip' are truth values and the column holds texts"),
        ("ward", "1", "'ward' are texts and the column holds whole numbers"),
        ("ward", True, "'ward' are truth values and the column holds whole numbers"),
        ("urgent", 1, "'urgent' are whole numbers and the column holds truth values"),
        ("weight", 1, "'weight' are whole numbers and the column holds numbers"),
        ("when", "2026", "'when' are texts and the column holds times"),
        ("ticket", 1, "'ticket' are whole numbers and the column holds unsupported types"),
    ],
)
def test_keys_must_have_the_type_of_their_column(column: str, value, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        check_columns(count(keys(column, value)), SOURCE, ROW)


def test_predicates_are_checked_too() -> None:
    with pytest.raises(InvalidInput, match="no column 'age'"):
        check_columns(count(where=col("age") > 1), SOURCE, ROW)


def test_what_fits_is_counted() -> None:
    query = count(keys("zip", "b", "a"), where=~(col("weight") > 3))
    limit = Limit(groups=2, rows_per_group=1)
    check_columns(query, SOURCE, PERSON)
    asked = {"beside": SOURCE, "secret": "0"}
    assert exact_numbers(query, unit=PERSON, limit=limit, **asked) == [2, 1]
    assert exact_numbers(query, unit=family(2, "id", relation="replace"), limit=limit, **asked) == [2, 1]
    assert exact_numbers(query, unit=ROW, limit=None, **asked) == [2, 2]
    assert exact_numbers(count(), unit=PERSON, limit=Limit(groups=1, rows_per_group=2), **asked) == [3]
    assert exact_numbers(count(keys("ward", 3, 1)), unit=ROW, limit=None, **asked) == [1, 3]
    assert exact_numbers(count(keys("urgent", False, True)), unit=ROW, limit=None, **asked) == [1, 3]
