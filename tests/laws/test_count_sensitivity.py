"""What Count claims is what brute force finds, in every norm: no neighbour is further away, and some are as far.

Counting is by hand here, so that the file is fast enough to run against every mutant of ``Count.sensitivity``;
``test_count_neighbours.py`` asks the engine, and finds the same counts.
"""

import pytest

from sfumato.core.limits import Limit
from sfumato.core.units import Relation, client, edge, event, family, node, record, user, weight
from sfumato.errors import NotDeclared, Refused
from tests.laws.neighbours import slack, violations
from tests.laws.plans import by_hand
from tests.laws.scenarios import LIMITS, RELATIONS, SCENARIOS, UNITS, WHERE, Scenario, limit_for, share_for, unit_of

pytestmark = pytest.mark.kills


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_claim_holds_and_is_attained(scenario: Scenario, kind: str) -> None:
    where, around = WHERE["elderly"], scenario.neighbours(kind)
    for limit in LIMITS if kind == "user" else (LIMITS[1], LIMITS[5], LIMITS[6]):
        plan = by_hand(where=where, keys=scenario.keys, share=share_for(kind, limit))
        for relation in RELATIONS:
            claim = scenario.count(where).sensitivity(unit_of(kind, relation), limit_for(kind, limit))
            assert violations(plan, claim, around=around, relation=relation) == [], (limit, relation)
            assert slack(plan, claim, around=around, relation=relation) == [], (limit, relation)


@pytest.mark.parametrize("size", [1, 3, 4])
def test_larger_families_multiply_what_one_person_does(size: int) -> None:
    count, limit = SCENARIOS["three by two"].count(None), Limit(groups=1, rows_per_group=2)
    claim = count.sensitivity(family(size, "person", relation="add/remove"), limit)
    assert (claim.l0.count, claim.l1.value, claim.l2.squared, claim.linf.value) == (
        size,
        2 * size,
        (2 * size) ** 2,
        2 * size,
    )


def test_a_family_of_one_is_a_user() -> None:
    for scenario in SCENARIOS.values():
        for limit in LIMITS:
            for relation in RELATIONS:
                alone = scenario.count(None).sensitivity(user("person", relation=relation), limit)
                assert scenario.count(None).sensitivity(family(1, "person", relation=relation), limit) == alone


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
def test_units_without_rows_and_limits_that_do_not_fit_are_refused(relation: Relation) -> None:
    count, limit = SCENARIOS["four values"].count(None), Limit(groups=1, rows_per_group=1)
    for unit in (
        event(relation=relation),
        edge(relation=relation),
        node(max_degree=3, relation=relation),
        weight(bound=1, relation=relation),
        client(relation=relation),
    ):
        for given in (limit, None):
            with pytest.raises(Refused, match="not protected under"):
                count.sensitivity(unit, given)
    with pytest.raises(Refused, match="means nothing for single rows"):
        count.sensitivity(record(relation=relation), limit)
    for unit in (user("person", relation=relation), family(2, "person", relation=relation)):
        with pytest.raises(NotDeclared, match="needs a limit"):
            count.sensitivity(unit, None)
