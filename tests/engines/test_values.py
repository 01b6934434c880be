"""Values and predicates on the engines mean what the plain-Python evaluator says, on columns full of corners."""

import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.engines.compile import predicate, value
from sfumato.engines.expressions import EXPRESSIONS, AnyOf, Term, coalesce, col, columns_of, inside, when
from sfumato.engines.sources import Source
from sfumato.engines.totals import brought_out
from tests.engines.asking import FEW, LENGTH, Asked, ask, differences, expected
from tests.engines.corners import frame, rows
from tests.engines.corpus import PREDICATES, VALUES
from tests.engines.fuzz import anything
from tests.engines.loading import on

CORPUS: list[Asked] = [*VALUES, *PREDICATES]
ENGINES = ["DuckDB", "PostgreSQL", "Spark"]


@pytest.fixture(params=ENGINES, scope="module")
def source(request: pytest.FixtureRequest) -> Source:
    """All corners, on one engine."""
    engine = request.param
    url = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    session = request.getfixturevalue("spark") if engine == "Spark" else None
    return on(engine, frame(LENGTH), "corners", url=url, session=session)


@cache
def few() -> Source:
    return Source(frame(FEW))


def test_the_corpus_has_every_node_of_the_grammar_and_more_than_a_hundred_expressions() -> None:
    kinds: set[type] = set()

    def visit(node: Any) -> None:
        kinds.add(type(node))
        for part in inside(node):
            visit(part)

    for one in CORPUS:
        visit(one.node if isinstance(one, Term) else one)
    absent = {kind.KIND for kind in EXPRESSIONS if kind not in kinds}
    assert absent == {"value.branch"}  # which is inside its choice
    assert len(CORPUS) >= 250


def test_every_expression_of_the_corpus_tells_rows_apart() -> None:
    """An expression that says the same of every row would agree with many a fault; those that do, are meant to."""
    same = [one for one in CORPUS if columns_of(one) and len(set(map(repr, expected(one, rows(LENGTH))))) == 1]
    assert len(same) <= 5


def test_the_corpus_means_the_same_on_every_engine(source: Source) -> None:
    answers = ask(CORPUS, source, at_once=80)
    assert differences(CORPUS, answers, rows(LENGTH)) == []


def test_rows_are_kept_by_the_same_rule_that_is_told(source: Source, request: pytest.FixtureRequest) -> None:
    """A condition in a filter may be moved, split or folded by an optimiser; the rows it keeps stay the same."""
    asked = PREDICATES[::20] if "Spark" in request.node.name else PREDICATES
    for one in asked:
        with source.opened() as table:
            found = brought_out(table.filter(predicate(one, table)).select("place"))["place"]
        meant = [place for place, kept in enumerate(expected(one, rows(LENGTH))) if kept]
        assert sorted(found) == meant


def at_the_limits() -> list[Asked]:
    """As deep and as large as is let through."""
    number, amount, whole, other = col("number"), col("amount"), col("whole"), col("other")
    product, power, ratio, total, run, opposite, choice, doubt = (
        number,
        whole,
        number,
        whole,
        number,
        number,
        number,
        number,
    )
    for place in range(13):
        product, power = product * amount, power * other
    for place in range(13):
        ratio = 1 / ratio if place % 2 else ratio / amount
    for place in range(45):
        total = total - other if place % 3 else total + col("tiny")
        run = run + amount if place % 2 else run - 0.1
        opposite = -opposite if place % 2 else abs(opposite)
        choice = when(col("tiny") == place).then(amount).otherwise(coalesce(choice, place)) if place < 20 else choice
    for place in range(10):
        doubt = when(doubt > place).then(number).otherwise(amount)
    several = col("tiny") == 1000
    for place in range(7):
        several = (col("natural") > place) & ~several | (col("tiny") == place)
    wide = AnyOf(parts=tuple(col("whole") == place for place in range(1500)))
    return [
        *(product, power, ratio, total, run, opposite, choice, doubt, several, wide),
        whole.isin(range(-(2**63), -(2**63) + 5000)),
        col("text").isin([*(f"x{place}" for place in range(5000)), "é"]),
    ]


def test_what_is_as_deep_and_large_as_is_let_through_runs_everywhere(source: Source) -> None:
    asked = at_the_limits()
    assert differences(asked, ask(asked, source, at_once=4), rows(LENGTH)) == []


def test_nothing_that_is_let_through_exhausts_the_stack() -> None:
    """Printers of SQL recurse; a service or a test runner has used part of the stack before."""
    with few().opened() as table:
        for one in at_the_limits():
            assert deepest(lambda: table.get_backend().compile(table.select(x=compiled(one, table)))) < 650


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


LOUD = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@settings(parent=LOUD, max_examples=40)
@given(several=st.lists(anything(3), min_size=10, max_size=20))
def test_random_expressions_mean_the_same(several: list[Asked]) -> None:
    assert differences(several, ask(several, few()), rows(FEW)) == []


@pytest.mark.long
@settings(parent=LOUD, max_examples=int(os.environ.get("SFUMATO_EXPRESSIONS", "1000")))
@given(several=st.lists(anything(4), min_size=10, max_size=20))
def test_many_random_expressions_mean_the_same(several: list[Asked]) -> None:
    assert differences(several, ask(several, few()), rows(FEW)) == []
