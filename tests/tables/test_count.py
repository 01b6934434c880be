"""Count and its keys: what can be declared, what is refused, and the order of the cells."""

from itertools import product

import pytest

from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.core.query import Dataset, Query
from sfumato.engines.counts import KeyColumn, bounded_counts
from sfumato.engines.expressions import EXPRESSIONS, col
from sfumato.errors import InvalidInput, Unsupported
from sfumato.tables.queries.count import Count, Keys
from tests.laws.plans import load

VISITS = Dataset(name="visits", edition="1")
ZIP = Keys(column="zip", values=("b", "a", "区"))
WARD = Keys(column="ward", values=(3, -1))
URGENT = Keys(column="urgent", values=(True, False))
READER = Registry([Count, Keys, Dataset, *EXPRESSIONS])


def count(*by: Keys, where=None) -> Count:
    return Count(dataset=VISITS, where=where, by=by)


# ------------------------------------------------------------------------------------------------------- keys


def test_an_empty_key_list_is_refused() -> None:
    with pytest.raises(InvalidInput, match="key list of 'zip' is empty"):
        Keys(column="zip", values=())


@pytest.mark.parametrize(
    "values",
    [("a", 1), (1, True), (True, "x"), (1.0,), (None,), ("a", None), (b"a",), (("a",),)],
    ids=repr,
)
def test_keys_of_mixed_or_other_types_are_refused(values) -> None:
    with pytest.raises(InvalidInput, match="all text, all whole numbers, all dates, all times or all truth values"):
        Keys(column="zip", values=values)


@pytest.mark.parametrize("values", [("a", "b", "a"), (1, 1), (True, True)])
def test_a_value_named_twice_is_refused(values) -> None:
    with pytest.raises(InvalidInput, match="names a value twice"):
        Keys(column="zip", values=values)


@pytest.mark.parametrize("values", [(2**63,), (0, -(2**63) - 1), ("\ud800",), ("a", "\U0001f600\udfff")])
def test_a_value_that_no_column_can_hold_is_refused_before_any_charge(values) -> None:
    with pytest.raises(InvalidInput):
        Keys(column="zip", values=values)


def test_values_that_differ_in_bytes_are_different_keys() -> None:
    values = ("é", "e\u0301", "E", "e", "e ", "", "\x1f", "it's")
    assert Keys(column="zip", values=values).values == values
    assert Keys(column="ward", values=(2**63 - 1, -(2**63), 0)).values[0] == 2**63 - 1


# ------------------------------------------------------------------------------------------------------ count


def test_count_is_a_query() -> None:
    assert isinstance(count(), Query)
    assert count().measure == "count"


def test_a_column_is_grouped_by_once() -> None:
    with pytest.raises(InvalidInput, match="grouped by once only"):
        count(ZIP, WARD, Keys(column="zip", values=("other",)))


@pytest.mark.parametrize("name", ["count", "count_data_low", "count_data_high"])
def test_names_of_the_answers_columns_are_reserved(name: str) -> None:
    with pytest.raises(InvalidInput, match="must not be called"):
        count(WARD, Keys(column=name, values=(1,)))


def test_ten_million_cells_are_the_most() -> None:
    wide = Keys(column="a", values=tuple(range(10_000)))
    assert count(wide, Keys(column="b", values=tuple(range(1_000)))).size == 10**7
    with pytest.raises(InvalidInput, match=r"10,010,000 cells, more than 10,000,000; nothing was done"):
        count(wide, Keys(column="b", values=tuple(range(1_001))))


@pytest.mark.parametrize("by", [(), (ZIP,), (ZIP, WARD), (WARD, ZIP, URGENT)], ids=len)
def test_labels_are_the_product_in_order(by: tuple[Keys, ...]) -> None:
    query = count(*by)
    cells = list(product(*(keys.values for keys in by)))
    labels = query.labels()
    assert list(labels) == [keys.column for keys in by]
    assert query.size == len(cells)
    rows = list(zip(*labels.values(), strict=True)) if by else [()]
    assert rows == cells


@pytest.mark.parametrize("by", [(ZIP,), (ZIP, WARD), (WARD, ZIP, URGENT)], ids=len)
def test_the_engine_counts_in_the_order_of_the_labels(by: tuple[Keys, ...]) -> None:
    """The n-th cell gets n rows, so that any other order would show."""
    query = count(*by)
    columns = query.labels()
    cells = [dict(zip(columns, cell, strict=True)) for cell in zip(*columns.values(), strict=True)]
    plain = {"person": "p", "zip": "b", "ward": 3, "urgent": True, "age": None}
    rows = [(0, *{**plain, **cell}.values()) for place, cell in enumerate(cells) for _ in range(place)]
    keys = [KeyColumn(column=it.column, values=it.values) for it in by]
    assert bounded_counts(load(rows, "places"), where=None, keys=keys, share=None) == list(range(query.size))


# -------------------------------------------------------------------------------------------------- documents


@pytest.mark.parametrize(
    "query",
    [
        count(),
        count(ZIP),
        count(WARD, URGENT, where=(col("age") >= 65) & ~col("zip").isnull()),
        count(ZIP, where=col("zip").isin(["a", "b"]) | (col("weight") < 0.1)),
    ],
    ids=range(4),
)
def test_documents_are_read_back_as_they_were(query: Count) -> None:
    text = canonical(encode(query))
    assert READER.decode(parse(text)) == query
    assert canonical(encode(READER.decode(parse(text)))) == text


def test_true_and_one_stay_apart_in_documents() -> None:
    ones, truths = (canonical(encode(count(Keys(column="x", values=(value,))))) for value in (1, True))
    assert ones != truths
    assert type(READER.decode(parse(truths)).by[0].values[0]) is bool
    assert type(READER.decode(parse(ones)).by[0].values[0]) is int


def test_documents_that_were_tampered_with_are_refused() -> None:
    body = encode(count(ZIP))
    for change, error in (
        ({"version": Count.VERSION + 1}, Unsupported),
        ({"kind": "query.total"}, Unsupported),
        ({"by": [encode(ZIP), encode(ZIP)]}, InvalidInput),
        ({"by": [{**encode(ZIP), "values": []}]}, InvalidInput),
        ({"by": [{**encode(ZIP), "values": ["a", 1]}]}, InvalidInput),
        ({"by": encode(ZIP)}, InvalidInput),
        ({"where": "zip = 'a'"}, InvalidInput),
        ({"extra": 1}, InvalidInput),
    ):
        with pytest.raises(error):
            READER.decode({**body, **change})
    del body["where"]
    with pytest.raises(InvalidInput, match="where is missing"):
        READER.decode(body)
