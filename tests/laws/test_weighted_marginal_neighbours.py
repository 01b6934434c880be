"""The brute-force law of tables that are counted together: no unit moves them further than claimed, and some as far."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.budget import Budget
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import L2, Sensitivity
from sfumato.core.units import Relation, record, user
from sfumato.engines import marginal_counts as engine_part
from sfumato.engines.contribution_limits import KeyColumn
from sfumato.engines.marginal_counts import coded_rows, codes_of, marginal_counts, tables_of
from sfumato.engines.totals import whole_numbers
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.tables.keys import Keys
from sfumato.tables.queries.weighted_marginals import WeightedMarginals
from tests.engines.loading import on
from tests.laws.neighbours import Neighbours, around_persons, around_records, owned, slack, violations
from tests.laws.plans import engine
from tests.laws.scenarios import RELATIONS, limit_for, share_for, unit_of

pytestmark = pytest.mark.no_cover


class Patient(NamedTuple):
    """One row."""

    person: str | None
    age: str | None
    sex: str | None
    conditions: int | None


SCHEMA = pa.schema(
    [
        ("world", pa.int64()),
        ("person", pa.string()),
        ("age", pa.string()),
        ("sex", pa.string()),
        ("conditions", pa.int64()),
    ]
)
BY = (
    Keys(column="age", values=("young", "old")),
    Keys(column="sex", values=("F", "M")),
    Keys(column="conditions", values=(0, 1, 2)),
)
SIX = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))


def asked(tables: Any, weights: Any, missing: tuple[str, ...] = ()) -> WeightedMarginals:
    dataset = Dataset(name="patients", edition="1")
    return WeightedMarginals(dataset=dataset, by=BY, tables=tables, weights=weights, missing=missing)


QUERIES = {
    "six histograms": asked(SIX, (1,) * 6),
    "weights": asked(((0,), (1, 2), (0, 1, 2)), (7, 3, 2)),
    "missing values": asked(SIX[3:], (1, 2, 3), missing=("sex", "conditions")),
}
ROWS = [Patient(None, *cell) for cell in product(("young", "old"), "FM", (0, 1, 2))]
STRAYS = [
    ROWS[0]._replace(age=None),
    ROWS[0]._replace(age="oldest"),
    ROWS[-1]._replace(sex=None),
    ROWS[-1]._replace(sex="X", conditions=None),
    ROWS[-1]._replace(conditions=9),
]
TABLE = (ROWS[0]._replace(person="ö0"), ROWS[-1]._replace(person="ö0"), ROWS[3]._replace(person="1"))
LIMITS = [Limit(groups=1, rows_per_group=1), Limit(groups=2, rows_per_group=2)]
UNITS = [("record", LIMITS[0]), ("user", LIMITS[0]), ("user", LIMITS[1])]


@cache
def neighbours(kind: str) -> Neighbours:
    if kind == "record":
        return around_records(TABLE, (*ROWS, *STRAYS))  # type: ignore[arg-type]
    several = [
        *((row,) for row in (*ROWS, *STRAYS)),
        *((row,) * size for row in (ROWS[0], ROWS[4], ROWS[-1]) for size in (2, 5)),
    ]
    several += [(one, other) * 3 for one, other in zip(ROWS[::2], ROWS[::-2], strict=True)]
    return around_persons(TABLE, [*several, tuple(ROWS), (*STRAYS, *ROWS), ()], newcomer="2")  # type: ignore[arg-type]


@cache
def loaded(kind: str) -> Any:
    rows = [(world, *row) for world, table in enumerate(neighbours(kind).worlds) for row in table]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    engine().con.register(f"marginals {kind}", pa.table(columns, SCHEMA))
    return engine().table(f"marginals {kind}")


def coded(query: WeightedMarginals) -> list[KeyColumn]:
    return [
        KeyColumn(column=keys.column, values=keys.values, other=keys.column in query.missing)  # type: ignore[arg-type]
        for keys in query.by
    ]


def counted(query: WeightedMarginals, kind: str, limit: Limit) -> np.ndarray:
    """The weighted counts in all worlds, from one query of the engine."""
    keys, share = coded(query), share_for(kind, limit)
    found = whole_numbers(coded_rows(loaded(kind), where=None, keys=keys, share=share, world="world"))
    codes, worlds = codes_of(found, keys), len(neighbours(kind).worlds)
    every = []
    for world in range(worlds):
        there = found["world"] == world
        tables = tables_of([code[there] for code in codes], keys, query.tables)
        every.append(np.concatenate([counts * weight for counts, weight in zip(tables, query.weights, strict=True)]))
    return np.array(every)


@cache
def numbers(name: str, kind: str, limit: Limit) -> np.ndarray:
    return counted(QUERIES[name], kind, limit)


def claimed(name: str, kind: str, limit: Limit, relation: Relation) -> Sensitivity:
    return QUERIES[name].sensitivity(unit_of(kind, relation), limit_for(kind, limit))


@pytest.mark.claim("S1-16")
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
@pytest.mark.parametrize(("kind", "limit"), UNITS)
def test_no_unit_moves_the_tables_further_than_claimed_and_some_as_far(
    kind: str, limit: Limit, relation: Relation
) -> None:
    for name in QUERIES:
        sums, claim = numbers(name, kind, limit), claimed(name, kind, limit, relation)
        assert violations(lambda _, it=sums: it, claim, around=neighbours(kind), relation=relation) == [], name
        loose = slack(lambda _, it=sums: it, claim, around=neighbours(kind), relation=relation)
        assert [it for it in loose if not it.startswith("l0")] == [], name


@pytest.mark.claim("S1-16")
def test_six_histograms_move_by_six_and_twelve_and_gaussian_noise_wins_from_nine() -> None:
    one = Limit(groups=1, rows_per_group=1)
    query = QUERIES["six histograms"]
    alone, replaced = (query.sensitivity(record(relation=relation), None) for relation in ("add/remove", "replace"))
    assert (alone.l1.value, alone.l2.squared) == (6, 6)  # type: ignore[union-attr]
    assert (replaced.l1.value, replaced.l2.squared) == (12, 12)  # type: ignore[union-attr]
    assert query.sensitivity(user("id", relation="add/remove"), one) == alone
    spend = {"epsilon": 1, "delta": Fraction(1, 10**6)}
    laplace, gaussian = Laplace.least(alone, **spend), Gaussian.least(alone, **spend)  # type: ignore[arg-type]
    assert laplace is not None
    assert gaussian is not None
    assert abs(float(laplace.law.variance) ** 0.5 - 8.49) < 0.02
    assert abs(float(gaussian.sigma) - 10.35) < 0.005
    for tables, kind in ((8, "mechanism.laplace"), (9, "mechanism.gaussian")):
        columns = tuple(Keys(column=f"c{place}", values=(0, 1)) for place in range(tables))
        asked_of = WeightedMarginals(
            dataset=query.dataset,
            by=columns,
            tables=tuple((place,) for place in range(tables)),
            weights=(1,) * tables,
        )
        unit = record(relation="add/remove")
        moved = asked_of.sensitivity(unit, None)
        assert kind == asked_of.mechanism(moved, unit, Budget(**spend)).KIND  # type: ignore[arg-type]


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
def test_rows_of_a_person_that_add_up_like_rows_of_strangers_are_found_out(relation: Relation) -> None:
    """The wrong claim l2 = √(L·k) in the place of L√k."""
    limit = LIMITS[1]
    for name in ("six histograms", "weights"):
        claim = claimed(name, "user", limit, relation)
        assert claim.l2 is not None
        wrong = replace(claim, l2=L2(claim.l2.squared / limit.rows))
        sums = numbers(name, "user", limit)
        assert violations(lambda _, it=sums: it, wrong, around=neighbours("user"), relation=relation) != []


def test_a_limit_that_is_not_kept_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_part, "few_rows", lambda rows, **_: rows)
    sums = counted(QUERIES["six histograms"], "user", LIMITS[0])
    claim = claimed("six histograms", "user", LIMITS[0], Relation.ADD_REMOVE)
    assert violations(lambda _: sums, claim, around=neighbours("user"), relation=Relation.ADD_REMOVE) != []


def test_all_tables_are_about_the_same_rows() -> None:
    """Of a person with many rows one row counts, and every table agrees on which."""
    sums = numbers("six histograms", "user", LIMITS[0])
    edges = np.cumsum([0, *QUERIES["six histograms"].cells])
    parts = [sums[:, first:last] for first, last in pairwise(edges)]
    age, sex, conditions, age_sex, age_conditions, sex_conditions = parts
    assert (age_sex.reshape(-1, 2, 2).sum(axis=2) == age).all()
    assert (age_sex.reshape(-1, 2, 2).sum(axis=1) == sex).all()
    assert (age_conditions.reshape(-1, 2, 3).sum(axis=1) == conditions).all()
    assert (sex_conditions.reshape(-1, 2, 3).sum(axis=2) == sex).all()


def test_columns_beyond_one_block_are_counted_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, query in QUERIES.items():
        expected = numbers(name, "record", LIMITS[0])
        monkeypatch.setattr(engine_part, "MOST_IN_BLOCK", 4)
        assert (counted(query, "record", LIMITS[0]) == expected).all(), name
        monkeypatch.undo()


def test_the_engine_counts_as_by_hand() -> None:
    labels = [("young", "old"), ("F", "M"), (0, 1, 2)]
    for name, query in QUERIES.items():
        sums, worlds = numbers(name, "record", LIMITS[0]), neighbours("record").worlds
        for world in range(0, len(worlds), 7):
            expected: list[int] = []
            rows = [by_hand(row, labels, query.missing) for row in worlds[world]]  # type: ignore[arg-type]
            for table, weight in zip(query.tables, query.weights, strict=True):
                for cell in product(*(range(query.sizes[place]) for place in table)):
                    met = [row for row in rows if row is not None and tuple(row[place] for place in table) == cell]
                    expected.append(weight * len(met))
            assert sums[world].tolist() == expected, name


def by_hand(row: Patient, labels: Any, missing: tuple[str, ...]) -> tuple[int, ...] | None:
    places = []
    for name, values in zip(("age", "sex", "conditions"), labels, strict=True):
        given = getattr(row, name)
        if given not in values and name not in missing:
            return None
        places.append(values.index(given) if given in values else len(values))
    return tuple(places)


@pytest.mark.parametrize("engine", ["PostgreSQL", pytest.param("Spark", marks=pytest.mark.long)])
def test_every_engine_counts_the_same_rows(engine: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    rows = [*TABLE, *owned("2", (*STRAYS, *ROWS)), *owned("3", tuple(ROWS))]  # type: ignore[arg-type]
    fields = list(SCHEMA)[1:]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), fields, strict=True)]
    frame, found = pa.table(columns, pa.schema(fields)), []
    for place in (engine, "DuckDB"):
        with on(place, frame, "marginal_rows", url=url, session=session).opened() as table:
            found.append(
                [
                    marginal_counts(
                        table, where=None, keys=coded(query), share=share_for(kind, limit), tables=query.tables
                    )
                    for query in QUERIES.values()
                    for kind, limit in UNITS
                ]
            )
    assert found[0] == found[1]
