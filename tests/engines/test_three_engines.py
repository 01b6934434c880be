"""DuckDB, PostgreSQL and Spark keep the same groups of the same persons, and count the same.

The default collation of the PostgreSQL server is not bytewise, and some columns ignore capital letters.
"""

import math
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from sfumato.core.limits import Limit
from sfumato.engines.bounded import placed
from sfumato.engines.compile import value
from sfumato.engines.counts import KeyColumn, Share, bounded_counts, rows_by_cell
from sfumato.engines.dialects import dialect_of
from sfumato.engines.expressions import Type, col, microseconds
from sfumato.engines.keyed_hash import keyed_hash
from sfumato.engines.lattice import Lattice
from sfumato.engines.public_rows import public_rows
from sfumato.engines.sources import Source
from sfumato.engines.totals import brought_out
from sfumato.errors import Unsupported
from tests.engines.loading import on
from tests.laws import plans

ENGINES = ["DuckDB", "PostgreSQL", "Spark"]
SECRET = "0f" * 16
TEXTS = ["", " ", "p", "P", "p ", "1", "01", "1;", "t1:p", ":", ";", "\x1f", "1\x1f1", "é", "e\u0301", "区",
         "\U0001f469\u200d\u2695", "it's", '"', "\\", "\\n", "\n", "\t", "%s", "${spark.app.name}", "${env:HOME}", "$1",
         "?", "--", "/*", "\ue000", "\ue001\ue002", "\u2028", "\ufeff", "\uffff", "\U0010ffff",
         "null", "ß", "ss"]  # fmt: skip
WHOLES = [0, 1, -1, 7, 10, 11, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
DAYS = [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(2026, 2, 28), date(9999, 12, 31)]
KEYS = (
    KeyColumn(column="zip", values=(*TEXTS[::3], "never")),
    KeyColumn(column="ward", values=(11, 1, -(2**63), 2**63 - 1)),
    KeyColumn(column="urgent", values=(True, False)),
    KeyColumn(column="day", values=(DAYS[3], DAYS[0], DAYS[4])),
)
Place = Callable[..., Source]


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest) -> Place:
    """Puts rows on one engine."""
    engine = request.param
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    return lambda frame, name, zones=None: on(engine, frame, name, url=url, session=session, zones=zones)


def visits(ids: list[Any]) -> pa.Table:
    """Rows of every person in many cells, of nobody, and outside the keys; always the same."""
    rows: list[dict[str, Any]] = []
    for number, person in enumerate([*ids, None]):
        for step in range(9):
            at = 7 * number + 5 * step
            row = {
                "person": person,
                "zip": [*TEXTS, None][at % (len(TEXTS) + 1)] if step % 3 else TEXTS[3 * (at % 13)],
                "ward": [*WHOLES, None][at % 11] if step % 4 else KEYS[1].values[at % 4],
                "urgent": (True, False, None)[at % 3] if step % 5 else True,
                "day": [*DAYS, None][at % 6] if step % 2 else DAYS[3 + at % 2],
            }
            rows += [row] * (1 + step % 2)
    kinds = [pa.string() if isinstance(ids[0], str) else pa.int64(), pa.string(), pa.int64(), pa.bool_(), pa.date32()]
    names = ["person", "zip", "ward", "urgent", "day"]
    return pa.table(
        {name: pa.array([row[name] for row in rows], kind) for name, kind in zip(names, kinds, strict=True)}
    )


def kept_by_hand(frame: pa.Table, keys: tuple[KeyColumn, ...], limit: Limit) -> Counter[tuple[Any, int]]:
    """What is kept of whom, worked out one person at a time, without an engine."""
    cells = {cell: number for number, cell in enumerate(product(*(key.values for key in keys)))}
    counts: dict[Any, Counter[tuple[Any, ...]]] = {}
    for row in frame.to_pylist():
        cell = tuple(row[key.column] for key in keys)
        if row["person"] is not None and cell in cells:
            counts.setdefault(row["person"], Counter())[cell] += 1
    kept: Counter[tuple[Any, int]] = Counter()
    for person, rows in counts.items():
        ranked = sorted(rows, key=lambda cell: (plans.mark(SECRET, person, *cell), cells[cell]))
        kept |= Counter(
            {(person, cells[cell]): min(rows[cell], limit.rows_per_group) for cell in ranked[: limit.groups]}
        )
    return kept


@pytest.mark.few(3)
@pytest.mark.parametrize("ids", [TEXTS, WHOLES], ids=["text", "whole numbers"])
@pytest.mark.parametrize("keys", [KEYS[:1], KEYS], ids=["one key", "four keys"])
def test_every_engine_keeps_the_groups_that_are_worked_out_by_hand(
    place: Place, ids: list[Any], keys: tuple[KeyColumn, ...]
) -> None:
    """Each person is a world of its own, so that the result tells what is kept of whom."""
    frame = visits(ids)
    limit = Limit(groups=2, rows_per_group=1 if len(keys) > 1 else 2)
    share = Share(column="person", limit=limit, secret=SECRET)
    expected = kept_by_hand(frame, keys, limit)
    assert len({person for person, _ in expected}) == len(ids)
    with place(frame.append_column("who", frame["person"]), f"visits_{len(ids)}").opened() as table:
        found = brought_out(rows_by_cell(table, where=None, keys=keys, share=share, world="who"))
    assert dict(zip(zip(found["world"], found["cell"], strict=True), found["total"], strict=True)) == expected


def test_other_peoples_rows_never_change_what_is_kept_of_a_person(place: Place) -> None:
    """World 0 holds everyone, each other world one person alone: the first is the sum of the others."""
    frame = visits(TEXTS)
    everyone = frame.append_column("world", pa.array([0] * len(frame), pa.int64()))
    numbers = {text: number for number, text in enumerate(TEXTS, 1)}
    alone = pa.array([numbers.get(person, -1) for person in frame["person"].to_pylist()], pa.int64())
    worlds = pa.concat_tables([everyone, frame.append_column("world", alone)])
    share = Share(column="person", limit=Limit(groups=2, rows_per_group=2), secret=SECRET)
    with place(worlds, "worlds").opened() as table:
        found = brought_out(rows_by_cell(table, where=None, keys=KEYS[:1], share=share, world="world"))
    together: Counter[int] = Counter()
    apart: Counter[int] = Counter()
    for world, cell, rows in zip(found["world"], found["cell"], found["total"], strict=True):
        (apart if world else together)[cell] += rows
    assert together == apart
    assert together.total() > len(TEXTS)


def test_every_engine_gives_the_same_hash(place: Place) -> None:
    pairs = [(text, other) for text in TEXTS for other in TEXTS[::5]]
    frame = pa.table(
        {"a": [a for a, _ in pairs], "b": [b for _, b in pairs], "n": [index % 7 for index in range(len(pairs))]}
    )
    with place(frame, "hashes").opened() as table:
        hashed = keyed_hash(SECRET, [table.a, table.n, table.b], dialect_of(table))
        found = table.mutate(hashed=hashed).to_pyarrow()
    given = [it if isinstance(it, str) else it.hex() for it in found["hashed"].to_pylist()]
    rows = zip(found["a"].to_pylist(), found["n"].to_pylist(), found["b"].to_pylist(), strict=True)
    assert given == [plans.keyed_hash(SECRET, *row) for row in rows]
    assert len(set(given)) == len(pairs)


@pytest.mark.few(2)
def test_parts_with_signs_of_the_encoding_inside_stay_apart(place: Place) -> None:
    """The broken twin puts a separator between the parts, and takes different ones for the same."""
    pieces = ["", "a", "\x1f", "a\x1f", "\x1fa", "t", "t1:", "1:a", ":", "t1:a", "1"]
    pairs = [(one, other) for one in pieces for other in pieces]
    frame = pa.table({"a": [one for one, _ in pairs], "b": [other for _, other in pairs]})
    with place(frame, "apart").opened() as table:
        ours = keyed_hash(SECRET, [table.a, table.b], dialect_of(table))
        found = table.select(ours=ours, twin=SECRET + "\x1f" + table.a + "\x1f" + table.b).to_pyarrow()
    assert len(set(found["ours"].to_pylist())) == len(pairs)
    assert len(set(found["twin"].to_pylist())) < len(pairs)


def test_numbers_with_a_point_tell_nobody_apart(place: Place) -> None:
    frame = pa.table({"x": [0.0, -0.0, float("nan")]})
    with place(frame, "points").opened() as table, pytest.raises(Unsupported, match="do not compare exactly"):
        keyed_hash(SECRET, [table.x], dialect_of(table))


@pytest.mark.few(2)
def test_a_total_beyond_64_bits_is_exact(place: Place) -> None:
    most, least = 2**63 - 1, -(2**63)
    frame = pa.table({"g": ["up"] * 5 + ["down"] * 3 + ["none"], "n": [most] * 5 + [least] * 3 + [None]})
    frame = frame.set_column(1, "n", frame["n"].cast(pa.int64()))
    with place(frame, "totals").opened() as table:
        found = brought_out(table.group_by("g").aggregate(n=dialect_of(table).total(table.n)))
    assert dict(zip(found["g"], found["n"], strict=True)) == {"up": 5 * most, "down": 3 * least, "none": None}


@pytest.mark.few(1)
def test_public_rows_arrive_as_they_are(place: Place) -> None:
    length = len(TEXTS)
    columns: dict[str, tuple[Type, list[Any]]] = {
        "place": (Type.WHOLE, list(range(length))),
        "text": (Type.TEXT, TEXTS),
        "whole": (Type.WHOLE, [[*WHOLES, None][at % 11] for at in range(length)]),
        "number": (Type.NUMBER, [[0.1, -0.0, 1e300, 5e-324, float("inf"), None][at % 6] for at in range(length)]),
        "truth": (Type.TRUTH, [(True, False, None)[at % 3] for at in range(length)]),
        "day": (Type.DATE, [[*DAYS, None][at % 6] for at in range(length)]),
    }
    with place(pa.table({"x": [1]}), "beside").opened() as table:
        given = public_rows(table, columns)
        found = brought_out(table.cross_join(given))
        empty = public_rows(table, {name: (kind, []) for name, (kind, _) in columns.items()})
        assert table.cross_join(empty).count().to_pyarrow().as_py() == 0
    rows = sorted(zip(*(found[name] for name in columns), strict=True))
    for at, (name, (_, values)) in enumerate(columns.items()):
        assert [repr(row[at]) for row in rows] == [repr(value) for value in values], name


@pytest.mark.few(1)
def test_a_bounded_count_with_a_condition_is_the_same(place: Place) -> None:
    frame = visits(TEXTS)
    share = Share(column="person", limit=Limit(groups=3, rows_per_group=1), secret=SECRET)
    where = ~(col("ward") < 0) & (col("zip") != "p")
    keys = (KeyColumn(column="zip", values=(*KEYS[0].values, "with a \0 inside")),)
    counts = []
    for source in (Source(frame), place(frame, "conditions")):
        with source.opened() as table:
            counts.append(bounded_counts(table, where=where, keys=keys, share=share))
            counts.append(bounded_counts(table, where=None, keys=(), share=share))
    assert counts[:2] == counts[2:]
    assert sum(counts[0]) > 20


@pytest.mark.few(3)
@pytest.mark.parametrize("bounds", [(0, 2**990), (-(2**990), 2**990), (0, Fraction(1, 2**890))])
def test_no_value_makes_the_rounding_to_a_lattice_fail(place: Any, bounds: tuple[Any, Any]) -> None:
    """A product that underflows raises on PostgreSQL: whoever may compute values could ask for one bit of any row."""
    low, high = Fraction(bounds[0]), Fraction(bounds[1])
    numbers = [0.0, -0.0, 5e-324, 1e-308, 1e-200, 1.0, 1e200, 1e308, math.inf, -math.inf, math.nan, None]
    frame = pa.table({"x": pa.array(numbers, pa.float64())})
    lattice = Lattice(value=col("x").node, low=low, high=high, steps=2**30)
    with place(frame, "tiny").opened() as table:
        rows, places = placed(table, [lattice])
        found = brought_out(rows.select(place=places[lattice]))["place"]
    assert sum(each is None for each in found) == 2
    assert all(0 <= each <= 2**30 for each in found if each is not None)


def test_times_with_a_zone_are_read_by_one_clock(place: Place) -> None:
    """Summer time begins and ends at one o'clock in UTC; engines have zone tables of their own, which are not asked."""
    moments = [datetime(2026, 3, 29, 0, 59, 59, 999_999), datetime(2026, 3, 29, 1), datetime(2026, 10, 25, 1), None]
    moments += [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 30), datetime(1969, 12, 31, 23)]
    zoned = [None if at is None else at.replace(tzinfo=UTC) for at in moments]
    frame = pa.table({"place": range(len(zoned)), "at": pa.array(zoned, pa.timestamp("us", "UTC"))})
    source = place(frame, "zoned", {"at": "Europe/Berlin"})
    if source.engine != "DuckDB":
        with pytest.raises(Unsupported, match="by the clock of UTC only"):
            source.columns()
        return
    with source.opened() as table:
        found = brought_out(table.select("place", at=value(col("at"), table), hour=value(col("at").hour(), table)))
    rows = dict(zip(found["place"], zip(found["at"], found["hour"], strict=True), strict=True))
    hours = [1, 2, 1, None, 1, None, 1]  # after the end of the year 9999 there is no time
    wanted = [
        (None, None) if at is None or more is None else (microseconds(at + timedelta(hours=more)), None)
        for at, more in zip(moments, hours, strict=True)
    ]
    assert [rows[place][0] for place in range(len(moments))] == [at for at, _ in wanted]
    assert [rows[place][1] for place in range(len(moments))] == [1, 3, 2, None, 1, None, 0]
