"""The fuzzer of the query language: random questions about random tiny tables, held to what they claim.

One *batch* is a set of neighbours, a condition, keys, a unit and a limit, with several questions that differ in what
they measure. All of a batch is one query of the engine, over all neighbours at once. Each question is a plan of its
own, judged by its own claim under both relations; and what the engine adds up must be what the grammar says, worked
out in plain Python.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import Relation
from sfumato.engines import bounded
from sfumato.engines.expressions import Date, Expression, Type, Value, col, possible_values, written
from sfumato.engines.sufficient_statistics import Gauge, RowIndicator
from sfumato.tables.clamped import Clamped
from sfumato.tables.execution import key_column
from sfumato.tables.keys import Keys
from sfumato.tables.measure import Measure
from sfumato.tables.measures.association import Association
from sfumato.tables.measures.average import MeanValue
from sfumato.tables.measures.person_count import PersonCount
from sfumato.tables.measures.proportion import Proportion
from sfumato.tables.measures.quotient import Quotient
from sfumato.tables.measures.row_count import RowCount
from sfumato.tables.measures.total import Total
from sfumato.tables.measures.variation import Variation
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count
from tests.engines import corners, fuzz
from tests.engines.truth import Row, holds, leaf, value_of
from tests.laws import gauge_by_hand as by_hand
from tests.laws.neighbours import Neighbours, around_couples, around_persons, around_records, violations
from tests.laws.plans import engine
from tests.laws.readings import laid_out
from tests.laws.scenarios import LIMITS, limit_for, share_for, unit_of
from tests.laws.seeds import seeds

DATA = Dataset(name="rows", edition="1")
LENGTH = 120  # how many different rows there are
PEOPLE = ["p", "P", "", "é"]
NEWCOMERS = ("newcomer", "another")
BOUNDS = [(0, 1), (-1, 1), (-3, 65), (1, 3), (-65, -1), (0, 2**31), (-(2**53), 2**62)]
CASTS = [*[col("code").cast("whole")] * 2, col("number").cast("whole"), col("whole").cast("number")]
OFTEN = ["user", "family", "record", "user"]
BINS = st.sampled_from([col("number").cut([0], above=True, below=True), col("number").cut([-1, 1], below=True)])
PLANS = 32  # in a batch: what they add up is soon all there is to add up, and adding it up is what takes time
Question = Count | Aggregate


class Held(NamedTuple):
    """A row: whose it is, and the number of its cells in the pool."""

    person: str | None
    place: int


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Batch:
    """Questions that share a condition, keys, a unit and a limit, and the tables to ask them of."""

    kind: str
    limit: Limit
    where: Expression | None
    by: tuple[Keys, ...]
    values: tuple[Clamped, ...]
    recipes: tuple[tuple[Measure, ...], ...]
    number: int | None
    around: Neighbours

    @property
    def relations(self) -> list[Relation]:
        """What "neighbour" may mean here."""
        return list(Relation) if self.number is None else [Relation.REPLACE]

    @property
    def questions(self) -> list[Question]:
        """What is asked, in the words of the caller."""
        plain: list[Question] = [Count(dataset=DATA, where=self.where, by=self.by)] if self.number is None else []
        return plain + [
            Aggregate(dataset=DATA, measures=measures, where=self.where, by=self.by, number=self.number)
            for measures in self.recipes
        ]

    def __repr__(self) -> str:
        about = ", ".join(f"{written(of.value)} in [{of.low}, {of.high}]" for of in self.values)
        where = "everything" if self.where is None else written(self.where)
        return f"{self.kind}, {self.limit}, where {where}, by {self.by}, values {about}"[:2000]


class Moved(AssertionError):
    """Neighbours are further apart than a question claims."""


class Wrong(AssertionError):
    """The engine does not answer what the grammar says."""


@cache
def pool() -> pa.Table:
    """The cells that rows are made of."""
    return corners.frame(LENGTH)


def meant() -> Sequence[Row]:
    """The same for plain Python."""
    return corners.rows(LENGTH)


@cache
def lots() -> list[list[int]]:
    """Kinds of rows that are drawn as often as any: without a number, and with a code that is one."""
    code = col("code").cast("whole")
    return [
        [place for place, row in enumerate(meant()) if leaf(row["number"]) is None],
        [place for place, row in enumerate(meant()) if value_of(code, row) is not None],
    ]


# ----------------------------------------------------------------------------------------------------- what is drawn


@st.composite
def batches(draw: st.DrawFn, several: int = PLANS) -> Batch:
    """Any batch, of so many plans."""
    kind, limit = draw(st.sampled_from(OFTEN)), draw(st.sampled_from(LIMITS))
    places = st.one_of(st.integers(0, LENGTH - 1), *(st.sampled_from(lot) for lot in lots()))
    palette = draw(st.lists(places, min_size=2, max_size=5, unique=True))
    conditions = [draw(fuzz.predicates(draw(st.integers(0, 2)))) for _ in range(2)]
    values = tuple(draw(ranged()) for _ in range(2))
    where: Expression | None = draw(st.one_of(st.none(), st.none(), fuzz.predicates(1)))
    by = draw(keys(palette))
    number = None
    if kind != "family" and draw(st.integers(0, 9)) == 7:  # simple draws are common: 0 would be far too many
        number, where, by, limit = 5, None, (), LIMITS[0]
    recipes = draw(
        st.lists(measures(conditions, values, everyone=number is not None), min_size=several - 1, max_size=several - 1)
    )
    around = draw(neighbours(kind, palette))
    return Batch(kind=kind, limit=limit, where=where, by=by, values=values, recipes=tuple(recipes), number=number,
                 around=around)  # fmt: skip


@st.composite
def ranged(draw: st.DrawFn) -> Clamped:
    """A value of the closed grammar, held to bounds."""
    kind = draw(st.sampled_from([Type.WHOLE, Type.NUMBER]))
    term = draw(st.sampled_from(CASTS) if draw(st.booleans()) else fuzz.terms(kind, draw(st.integers(0, 2))))
    low, high = draw(st.sampled_from(BOUNDS))
    if draw(st.integers(0, 3)) == 0:
        term = term.clip(low, high)
    return ranged_of(term.node, low, high)


def ranged_of(of: Value, low: Any, high: Any) -> Clamped:
    """A value and its bounds as rationals."""
    return Clamped(value=of, low=Fraction(low), high=Fraction(high))


@st.composite
def measures(
    draw: st.DrawFn, conditions: Sequence[Expression], values: Sequence[Clamped], *, everyone: bool
) -> tuple[Measure, ...]:
    """One to three measures of the two values and the two conditions."""
    found: list[Measure] = []
    for place in range(draw(st.integers(1, 3))):
        of, other = draw(st.permutations(values))
        condition = draw(st.sampled_from(conditions))
        name = f"m{place}"
        choices: list[Measure] = [
            Total(name=name, of=of),
            MeanValue(name=name, of=of),
            Variation(name=name, of=of, root=draw(st.booleans())),
        ]
        if not everyone:
            choices += [
                RowCount(name=name),
                RowCount(name=name, condition=condition),
                PersonCount(name=name),
                Proportion(name=name, condition=condition),
                Quotient(name=name, over=of, under=other),
                Association(name=name, first=of, second=other, scaled=draw(st.booleans())),
            ]
        found.append(draw(st.sampled_from(choices)))
    return tuple(found)


@st.composite
def keys(draw: st.DrawFn, palette: Sequence[int]) -> tuple[Keys, ...]:
    """Up to two keys, by column or computed; most of their values occur, and not all that occur are declared."""
    several = draw(st.sampled_from([1, 2, 1, 0]))
    found = []
    for place in range(several):
        kind = draw(st.sampled_from([Type.TEXT, Type.TEXT, Type.TEXT, Type.WHOLE, Type.TRUTH, Type.DATE]))
        plain = [name for name in fuzz.OF[kind] if name != "moment"]
        computed = draw(st.integers(0, 2)) > 0
        term = col(draw(st.sampled_from(plain)))
        if computed:
            term = draw(st.one_of(fuzz.cuts(1), BINS) if kind is Type.TEXT else fuzz.terms(kind, 2))
        occurring = [value_of(term, meant()[row]) for row in palette]
        occurring += [*(possible_values(term) or [draw(st.sampled_from(fuzz.LITERALS[kind]))])][:4]
        listed = list(dict.fromkeys(_key(it) for it in occurring if it is not None))
        values = tuple(listed[: draw(st.sampled_from([3, 2, 4, 1]))])
        other = "the rest" if kind is Type.TEXT and draw(st.booleans()) else None
        column = f"key{place}" if computed else written(term.node)
        found.append(Keys(column=column, values=values, value=term.node if computed else None, other=other))
    return tuple(found) if len({one.column for one in found}) == several else tuple(found[:1])


def _key(given: Any) -> Any:
    return Date(given.isoformat()) if isinstance(given, date) else given


@st.composite
def neighbours(draw: st.DrawFn, kind: str, palette: Sequence[int]) -> Neighbours:
    """A table and its neighbours, all of rows from a few kinds, so that persons have several alike."""
    rows = st.builds(Held, st.sampled_from([*PEOPLE, None]), st.sampled_from(palette))
    table = tuple(draw(st.lists(rows, min_size=draw(st.sampled_from([6, 3, 0])), max_size=9)))
    if kind == "record":
        return around_records(table, [Held(draw(st.sampled_from(PEOPLE)), place) for place in palette])
    row_sets = [tuple(draw(st.lists(rows, max_size=6))) for _ in range(2)]
    row_sets += [(Held(None, place),) * draw(st.integers(1, 4)) for place in palette[:3]]
    row_sets.append(tuple(Held(None, place) for place in palette for _ in range(draw(st.integers(1, 3)))))
    if kind == "user":
        return around_persons(table, row_sets, newcomer=NEWCOMERS[0])
    return around_couples(table, row_sets[:4], newcomers=NEWCOMERS)


# ----------------------------------------------------------------------------------------------------- what is asked


@dataclass(frozen=True, eq=False, kw_only=True)
class Answers:
    """The exact numbers of every question in every world."""

    numbers: dict[Gauge, np.ndarray]
    questions: list[Question]
    gauges: list[list[Gauge]] = field(default_factory=list)

    def of(self, place: int) -> np.ndarray:
        """Those of one question, one row for each world."""
        return np.concatenate([self.numbers[gauge] for gauge in self.gauges[place]], axis=1)


def gauges_of(question: Question) -> list[Gauge]:
    """What a question adds up."""
    return [RowIndicator(height=1)] if isinstance(question, Count) else [block.gauge for block in question.blocks]


def asked(batch: Batch) -> Answers:
    """Ask everything of one batch in one query."""
    source = _registered(framed(batch.around.worlds), "fuzzed")
    questions = batch.questions
    each = [gauges_of(question) for question in questions]
    gauges = list(dict.fromkeys(gauge for some in each for gauge in some))
    key_columns = [key_column(one) for one in batch.by]
    plan = bounded.totals_by_cell(
        source,
        where=batch.where,
        keys=key_columns,
        share=share_for(batch.kind, batch.limit),
        gauges=gauges,
        world="world",
    )
    worlds, cells = len(batch.around.worlds), prod(one.size for one in batch.by)
    found = laid_out(plan.to_pyarrow(), worlds=worlds, cells=cells)
    numbers, first = {}, 0
    for gauge in gauges:
        width = cells * len(_zero(gauge))
        numbers[gauge] = found[:, first : first + width]
        first += width
    return Answers(numbers=numbers, questions=questions, gauges=each)


def framed(worlds: Sequence[Sequence[Held]]) -> pa.Table:
    """Many small tables as one, told apart by ``world``."""
    rows = [(world, row.person, row.place) for world, table in enumerate(worlds) for row in table]
    table = pool().take(pa.array([place for *_, place in rows], pa.int64()))
    table = table.append_column("world", pa.array([world for world, *_ in rows], pa.int64()))
    return table.append_column("person", pa.array([person for _, person, _ in rows], pa.string()))


def _registered(table: pa.Table, name: str) -> Any:
    engine().con.register(name, table)
    return engine().table(name)


def _zero(gauge: Gauge) -> list[int]:
    """As many numbers as the gauge has parts."""
    row = by_hand.of_row(gauge, _Blank())
    return by_hand.of_record(gauge, row)


class _Blank(Row):
    """A row in which everything is missing."""

    def __init__(self) -> None:
        super().__init__({}, frozenset())

    def __missing__(self, _: str) -> None:
        return None


# ---------------------------------------------------------------------------------------------------- what must hold


def judge(batch: Batch) -> int:
    """Hold every question of a batch to its claim, and the engine to the grammar; the number of plans judged."""
    answers = asked(batch)
    for place, question in enumerate(answers.questions):
        numbers = answers.of(place)
        for relation in batch.relations:
            claim = question.sensitivity(unit_of(batch.kind, relation), limit_for(batch.kind, batch.limit))
            broken = violations(lambda _, it=numbers: it, claim, around=batch.around, relation=relation)
            if broken:
                raise Moved(f"{broken} under {relation.value}, {question}: {batch}")
    compare(batch, answers)
    return len(answers.questions)


def compare(batch: Batch, answers: Answers) -> None:
    """The totals of the first worlds in plain Python, where no group of a person is left out."""
    cells = prod(one.size for one in batch.by)
    if batch.kind != "record" and batch.limit.groups < cells:
        return
    places = _cells(batch)
    for gauge, found in answers.numbers.items():
        of_row = cache(lambda place, it=gauge: by_hand.of_row(it, meant()[place]))
        for world, table in list(enumerate(batch.around.worlds))[:8]:
            parts = np.zeros((len(_zero(gauge)), cells), dtype=object)
            for rows, cell in _shares(batch, table, places):
                sums = [sum(column) for column in zip(*(of_row(row.place) for row in rows), strict=True)]
                amounts = (
                    by_hand.of_record(gauge, sums)
                    if batch.kind == "record"
                    else by_hand.of_person(gauge, sums, batch.limit.rows_per_group)
                )
                parts[:, cell] += amounts
            if parts.reshape(-1).tolist() != found[world].tolist():
                raise Wrong(f"{gauge}: {found[world].tolist()}, and not {parts.reshape(-1).tolist()}: {batch}")


def _cells(batch: Batch) -> dict[int, int | None]:
    """The cell of each row that is used, None where it does not count."""
    cells = {cell: number for number, cell in enumerate(product(*(range(one.size) for one in batch.by)))}
    found: dict[int, int | None] = {}
    for place in {row.place for table in batch.around.worlds for row in table}:
        row = meant()[place]
        codes = [_code(one, row) for one in batch.by]
        counts = batch.where is None or holds(batch.where, row)
        found[place] = None if None in codes or not counts else cells[tuple(codes)]  # type: ignore[arg-type]
    return found


def _code(one: Keys, row: Row) -> int | None:
    held = _key(value_of(col(one.column).node if one.value is None else one.value, row))
    if held in one.values:
        return one.values.index(held)
    return len(one.values) if one.other is not None else None


def _shares(batch: Batch, table: Sequence[Held], places: dict[int, int | None]) -> Iterator[tuple[list[Held], int]]:
    """The rows of each person in each cell; or each row by itself."""
    shares: dict[tuple[str, int], list[Held]] = {}
    for row in table:
        cell = places[row.place]
        if cell is None:
            continue
        if batch.kind == "record":
            yield [row], cell
        elif row.person is not None:
            shares.setdefault((row.person, cell), []).append(row)
    for (_, cell), rows in shares.items():
        yield rows, cell


# ----------------------------------------------------------------------------------------------------------- the hunt


def hunt(plans: int, *, several: int = PLANS) -> int:
    """Judge at least so many random plans, several to a batch; raises at the first that fails. How many were judged."""
    judged, starts = 0, seeds()
    while judged < plans:
        start = next(starts)
        try:
            judged += sum(judge(batch) for batch in round_of(start, several))
        except Exception as failure:
            failure.add_note(f"found in round_of({start}, {several})")
            raise
    return judged


def round_of(start: int, several: int) -> list[Batch]:
    """Eight or nine batches, the same for the same start, and none of them made of another.

    After ten examples Hypothesis goes on with copies of what it drew, changed in one place: of 135 batches 64 were
    different ones. The first example of every round is the simplest there is; it and those like it are left out.
    """
    found: list[Batch] = []

    @seed(start)
    @settings(
        max_examples=10, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(batch=batches(several))
    def draw(batch: Batch) -> None:
        found.append(batch)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisWarning)  # a batch is long to write down
        draw()
    return [batch for batch in found if batch.around.worlds != found[0].around.worlds]
