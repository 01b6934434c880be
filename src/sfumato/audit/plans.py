"""The query compiler under fuzzing, on the declaration of a steward: does one person move an answer too far?

Random questions about a declared table are answered exactly on invented rows and on brute-forced neighbours of them,
and how far apart the answers lie is compared with the sensitivity that the question declares. Noise is scaled to that
sensitivity: a change beyond it refutes the guarantee of the question, without any statistics. No row of anybody is
read, nothing is spent.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from sfumato.audit.invented_rows import InventedWorlds, Protected, facts_of, invented_rows, invented_worlds
from sfumato.audit.random_plans import RandomPlan, random_plans
from sfumato.core.exact import natural
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Family, Record, User, describe, user
from sfumato.engines.bounded import Share, totals_by_cell
from sfumato.engines.expressions import Type
from sfumato.engines.sources import Source
from sfumato.engines.sufficient_statistics import Gauge, Histogram, RowIndicator
from sfumato.engines.totals import brought_out
from sfumato.errors import InvalidInput, NotDeclared, Unsupported
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.execution import Beside, check_columns, exact_numbers, key_column
from sfumato.tables.protected import unit_of
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count
from sfumato.tables.schema import Schema
from sfumato.tables.table import Table

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.object_]

__all__ = ["PlanTried", "PlansAudit", "plans"]

SECRET = "invented"  # noqa: S105 - of invented rows: the same seed, the same groups of a person
ALONE_EVERY = 4
MOST_PLANS = 100_000
NORMS = ("l0", "l1", "l2 squared", "linf")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTried:
    """One question and the furthest that neighbours were apart, as a share of the declared sensitivity, by norm.

    ``ratios`` are exact; that of the l2 norm is squared. ``differs`` says that the numbers of a release on the same
    rows were others than those judged here. Public: it is about invented rows.
    """

    words: str
    pairs: int
    ratios: Mapping[str, Fraction]
    differs: bool = False

    @property
    def ratio(self) -> float:
        """The larger of the shares in l1 and in l2, which noise is scaled to."""
        return max(float(self.ratios["l1"]), math.sqrt(self.ratios["l2 squared"]))

    @property
    def attained(self) -> bool:
        """Whether some neighbours were exactly as far apart as declared, in l1 or l2."""
        return 1 in (self.ratios["l1"], self.ratios["l2 squared"])

    @property
    def beyond(self) -> tuple[str, ...]:
        """The norms in which neighbours were further apart than declared."""
        return tuple(norm for norm, found in self.ratios.items() if found > 1)

    @property
    def refuted(self) -> bool:
        """Whether what the question declares is wrong."""
        return bool(self.beyond) or self.differs

    def __str__(self) -> str:
        shown = (f"{norm.split()[0]} {_share(norm, self.ratios[norm]):.6g}" for norm in self.beyond)
        told = f"moved beyond what is declared, as a share of it: {', '.join(shown)}" if self.beyond else ""
        other = "a release reads other numbers from the same rows" if self.differs else ""
        return f"{self.words}: {'; '.join(filter(None, (told, other))) or f'{self.ratio:.6g} of what is declared'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlansAudit:
    """What fuzzing a declaration found. Where nothing was found, nothing is proven.

    ``tried`` has one row a question; ``refused`` is how many the product did not allow. Public: all of it is about
    invented rows, and the declaration.
    """

    dataset: str
    unit: str
    seed: int
    tried: tuple[PlanTried, ...]
    refused: int
    alone: int

    @property
    def pairs(self) -> int:
        """How many pairs of neighbours were compared."""
        return sum(each.pairs for each in self.tried)

    @property
    def largest(self) -> float:
        """The tightest ratio: the largest change over the declared sensitivity, in l1 or l2."""
        return max((each.ratio for each in self.tried), default=0.0)

    @property
    def attained(self) -> int:
        """How many questions were moved exactly as far as they declare."""
        return sum(each.attained for each in self.tried)

    @property
    def beyond(self) -> tuple[PlanTried, ...]:
        """The questions that are refuted."""
        return tuple(each for each in self.tried if each.refuted)

    @property
    def refuted(self) -> bool:
        """Whether any question is."""
        return bool(self.beyond)

    def __str__(self) -> str:
        lines = [
            f"{self.dataset}: {len(self.tried):,} random plan(s) on invented rows for {self.unit} (seed {self.seed}); "
            f"{self.pairs:,} pair(s) of neighbours, {self.refused:,} plan(s) refused as an analyst's would be.",
            f"Largest change over the declared sensitivity: {self.largest:.6g}; {self.attained:,} plan(s) attained 1.",
            f"Refuted: {len(self.beyond):,} plan(s)."
            if self.refuted
            else "Nothing found. That is no proof: other plans or other rows were not tried.",
        ]
        return "\n".join([*lines, *(f"  {each}" for each in self.beyond)])


def plans(table: Table | Schema, *, plans: int = 40, seed: int = 1, unit: Protected | None = None) -> PlansAudit:
    """Fuzz the query compiler on a declaration: random plans, invented rows, brute-forced neighbours.

    Counts, persons, sums, means, variances, proportions, ratios and histograms, with groups, filters and limits of the
    declared columns, are answered exactly on a few invented rows and on each neighbour: without a unit under
    *add/remove*, with another in its place under *replace*. The change is compared with the declared sensitivity in
    each norm. The same ``seed`` tries the same plans. ``unit`` is for a schema; without one its unit column is
    protected under *add/remove*. A table brings its own.

    Guarantee: a plan that is refuted is wrong, with no doubt left. Nothing found is no proof. Assumes: nothing of the
    data; neither the rows of the table nor its file are opened, and nothing is spent. Not tried: joins, one row a
    person, quantiles, choices, studies, a public number of units, and engines other than DuckDB.

    >>> from sfumato.demo.clinic import visits
    >>> found = plans(visits(), plans=3)
    >>> len(found.tried), found.refuted, found.largest <= 1
    (3, False, True)
    """
    natural(plans, "plans", most=MOST_PLANS)
    natural(seed, "seed", least=0)
    chance = np.random.default_rng(seed)
    declared, facts, protected = _declared(table, unit, chance)
    tried: list[PlanTried] = []
    refused = rounds = 0
    while len(tried) < plans:
        try:
            some = random_plans(declared, facts, protected, chance)[: plans - len(tried)]
            found = _tried(some, facts, protected, chance, alone=rounds % ALONE_EVERY == 0)
        except (NotDeclared, Unsupported, InvalidInput):
            refused += 1
            if refused > 10 + 4 * len(tried):
                raise
        else:
            tried, rounds = [*tried, *found], rounds + 1
    return PlansAudit(
        dataset=declared.dataset.name,
        unit=describe(protected),
        seed=seed,
        tried=tuple(tried),
        refused=refused,
        alone=-(-rounds // ALONE_EVERY),
    )


def _declared(
    given: Table | Schema, unit: Protected | None, chance: np.random.Generator
) -> tuple[Table, tuple[ColumnFacts, ...], Protected]:
    """A table to ask, its columns, and who is protected; of a schema with invented rows behind it."""
    if isinstance(given, Schema):
        return _of_schema(given, unit, chance)
    if not isinstance(given, Table) or given.predicate is not None or given.by or given.joins:
        raise InvalidInput("plans(...) takes a schema, or a table as it was declared; nothing was tried.")
    held = unit_of(given)
    if unit is not None or not isinstance(held, Record | User | Family):
        raise InvalidInput("a table brings the unit of its vault, and no other is taken; nothing was tried.")
    return given, facts_of(given, held), held


def _of_schema(
    schema: Schema, unit: Protected | None, chance: np.random.Generator
) -> tuple[Table, tuple[ColumnFacts, ...], Protected]:
    from sfumato.audit.ways_played import new_vault

    if unit is None and schema.unit is None:
        raise NotDeclared(
            "the schema does not say who is protected; nothing was tried. Declare its unit column, or say unit=…"
        )
    held = user(schema.unit, relation="add/remove") if unit is None else unit
    named = replace(schema, name=schema.name or "table", edition="invented", n_units=None, population=None)
    rows = invented_rows(schema.columns, chance)
    return new_vault(held).table(rows, schema=named), schema.columns, held


def _tried(
    some: Sequence[RandomPlan],
    facts: Sequence[ColumnFacts],
    unit: Protected,
    chance: np.random.Generator,
    *,
    alone: bool,
) -> list[PlanTried]:
    """Questions about the same rows and groups, on rows of their own; with ``alone`` one is read as a release would."""
    person = next((fact.type for fact in facts if isinstance(unit, User | Family) and fact.name == unit.column), None)
    limit = some[0].limit
    around = invented_worlds(invented_rows(facts, chance), unit, limit, person or Type.TEXT, chance)
    zones = {fact.name: fact.zone for fact in facts if fact.zone is not None}
    beside = Beside(own=Source(around.alone(0), zones=zones))
    for plan in some:
        check_columns(plan.query, beside, unit)
    found: list[PlanTried] = []
    for plan, numbers in zip(some, _numbers(some, around, unit, zones), strict=True):
        here, there = (numbers[[pair[side] for pair in around.pairs]] for side in (0, 1))
        ratios = _ratios(np.abs(there - here), plan.query.sensitivity(unit, limit))
        differs = False
        if alone and not found:
            released = exact_numbers(plan.query, beside, unit=unit, limit=limit, secret=SECRET)
            differs = numbers[0].tolist() != released
        found.append(PlanTried(words=plan.words, pairs=len(around.pairs), ratios=ratios, differs=differs))
    return found


def _gauges(query: Count | Aggregate) -> list[Gauge]:
    """What a question adds up of each row."""
    if isinstance(query, Aggregate):
        return [block.gauge for block in query.blocks if not isinstance(block.gauge, Histogram)]
    return [RowIndicator(height=1)]


def _numbers(
    some: Sequence[RandomPlan], around: InventedWorlds, unit: Protected, zones: Mapping[str, str]
) -> list["Numbers"]:
    """The exact numbers of each question in every world, a row for each; whole numbers of any size."""
    query, limit = some[0].query, some[0].limit
    gauges = list(dict.fromkeys(gauge for plan in some for gauge in _gauges(plan.query)))
    share = None
    if isinstance(unit, User | Family) and limit is not None:
        share = Share(column=unit.column, limit=limit, secret=SECRET)
    keys = [key_column(each) for each in query.by]
    with Source(around.rows, zones=zones).opened() as table:
        asked = totals_by_cell(table, where=query.where, keys=keys, share=share, gauges=gauges, world=around.world)
        found = brought_out(asked)
    worlds, places = found.pop("world"), found.pop("cell")
    numbers = np.zeros((around.worlds, len(found), prod(key.size for key in keys)), dtype=object)
    for part, amounts in enumerate(found.values()):
        numbers[worlds, part, places] = amounts
    ends = np.cumsum([0, *(_width(gauge, some) for gauge in gauges)])
    of = {gauge: numbers[:, ends[place] : ends[place + 1]] for place, gauge in enumerate(gauges)}
    return [
        np.concatenate([of[gauge] for gauge in _gauges(plan.query)], axis=1).reshape(around.worlds, -1) for plan in some
    ]


def _width(gauge: Gauge, some: Sequence[RandomPlan]) -> int:
    """How many numbers of each group a gauge has."""
    blocks = (block for plan in some if isinstance(plan.query, Aggregate) for block in plan.query.blocks)
    return next((block.reach.numbers for block in blocks if block.gauge == gauge), 1)


def _ratios(moved: "Numbers", bound: Sensitivity) -> dict[str, Fraction]:
    """The largest move in each norm over its bound; 0 in a norm without one."""
    far = {
        "l0": (moved > 0).sum(axis=1).max(),
        "l1": moved.sum(axis=1).max(),
        "l2 squared": (moved * moved).sum(axis=1).max(),
        "linf": moved.max(),
    }
    most = {
        "l0": None if bound.l0 is None else Fraction(bound.l0.count),
        "l1": None if bound.l1 is None else bound.l1.value,
        "l2 squared": None if bound.l2 is None else bound.l2.squared,
        "linf": None if bound.linf is None else bound.linf.value,
    }
    return {norm: _over(Fraction(int(far[norm])), most[norm]) for norm in NORMS}


def _over(far: Fraction, most: Fraction | None) -> Fraction:
    if most is None:
        return Fraction(0)
    return far / most if most else far + 1 if far else Fraction(0)


def _share(norm: str, found: Fraction) -> float:
    return math.sqrt(found) if norm == "l2 squared" else float(found)
