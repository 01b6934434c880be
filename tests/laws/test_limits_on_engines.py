"""Persons by what they have, and layers of rows, on PostgreSQL and Spark: the same whole numbers as on DuckDB."""

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import user
from sfumato.engines.expressions import col
from sfumato.engines.sources import Source
from sfumato.tables.clamped import Clamped
from sfumato.tables.execution import Beside, exact_numbers
from sfumato.tables.keys import Keys
from sfumato.tables.queries.contributions import Contributions
from sfumato.tables.queries.layered_count import LayeredCount
from sfumato.tables.queries.limit_suggestion import LimitSuggestion
from sfumato.tables.queries.magnitudes import Magnitudes
from tests.engines.loading import on

pytestmark = pytest.mark.no_cover

DATA = Dataset(name="rows", edition="1")
BY = (Keys(column="place", values=("a", "ä"), other="else"),)
PEOPLE = ["", "p", "P", "é", "e\u0301", "区", "it's", None]
VALUES = [0.0, -0.0, 1.0, -1.5, 40.0, 64.0, 1e300, -1e300, float("inf"), float("nan"), None, 5e-324, 0.75, -48.0]
LIMIT = Limit(groups=3, rows_per_group=2)


def rows() -> pa.Table:
    places = ["a", "ä", "A", None]
    listed = [
        (PEOPLE[number % len(PEOPLE)], places[number * number % 7 % 4], VALUES[number * 5 % len(VALUES)])
        for number in range(150)
        if number % 8 <= number // 20
    ]
    kinds = (pa.string(), pa.string(), pa.float64())
    return pa.table(
        {
            name: pa.array(column, kind)
            for name, column, kind in zip(("id", "place", "x"), zip(*listed, strict=True), kinds, strict=True)
        }
    )


def queries() -> list[Any]:
    of = Clamped(value=col("x").node, low=Fraction(-64), high=Fraction(64))
    return [
        Contributions(dataset=DATA, most=9),
        Contributions(dataset=DATA, most=4, by=BY, where=col("x") > 0),
        LimitSuggestion(dataset=DATA, most=20, spends=(Fraction(1),)),
        LimitSuggestion(dataset=DATA, most=6, spends=(Fraction(1),), by=BY),
        LayeredCount(dataset=DATA, within=2, uncut_to=7),
        Magnitudes(dataset=DATA, of=of, octaves=4),
        LayeredCount(dataset=DATA, within=2, uncut_to=5, share=Fraction(1, 3), by=BY),
    ]


FEW = slice(1, 2)  # Spark takes seconds for each
ALL = slice(None)


def answers(source: Source, some: slice) -> list[object]:
    unit = user("id", relation="add/remove")
    return [
        exact_numbers(query, Beside(own=source), unit=unit, limit=LIMIT, secret="s")  # noqa: S106
        for query in queries()[some]
    ]


@pytest.mark.parametrize(
    ("engine", "some"),
    [("PostgreSQL", ALL), pytest.param("Spark", FEW, id="Spark"), pytest.param("Spark", ALL, marks=pytest.mark.long)],
)
def test_every_engine_counts_the_same_persons_and_rows(
    engine: str, some: slice, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    expected = answers(Source(rows()), some)
    assert len({str(one) for one in expected}) == len(expected)
    assert answers(on(engine, rows(), "limits", url=url, session=session), some) == expected
