"""A question that is written as SQL and read again is the same question, whatever the question."""

import os
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.question import Question
from sfumato.engines.expressions import Expression, Type, col, when
from tests.engines.fuzz import predicates, terms
from tests.tables.sql_table import VISITS, document
from tests.tables.sql_text import Unwritable, name, sql

LONG = os.environ.get("SFUMATO_LONG") == "1"

SLOW = settings(
    max_examples=150 if LONG else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


def written(node: Any) -> str:
    """The node as SQL; what has none is no example."""
    try:
        return sql(node)
    except Unwritable:
        assume(False)
        raise


@SLOW
@given(predicate=predicates(3))
def test_a_condition_survives(predicate: Expression) -> None:
    text = written(predicate)
    assume(len(text) < 19_000)
    assert VISITS.where(text).predicate == predicate


@st.composite
def measures(draw: st.DrawFn) -> tuple[str, Any]:
    """A measure as SQL and as Python."""
    kept = draw(st.none() | predicates(1))
    suffix = "" if kept is None else f" FILTER (WHERE {written(kept)})"
    value = col(draw(st.sampled_from(["age", "sbp", "stay"])))
    if draw(st.booleans()):
        value = value + draw(terms(Type.WHOLE, 1)).clip(0, 9)
    text, held = written(value.node), value if kept is None else when(kept).then(value)
    return draw(
        st.sampled_from(
            [
                (f"COUNT(*){suffix}", sf.count(kept)),
                (f"SUM({text}){suffix}", sf.sum(held)),
                (f"AVG({text}){suffix}", sf.mean(held)),
                (f"VAR_POP({text}){suffix}", sf.variance(held)),
                (f"STDDEV_POP({text}){suffix}", sf.standard_deviation(held)),
                (f'COVAR_POP({text}, "sbp"){suffix}', sf.covariance(held, "sbp")),
                (f'CORR({text}, "sbp"){suffix}', sf.correlation(held, "sbp")),
                ("COUNT(DISTINCT patient_id)", sf.persons()),
                (f"SUM({text}) / SUM(stay)", sf.ratio(value, "stay")),
            ]
        )
    )


@st.composite
def plans(draw: st.DrawFn) -> tuple[str, Question]:
    """A whole question, both ways."""
    where = draw(st.none() | predicates(2))
    keys = draw(st.lists(st.sampled_from(sorted(VISITS.keys)), unique=True, max_size=3))
    asked = {f"m{place}": each for place, each in enumerate(draw(st.lists(measures(), min_size=1, max_size=3)))}
    computed = draw(st.none() | predicates(1))
    selected = [*map(name, keys), *(f"{text} AS {alias}" for alias, (text, _) in asked.items())]
    groups = [*map(name, keys)]
    table = VISITS.group_by(*keys)
    if computed is not None:
        selected.append(f"({written(computed)}) IS TRUE AS band")
        groups.append(draw(st.sampled_from(["band", str(len(selected))])))
        table = table.group_by(band=when(computed).then(True).otherwise(False))
    table = table if where is None else table.where(where)
    condition = "" if where is None else f" WHERE {written(where)}"
    grouped = f" GROUP BY {', '.join(groups)}" if groups else ""
    text = f"SELECT {', '.join(selected)} FROM visits{condition}{grouped}"  # noqa: S608 - to be parsed only
    return text, table.agg(**{alias: each for alias, (_, each) in asked.items()})


@SLOW
@given(plan=plans())
def test_a_whole_question_survives(plan: tuple[str, Question]) -> None:
    text, question = plan
    assume(len(text) < 19_000)
    assert document(VISITS.sql(text)) == document(question)


WORDS = """
SELECT FROM visits WHERE GROUP BY HAVING ORDER LIMIT WITH AS AND OR NOT IN IS NULL LIKE BETWEEN CASE WHEN THEN ELSE END
CAST EXTRACT YEAR INT DATE COUNT SUM AVG MEDIAN QUANTILE PERCENTILE_CONT WITHIN FILTER OVER DISTINCT JOIN ON UNION
EXISTS ANY TRUE COALESCE LEAST NULLIF WIDTH_BUCKET sex age sbp patient_id x 'F' '' "q" 1 0.5 1e9 -- /* */ $$ ( ) ( )
, * . ; = <> < + - / % || :: [ ] { } ? : @ ~ ! ^ E'a' x'f' INTERVAL ROWS VALUES LATERAL UNNEST
"""


@pytest.mark.long
@SLOW
@given(text=st.text(max_size=60) | st.lists(st.sampled_from(WORDS.split()), max_size=25).map(" ".join))
def test_no_text_does_harm(text: str) -> None:
    """Every text is a question or a refusal of ours, and never anything else."""
    select = f"SELECT COUNT(*) FROM visits WHERE {text}"  # noqa: S608 - to be parsed only
    for ask in (lambda: VISITS.where(text), lambda: VISITS.sql(text), lambda: VISITS.sql(select)):
        with suppress(sf.errors.SfumatoError):
            ask()
