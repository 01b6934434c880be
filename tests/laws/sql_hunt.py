"""The hunts: many plans against DuckDB without noise, the same plans on several engines, and neighbours.

Every hunt tells the seed of what it finds; the same seed draws the same scene and the same plans.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.core.limits import Limit
from sfumato.core.units import Family, Relation, Unit
from sfumato.tables.execution import exact_numbers
from tests.laws.seeds import SEEDS
from tests.laws.sql_asked import SECRET, WIDE, Asked, Differs, Truth, compare, shuffled
from tests.laws.sql_composer import Composer
from tests.laws.sql_plans import Plan
from tests.laws.sql_scenes import Scene

ROWS, SEVERAL = 5, 5  # of one scene so many choices of rows and groups, and of each so many plans, in one query


class Moved(AssertionError):
    """Neighbours are further apart than the plan states."""


@dataclass(slots=True)
class Found:
    """What a hunt went through."""

    plans: int = 0
    refused: int = 0
    pairs: int = 0
    at_bound: int = 0
    moved: int = 0
    traits: Counter[str] = field(default_factory=Counter)
    at_bound_with: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: "Found") -> "Found":
        return Found(
            self.plans + other.plans,
            self.refused + other.refused,
            self.pairs + other.pairs,
            self.at_bound + other.at_bound,
            self.moved + other.moved,
            self.traits + other.traits,
            self.at_bound_with + other.at_bound_with,
        )


def any_unit(chance: random.Random) -> Unit:
    """One person, or two."""
    relation = chance.choice([*Relation, Relation.ADD_REMOVE])
    return sf.user("id", relation=relation) if chance.random() < 0.75 else sf.family(2, "id", relation=relation)


def any_limit(chance: random.Random) -> Limit:
    """One that cuts."""
    return Limit(groups=chance.choice([1, 1, 2, 3]), rows_per_group=chance.choice([1, 1, 2, 3]))


# --------------------------------------------------------------------------------------------------- against DuckDB


def against_duckdb(plans: int, *, start: Iterable[int] = SEEDS, rows: int = ROWS) -> Found:
    """Ask so many plans under limits that cut nothing; raises at the first whose answer is not DuckDB's."""
    found = Found()
    for seed in start:
        chance = random.Random(seed)
        scene = Scene.drawn(chance)
        relimited = Limit(groups=64, rows_per_group=1024) if chance.random() < 0.2 else None
        asked, truth = Asked(scene, unit=any_unit(chance), relimited=relimited), Truth(scene)
        composer = Composer(chance, scene.kinds)
        for _ in range(rows):
            some = composer.plans(SEVERAL)
            for plan, exact in zip(some, asked.together(some), strict=True):
                if exact is None:  # counted, and few
                    found.refused += 1
                    continue
                try:
                    compare(plan, asked.answer(exact), truth.answer(plan, exact.question.query.labels()))
                except Differs as told:
                    raise Differs(f"seed {seed}: {told}") from None
                found.plans += 1
                found.traits.update(plan.traits)
        truth.close()
        if found.plans >= plans:
            return found
    raise AssertionError("seeds have an end")


# ---------------------------------------------------------------------------------------------------- across engines

Placed = Callable[[Mapping[str, pa.Table]], Mapping[str, object]]


def across_engines(plans: int, placed: Placed, *, rows: int = ROWS) -> Found:
    """Ask so many plans, under limits that cut, here and where ``placed`` puts the same rows in another order."""
    found = Found()
    for seed in SEEDS:
        chance = random.Random(seed)
        scene = Scene.drawn(chance, zones=(None, None, "UTC"), most=30)
        order = chance.sample(range(30), 30)
        setting: dict[str, Any] = {"unit": any_unit(chance), "limit": any_limit(chance), "beside": any_limit(chance)}
        here, there = Asked(scene, **setting), Asked(scene, **setting, sources=placed(shuffled(scene, order)))
        composer = Composer(chance, scene.kinds)
        for _ in range(rows):
            some = composer.plans(SEVERAL)
            for plan, one, two in zip(some, here.together(some), there.together(some), strict=True):
                if one is None or two is None:
                    found.refused += 1
                    continue
                if one.numbers != two.numbers:
                    raise Differs(f"seed {seed}: {plan.text}")
                found.plans += 1
                found.traits.update(plan.traits)
            if found.plans >= plans:
                return found
    raise AssertionError("seeds have an end")


# -------------------------------------------------------------------------------------------------------- neighbours


def neighbours(
    pairs: int,
    *,
    judged: Callable[[Any], Any] = lambda bound: bound,
    limitless: bool = False,
    start: Iterable[int] = SEEDS,
    rows: int = 2,
) -> Found:
    """Compare so many pairs of neighbours with the bound that the plan states; raises at the first beyond it.

    ``judged`` changes the bound, and ``limitless`` reads under limits that cut nothing: both to see it fail.
    """
    found = Found()
    for seed in start:
        chance = random.Random(seed)
        scene = Scene.drawn(chance, zones=(None,), most=24, dense=True)
        unit, limit, beside = any_unit(chance), any_limit(chance), any_limit(chance)
        near = [_other(chance, scene, unit) for _ in range(2)]
        worlds = [Asked(each, unit=unit, limit=limit, beside=beside) for each in (scene, *near)]
        if limitless:
            for each in worlds:
                _unlimited(each)
        composer = Composer(chance, scene.kinds, narrow=0.3)
        for _ in range(rows):
            some = composer.plans(SEVERAL)
            bases, *others = (world.together(some) for world in worlds)
            for plan, base, *moved in zip(some, bases, *others, strict=True):
                if base is None:
                    found.refused += 1
                    continue
                found.plans += 1
                found.traits.update(plan.traits)
                for other in moved:
                    assert other is not None
                    _judge(found, plan, base.numbers, other.numbers, judged(base.bound), str(seed))
            if found.pairs >= pairs:
                return found
    raise AssertionError("seeds have an end")


def _judge(found: Found, plan: Plan, one: list[int], two: list[int], bound: Any, where: str) -> None:
    moved = [abs(a - b) for a, b in zip(one, two, strict=True)]
    norms = {
        "l0": (sum(each > 0 for each in moved), Fraction(bound.l0.count)),
        "l1": (sum(moved), Fraction(bound.l1.value)),
        "l2 squared": (sum(each**2 for each in moved), Fraction(bound.l2.squared)),
        "linf": (max(moved), Fraction(bound.linf.value)),
    }
    beyond = [f"{name}: {far} > {most}" for name, (far, most) in norms.items() if far > most]
    if beyond:
        raise Moved(f"seed {where}: {beyond}: {plan.text}")
    found.pairs += 1
    found.moved += any(moved)
    if norms["l1"][0] == norms["l1"][1] or norms["l2 squared"][0] == norms["l2 squared"][1]:
        found.at_bound += 1
        found.at_bound_with.update(plan.traits)


def _other(chance: random.Random, scene: Scene, unit: Unit) -> Scene:
    """A neighbour: one person, or as many as a family has, is gone from both tables, or has other rows there."""
    rows = Counter(scene.rows["stays"]["id"].to_pylist())
    ranked = sorted(scene.people, key=lambda person: -rows[person] - chance.random() * 6)  # who has much moves most
    some = ranked[: unit.size if isinstance(unit, Family) else 1]
    fresh = Scene.drawn(chance, zones=(None,), most=24, dense=True)
    made = {}
    for name, table in scene.rows.items():
        kept = [place for place, person in enumerate(table["id"].to_pylist()) if person not in some]
        rest = table.take(pa.array(kept, pa.int64()))
        if unit.relation is Relation.REPLACE:
            rest = pa.concat_tables([rest, *(_owned(chance, fresh.rows[name], person, table) for person in some)])
        made[name] = rest
    return Scene(made, scene.wards, scene.zone, scene.people)


def _owned(chance: random.Random, fresh: pa.Table, person: Any, like: pa.Table) -> pa.Table:
    """Some rows, as rows of one person; some of them several times."""
    places = [chance.randrange(fresh.num_rows) for _ in range(chance.randrange(14))] if fresh.num_rows else []
    taken = fresh.take(pa.array(places, pa.int64()))
    return taken.set_column(0, "id", pa.array([person] * len(places), like.schema.field("id").type))


def _unlimited(asked: Asked) -> None:
    """What is read is cut by nothing, while the plan states its bound as before."""
    store: Any = asked.vault._stores["tables"]

    def read(query: Any) -> object:
        beside = replace(store._beside(query), limits={}, limit=WIDE)
        return exact_numbers(query, beside, unit=asked.unit, limit=WIDE, secret=SECRET)

    store.read = read
