"""Keys that nobody declared: what a person, a row or another person moves, by brute force; the same on every engine."""

from collections import Counter
from collections.abc import Callable
from datetime import date
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from sfumato.core.limits import Limit
from sfumato.core.units import Relation
from sfumato.engines.counts import Share
from sfumato.engines.expressions import Expression, col
from sfumato.engines.partition_selection import partition_counts, persons_by_key
from sfumato.engines.sources import Source
from sfumato.errors import InvalidInput, Unsupported
from tests.engines.loading import on
from tests.engines.truth import holds
from tests.laws.neighbours import Neighbours, Rows, Visit, around_persons, around_records, fillings
from tests.laws.plans import keyed_hash, load, loaded

SECRET = "0f" * 16
ENGINES = ["DuckDB", "PostgreSQL", pytest.param("Spark", marks=pytest.mark.long)]
ZIPS = ("a", "b", "é", "e\u0301", "")
VISITS = [
    Visit(person=None, zip=zip_code, ward=ward, urgent=None, age=70)
    for zip_code, ward in [("a", 1), ("b", 1), ("b", 2), ("", 10), (None, 1), ("a", None)]
]
CROWD = tuple(visit._replace(person=f"p{number}") for number in range(5) for visit in VISITS[number % 3 :])
Key = tuple[Any, ...]
Place = Callable[[pa.Table, str], Source]


def share_of(groups: int, rows: int = 1) -> Share:
    return Share(column="person", limit=Limit(groups=groups, rows_per_group=rows), secret=SECRET)


def by_world(around: Neighbours, columns: list[str], share: Share | None) -> list[Counter[Key]]:
    """The counts of every world, by the engine's plan over all of them at once."""
    found = persons_by_key(loaded(around), where=None, columns=columns, share=share, world="world")
    counts: list[Counter[Key]] = [Counter() for _ in around.worlds]
    for (world, *key), persons in found.items():
        counts[world][tuple(key)] = persons
    return counts


def by_hand(
    rows: list[dict[str, Any]], columns: list[str], share: Share | None, where: Expression | None = None
) -> Counter[Key]:
    """The same, without an engine."""
    keys = [
        (row.get("person"), tuple(row[column] for column in columns))
        for row in rows
        if where is None or holds(where, row)
    ]
    keys = [(person, key) for person, key in keys if None not in key]
    if share is None:
        return Counter(key for _, key in keys)
    had: dict[Any, set[Key]] = {}
    for person, key in keys:
        if person is not None:
            had.setdefault(person, set()).add(key)
    return Counter(
        key
        for person, some in had.items()
        for key in sorted(some, key=lambda key: keyed_hash(SECRET, person, *key))[: share.limit.groups]
    )


def moves(counts: list[Counter[Key]], around: Neighbours, relation: Relation) -> tuple[int, int]:
    """The most keys whose count moves between two neighbours, and the most that one moves."""
    keys = most = 0
    for rest, plus in around.around:
        pairs = product(plus, plus) if relation is Relation.REPLACE else ((rest, there) for there in plus)
        for one, two in pairs:
            apart = [abs(counts[one][key] - counts[two][key]) for key in counts[one].keys() | counts[two].keys()]
            keys, most = max(keys, sum(move > 0 for move in apart)), max(most, *apart, 0)
    return keys, most


# ------------------------------------------------------------------------------------------------ what a unit moves

PERSONS = around_persons(CROWD, [*fillings(VISITS, groups=3, rows=2), tuple(VISITS) * 3], newcomer="p9")


@pytest.mark.few(2)
@pytest.mark.parametrize("columns", [["zip"], ["zip", "ward"]], ids=["one column", "two columns"])
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_a_person_moves_so_many_counts_of_persons_by_one(groups: int, columns: list[str]) -> None:
    counts = by_world(PERSONS, columns, share_of(groups, rows=5))
    assert moves(counts, PERSONS, Relation.ADD_REMOVE) == (groups, 1)
    assert moves(counts, PERSONS, Relation.REPLACE) == (min(2 * groups, 3 if columns == ["zip"] else 4), 1)


def test_a_row_moves_one_count_of_rows_by_one() -> None:
    around = around_records(CROWD[:6], VISITS)
    counts = by_world(around, ["zip", "ward"], None)
    assert moves(counts, around, Relation.ADD_REMOVE) == (1, 1)
    assert moves(counts, around, Relation.REPLACE) == (2, 1)


def test_a_limit_that_is_looser_or_missing_and_a_limit_for_rows_are_caught() -> None:
    """The twins of the two tests above."""
    assert moves(by_world(PERSONS, ["zip"], share_of(2)), PERSONS, Relation.ADD_REMOVE) > (1, 1)
    assert moves(by_world(PERSONS, ["zip"], None), PERSONS, Relation.ADD_REMOVE) > (3, 1)
    owned = [visit._replace(person=f"p{number}") for number in range(4) for visit in VISITS]
    around = around_records(tuple(owned[::5]), owned)
    assert moves(by_world(around, ["zip"], share_of(1)), around, Relation.ADD_REMOVE) == (2, 1)


def test_every_world_is_counted_as_by_hand() -> None:
    for columns, share in product((["zip"], ["ward"], ["zip", "ward"]), (None, share_of(1), share_of(2))):
        for world, found in zip(PERSONS.worlds, by_world(PERSONS, columns, share), strict=True):
            assert found == by_hand([row._asdict() for row in world], columns, share)


def test_other_peoples_rows_never_change_what_is_kept_of_a_person() -> None:
    people = sorted({row.person for row in CROWD})
    alone: tuple[Rows, ...] = tuple(tuple(row for row in CROWD if row.person == person) for person in people)
    together, *apart = by_world(Neighbours(worlds=(CROWD, *alone), around=()), ["zip", "ward"], share_of(1))
    assert together == sum(apart, Counter())
    assert all(some.total() == 1 for some in apart)


# ------------------------------------------------------------------------------------------------ order and refusals


def test_the_order_is_that_of_the_keys_whatever_order_the_rows_have() -> None:
    rows = [(0, "p", zip_code, ward, None, None) for zip_code in ZIPS for ward in (10, 9, -1)]
    orders = [
        list(persons_by_key(load(some, "ordered"), where=None, columns=["zip", "ward"], share=share))
        for some in (rows, rows[::-1], rows[7:] + rows[:7])
        for share in (None, share_of(99))
    ]
    assert all(order == sorted(product(ZIPS, (10, 9, -1))) for order in orders)
    assert persons_by_key(load([], "empty"), where=None, columns=["zip"], share=None) == {}


def test_what_cannot_be_a_key_is_refused_before_anything_is_read() -> None:
    import ibis

    table = ibis.duckdb.connect().create_table("held", pa.table({"x": [0.5], "y": ["a"], "z": [b"a"]}))
    for columns, error, says in (
        (["x"], Unsupported, "'x' cannot identify groups"),
        (["z"], Unsupported, "'z'"),
        (["w"], InvalidInput, "no column 'w'"),
        ([], InvalidInput, "one column or several"),
        (["y", "y"], InvalidInput, "one column or several"),
    ):
        with pytest.raises(error, match=says):
            partition_counts(table, where=None, columns=columns, share=None)


# ---------------------------------------------------------------------------------------------------- three engines

TEXTS = [
    "",
    " ",
    "p",
    "P",
    "p ",
    "é",
    "e\u0301",
    "区",
    "\U0001f469\u200d\u2695",
    "it's",
    "\\n",
    "\n",
    "\uffff",
    "ß",
    "null",
]
WHOLES = [0, 1, -1, 10, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), None]
DAYS = [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(2026, 2, 28), date(9999, 12, 31), None]


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest) -> Place:
    """Puts rows on one engine."""
    engine = request.param
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    return lambda frame, name: on(engine, frame, name, url=url, session=session)


def many_kinds() -> pa.Table:
    """Keys of every kind, of everyone and of nobody; always the same."""
    rows = [
        {
            "person": [*TEXTS, None][number % 16],
            "zip": [*TEXTS, None][(7 * number + number // 16) % 16],
            "ward": WHOLES[(5 * number + number // 9) % 9],
            "urgent": (True, False, None)[number % 7 % 3],
            "day": DAYS[(3 * number + number // 6) % 6],
        }
        for number in range(400)
    ]
    kinds = {"person": pa.string(), "zip": pa.string(), "ward": pa.int64(), "urgent": pa.bool_(), "day": pa.date32()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})


def test_every_engine_finds_the_keys_that_are_worked_out_by_hand(place: Place) -> None:
    frame, where = many_kinds(), ~(col("ward") == 1)
    source = place(frame, "found")
    for columns in (["zip"], ["ward"], ["urgent"], ["day"], ["zip", "ward", "urgent", "day"]):
        for share in (None, share_of(2)):
            with source.opened() as table:
                found = persons_by_key(table, where=where, columns=columns, share=share)
            assert found == dict(by_hand(frame.to_pylist(), columns, share, where))
            assert list(found) == sorted(found)
            assert {type(part) for key in found for part in key} <= {str, int, bool, date}
            assert all(type(persons) is int for persons in found.values())
