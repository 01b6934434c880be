"""The fuzzer of the query language finds no neighbours that move a question beyond its claim."""

import os

import pytest
from hypothesis import HealthCheck, given, settings

from sfumato.engines.bounded import bounded_totals
from sfumato.engines.sources import Source
from sfumato.tables.execution import key_column
from tests.laws import fuzzing
from tests.laws.fuzzing import Batch, batches, hunt
from tests.laws.scenarios import share_for

pytestmark = pytest.mark.no_cover  # thousands of plans: measuring coverage would double their time

PLANS, MANY = 500, 50_000
LONG = os.environ.get("SFUMATO_LONG") == "1"
PARTS = 4  # which workers share


@pytest.mark.long
def test_five_hundred_plans_obey_their_claims() -> None:
    assert hunt(PLANS) >= PLANS


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_fifty_thousand_plans_obey_their_claims(part: int) -> None:
    assert hunt(MANY // PARTS) >= MANY // PARTS, part


@pytest.mark.long
@settings(max_examples=12 if LONG else 3, deadline=None, suppress_health_check=list(HealthCheck))
@given(batch=batches(4))
def test_a_question_alone_on_one_table_has_the_same_numbers(batch: Batch) -> None:
    """The path of a release: one question in the words of the caller, one table, no column of worlds."""
    answers = fuzzing.asked(batch)
    world = max(range(len(batch.around.worlds)), key=lambda it: len(batch.around.worlds[it]))
    alone = fuzzing.framed([batch.around.worlds[world]]).drop_columns(["world"])
    keys, share = [key_column(one) for one in batch.by], share_for(batch.kind, batch.limit)
    for place, question in list(enumerate(batch.questions))[:2]:
        with Source(alone).opened() as table:
            gauges = fuzzing.gauges_of(question)
            found = bounded_totals(table, where=batch.where, keys=keys, share=share, gauges=gauges)
        assert [number for part in found for number in part] == answers.of(place)[world].tolist()
