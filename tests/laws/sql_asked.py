"""Plans asked twice: of this product, by the way of a release up to its noise, and of DuckDB without any.

DuckDB is given the tables as they are read here: rows of nobody are gone, NaN is missing, and a moment with a zone is
what the clock there shows. Groups without rows count 0, and a sum of nothing is 0. These are all departures from SQL
(docs/how-to/sql.md).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa

import sfumato as sf
from sfumato.core.limits import Limit
from sfumato.core.question import Question
from sfumato.core.release import Release, presenter_of
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit
from sfumato.engines.sufficient_statistics import RowIndicator
from sfumato.errors import InvalidInput, NotDeclared, Unsupported
from sfumato.tables.measures.row_count import RowCount
from sfumato.tables.queries import aggregate as sums
from sfumato.tables.queries.count import ONE_ROW
from sfumato.tables.statistic_plan import Block
from tests.laws.sql_plans import Plan
from tests.laws.sql_scenes import BOUNDS, FIRST_DAY, KEYS, LAST_DAY, Scene, on_clock

WIDE = Limit(groups=64, rows_per_group=2048)  # cuts nothing of what is drawn here
SECRET = "a secret that all engines share"  # noqa: S105
NEAR = 1e-6


class Differs(AssertionError):
    """What we say before noise is not what DuckDB says."""


@dataclass(frozen=True, slots=True)
class Exact:
    """The exact numbers of a question, and how far one unit may move them."""

    question: Question
    numbers: list[int]
    bound: Sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class Together(sums.Aggregate):
    """Several questions about the same rows and groups, added up in one query: compiling it is what takes time."""

    questions: tuple[Any, ...] = ()

    @classmethod
    def of(cls, questions: Sequence[Any]) -> "Together":
        """Those questions."""
        one, count = questions[0], (RowCount(name="n"),)
        return cls(
            dataset=one.dataset, measures=count, where=one.where, by=one.by, joins=one.joins, questions=tuple(questions)
        )

    @property
    def blocks(self) -> tuple[Block, ...]:
        """What all of them add up, each once."""
        found: dict[Any, Block] = {}
        for question in self.questions:
            for block in _blocks(question):
                found.setdefault(block.gauge, block)
        return tuple(found.values())

    def dealt(self, numbers: Sequence[int]) -> list[list[int]]:
        """The numbers of each question among those of all."""
        places, first = {}, 0
        for block in self.blocks:
            width = block.reach.numbers * self.cells
            places[block.gauge] = numbers[first : first + width]
            first += width
        assert first == len(numbers)
        return [[each for block in _blocks(one) for each in places[block.gauge]] for one in self.questions]


def _blocks(query: Any) -> tuple[Block, ...]:
    """What a question adds up."""
    if isinstance(query, sums.Aggregate):
        return query.blocks
    gauge = RowIndicator(height=1)
    return (Block(key=gauge, gauge=gauge, reach=ONE_ROW),)


class Asked:
    """A vault with the tables of a scene, on any engine."""

    def __init__(
        self,
        scene: Scene,
        *,
        unit: Unit | None = None,
        limit: Limit = WIDE,
        beside: Limit | None = None,
        relimited: Limit | None = None,
        sources: Mapping[str, object] | None = None,
    ) -> None:
        self.scene = scene
        self.unit = unit or sf.user("id", relation="add/remove")
        self.vault = sf.Vault(unit=self.unit, budget=sf.Budget(epsilon=9), name="fuzz")
        self.vault._stores["tables"]._secret = SECRET  # type: ignore[attr-defined]
        given = sources or scene.rows
        period = (FIRST_DAY, LAST_DAY)
        self.tables = {
            name: self.vault.table(
                given[name],
                name=name,
                version="1",
                limit=limit if name == "stays" or beside is None else beside,
                keys=KEYS,
                bounds={**BOUNDS, "day": period, "at": period} | ({"seen": period} if scene.zone else {}),
                zones={"seen": scene.zone} if scene.zone else None,
            )
            for name in ("stays", "labs")
        }
        self.relimited = self.tables["stays"] if relimited is None else self.tables["stays"].with_limit(relimited)
        self.wards = self.vault.public(scene.wards, name="wards")

    def question(self, plan: Plan) -> Question:
        """The plan as a question, under the other limit where it may have one; nothing is read."""
        try:
            return self.relimited.sql(plan.text, self.tables["labs"], self.wards)
        except InvalidInput:
            # Of rows that a private join has cut no row of a person is made under another limit.
            if self.relimited is self.tables["stays"] or not any("private join" in trait for trait in plan.traits):
                raise
            return self.tables["stays"].sql(plan.text, self.tables["labs"], self.wards)

    def exact(self, plan: Plan) -> Exact:
        """All that a release does before it draws."""
        question = self.question(plan)
        store, query, bound = self._checked(question)
        return Exact(question, [int(each) for each in store.read(query)], bound)

    def together(self, plans: Sequence[Plan]) -> list[Exact | None]:
        """The same for several plans, those about the same rows and groups in one query; None where one is refused."""
        found: list[Exact | None] = [None] * len(plans)
        alike: dict[tuple[Any, ...], list[tuple[int, Question, Sensitivity]]] = {}
        stores = {}
        for place, plan in enumerate(plans):
            try:
                question = self.question(plan)
            except (NotDeclared, Unsupported):
                continue
            store, query, bound = self._checked(question)
            rows = (query.dataset, query.where, query.by, query.joins)
            alike.setdefault(rows, []).append((place, question, bound))
            stores[rows] = store
        for rows, some in alike.items():
            asked = Together.of([question.query for _, question, _ in some])
            dealt = asked.dealt([int(each) for each in stores[rows].read(asked)])
            for (place, question, bound), numbers in zip(some, dealt, strict=True):
                found[place] = Exact(question, numbers, bound)
        return found

    def _checked(self, question: Question) -> tuple[Any, Any, Sensitivity]:
        """The store that answers, the query, and how far one unit moves it, once a release would have been allowed."""
        gate: Any = question._gate
        store, query = getattr(gate, "_gate", gate)._store(question.query)
        bound = query.sensitivity(self.unit, store.limit(query))
        store.check_fit(query)
        return store, query, bound

    @cached_property
    def _drawn(self) -> Release:
        return self.tables["stays"].count().release(epsilon=1)

    def answer(self, exact: Exact) -> list[tuple[Any, ...]]:
        """The answer as it is shown, had no noise been drawn: the keys and the columns of each row."""
        drawn, question = self._drawn, exact.question
        statement = replace(drawn.statement, query=question.query, values=tuple(exact.numbers))
        release = replace(drawn, presenter=presenter_of(drawn), statement=statement, view=question.view)
        columns = [[_plain(each) for each in column.values] for column in release.columns.values()]
        return list(zip(*release.labels.values(), *columns, strict=True))


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


class Truth:
    """DuckDB with the same tables, as they are meant here."""

    def __init__(self, scene: Scene) -> None:
        self.engine = duckdb.connect()
        self.engine.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        self.engine.execute("SET ieee_floating_point_ops = false; SET threads = 1")
        for name, rows in scene.rows.items():
            if scene.zone:
                shown = on_clock(rows["seen"], scene.zone)
                rows = rows.set_column(rows.column_names.index("seen"), "seen", shown)
            self.engine.register(f"all_{name}", rows)
            known = ", ".join(f"CASE WHEN isnan({x}) THEN NULL ELSE {x} END AS {x}" for x in ("half", "tenth"))
            self.engine.execute(
                f"CREATE TABLE {name} AS SELECT * REPLACE ({known}) FROM all_{name} WHERE id IS NOT NULL"  # noqa: S608
            )
        self.engine.register("all_wards", scene.wards)
        self.engine.execute("CREATE TABLE wards AS SELECT * FROM all_wards")

    def answer(self, plan: Plan, labels: Mapping[str, Sequence[Any]]) -> list[tuple[Any, ...]]:
        """The answer of DuckDB; ``labels`` are ours, used for keys alone whose values follow from the question."""
        listed = {
            f"k{place}": list(dict.fromkeys(labels[f"k{place}"])) if key.values is None else list(key.values)
            for place, key in enumerate(plan.keys)
        }
        found = self.engine.execute(plan.theirs(listed)).fetchall()
        return [tuple(each.isoformat() if isinstance(each, date) else each for each in row) for row in found]

    def close(self) -> None:
        self.engine.close()


def compare(plan: Plan, ours: Sequence[tuple[Any, ...]], theirs: Sequence[tuple[Any, ...]]) -> None:
    """Raise where the two differ; rows without an order are compared by their keys."""
    if not plan.order:
        ours, theirs = (sorted(rows, key=lambda row: tuple(map(str, row[: len(plan.keys)]))) for rows in (ours, theirs))
    if len(ours) != len(theirs) or not all(
        _alike(mine, other) for one, two in zip(ours, theirs, strict=True) for mine, other in zip(one, two, strict=True)
    ):
        raise Differs(f"{plan.text}\nours:   {list(ours)}\ntheirs: {list(theirs)}")


def _alike(mine: Any, other: Any) -> bool:
    if mine is None or other is None or isinstance(mine, str | bool):
        return bool(mine == other)
    if isinstance(mine, int) and isinstance(other, int):
        return mine == other
    return abs(Fraction(mine) - Fraction(other)) <= NEAR * max(1, abs(Fraction(other)))


def shuffled(scene: Scene, order: Sequence[int]) -> dict[str, pa.Table]:
    """The same rows, stored otherwise."""
    return {
        name: rows.take(pa.array([place for place in order if place < rows.num_rows], pa.int64()))
        for name, rows in scene.rows.items()
    }
