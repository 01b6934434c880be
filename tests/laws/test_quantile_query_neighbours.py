"""The brute-force law of quantiles: how far one unit moves the scores of all values, through the engine's real plan.

A value is scored by how far its rank is from the one wanted. What a choice costs is the range, over all values, of how
far their scores move between neighbours; over the groups these ranges add up.
"""

from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Relation
from sfumato.engines.bounded import KeyColumn
from sfumato.engines.expressions import col
from sfumato.engines.lattice import Lattice
from sfumato.engines.quantile_counts import rows_by_value
from sfumato.engines.totals import brought_out
from sfumato.tables.clamped import Clamped
from sfumato.tables.keys import Keys
from sfumato.tables.queries.quantiles import Quantiles
from tests.laws.neighbours import Neighbours, Rows, Visit, around_couples, around_persons, around_records, owned
from tests.laws.plans import loaded
from tests.laws.scenarios import RELATIONS, limit_for, share_for, unit_of

STEPS = 4
LATTICE = Lattice(value=col("age").node, low=Fraction(0), high=Fraction(STEPS), steps=STEPS)
ZIPS = Keys(column="zip", values=("a", "b", "c"))
BY = {"no keys": (), "by zip": (ZIPS,)}
LIMITS = [Limit(groups=1, rows_per_group=1), Limit(groups=2, rows_per_group=2), Limit(groups=3, rows_per_group=1)]
CASES = [("record", LIMITS[0]), *product(("user", "family"), LIMITS)]
LEVELS = [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)]


def reading(zip_code: str | None, age: int | None) -> Visit:
    return Visit(person=None, zip=zip_code, ward=None, urgent=None, age=age)


@cache
def around(kind: str) -> Neighbours:
    """Values at both ends of the lattice and beyond, missing ones, and groups that are not declared."""
    base = (
        *owned("p", tuple(reading(zip_code, age) for zip_code in "abc" for age in (0, 2, 4))),
        *owned("q", (reading("a", 1), reading("a", 3), reading("b", None), reading(None, 2))),
        *owned("r", tuple(reading(zip_code, age) for zip_code in "abc" for age in (1, 3))),
        *owned("s", (reading("elsewhere", 2), reading("c", 0), reading("c", 4))),
        reading("a", 2),
    )
    ages = (0, 2, 4)
    if kind == "record":
        ends = [reading("a", -7), reading("b", 99), reading("a", None), reading("elsewhere", 2)]
        return around_records(base, [reading(zip_code, age) for zip_code, age in product("abc", ages)] + ends)
    sets: list[Rows] = [(), tuple(reading(zip_code, age) for zip_code, age in product("abc", ages)) * 2]
    sets += [(reading(zip_code, age),) * times for zip_code, age, times in product("abc", ages, (1, 5))]
    sets += [(reading(*one),) * 3 + (reading(*two),) * 3 for one, two in product(product("ab", (0, 4)), repeat=2)]
    sets += [tuple(reading(zip_code, age) for zip_code in "abc") * 2 for age in (-7, 99)]
    if kind == "family":
        return around_couples(base, sets[1:24:3] + sets[-2:], newcomers=("x", "y"))
    return around_persons(base, sets, newcomer="x")


@cache
def counts(name: str, kind: str, limit: Limit) -> np.ndarray:
    """Rows of every world by cell and value: worlds × cells × values."""
    keys = tuple(KeyColumn(column=keys.column, values=keys.values) for keys in BY[name])
    plan = rows_by_value(
        loaded(around(kind)), where=None, keys=keys, share=share_for(kind, limit), lattice=LATTICE, world="world"
    )
    found: Any = brought_out(plan)
    held = np.zeros((len(around(kind).worlds), 3 if keys else 1, STEPS + 1), dtype=np.int64)
    held[found["world"], found["cell"], found["value"]] = found["total"]
    return held


def claimed(name: str, levels: tuple[Fraction, ...], kind: str, limit: Limit, relation: Relation) -> Sensitivity:
    of = Clamped(value=col("age").node, low=Fraction(0), high=Fraction(STEPS))
    query = Quantiles(dataset=Dataset(name="visits", edition="1"), of=of, levels=levels, by=BY[name])
    return query.sensitivity(unit_of(kind, relation), limit_for(kind, limit))


def wrong(held: np.ndarray, level: Fraction) -> np.ndarray:
    """How far each value's ranks are from the one wanted, times the denominator of the level: whole numbers."""
    upto = np.cumsum(held, axis=-1) * level.denominator
    target = held.sum(axis=-1, keepdims=True) * level.numerator
    below = upto - held * level.denominator
    return np.maximum(0, np.maximum(below - target, target - upto))


def apart(numbers: np.ndarray, kind: str, relation: Relation) -> np.ndarray:
    """The differences of all neighbours: pairs × cells × values."""
    found = []
    for rest, plus in around(kind).around:
        there = np.unique(numbers[list(plus)], axis=0)
        if relation is Relation.ADD_REMOVE:
            found.append(there - numbers[rest])
        else:
            found.append((there[:, None] - there[None]).reshape(-1, *numbers.shape[1:]))
    return np.concatenate(found)


def costs(name: str, level: Fraction, kind: str, limit: Limit, relation: Relation) -> tuple[Fraction, Fraction]:
    """The most that a unit costs in one group and in all, in what one row added or removed costs."""
    moved = apart(wrong(counts(name, kind, limit), level), kind, relation)
    ranges = moved.max(axis=-1) - moved.min(axis=-1)
    row = 2 * max(level, 1 - level) * level.denominator
    return Fraction(int(ranges.max())) / row, Fraction(int(ranges.sum(axis=-1).max())) / row


def bounds(claim: Sensitivity) -> tuple[Fraction, Fraction]:
    """What a claim allows in one group and in all."""
    assert claim.l0 is not None
    assert claim.linf is not None
    return claim.linf.value, claim.linf.value * claim.l0.count


@pytest.mark.few(5)
@pytest.mark.claim("X-04")
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
@pytest.mark.parametrize(("kind", "limit"), CASES, ids=str)
def test_no_unit_moves_the_scores_of_one_quantile_further_than_claimed(
    kind: str, limit: Limit, relation: Relation
) -> None:
    for name, level in product(BY, LEVELS):
        one, all_ = costs(name, level, kind, limit, relation)
        most, together = bounds(claimed(name, (level,), kind, limit, relation))
        assert one <= most, (name, level)
        assert all_ <= together, (name, level)
        if kind != "family" and relation is Relation.ADD_REMOVE and level == Fraction(1, 2):
            assert (one, all_) == (most, together), (name, level)


@pytest.mark.claim("X-04")
def test_the_sensitivities_of_one_row_are_those_of_the_claim() -> None:
    """Without groups: a score moves by max(q, 1 − q) under add/remove and by 1 under replace; the range is twice it."""
    for level in LEVELS[:2]:
        for relation, most in ((Relation.ADD_REMOVE, max(level, 1 - level)), (Relation.REPLACE, Fraction(1))):
            moved = apart(wrong(counts("no keys", "record", LIMITS[0]), level), "record", relation)
            assert Fraction(int(np.abs(moved).max()), level.denominator) == most
            _, all_ = bounds(claimed("no keys", (level,), "record", LIMITS[0], relation))
            assert all_ * 2 * max(level, 1 - level) == 2 * most


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
@pytest.mark.parametrize(("kind", "limit"), CASES, ids=str)
def test_no_unit_moves_more_rows_than_several_quantiles_pay_for(kind: str, limit: Limit, relation: Relation) -> None:
    several = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
    for name in BY:
        moved = np.abs(apart(counts(name, kind, limit), kind, relation)).sum(axis=-1)
        most, together = bounds(claimed(name, several, kind, limit, relation))
        assert moved.max() <= most
        assert moved.sum(axis=-1).max() <= together
        if kind != "family":
            assert moved.sum(axis=-1).max() == together


def test_a_looser_limit_and_a_replaced_person_counted_once_are_caught() -> None:
    """The broken twins."""
    for name in BY:
        most, together = bounds(claimed(name, (LEVELS[0],), "user", LIMITS[0], Relation.ADD_REMOVE))
        one, all_ = costs(name, LEVELS[0], "user", LIMITS[1], Relation.ADD_REMOVE)
        assert one > most
        assert all_ > together
        once = bounds(claimed(name, (LEVELS[0],), "user", LIMITS[1], Relation.ADD_REMOVE))[1]
        assert costs(name, LEVELS[0], "user", LIMITS[1], Relation.REPLACE)[1] > once


def test_there_are_enough_neighbours_to_mean_something() -> None:
    assert sum(len(plus) ** 2 for kind in ("record", "user", "family") for _, plus in around(kind).around) > 10_000
