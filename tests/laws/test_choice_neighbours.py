"""The brute-force law of sets of marginals, of the largest groups and of keys that are found: each claim is kept."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import Relation
from sfumato.engines.counts import KeyColumn
from sfumato.engines.partition_selection import persons_by_key
from sfumato.tables.keys import Keys
from sfumato.tables.queries.count import Count
from sfumato.tables.queries.marginals import Marginals
from sfumato.tables.queries.partition_selection import PartitionSelection
from sfumato.tables.queries.top import TopGroups
from tests.laws.neighbours import Neighbours, furthest, slack, stated, violations
from tests.laws.plans import by_engine, loaded
from tests.laws.scenarios import LIMITS, RELATIONS, SCENARIOS, limit_for, share_for, unit_of

DATASET = Dataset(name="visits", edition="1")
SCENARIO = SCENARIOS["three by two"]
FIRST, SECOND = SCENARIO.keys
TABLES: tuple[tuple[KeyColumn, ...], ...] = ((FIRST,), (SECOND,), (FIRST, SECOND))
CASES = [("record", LIMITS[0]), *product(("user", "family"), (LIMITS[0], LIMITS[4], LIMITS[6]))]
cases = pytest.mark.parametrize(("kind", "limit"), CASES, ids=str)


def declared(keys: tuple[KeyColumn, ...]) -> tuple[Keys, ...]:
    return tuple(Keys(column=key.column, values=key.values) for key in keys)


@cache
def marginals(kind: str, limit: Limit, tables: tuple[tuple[KeyColumn, ...], ...] = TABLES) -> np.ndarray:
    """The counts of all tables of all worlds, one table after the other."""
    around = SCENARIO.neighbours(kind)
    return np.hstack([by_engine(where=None, keys=keys, share=share_for(kind, limit))(around) for keys in tables])


@pytest.mark.few(3)
@cases
def test_no_unit_moves_several_tables_further_than_claimed_and_some_as_far(kind: str, limit: Limit) -> None:
    query = Marginals(dataset=DATASET, tables=tuple(map(declared, TABLES)))
    found, around = marginals(kind, limit), SCENARIO.neighbours(kind)
    for relation in RELATIONS:
        claim = query.sensitivity(unit_of(kind, relation), limit_for(kind, limit))
        assert violations(lambda _: found, claim, around=around, relation=relation) == []
        if kind == "record":
            assert slack(lambda _: found, claim, around=around, relation=relation) == []


def test_the_claim_for_one_table_is_too_small_for_several() -> None:
    """The broken twin."""
    around, limit = SCENARIO.neighbours("user"), LIMITS[4]
    for relation in RELATIONS:
        claim = Count(dataset=DATASET, by=declared(SCENARIO.keys)).sensitivity(unit_of("user", relation), limit)
        found = violations(lambda _: marginals("user", limit), claim, around=around, relation=relation)
        assert {it.split(":")[0] for it in found} >= {"l0", "l1", "l2 squared"}


@pytest.mark.few(3)
@cases
def test_no_unit_moves_the_counts_that_are_compared_further_than_claimed(kind: str, limit: Limit) -> None:
    query = TopGroups(dataset=DATASET, by=declared(SCENARIO.keys), choices=2)
    found, around = marginals(kind, limit, (SCENARIO.keys,)), SCENARIO.neighbours(kind)
    for relation in RELATIONS:
        unit = unit_of(kind, relation)
        claim = query.sensitivity(unit, limit_for(kind, limit))
        assert furthest(found, around=around, relation=relation)["linf"] == stated(claim)["linf"]
        assert query.monotone(unit) == one_direction(found, around, relation)


def one_direction(found: np.ndarray, around: Neighbours, relation: Relation) -> bool:
    """Whether between all neighbours every count rises, or every count falls."""
    for rest, plus in around.around:
        there = found[list(plus)]
        moved = there - found[rest] if relation is Relation.ADD_REMOVE else (there[:, None] - there[None])
        moved = moved.reshape(-1, found.shape[1])
        if ((moved > 0).any(axis=1) & (moved < 0).any(axis=1)).any():
            return False
    return True


@pytest.mark.few(8)
@cases
@pytest.mark.parametrize("columns", [("zip",), ("zip", "ward")], ids=len)
def test_no_unit_moves_more_found_keys_than_claimed(kind: str, limit: Limit, columns: tuple[str, ...]) -> None:
    around = SCENARIO.neighbours(kind)
    found = persons_by_key(loaded(around), where=None, columns=columns, share=share_for(kind, limit), world="world")
    keys = sorted({key[1:] for key in found})
    counts = np.zeros((len(around.worlds), len(keys)), dtype=np.int64)
    for key, persons in found.items():
        counts[key[0], keys.index(key[1:])] = persons
    for relation in RELATIONS:
        claim = PartitionSelection(dataset=DATASET, over=columns).sensitivity(
            unit_of(kind, relation), limit_for(kind, limit)
        )
        assert claim.l0 is not None
        assert claim.l1 is not None
        assert claim.linf is not None
        moved = furthest(counts, around=around, relation=relation)
        assert moved["l0"] <= claim.l0.count
        assert moved["l1"] <= claim.l1.value
        assert moved["linf"] == claim.linf.value
        if kind != "family" and limit.groups == 1:
            assert moved["l0"] == claim.l0.count
