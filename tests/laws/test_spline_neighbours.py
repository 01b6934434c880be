"""The brute-force law of rows spread over splines: no unit moves the counts further than claimed, and some as far."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Relation
from sfumato.engines.expressions import col
from sfumato.engines.quantile_counts import rows_by_values
from sfumato.engines.spline_counts import HEIGHT, lattice_names, spline_totals, spread_over_splines
from sfumato.engines.totals import whole_numbers
from sfumato.studies.regression import splines
from sfumato.tables.clamped import Clamped
from sfumato.tables.execution import key_column
from sfumato.tables.keys import Keys
from sfumato.tables.queries.spline_counts import SplineCounts
from tests.engines.loading import on
from tests.laws.neighbours import Neighbours, around_persons, around_records, owned, slack, violations
from tests.laws.plans import engine
from tests.laws.scenarios import RELATIONS, limit_for, share_for, unit_of

pytestmark = pytest.mark.no_cover


class Patient(NamedTuple):
    """One row."""

    person: str | None
    x: float | None
    z: float | None
    y: float | None
    sex: str | None


SCHEMA = pa.schema(
    [("world", pa.int64()), ("person", pa.string()), *((name, pa.float64()) for name in "xzy"), ("sex", pa.string())]
)
SEX = Keys(column="sex", values=("F", "M"))


def held(name: str) -> Clamped:
    return Clamped(value=col(name).node, low=Fraction(-1), high=Fraction(3))


def asked(numbers: str, *, pieces: int, outcome: bool = False, by: tuple[Keys, ...] = ()) -> SplineCounts:
    return SplineCounts(
        dataset=Dataset(name="patients", edition="1"),
        numbers=tuple(map(held, numbers)),
        pieces=pieces,
        outcome=held("y") if outcome else None,
        by=by,
    )


QUERIES = {
    "a number": asked("x", pieces=3),
    "an outcome by group": asked("", pieces=1, outcome=True, by=(SEX,)),
    "a number by group": asked("x", pieces=2, by=(SEX,)),
    "two numbers and an outcome": asked("xz", pieces=1, outcome=True),
    "everything": asked("xz", pieces=2, outcome=True, by=(SEX,)),
}
CORNERS = [Patient(None, x, z, y, sex) for x, z, y, sex in product((-1.0, 3.0), (-1.0, 3.0), (-inf, 3.0), "FM")]
MIDDLES = [Patient(None, x, 1.7, y, "M") for x, y in product((1.0, 0.3, 2.999), (1.0, -0.7))]
MISSING = [
    CORNERS[-1]._replace(**changes) for changes in ({"x": None}, {"z": nan}, {"y": None}, {"sex": None}, {"sex": "d"})
]
TABLE = (CORNERS[0]._replace(person="ö0"), CORNERS[-1]._replace(person="ö0"), MIDDLES[0]._replace(person="1"))
LIMITS = [Limit(groups=1, rows_per_group=1), Limit(groups=2, rows_per_group=3)]
UNITS = [("record", LIMITS[0]), ("user", LIMITS[0]), ("user", LIMITS[1])]


def several() -> list[tuple[Patient, ...]]:
    """Rows of one person: one, two that differ, and more than the limit."""
    every = (*CORNERS, *MIDDLES, *MISSING)
    few = (*CORNERS[::5], *MIDDLES[:2], MISSING[0])
    mixed = [tuple(some) for size in (2, 3) for some in combinations(few, size)]
    many = [(row,) * size for row in CORNERS[::3] for size in (3, 4)]
    in_both = [(row._replace(sex="F"),) * 3 + (row._replace(sex="M"),) * 3 for row in (CORNERS[0], CORNERS[-1])]
    return [*((row,) for row in every), *many, *in_both, *mixed, every, ()]


@cache
def neighbours(kind: str) -> Neighbours:
    if kind == "record":
        return around_records(TABLE, (*CORNERS, *MIDDLES, *MISSING))  # type: ignore[arg-type]
    return around_persons(TABLE, several(), newcomer="2")  # type: ignore[arg-type]


@cache
def loaded(kind: str) -> Any:
    rows = [(world, *row) for world, table in enumerate(neighbours(kind).worlds) for row in table]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    engine().con.register(f"splines {kind}", pa.table(columns, SCHEMA))
    return engine().table(f"splines {kind}")


@cache
def numbers(name: str, kind: str, limit: Limit) -> np.ndarray:
    """The counts in all worlds, from one query of the engine: a world is one more group, before all others."""
    query, worlds = QUERIES[name], len(neighbours(kind).worlds)
    named = dict(zip(lattice_names(len(query.lattices)), query.lattices, strict=True))
    found = whole_numbers(
        rows_by_values(
            loaded(kind),
            where=None,
            keys=[key_column(keys) for keys in query.by],
            share=share_for(kind, limit),
            lattices=named,
            world="world",
        )
    )
    found["cell"] = found["world"] * query.cells + found["cell"]
    return spread_over_splines(found, query.bases, cells=worlds * query.cells).reshape(worlds, -1)


def claimed(name: str, kind: str, limit: Limit, relation: Relation) -> Sensitivity:
    return QUERIES[name].sensitivity(unit_of(kind, relation), limit_for(kind, limit))


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
@pytest.mark.parametrize(("kind", "limit"), UNITS)
def test_no_unit_moves_the_counts_further_than_claimed(kind: str, limit: Limit, relation: Relation) -> None:
    for name in QUERIES:
        sums, claim = numbers(name, kind, limit), claimed(name, kind, limit, relation)
        broken = violations(lambda _, it=sums: it, claim, around=neighbours(kind), relation=relation)
        assert broken == [], (name, broken)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
@pytest.mark.parametrize(("kind", "limit"), UNITS)
def test_some_unit_moves_them_as_far(kind: str, limit: Limit, relation: Relation) -> None:
    for name in QUERIES:
        sums, claim = numbers(name, kind, limit), claimed(name, kind, limit, relation)
        found = slack(lambda _, it=sums: it, claim, around=neighbours(kind), relation=relation)
        assert [it for it in found if not it.startswith("l0")] == [], (name, found)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
def test_splines_that_add_up_to_more_than_a_row_are_found_out(
    relation: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = splines.SplineBasis.table.fget(splines.SplineBasis(pieces=3))  # type: ignore[attr-defined]
    broken = replace(sound, weights=sound.weights + 1)  # rounded up: a step too much in each
    monkeypatch.setattr(splines, "_table", lambda pieces, degree: broken)
    sums, claim = (
        numbers.__wrapped__("a number", "record", LIMITS[0]),
        claimed("a number", "record", LIMITS[0], relation),
    )
    assert len(violations(lambda _: sums, claim, around=neighbours("record"), relation=relation)) >= 2


def test_the_engine_spreads_as_by_hand() -> None:
    for name, query in QUERIES.items():
        sums, worlds = numbers(name, "record", LIMITS[0]), neighbours("record").worlds
        for world in range(0, len(worlds), 17):
            expected = [0] * query.size
            for row in worlds[world]:
                for place, amount in by_hand(query, row):  # type: ignore[arg-type]
                    expected[place] += amount
            assert np.abs(sums[world] - expected).max() <= 8 * len(worlds[world]), name


def by_hand(query: SplineCounts, row: Patient) -> list[tuple[int, int]]:
    """What one row brings, by the recursion of splines in exact fractions."""
    cell = 0
    if query.by:
        if row.sex not in ("F", "M"):
            return []
        cell = "FM".index(row.sex)
    found = [(cell, Fraction(1))]
    for of, basis in zip(query.spread, query.bases, strict=True):
        given = getattr(row, of.value.column)  # type: ignore[union-attr]
        if given is None or given != given:
            return []
        place = int((min(max(given, -1.0), 3.0) + 1) * splines.STEPS / 4 + 0.5)
        at = Fraction(place * basis.pieces, splines.STEPS)
        values = [bspline(number, basis.degree, at, basis) for number in range(basis.size)]
        assert sum(values) == 1
        found = [
            (index * basis.size + number, share * value)
            for index, share in found
            for number, value in enumerate(values)
        ]
    return [(index, round(share * HEIGHT)) for index, share in found]


def bspline(number: int, degree: int, at: Fraction, basis: splines.SplineBasis) -> Fraction:
    knots = [min(max(place - basis.degree, 0), basis.pieces) for place in range(basis.pieces + 2 * basis.degree + 1)]
    low, high = knots[number], knots[number + 1]
    if degree == 0:
        last = at == basis.pieces and high == basis.pieces and low < high
        return Fraction(low <= at < high or last)
    found = Fraction(0)
    if knots[number + degree] > low:
        found += (at - low) / (knots[number + degree] - low) * bspline(number, degree - 1, at, basis)
    if knots[number + degree + 1] > high:
        wide = knots[number + degree + 1] - high
        found += (knots[number + degree + 1] - at) / wide * bspline(number + 1, degree - 1, at, basis)
    return found


@pytest.mark.parametrize("engine", ["PostgreSQL", pytest.param("Spark", marks=pytest.mark.long)])
def test_every_engine_counts_the_same_whole_numbers(engine: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    rows = [*TABLE, *(row for some in several()[-40:] for row in owned("2", some)), *owned("3", (CORNERS[5],))]  # type: ignore[arg-type]
    fields = list(SCHEMA)[1:]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), fields, strict=True)]
    frame = pa.table(columns, pa.schema(fields))
    counts = []
    for place in (engine, "DuckDB"):
        with on(place, frame, "spline_rows", url=url, session=session).opened() as table:
            counts.append(
                [
                    spline_totals(
                        table,
                        where=None,
                        keys=[key_column(keys) for keys in QUERIES[name].by],
                        share=share_for(kind, limit),
                        lattices=QUERIES[name].lattices,
                        bases=QUERIES[name].bases,
                    )
                    for name in ("a number", "everything")
                    for kind, limit in UNITS
                ]
            )
    assert counts[0] == counts[1]
