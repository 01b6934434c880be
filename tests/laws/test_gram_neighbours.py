"""The brute-force law of the matrix of products: no unit moves its sums further than it claims, and one row as far."""

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
from sfumato.engines.bounded import bounded_totals, totals_by_cell
from sfumato.engines.expressions import col
from sfumato.tables.clamped import Clamped
from sfumato.tables.keys import Keys
from sfumato.tables.queries.gram import HEIGHT, GramMatrix
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
    ward: str | None


SCHEMA = pa.schema(
    [
        ("world", pa.int64()),
        ("person", pa.string()),
        *((name, pa.float64()) for name in ("x", "z", "y")),
        ("sex", pa.string()),
        ("ward", pa.string()),
    ]
)


def held(name: str) -> Clamped:
    return Clamped(value=col(name).node, low=Fraction(-1), high=Fraction(3))


def asked(*terms: tuple[str, ...]) -> GramMatrix:
    named = {name for term in terms for name in term}
    factors = {"sex": ("F", "M"), "ward": ("a", "b", "c")}
    return GramMatrix(
        dataset=Dataset(name="patients", edition="1"),
        outcome=held("y"),
        numbers=tuple(held(name) for name in ("x", "z") if name in named),
        factors=tuple(Keys(column=name, values=values) for name, values in factors.items() if name in named),
        terms=((), *terms),
    )


QUERIES = {
    "a number": asked(("x",)),
    "a factor": asked(("ward",)),
    "a number and a sign": asked(("x",), ("sex",)),
    "numbers and their product": asked(("x",), ("z",), ("x", "z")),
    "everything": asked(("x",), ("sex",), ("ward",), ("sex", "x"), ("ward", "x")),
}
CORNERS = [
    Patient(None, x, z, y, sex, ward)
    for x, z, y, sex, ward in product((-1.0, 3.0), (-1.0, 3.0), (-inf, 3.0), "FM", "abc")
]
MIDDLES = [Patient(None, x, 1.0, y, "M", ward) for x, y, ward in product((1.0, 0.3), (1.0, -0.7), "bc")]
MISSING = [
    CORNERS[-1]._replace(**changes)
    for changes in ({"x": None}, {"z": nan}, {"y": None}, {"sex": None}, {"ward": "d"}, {"ward": None})
]
TABLE = (CORNERS[0]._replace(person="ö0"), CORNERS[-1]._replace(person="ö0"), MIDDLES[0]._replace(person="1"))
THREE = Limit(groups=1, rows_per_group=3)
ONE = Limit(groups=1, rows_per_group=1)


def several() -> list[tuple[Patient, ...]]:
    """Rows of one person: one, two that differ, and more than the limit of rows that do and do not."""
    every = (*CORNERS, *MIDDLES, *MISSING)
    few = (*CORNERS[::5], *MIDDLES[:2], MISSING[0])
    mixed = [tuple(some) for size in (2, 3) for some in combinations(few, size)]
    return [*((row,) for row in every), *((row,) * size for row in CORNERS[::5] for size in (3, 4)), *mixed, every, ()]


@cache
def neighbours(kind: str) -> Neighbours:
    if kind == "record":
        return around_records(TABLE, (*CORNERS, *MIDDLES, *MISSING))  # type: ignore[arg-type]
    return around_persons(TABLE, several(), newcomer="2")  # type: ignore[arg-type]


@cache
def loaded(kind: str) -> Any:
    rows = [(world, *row) for world, table in enumerate(neighbours(kind).worlds) for row in table]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    engine().con.register(f"gram {kind}", pa.table(columns, SCHEMA))
    return engine().table(f"gram {kind}")


@cache
def numbers(name: str, kind: str, limit: Limit) -> np.ndarray:
    """The sums in all worlds, from one query of the engine."""
    query, worlds = QUERIES[name], len(neighbours(kind).worlds)
    found = totals_by_cell(
        loaded(kind), where=None, keys=(), share=share_for(kind, limit), gauges=[query.gauge], world="world"
    ).to_pyarrow()
    sums = np.zeros((worlds, query.size), dtype=np.int64)
    for part in range(query.size):
        sums[found["world"].to_numpy(), part] = found[f"part{part}"].cast(pa.int64()).to_numpy()
    return sums


def claimed(name: str, kind: str, limit: Limit, relation: Relation) -> Sensitivity:
    return QUERIES[name].sensitivity(unit_of(kind, relation), limit_for(kind, limit))


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
@pytest.mark.parametrize(("kind", "limit"), [("record", ONE), ("user", ONE), ("user", THREE)])
def test_no_unit_moves_the_sums_further_than_claimed(kind: str, limit: Limit, relation: Relation) -> None:
    for name in QUERIES:
        sums = numbers(name, kind, limit)
        claim = claimed(name, kind, limit, relation)
        broken = violations(lambda _, it=sums: it, claim, around=neighbours(kind), relation=relation)
        assert broken == [], (name, broken)


@pytest.mark.parametrize(("kind", "limit"), [("record", ONE), ("user", ONE), ("user", THREE)])
def test_some_unit_that_comes_or_goes_moves_them_as_far(kind: str, limit: Limit) -> None:
    for name in QUERIES:
        sums = numbers(name, kind, limit)
        claim = claimed(name, kind, limit, Relation.ADD_REMOVE)
        found = slack(lambda _, it=sums: it, claim, around=neighbours(kind), relation=Relation.ADD_REMOVE)
        assert [it for it in found if not it.startswith("l0")] == [], (name, found)


def test_under_replace_the_claim_is_at_most_a_third_above_what_some_unit_moves() -> None:
    from tests.laws.neighbours import furthest, stated

    for name in QUERIES:
        claim = stated(claimed(name, "record", ONE, Relation.REPLACE))
        most = furthest(numbers(name, "record", ONE), around=neighbours("record"), relation=Relation.REPLACE)
        assert claim["l2 squared"] <= Fraction(16, 9) * most["l2 squared"], (name, claim, most)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
def test_a_claim_that_forgets_a_product_is_found_out(relation: Relation) -> None:
    for name, query in QUERIES.items():
        claim = claimed(name, "record", ONE, Relation.ADD_REMOVE)
        less = Sensitivity.of(
            l0=query.size, l1=claim.l1.value - HEIGHT, l2_squared=claim.l2.squared - HEIGHT**2, linf=HEIGHT
        )
        sums = numbers(name, "record", ONE)
        broken = violations(lambda _, it=sums: it, less, around=neighbours("record"), relation=relation)
        assert len(broken) >= 2, (name, broken)


def test_the_engine_adds_up_as_by_hand() -> None:
    query = QUERIES["everything"]
    worlds = neighbours("record").worlds
    sums = numbers("everything", "record", ONE)
    for world in range(0, len(worlds), 17):
        expected = [0] * query.size
        for row in worlds[world]:
            for place, number in enumerate(by_hand(query, row)):
                expected[place] += number
        assert sums[world].tolist() == expected


def by_hand(query: GramMatrix, row: Patient) -> list[int]:
    """The products of one row in plain whole numbers."""
    root = 2**15
    held, codes = {}, {"sex": {"F": 0, "M": 1}.get(row.sex or ""), "ward": "abc".find(row.ward or "-")}
    for name in ("x", "y"):
        given = getattr(row, name)
        if given is None or given != given:
            return [0] * query.size
        held[name] = 2 * int((min(max(given, -1.0), 3.0) + 1) * root / 4 + 0.5) - root
    if codes["sex"] is None or codes["ward"] == -1:
        return [0] * query.size
    found = []
    for each in query.products:
        factors = [held[name] for name, power in each.powers for _ in range(power)]
        number = root**2 if not factors else factors[0] * (factors[1] if len(factors) > 1 else root)
        for factor in factors[2:]:
            number = (number * factor) // root
        for name in each.signs:
            number *= 2 * codes[name] - 1
        found.append(number if all(codes[name] == level for name, level in each.levels) else 0)
    return found


@pytest.mark.parametrize("engine", ["PostgreSQL", pytest.param("Spark", marks=pytest.mark.long)])
def test_every_engine_adds_up_the_same_whole_numbers(engine: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    rows = [*TABLE, *(row for some in several()[-40:] for row in owned("2", some)), *owned("3", (CORNERS[5],))]  # type: ignore[arg-type]
    columns = [
        pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), list(SCHEMA)[1:], strict=True)
    ]
    frame = pa.table(columns, pa.schema(list(SCHEMA)[1:]))
    sums = []
    for place in (engine, "DuckDB"):
        with on(place, frame, "gram_rows", url=url, session=session).opened() as table:
            found = [
                bounded_totals(table, where=None, keys=(), share=share_for(kind, limit), gauges=[QUERIES[name].gauge])
                for name in ("numbers and their product", "everything")
                for kind, limit in (("record", ONE), ("user", ONE), ("user", THREE))
            ]
        sums.append(found)
    assert sums[0] == sums[1]
