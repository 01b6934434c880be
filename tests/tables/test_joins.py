"""Joins: what stands beside a row, on every engine; what is refused, and what a join makes public."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import family, record, user
from sfumato.engines.expressions import EXPRESSIONS, col
from sfumato.engines.sources import Source
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.tables.clamped import Clamped
from sfumato.tables.execution import Beside, check_columns, exact_numbers
from sfumato.tables.joins import Join, check_joins, prefixed
from sfumato.tables.keys import Keys
from sfumato.tables.measures.total import Total
from sfumato.tables.public import PublicTable
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count
from sfumato.tables.queries.partition_selection import PartitionSelection
from sfumato.tables.queries.quantiles import Quantiles
from tests.engines.loading import on
from tests.laws.scenarios import SECRET

EXACTLY = 10_000  # an ε at which noise is 0 but for a chance below e^-1000
VISITS, LABS, HOSPITALS = (Dataset(name=name, edition="1") for name in ("visits", "labs", "hospitals"))
ON_PERSON = Join(dataset=LABS, on=(("id", "id"),), public=False)
ON_BOTH = Join(dataset=LABS, on=(("id", "id"), ("hosp", "place")), public=False)
LOOKED_UP = Join(dataset=HOSPITALS, on=(("hosp", "code"),), public=True)
ROOMY = Limit(groups=100, rows_per_group=1000)
TIGHT = Limit(groups=4, rows_per_group=10)
PERSON = user("id", relation="add/remove")
ROWS = [
    ("p", "a", 1),
    ("p", "b", 2),
    ("P", "a", 1),
    ("q", "é", 3),
    ("q", "e\u0301", 4),
    ("q", None, 5),
    (None, "a", 6),
    ("r", "A", 7),
    ("", "", 8),
]
RESULTS = [
    ("p", "a", 1.0),
    ("p", "a", 2.0),
    ("p", "c", None),
    ("q", "é", 3.0),
    ("", "", 4.0),
    (None, "a", 5.0),
    ("s", "a", 6.0),
]
CODES = [
    ("a", "north", 10),
    ("b", "south", 20),
    ("é", "north", 30),
    ("", None, 40),
    (None, "south", 50),
    ("x", "west", 0),
]


def frame(rows: list[tuple[Any, ...]], **columns: pa.DataType) -> pa.Table:
    return pa.table(
        {name: pa.array([row[place] for row in rows], kind) for place, (name, kind) in enumerate(columns.items())}
    )


V = frame(ROWS, id=pa.string(), hosp=pa.string(), day=pa.int64())
L = frame(RESULTS, id=pa.string(), place=pa.string(), result=pa.float64())
H = frame(CODES, code=pa.string(), region=pa.string(), beds=pa.int64())
PUBLIC = PublicTable.of(H, HOSPITALS)


@pytest.fixture(params=["DuckDB", "PostgreSQL", pytest.param("Spark", marks=pytest.mark.long)])
def beside(request: pytest.FixtureRequest) -> Beside:
    """The three tables on one engine."""
    engine = request.param
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    own, labs = (on(engine, data, f"joined_{place}", url=url, session=session) for place, data in enumerate((V, L)))
    return Beside(own=own, private={LABS: labs}, public={HOSPITALS: PUBLIC})


def pairs() -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Visits with results of the same person, by hand: nothing is equal to what is missing."""
    return [(row, other) for row, other in product(ROWS, RESULTS) if row[0] is not None and row[0] == other[0]]


@pytest.mark.few(1)
def test_every_engine_joins_as_by_hand(beside: Beside) -> None:
    asked = {"unit": PERSON, "limit": ROOMY, "secret": SECRET}
    region = Keys(column="hospitals.region", values=("north", "south", "west"))
    regions = {code: place for code, place, _ in CODES if code is not None}
    looked_up = [regions.get(row[1]) for row in ROWS if row[0] is not None and row[1] in regions]
    count = Count(dataset=VISITS, by=(region,), joins=(LOOKED_UP,))
    check_columns(count, beside, PERSON)
    assert exact_numbers(count, beside, **asked) == [looked_up.count(value) for value in region.values]
    assert exact_numbers(Count(dataset=VISITS, joins=(ON_PERSON,)), beside, **asked) == [len(pairs())]
    both = [pair for pair in pairs() if pair[0][1] == pair[1][1]]
    assert exact_numbers(Count(dataset=VISITS, joins=(ON_BOTH,)), beside, **asked) == [len(both)]
    filtered = Count(dataset=VISITS, where=col("labs.result") > 1, joins=(ON_PERSON,))
    assert exact_numbers(filtered, beside, **asked) == [sum((other[2] or 0) > 1 for _, other in pairs())]
    result = Clamped(value=col("labs.result").node, low=Fraction(0), high=Fraction(8))
    total = Aggregate(dataset=VISITS, measures=(Total(name="sum", of=result),), joins=(ON_PERSON, LOOKED_UP))
    check_columns(total, beside, PERSON)
    kept = [other[2] or 0 for row, other in pairs() if row[1] in regions]
    assert exact_numbers(total, beside, **asked) == [sum(kept) / 8 * 2**30]
    median = Quantiles(dataset=VISITS, of=result, levels=(Fraction(1, 2),), joins=(ON_PERSON,))
    ((values, rows),) = exact_numbers(median, beside, **asked)
    assert sum(rows) == sum(other[2] is not None for _, other in pairs())
    assert values[0] == 2**30 // 8
    found = PartitionSelection(dataset=VISITS, over=("labs.place",), joins=(ON_PERSON,))
    assert exact_numbers(found, beside, **asked) == {("",): 1, ("a",): 1, ("c",): 1, ("é",): 1}
    assert exact_numbers(count, beside, unit=record(relation="replace"), limit=None, secret=SECRET)[0] == 4


def test_the_limit_holds_for_what_the_join_made(beside: Beside) -> None:
    """Person p has 2 visits and 3 results, 6 pairs; the limit of the table that is asked counts."""
    for rows, expected in ((1, 3), (2, 5), (100, len(pairs()))):
        limit = Limit(groups=1, rows_per_group=rows)
        count = Count(dataset=VISITS, joins=(ON_PERSON,))
        found = exact_numbers(count, beside, unit=family(2, "id", relation="replace"), limit=limit, secret=SECRET)
        assert found == [expected] == [sum(min(rows, n) for n in (6, 3, 1))]


# ---------------------------------------------------------------------------------------------- the public face


def world() -> tuple[sf.Vault, Any, Any, Any]:
    vault = sf.Vault(unit=PERSON, budget=sf.Budget(epsilon=10**6), name="trial")
    visits = vault.table(V, name="visits", version="1", limit=TIGHT, bounds={"day": (0, 10)}, keys={"hosp": ["a", "b"]})
    labs = vault.table(L, name="labs", version="1", limit=TIGHT, bounds={"result": (0, 8)}, keys={"place": ["a", "c"]})
    return vault, visits, labs, vault.public(H, name="hospitals")


def test_what_a_join_brings_along_is_declared_by_its_name() -> None:
    _, visits, labs, hospitals = world()
    joined = visits.join(hospitals, on={"hosp": "code"}).join(labs, on="id")
    assert set(joined.keys) == {
        "hosp",
        "hospitals.code",
        "hospitals.region",
        "hospitals.beds",
        "labs.place",
    }
    assert joined.keys["hospitals.region"].values == ("north", "south", "west")
    assert joined.bounds == {
        "day": (0, 10),
        "hospitals.beds": (0, 50),
        "labs.result": (0, 8),
    }
    assert joined.n_units is None
    assert (visits.joins, len(joined.joins)) == ((), 2)


@pytest.mark.long
def test_joined_answers_by_the_public_face() -> None:
    vault, visits, labs, hospitals = world()
    by_region = visits.join(hospitals, on={"hosp": "code"}).group_by("hospitals.region")
    release = by_region.agg(n=sf.count(), beds=sf.mean("hospitals.beds")).release(epsilon=EXACTLY)
    assert [round(float(value)) for value in release["n"].values] == [3, 1, 0]
    assert [round(float(value)) for value in release["beds"].values[:2]] == [17, 20]
    together = visits.join(labs, on="id")
    assert together.group_by("labs.place").count().release(epsilon=EXACTLY).values == (4, 2)
    assert together.group_by("labs.place", other="rest").count().release(epsilon=EXACTLY).values == (4, 2, 4)
    assert together.find_keys("labs.place", counted=False).query.joins == together.joins
    assert together.where(sf.col("labs.place") == "c").persons().release(epsilon=EXACTLY)["persons"].values == (1,)
    assert together.median("labs.result").release(epsilon=EXACTLY)["median"].values[0] == pytest.approx(2, abs=1)
    assert together.marginals(["hosp"], ["labs.place"]).release(epsilon=EXACTLY).values == (3, 3, 4, 2)
    assert together.group_by("labs.place").top(1).release(epsilon=EXACTLY)["labs.place"].values == ("a",)
    certificate = release.certificate.document
    assert certificate["statement"]["query"]["joins"][0]["public"] is True  # type: ignore[index, call-overload]
    assert vault.spent.epsilon == 7 * EXACTLY


def test_columns_are_paired_by_name_by_mapping_or_by_list() -> None:
    _, visits, labs, _ = world()
    pairs = (("id", "id"), ("hosp", "place"))
    ways: list[Any] = [dict(pairs), list(pairs), ["id", ("hosp", "place")]]
    assert {visits.join(labs, on=on).joins for on in ways} == {(Join(dataset=LABS, on=pairs, public=False),)}
    assert visits.join(labs, on="id").joins == visits.join(labs, on=["id"]).joins == (ON_PERSON,)


def test_a_table_beside_itself_gives_the_pairs_of_each_person() -> None:
    _, visits, _, _ = world()
    release = visits.join(visits, on="id").count().release(epsilon=EXACTLY)
    assert release.values == (4 + 1 + 9 + 1 + 1,)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda v, s, h: v.join(s, on={"hosp": "place"}).count(), Refused, "does not ask for the same 'id'"),
        (lambda v, s, h: v.join(h, on="hosp"), InvalidInput, r"'hospitals' has no column 'hosp'.*It has code, region"),
        (lambda v, s, h: v.join(h, on={"hosp": "region"}), InvalidInput, "the same region more than once"),
        (lambda v, s, h: v.join(h, on={"nope": "code"}).count(), InvalidInput, "the join asks for 'nope'"),
        (lambda v, s, h: v.join(h, on={"day": "code"}).count(), InvalidInput, "'day' and 'code' cannot be joined"),
        (lambda v, s, h: v.join(s, on={"id": "id", "day": "nope"}).count(), InvalidInput, "'nope', which 'labs'"),
        (lambda v, s, h: v.join(s, on={"id": "id", "day": "result"}).count(), InvalidInput, "cannot be joined"),
        (lambda v, s, h: v.join(s, on="id").join(s, on="id").count(), InvalidInput, "two joined tables have one name"),
        (lambda v, s, h: v.join(s.group_by("place"), on="id"), InvalidInput, "as it was declared; nothing was done"),
        (lambda v, s, h: v.join(world()[2], on="id"), InvalidInput, "a table of the same vault"),
        (lambda v, s, h: v.join(s, on="id").group_by("labs.id"), NotDeclared, "'labs.id' are not declared"),
        (lambda v, s, h: v.join(s, on="id").mean("labs.place"), NotDeclared, "range of labs.place"),
    ],
)
def test_a_join_that_does_not_fit_is_refused_and_costs_nothing(
    change: Callable[..., Any], error: type[Exception], words: str
) -> None:
    vault, *tables = world()
    with pytest.raises(error, match=words):
        change(*tables).release(epsilon=1)
    assert vault.spent.epsilon == 0


# ---------------------------------------------------------------------------------------------------- documents


def test_a_join_names_what_must_be_equal() -> None:
    with pytest.raises(InvalidInput, match="a join needs the columns that must be equal"):
        Join(dataset=LABS, on=(), public=False)
    assert prefixed(LABS, "result") == "labs.result"


@pytest.mark.parametrize("unit", [PERSON, family(3, "id", relation="replace")])
def test_persons_are_joined_on_themselves_alone(unit: Any) -> None:
    check_joins((ON_PERSON,), unit)
    check_joins((ON_BOTH, LOOKED_UP), unit)
    other = type(unit)(**{**{name: getattr(unit, name) for name in unit.__slots__}, "column": "place"})
    with pytest.raises(Refused, match="does not ask for the same 'place'"):
        check_joins((ON_PERSON,), other)


def test_documents_of_joins_are_read_back() -> None:
    reader = Registry([Count, Join, Keys, Dataset, *EXPRESSIONS])
    query = Count(dataset=VISITS, joins=(ON_BOTH, LOOKED_UP))
    text = canonical(encode(query))
    assert reader.decode(parse(text)) == query
    for change in ({"on": []}, {"on": [["id"]]}, {"public": 1}, {"public": None}, {"dataset": "labs"}):
        body: Any = parse(text)
        body["joins"][0] |= change
        with pytest.raises(InvalidInput):
            reader.decode(body)


def test_columns_are_told_without_reading_a_row() -> None:
    beside = Beside(own=Source(V), private={LABS: Source(L)}, public={HOSPITALS: PUBLIC})
    theirs = ["labs.id", "labs.place", "labs.result", "hospitals.code", "hospitals.region", "hospitals.beds"]
    assert list(beside.columns((ON_PERSON, LOOKED_UP))) == ["id", "hosp", "day", *theirs]


def test_a_left_join_keeps_every_row_once_and_no_neighbour_moves_it_by_more() -> None:
    """Each row, added or removed, moves the counts by as much as is stated, and by no more."""
    by = (Keys(column="hospitals.region", values=("north", "south", "west")),)
    join = Join(dataset=HOSPITALS, on=(("hosp", "code"),), public=True, content=PUBLIC.content, unmatched=True)
    unit = record(relation="add/remove")
    none = col("hospitals.region").isnull()
    found = {}
    for query in (
        Count(dataset=VISITS, where=None, by=(), joins=(join,)),
        Count(dataset=VISITS, where=none, by=(), joins=(join,)),
        Count(dataset=VISITS, where=None, by=by, joins=(join,)),
    ):
        stated = query.sensitivity(unit, None).l1.value
        tables = [V, *(pa.concat_tables([V.slice(0, place), V.slice(place + 1)]) for place in range(len(V)))]
        numbers = [
            exact_numbers(
                query, Beside(own=Source(rows), public={HOSPITALS: PUBLIC}), unit=unit, limit=None, secret=SECRET
            )
            for rows in tables
        ]
        whole, *others = numbers
        moved = [sum(abs(a - b) for a, b in zip(whole, each, strict=True)) for each in others]  # type: ignore[call-overload]
        assert max(moved) == stated
        found[query] = whole
    assert list(found.values()) == [[9], [4], [4, 1, 0]]


def test_a_left_join_of_a_private_table_is_refused() -> None:
    with pytest.raises(InvalidInput, match="beside a public table only"):
        Join(dataset=LABS, on=(("id", "id"),), public=False, unmatched=True)
