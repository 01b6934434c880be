"""Values and predicates on the engines mean what the plain-Python evaluator says, on columns full of corners."""

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.engines.compile import predicate, value
from sfumato.engines.expressions import (
    EXPRESSIONS,
    AnyOf,
    Term,
    check,
    coalesce,
    col,
    columns_of,
    inside,
    type_of,
    when,
)
from sfumato.engines.expressions.measure import LARGEST
from sfumato.engines.sources import Source
from sfumato.engines.totals import brought_out
from sfumato.errors import InvalidInput
from tests.engines.asking import FEW, LENGTH, Asked, ask, differences, expected
from tests.engines.corners import TYPES, frame, rows
from tests.engines.corpus import PREDICATES, VALUES
from tests.engines.fuzz import anything
from tests.engines.loading import on

CORPUS: list[Asked] = [*VALUES, *PREDICATES]
THIRD = [  # for Spark, which plans each expression for a fifth of a second
    *CORPUS[2::3],
    col("text").concat("-", col("word")),
    col("moment") - col("later") > timedelta(days=2),
    col("text").substring(2, 3),
]
ENGINES = ["DuckDB", "PostgreSQL", pytest.param("Spark", marks=pytest.mark.long)]
DEEP = 7  # of what is at the limits, the first are nested deeply; others are only large
LONG = os.environ.get("SFUMATO_LONG") == "1"


@pytest.fixture(params=ENGINES, scope="module")
def source(request: pytest.FixtureRequest) -> Source:
    """All corners, on one engine."""
    engine = request.param
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    return on(engine, frame(LENGTH), "corners", url=url, session=session)


@pytest.fixture
def slow(source: Source) -> bool:
    """Whether the engine plans so long that part must do, but for the long run of all tests."""
    return source.engine == "Spark" and not LONG


@cache
def few() -> Source:
    return Source(frame(FEW))


@pytest.mark.parametrize(("corpus", "least"), [(CORPUS, 300), (THIRD, 100)], ids=["all", "a third"])
def test_the_corpus_has_every_node_of_the_grammar_and_more_than_a_hundred_expressions(
    corpus: list[Asked], least: int
) -> None:
    kinds: set[type] = set()

    def visit(node: Any) -> None:
        kinds.add(type(node))
        for part in inside(node):
            visit(part)

    for one in corpus:
        visit(one.node if isinstance(one, Term) else one)
    absent = {kind.KIND for kind in EXPRESSIONS if kind not in kinds}
    assert absent == {"value.branch"}  # which is inside its choice
    assert len(corpus) >= least


def test_every_expression_of_the_corpus_tells_rows_apart() -> None:
    """An expression that says the same of every row would agree with many a fault; those that do, are meant to."""
    same = [one for one in THIRD if columns_of(one) and len(set(map(repr, expected(one, rows(LENGTH))))) == 1]
    assert len(same) <= 5


@pytest.mark.few(1)
def test_the_corpus_means_the_same_on_every_engine(source: Source, slow: bool) -> None:
    corpus = THIRD if slow else CORPUS
    answers = ask(corpus, source, at_once=80)
    assert differences(corpus, answers, rows(LENGTH)) == []


@pytest.mark.few(1)
def test_rows_are_kept_by_the_same_rule_that_is_told(source: Source, slow: bool) -> None:
    """A condition in a filter may be moved, split or folded by an optimiser; the rows it keeps stay the same."""
    for one in PREDICATES[::20] if slow else PREDICATES[::3]:
        with source.opened() as table:
            found = brought_out(table.filter(predicate(one, table)).select("place"))["place"]
        meant = [place for place, kept in enumerate(expected(one, rows(LENGTH))) if kept]
        assert sorted(found) == meant


def test_every_row_is_told_by_itself_alone() -> None:
    """Turned around, or with every third row gone, each row that is left is told the same."""
    together = ask(THIRD, few())
    turned, fewer = frame(FEW).take(list(range(FEW))[::-1]), frame(FEW).take(list(range(0, FEW, 3)))
    assert ask(THIRD, Source(turned)) == together
    assert ask(THIRD, Source(fewer)) == [answers[::3] for answers in together]


def grown(one: Any, step: Callable[[Any, int], Any]) -> Any:
    """Nested by one step after another, until the next would be refused."""
    for place in range(100):
        try:
            more = step(one, place)
            type_of(more, TYPES) if isinstance(more, Term) else check(more, TYPES)
        except InvalidInput:
            return one
        one = more
    raise AssertionError("there is no limit")


@cache
def at_the_limits() -> list[Asked]:
    """As deep and as large as is let through."""
    number, amount, whole, other, tiny = col("number"), col("amount"), col("whole"), col("other"), col("tiny")
    return [
        grown(number, lambda it, _: it * amount),
        grown(whole, lambda it, _: it * other),
        grown(number, lambda it, place: 1 / it if place % 2 else it / amount),
        grown(whole, lambda it, place: it - other if place % 3 else it + tiny),
        grown(number, lambda it, place: it + amount if place % 2 else it - 0.1),
        grown(number, lambda it, place: -it if place % 2 else abs(it)),
        grown(number, lambda it, place: when(tiny == place).then(amount).otherwise(coalesce(it, place))),
        grown(number, lambda it, place: when(it > place).then(number).otherwise(amount)),
        grown(whole, lambda it, place: (it.cast("number") / 2).cast("whole")),
        grown(number, lambda it, place: (it * 2).floor()),
        grown(col("code"), lambda it, place: it.cast("whole").cut([-12, 0, 7], labels=["1", "12"], above=False)),
        grown(tiny == 1000, lambda it, place: (col("natural") > place) & ~it | (tiny == place)),
        AnyOf(parts=tuple(whole == place for place in range(LARGEST // 5))),
        whole.isin(range(-(2**63), -(2**63) + 300)),
        col("text").isin([*(f"x{place}" for place in range(300)), "é"]),
    ]


@pytest.mark.long
@pytest.mark.no_cover  # measuring would double its time
def test_what_is_as_deep_and_large_as_is_let_through_runs_everywhere(source: Source, slow: bool) -> None:
    asked = at_the_limits()[::14] if slow else at_the_limits()
    assert differences(asked, ask(asked, source, at_once=4), rows(LENGTH)) == []


@pytest.mark.long
def test_nothing_that_is_let_through_exhausts_the_stack() -> None:
    """Printers of SQL recurse; a service or a test runner has used part of the stack before."""
    with few().opened() as table:
        for one in at_the_limits()[:DEEP]:
            assert deepest(lambda one=one: table.get_backend().compile(table.select(x=compiled(one, table)))) < 650


def compiled(one: Asked, table: Any) -> Any:
    return value(one, table) if isinstance(one, Term) else predicate(one, table)


def deepest(work: Callable[[], object]) -> int:
    """How many calls are open at most while something is done."""
    now = most = 0

    def seen(_frame: object, event: str, _argument: object) -> None:
        nonlocal now, most
        now += (event == "call") - (event == "return")
        most = max(most, now)

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return most


@pytest.mark.long
@pytest.mark.no_cover  # measuring would double its time
@settings(
    max_examples=1000 if LONG else 20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(several=st.lists(anything(3), min_size=10, max_size=20))
def test_random_expressions_mean_the_same(several: list[Asked]) -> None:
    assert differences(several, ask(several, few()), rows(FEW)) == []
