"""Random questions about persons, in SQL, on random tables: what is added up before any noise is what DuckDB says.

DuckDB is given the rows that have a person, because rows of nobody never count here: that is the one departure.
"""

import os
import random
import secrets
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.engines.sources import Source
from sfumato.tables.execution import Beside, check_columns, exact_numbers
from sfumato.tables.persons import ONE_ROW_A_PERSON, is_per_person
from sfumato.tables.table import Table
from tests.tables.sql_table import Shut

# ruff: noqa: S608 - the texts are put together on purpose, and nothing here protects anyone

pytestmark = pytest.mark.no_cover  # many plans: measuring coverage would double their time
duckdb = pytest.importorskip("duckdb")

FEW, SOME = 10, 200
MANY = 5_000 if os.environ.get("SFUMATO_LONG") == "1" else SOME
UNIT, LIMIT = sf.user("id", relation="add/remove"), Limit(groups=1000, rows_per_group=1000)
NAMES = ("stays", "labs")
AGGREGATES = [
    *("COUNT(*)", "COUNT(beds)", "COUNT(DISTINCT ward)", "COUNT(DISTINCT beds)", "MIN(beds)", "MAX(beds)", "SUM(beds)"),
    *("MIN_BY(beds, place)", "MAX_BY(place, place)", "AVG(half)", "SUM(half)", "MAX(place) - MIN(place)"),
    *("COUNT(*) * 2", "COALESCE(SUM(beds), 0)", "-MIN(beds)"),
]


@dataclass(frozen=True, slots=True)
class Ward:
    """Two tables of the same persons, for us and for DuckDB."""

    rows: dict[str, pa.Table]
    tables: dict[str, Table]

    @classmethod
    def drawn(cls, chance: random.Random) -> "Ward":
        rows = {name: _table(chance) for name in NAMES}
        bounds = {"beds": (-5, 9), "half": (-4, 8), "place": (0, 100)}
        exact = {name: (Fraction(low), Fraction(high)) for name, (low, high) in bounds.items()}
        gate: Any = Shut(UNIT)
        tables = {
            name: Table(gate=gate, dataset=Dataset(name=name, edition="1"), keys={}, bounds=exact, most_rows=LIMIT.rows)
            for name in NAMES
        }
        return cls(rows, tables)

    def ours(self, text: str) -> int:
        """The exact number, by the way of a release up to its noise."""
        asked = self.tables["stays"].sql(text, self.tables["labs"]).query
        sources = {self.tables[name].dataset: Source(self.rows[name]) for name in NAMES}
        own = sources[asked.dataset]
        beside = Beside(own=own, private=sources, limits=dict.fromkeys(sources, LIMIT), limit=LIMIT)
        check_columns(asked, beside, UNIT)
        limit = ONE_ROW_A_PERSON if is_per_person(asked.joins) else LIMIT
        (found,) = exact_numbers(asked, beside, unit=UNIT, limit=limit, secret="s")  # type: ignore[misc]  # noqa: S106
        return int(found)

    def theirs(self, text: str) -> int:
        with duckdb.connect() as engine:
            for name, rows in self.rows.items():
                engine.register(f"all_{name}", rows)
                engine.execute(f"CREATE TABLE {name} AS SELECT * FROM all_{name} WHERE id IS NOT NULL")
            return int(engine.execute(text).fetchone()[0])


def _table(chance: random.Random) -> pa.Table:
    count = chance.randrange(60)
    first = date(2026, 1, 1)
    return pa.table(
        {
            "id": pa.array([chance.choice(["a", "A", "b", "c", "é", "", None]) for _ in range(count)], pa.string()),
            "ward": pa.array([chance.choice(["x", "y", "", None]) for _ in range(count)], pa.string()),
            "beds": pa.array([chance.choice([None, *range(-5, 10)]) for _ in range(count)], pa.int64()),
            "half": pa.array([chance.choice([None, -4.0, 0.25, 1.5, 8.0]) for _ in range(count)], pa.float64()),
            "urgent": pa.array([chance.choice([True, False, None]) for _ in range(count)], pa.bool_()),
            "place": pa.array(chance.sample(range(100), count), pa.int64()),
            "day": pa.array([first + timedelta(days=chance.randrange(9)) for _ in range(count)], pa.date32()),
        }
    )


def _condition(chance: random.Random) -> str:
    plain = [
        *("ward = 'x'", "ward IS NULL", "beds > 2", "beds BETWEEN -1 AND 4", "urgent", "NOT urgent", "half < 1.5"),
        *("day > DATE '2026-01-05'", "ward IN ('x', '')", "beds <> 3"),
    ]
    some = [chance.choice(plain) for _ in range(chance.choice([1, 1, 2]))]
    return f" {chance.choice(['AND', 'OR'])} ".join(some)


def _grouped(chance: random.Random, *, having: bool = True) -> tuple[str, list[str]]:
    """A subquery with one row a person, and the names of its numbers."""
    chosen = [chance.choice(AGGREGATES) for _ in range(chance.randint(1, 3))]
    if chance.random() < 0.3:
        chosen.append(f"COUNT(*) FILTER (WHERE {_condition(chance)})")
    names = [f"v{place}" for place in range(len(chosen))]
    columns = ", ".join(f"{what} AS {name}" for what, name in zip(chosen, names, strict=True))
    where = f" WHERE {_condition(chance)}" if chance.random() < 0.5 else ""
    last = f" HAVING {chance.choice(AGGREGATES)} > {chance.randint(-2, 5)}" if having and chance.random() < 0.5 else ""
    return f"SELECT id, {columns} FROM {chance.choice(NAMES)}{where} GROUP BY id{last}", names


def _persons(chance: random.Random, deep: int = 2) -> str:
    """A subquery that selects persons."""
    table = chance.choice(NAMES)
    inner = (
        f"id {chance.choice(['IN', 'NOT IN'])} ({_persons(chance, deep - 1)})" if deep and chance.random() < 0.3 else ""
    )
    where = " AND ".join(part for part in (inner, f"({_condition(chance)})" if chance.random() < 0.8 else "") if part)
    group = (
        f" GROUP BY id HAVING {chance.choice(AGGREGATES)} >= {chance.randint(-1, 4)}" if chance.random() < 0.4 else ""
    )
    return f"SELECT id FROM {table}{' WHERE ' + where if where else ''}{group}"


def question(chance: random.Random) -> str:
    """A count of persons or of their rows, in one of several forms."""
    what = chance.choice(["COUNT(*)", "COUNT(DISTINCT {of}id)"])
    form = chance.randrange(4)
    if form == 0:
        inner, names = _grouped(chance)
        where = f"{chance.choice(names)} {chance.choice(['>', '<=', '=', '<>'])} {chance.randint(-3, 8)}"
        if chance.random() < 0.3:
            where = f"({where} OR {chance.choice(names)} IS NULL) AND id IN ({_persons(chance)})"
        return f"SELECT {what.format(of='')} FROM ({inner}) AS p WHERE {where}"
    if form == 1:
        member = f"id {chance.choice(['IN', 'NOT IN'])} ({_persons(chance)})"
        joined = f"{member} {chance.choice(['AND', 'OR'])} ({_condition(chance)})" if chance.random() < 0.6 else member
        return f"SELECT {what.format(of='')} FROM stays WHERE {joined}"
    if form == 2:
        inner, names = _grouped(chance)
        kind = chance.choice(["", "LEFT "])
        where = f"COALESCE(f.v0, {chance.randint(-2, 3)}) > {chance.randint(-3, 8)} OR stays.beds > 3"
        asked = what.format(of="stays.")
        return f"WITH f AS ({inner}) SELECT {asked} FROM stays {kind}JOIN f ON stays.id = f.id WHERE {where}"
    exists = chance.choice(["EXISTS", "NOT EXISTS"])
    rest = f" AND ({_condition(chance).replace('ward', 'u.ward')})" if chance.random() < 0.7 else ""
    asked, inner = what.format(of="s."), f"SELECT 1 FROM labs AS u WHERE u.id = s.id{rest}"
    return f"SELECT {asked} FROM stays AS s WHERE {exists} ({inner})"


def hunt(plans: int) -> int:
    """Ask that many questions; the seed of one that differs is told."""
    tried = 0
    while tried < plans:
        seed = secrets.randbits(64)
        chance = random.Random(seed)
        ward = Ward.drawn(chance)
        for _ in range(min(10, plans - tried)):
            text = question(chance)
            assert ward.ours(text) == ward.theirs(text), (seed, text)
            tried += 1
    return tried


def test_some_questions_about_persons_count_as_duckdb_does() -> None:
    assert hunt(FEW) == FEW


@pytest.mark.long
def test_many_questions_about_persons_count_as_duckdb_does() -> None:
    assert hunt(MANY) == MANY


def test_a_question_that_means_something_else_is_noticed() -> None:
    """The broken twin: the rows of nobody are left in, so that NOT IN is unknown of everyone."""
    rows = {name: pa.table({"id": ["a", "b", None], "ward": ["x", "y", "x"]}) for name in NAMES}
    ward = Ward(rows, Ward.drawn(random.Random(1)).tables)
    text = "SELECT COUNT(*) FROM stays WHERE id NOT IN (SELECT id FROM labs WHERE ward = 'x')"
    assert ward.ours(text) == ward.theirs(text) == 1
    with duckdb.connect() as engine:
        for name, table in rows.items():
            engine.register(name, table)
        assert engine.execute(text).fetchone()[0] == 0
