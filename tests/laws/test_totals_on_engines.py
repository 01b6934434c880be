"""The bounded totals on PostgreSQL and Spark: the same whole numbers as on DuckDB, and the same laws.

A fixed corpus of questions about a generated table full of nulls, NaN, infinities, extreme whole numbers, -0.0, empty
groups and letters beyond ASCII. Questions with the same condition, keys and limit share one query.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import Relation
from sfumato.engines.bounded import Share, bounded_totals, totals_by_cell
from sfumato.engines.expressions import Expression, col, greatest, when
from sfumato.engines.sources import Source
from sfumato.engines.sufficient_statistics import Gauge
from sfumato.engines.totals import brought_out
from sfumato.tables.clamped import Clamped
from sfumato.tables.contribution import contribution, joint_reach
from sfumato.tables.execution import key_column
from sfumato.tables.keys import Keys, keys_of
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
from tests.engines import corners
from tests.engines.loading import in_postgres, on
from tests.laws.neighbours import Neighbours, violations
from tests.laws.readings import GAUGES, LAYOUTS, Layout, frame, laid_out
from tests.laws.scenarios import LIMITS, SECRET, limit_for, share_for, unit_of
from tests.laws.test_gauge_neighbours import ALONE, columns

pytestmark = pytest.mark.no_cover  # thousands of plans: measuring coverage would double their time

LENGTH = 240
PEOPLE = ["", "p", "P", "p ", "é", "e\u0301", "区", "\U0001f469\u200d\u2695", "it's", "\\", "\x1f", None]
DATA = Dataset(name="rows", edition="1")


def ranged(term: Any, low: Any, high: Any) -> Clamped:
    return Clamped(value=term.node, low=Fraction(low), high=Fraction(high))


NUMBER = ranged(col("number"), -3, 65)
WIDE = ranged(col("amount"), -(10**300), 10**300)
WHOLE = ranged(col("whole"), -(2**63), 2**63)
SMALL = ranged(col("tiny") + col("other"), 0, 1)
MIXED = ranged(greatest(col("number") * 2 + col("whole"), col("amount") / col("tiny")), Fraction(-1, 3), 1000)
CHOSEN = ranged(when(col("truth") == True).then(col("code").cast("whole")).otherwise(col("natural")), -12, 12)  # noqa: E712
LATE = col("day") >= corners.DAYS[9]
ODD = ~(col("number") < 1) | (col("text").isin(["é", "区", ""]))
MEASURES: list[tuple[Measure, ...]] = [
    (RowCount(name="n"), MeanValue(name="m", of=NUMBER)),
    (RowCount(name="n", condition=LATE), PersonCount(name="p")),
    (Total(name="s", of=WIDE), Total(name="t", of=WHOLE)),
    (Variation(name="v", of=MIXED), RowCount(name="n")),
    (Proportion(name="p", condition=ODD), MeanValue(name="m", of=SMALL)),
    (Quotient(name="q", over=CHOSEN, under=NUMBER),),
    (Association(name="c", first=NUMBER, second=CHOSEN),),
    (Association(name="r", first=WIDE, second=SMALL, scaled=True), PersonCount(name="p")),
]
BINS = col("number").cut([0, 1, 65], below=True)
KEYS: dict[str, tuple[Keys, ...]] = {
    "none": (),
    "text": (Keys(column="text", values=("é", "e\u0301", "a", "A", "never", "", "\U0001f600"), other="else"),),
    "whole": (Keys(column="whole", values=(0, 2**63 - 1, -(2**63), 2**53, 2**53 + 1)),),
    "truth and bins": (
        Keys(column="truth", values=(True, False)),
        Keys(column="bin", value=BINS.node, values=("< 0", "[0, 1)", "[1, 65)"), other="missing or more"),
    ),
    "days": (keys_of("day", corners.DAYS[6:12]),),
}
WHERE: dict[str, Expression | None] = {"all": None, "odd": ODD}
LIMITED: list[Limit | None] = [None, Limit(groups=2, rows_per_group=1), Limit(groups=1, rows_per_group=3)]
# Every condition meets some keys, every key every limit: thirteen queries, eight questions each.
ASKED = [
    *(("all", keys, limit) for keys, limit in product(KEYS, LIMITED) if limit != LIMITED[2] or keys.startswith("t")),
    ("odd", "truth and bins", LIMITED[1]),
]  # fmt: skip
Asked = tuple[str, str, Limit | None, tuple[tuple[Measure, ...], ...]]
WHOLE_CORPUS: tuple[Asked, ...] = tuple((*asked, tuple(MEASURES)) for asked in ASKED)
# Every question, condition, limit and type of key once, in four queries.
EACH_ONCE: tuple[Asked, ...] = (
    ("all", "whole", LIMITED[0], tuple(MEASURES[:1])),
    ("all", "days", LIMITED[1], tuple(MEASURES[1:2])),
    ("all", "text", LIMITED[2], tuple(MEASURES[2:4])),
    ("odd", "truth and bins", LIMITED[1], tuple(MEASURES[4:])),
)
CORPORA = {"each once": EACH_ONCE, "all": WHOLE_CORPUS}


@cache
def rows() -> pa.Table:
    """The table."""
    found = corners.frame(LENGTH)
    people = [PEOPLE[(place * 7 + place // 5) % len(PEOPLE)] for place in range(LENGTH)]
    return found.append_column("person", pa.array(people, pa.string()))


def question(where: str, keys: str, measures: tuple[Measure, ...]) -> Aggregate:
    return Aggregate(dataset=DATA, measures=measures, where=WHERE[where], by=KEYS[keys])


def questions(corpus: str) -> list[tuple[str, str, Limit | None, tuple[Measure, ...]]]:
    return [(where, keys, limit, one) for where, keys, limit, some in CORPORA[corpus] for one in some]


def answers(source: Source, corpus: str) -> Iterator[list[list[int]]]:
    """The exact numbers of the corpus, one query for each condition, keys and limit."""
    for where, keys, limit, asked in CORPORA[corpus]:
        share = None if limit is None else Share(column="person", limit=limit, secret=SECRET)
        blocks = [question(where, keys, measures).blocks for measures in asked]
        gauges = list(dict.fromkeys(block.gauge for some in blocks for block in some))
        with source.opened() as table:
            found = bounded_totals(
                table, where=WHERE[where], keys=[key_column(one) for one in KEYS[keys]], share=share, gauges=gauges
            )
        yield from _dealt(found, gauges, [[block.gauge for block in some] for some in blocks], blocks)


def _dealt(
    found: list[list[int]], gauges: list[Gauge], each: list[list[Gauge]], blocks: Any
) -> Iterator[list[list[int]]]:
    """The columns of every question among those of all of them."""
    numbers = {block.gauge: block.reach.numbers for some in blocks for block in some}
    first, places = 0, {}
    for gauge in gauges:
        places[gauge] = found[first : first + numbers[gauge]]
        first += numbers[gauge]
    assert first == len(found)
    for some in each:
        yield [column for gauge in some for column in places[gauge]]


@cache
def expected(corpus: str) -> list[list[list[int]]]:
    """What DuckDB says."""
    return list(answers(Source(rows()), corpus))


BOTH = [("each once", 8, 7), pytest.param("all", 100, 90, marks=pytest.mark.long)]


@pytest.mark.long
@pytest.mark.parametrize(("corpus", "many", "different"), BOTH)
def test_the_corpus_has_many_questions_that_say_something(corpus: str, many: int, different: int) -> None:
    found = expected(corpus)
    assert len(found) == len(questions(corpus)) >= many
    assert all(any(number for column in one for number in column) for one in found)
    assert len({str(one) for one in found}) > different


def test_the_few_questions_have_every_measure_condition_limit_and_type_of_key() -> None:
    few = questions("each once")
    assert [one[3] for one in few] == MEASURES
    assert {one[0] for one in few} == set(WHERE)
    assert {one[1] for one in few} == set(KEYS) - {"none"}
    assert all(any(one[2] == limit for one in few) for limit in LIMITED)


@pytest.mark.few(1)
@pytest.mark.parametrize("corpus", ["each once", pytest.param("all", marks=pytest.mark.long)])
@pytest.mark.parametrize("engine", ["PostgreSQL", "Spark"])
def test_every_engine_adds_up_the_same_whole_numbers(engine: str, corpus: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    source = on(engine, rows(), "corpus", url=url, session=session)
    for place, found in enumerate(answers(source, corpus)):
        assert found == expected(corpus)[place], questions(corpus)[place]


# ------------------------------------------------------------------------------------------------ laws on PostgreSQL

Placed = Callable[[Neighbours, str], Source]


@pytest.mark.long
@pytest.mark.parametrize("relation", Relation, ids=lambda it: it.value)
@pytest.mark.parametrize(("name", "kind", "limit"), [
    pytest.param("two keys and the rest", "user", LIMITS[3], marks=pytest.mark.long),
    ("two keys and the rest", "record", LIMITS[0]),
    ("no keys", "user", LIMITS[1]),
    ("a computed key", "user", LIMITS[0]),
    pytest.param("two keys", "family", LIMITS[1], marks=pytest.mark.long),
])  # fmt: skip
def test_no_unit_moves_a_gauge_further_than_claimed_on_postgres(
    name: str, kind: str, limit: Limit, relation: Relation, postgres_url: str
) -> None:
    layout = LAYOUTS[name]
    found = on_postgres(layout, kind, limit, postgres_url)
    given = contribution(unit_of(kind, relation), limit_for(kind, limit))
    around = layout.neighbours(kind)
    for gauge in GAUGES:
        claim = joint_reach([ALONE[gauge]], given, cells=layout.cells)
        part = found[:, columns((gauge,), layout.cells)]
        assert violations(lambda _, it=part: it, claim, around=around, relation=relation) == [], gauge


@cache
def on_postgres(layout: Layout, kind: str, limit: Limit, url: str) -> Any:
    """The totals of all gauges in all worlds, from one query of the server."""
    around = layout.neighbours(kind)
    source = in_postgres(url, frame(around), f"readings_{kind}_{layout.cells}")
    with source.opened() as table:
        plan = totals_by_cell(
            table,
            where=None,
            keys=layout.keys,
            share=share_for(kind, limit),
            gauges=list(GAUGES.values()),
            world="world",
        )
        found = brought_out(plan)
    return laid_out(pa.table(found), worlds=len(around.worlds), cells=layout.cells)
