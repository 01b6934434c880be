"""The contract of a measure's sums by brute force: every measure, made from its fields, on tiny tables of one's own.

A *trial* is a unit, its limit and a grouping. All neighbours of a tiny table stand side by side in one table, the
engine adds up the sums of a measure in all of them, and what moved is compared with what the measure states.
"""

import enum
import os
import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations, cycle, product
from math import inf, nan

import ibis.expr.operations as ops
import ibis.expr.types as ir
import numpy as np

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import Relation
from sfumato.engines.bounded import KeyColumn, placed, totals_by_cell
from sfumato.engines.expressions import Expression, col
from sfumato.engines.quantile_counts import rows_by_value
from sfumato.engines.sufficient_statistics import Gauge, Histogram
from sfumato.errors import InvalidInput
from sfumato.tables.clamped import Clamped
from sfumato.tables.contribution import Reach, contribution, joint_reach
from sfumato.tables.keys import Keys
from sfumato.tables.measure import Measure
from sfumato.tables.measures.batch_mean import BatchMean
from sfumato.tables.needs import OwnSums
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.statistic_plan import Block
from tests.laws.neighbours import Neighbours, around_persons, around_records, furthest, stated
from tests.laws.readings import Reading, laid_out, load
from tests.laws.scenarios import limit_for, share_for, unit_of

LONG = os.environ.get("SFUMATO_LONG") == "1"
NORMS = ("l1", "l2 squared", "linf")


class CannotBeChecked(AssertionError):
    """The sums of a measure cannot be checked, and why."""

    def __init__(self, measure: type[Measure], why: str) -> None:
        super().__init__(f"the sums of {measure.__name__} cannot be checked: {why}")


# ------------------------------------------------------------------------------------------ every form of a measure

VALUES = ("x", "y")
CONDITION = col("good") == True  # noqa: E712
Range = tuple[Fraction, Fraction]

# Of both signs and negative, positive, very wide and very narrow. A measure that refuses some is tried on the others.
RANGES: list[tuple[Range, Range]] = [
    ((Fraction(-1), Fraction(3)), (Fraction(-5), Fraction(-1))),
    ((Fraction(1), Fraction(10)), (Fraction(2), Fraction(5))),
    ((Fraction("1e-30"), Fraction("1e30")), (Fraction(1), 1 + Fraction(1, 2**30))),
]


def forms(measure: type[Measure]) -> list[list[Measure]]:
    """For each range that a measure takes, all measures that its other fields can make."""
    kinds = {name: _kinds(hint) for name, hint in _hints(measure).items()}
    for kind, columns in ((Clamped, VALUES), (Expression, ("good",))):
        several = [name for name in kinds if kind in kinds[name]]
        if len(several) > len(columns):
            raise CannotBeChecked(
                measure,
                f"it is about {' and '.join(several)}, and the rows of {__name__} have {len(columns)} such columns "
                f"({', '.join(columns)}); add one, with rows that reach all its bounds.",
            )
    accepted, refused = [], ""
    for ranges in RANGES:
        values = iter(
            Clamped(value=col(name).node, low=low, high=high) for name, (low, high) in zip(VALUES, ranges, strict=True)
        )
        choices = [
            [it for kind in some for it in _choices(measure, name, kind, values)] for name, some in kinds.items()
        ]
        made: list[Measure] = []
        for chosen in product(*choices):
            try:
                form = measure(name="it", **dict(zip(kinds, chosen, strict=True)))  # type: ignore[call-arg]
                Aggregate(dataset=DATASET, measures=(form,))
            except InvalidInput as error:
                refused = str(error)
            else:
                made.append(form)
        if made and made not in accepted:
            accepted.append(made)
    if not accepted:
        raise CannotBeChecked(measure, f"it refuses every range of {__name__}.RANGES, the last by: {refused}")
    return accepted


def _hints(measure: type[Measure]) -> dict[str, object]:
    """What each field holds, but the name."""
    try:
        hints = typing.get_type_hints(measure)
    except NameError as error:
        raise CannotBeChecked(measure, f"what its fields hold is not known when it runs ({error}).") from error
    return {field.name: hints[field.name] for field in fields(measure) if field.name != "name"}  # type: ignore[arg-type]  # every measure is a dataclass


def _kinds(hint: object) -> list[object]:
    """The kinds that an annotation allows; a condition is one, although it is a union itself."""
    union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    parts = list(typing.get_args(hint)) if union else [hint]
    conditions = typing.get_args(Expression)
    if not set(conditions) <= set(parts):
        return parts
    return [Expression, *(part for part in parts if part not in conditions)]


def _choices(measure: type[Measure], name: str, kind: object, values: Iterator[Clamped]) -> Sequence[object]:
    """What to put into a field."""
    if kind is Clamped:
        return [next(values)]
    if kind is Expression:
        return [CONDITION]
    if kind is types.NoneType:
        return [None]
    if kind is bool:
        return [False, True]
    if kind is Fraction:
        return [Fraction(1, 2)]  # a level: the sums of all levels are the same
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return list(kind)
    if measure is BatchMean:  # which field is compared, and by which column: no sum depends on it
        return ["batch"] if name == "field" else [(("batch", "lot"),)]
    raise CannotBeChecked(
        measure,
        f"nothing says what to try for its field {name}: {getattr(kind, '__name__', kind)}. Values (Clamped), "
        "conditions, truth values and enumerations are tried by themselves; for this one, add what reaches every bound "
        f"to {__name__}._choices.",
    )


# ------------------------------------------------------------------------------------------------------- tiny tables

FAR = 1e31  # beyond every range
HERE, THERE, NOWHERE = "ä", "b'", "elsewhere"


def _row(x: float | None, y: float | None, good: bool | None) -> Reading:
    return Reading(person=None, zip=HERE, x=x, y=y, good=good)


CORNERS = [_row(*it) for it in product((-FAR, FAR, None), (-FAR, FAR, None), (True, False))]
_SPOTS = [-10.0, -2.5, -1.0, -0.0, 5e-324, 1e-10, 0.5, 1.0 + 2.0**-31, 1.25, 2.25, 3.0, 4.5, 7.5, 1e10]
INSIDE = [
    *(_row(*it) for it in zip(_SPOTS, _SPOTS[5:] + _SPOTS[:5], cycle((True, None, False)), strict=False)),
    *(_row(*it) for it in ((inf, -inf, None), (-inf, inf, None), (nan, 1.5, True), (2.5, nan, False))),
]
# For single rows, which cost little: further points of each range, one value running while the other is at an end.
DENSE = [
    _row(*(spots if turned == 0 else spots[::-1]), good=True)
    for ranges in RANGES
    for turned in (0, 1)
    for step, end in zip(range(1, 12), cycle((-FAR, FAR)), strict=False)
    for spots in [(float(ranges[turned][0] + (ranges[turned][1] - ranges[turned][0]) * step / 12), end)]
]
STRAY = _row(FAR, FAR, good=True)._replace(zip=NOWHERE)


@cache
def by_record() -> Neighbours:
    """One row."""
    return around_records((INSIDE[2],), [*CORNERS, *INSIDE, *DENSE, STRAY])


@cache
def by_user() -> Neighbours:
    """One person, in both groups, in one or in none, with rows of one kind or of several, within a limit or beyond."""
    alike = [(kind,) * count for kind in (*CORNERS, *INSIDE) for count in (1, 2, 5)]
    mixed = [(one, one, other, other) for one, other in combinations(CORNERS, 2)]
    both = [tuple(row._replace(zip=place) for place in (HERE, THERE) for row in rows) for rows in (*alike, *mixed)]
    return _around([*both, *alike[:30], (*CORNERS, *INSIDE), (STRAY,), ()])


def _around(row_sets: list[tuple[Reading, ...]]) -> Neighbours:
    table = [row._replace(person="ö0") for row in (INSIDE[2], CORNERS[0], INSIDE[8]._replace(zip=THERE))]
    return around_persons(tuple(table), row_sets, newcomer="1")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------ trials

DATASET = Dataset(name="readings", edition="1")


@dataclass(frozen=True, eq=False, kw_only=True)
class Trial:
    """A unit, its limit and the groups that count; with a public number every unit counts once and can be replaced."""

    name: str
    kind: str
    limit: Limit
    groups: tuple[str, ...]
    around: typing.Callable[[], Neighbours]
    public: bool = False

    @property
    def relations(self) -> tuple[Relation, ...]:
        """Those that it can be asked under."""
        return (Relation.REPLACE,) if self.public else tuple(Relation)

    @property
    def cells(self) -> int:
        """How many groups there are."""
        return max(1, len(self.groups))

    @cached_property
    def table(self) -> typing.Any:
        """All worlds inside the engine."""
        return load(self.around(), f"trial {self.name}")

    def questions(self, measure: type[Measure]) -> list[Aggregate]:
        """Every form of a measure. Another group than those asked for does not count, so a row or person may not."""
        by = (Keys(column="zip", values=self.groups),) if self.groups else ()
        number = 1000 if self.public else None
        some = [form for made in forms(measure)[: self._ranges(measure)] for form in made]
        return [Aggregate(dataset=DATASET, measures=(form,), by=by, number=number) for form in some]

    def _ranges(self, measure: type[Measure]) -> int:
        """How many ranges are tried: all for sums that no other test knows.

        To compile a question takes longer than to answer it, so one range does for the other sums, which
        ``tests/laws/test_gauge_neighbours.py`` and ``tests/tables/test_blocks.py`` hold to their bounds.
        """
        own = any(isinstance(need, OwnSums) for made in forms(measure) for form in made for need in form.needs)
        return len(RANGES) if own or LONG else 1


ONCE = Limit(groups=1, rows_per_group=1)
TWICE = Limit(groups=2, rows_per_group=2)
TRIALS = [
    Trial(name="a row", kind="record", limit=ONCE, groups=(HERE,), around=by_record),
    Trial(name="a person", kind="user", limit=TWICE, groups=(HERE, THERE), around=by_user),
    Trial(name="a row of all", kind="record", limit=ONCE, groups=(), around=by_record, public=True),
    Trial(name="a person of all", kind="user", limit=ONCE, groups=(), around=by_user, public=True),
]


# --------------------------------------------------------------------------------------------------- what is measured


@dataclass(frozen=True, eq=False, kw_only=True)
class Tried:
    """What the sums of one measure came to in every world of one trial."""

    trial: Trial
    questions: tuple[Aggregate, ...]
    totals: dict[Gauge | Histogram, np.ndarray]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All of its sums, each once."""
        return tuple(dict.fromkeys(block for question in self.questions for block in question.blocks))

    @cached_property
    def _found(self) -> dict[tuple[tuple[Gauge | Histogram, ...], Relation], dict[str, int]]:
        return {}

    def moved(self, gauges: Iterable[Gauge | Histogram], relation: Relation) -> dict[str, int]:
        """The furthest that some sums moved together, by norm."""
        asked = tuple(gauges), relation
        if asked not in self._found:
            numbers = np.concatenate([self.totals[gauge] for gauge in asked[0]], axis=1)
            self._found[asked] = furthest(numbers, around=self.trial.around(), relation=relation)
        return self._found[asked]

    def stated(self, reach: Reach, relation: Relation) -> dict[str, Fraction]:
        """The furthest that sums with this reach may move, by norm."""
        given = contribution(unit_of(self.trial.kind, relation), limit_for(self.trial.kind, self.trial.limit))
        return stated(joint_reach([reach], given, cells=self.trial.cells))


@cache
def tried(measure: type[Measure]) -> list[Tried]:
    """A measure in all trials."""
    found = []
    for trial in TRIALS:
        if trial.public and not measure.of_public_number:
            continue
        questions = tuple(trial.questions(measure))
        blocks = dict.fromkeys(block for question in questions for block in question.blocks)
        for block in blocks:
            _check_gauge(measure, block.gauge, block.reach)
        gauges = tuple(dict.fromkeys(block.gauge for block in blocks))
        try:
            totals = _totals(tuple(gauge for gauge in gauges if not isinstance(gauge, Histogram)), trial)
            totals |= {gauge: _binned(gauge, trial) for gauge in gauges if isinstance(gauge, Histogram)}
        except Exception as error:
            raise CannotBeChecked(
                measure, f"the engine cannot add them up ({type(error).__name__}: {error})."
            ) from error
        found.append(Tried(trial=trial, questions=questions, totals=totals))
    return found


@cache
def _binned(histogram: Histogram, trial: Trial) -> np.ndarray:
    """The exact numbers of a histogram in each world, by the plan of the engine: worlds by cells and bins."""
    keys = [KeyColumn(column="zip", values=trial.groups)] if trial.groups else []
    share, lattice = share_for(trial.kind, trial.limit), histogram.lattice
    plan = rows_by_value(trial.table, where=None, keys=keys, share=share, lattice=lattice, world="world")
    found = {name: column.to_numpy() for name, column in zip(plan.columns, plan.to_pyarrow().columns, strict=True)}
    held = np.zeros((len(trial.around().worlds), trial.cells, lattice.steps + 1), dtype=np.int64)
    held[found["world"], found["cell"], found["value"]] = found["total"].astype(np.int64) * histogram.height
    return held.reshape(len(held), -1)


@cache
def _totals(gauges: tuple[Gauge, ...], trial: Trial) -> dict[Gauge | Histogram, np.ndarray]:
    """The exact numbers of each gauge in each world, by the plan of the engine."""
    if not gauges:
        return {}
    keys = [KeyColumn(column="zip", values=trial.groups)] if trial.groups else []
    share = share_for(trial.kind, trial.limit)
    found = totals_by_cell(trial.table, where=None, keys=keys, share=share, gauges=gauges, world="world").to_pyarrow()
    if any(found[name].null_count for name in found.column_names):
        raise ValueError("a part of some row is null")
    numbers = laid_out(found, worlds=len(trial.around().worlds), cells=trial.cells)
    if 2 * max(int(numbers.max()), -int(numbers.min())) * numbers.shape[1] >= 2**63:
        raise ValueError("the sums are so large that 64 bits do not hold how far they move")
    ends = np.cumsum([len(_parts(gauge)[1]) * trial.cells for gauge in gauges])
    return dict(zip(gauges, np.split(numbers, ends[:-1], axis=1), strict=True))


OTHER_ROWS = (ops.Reduction, ops.Analytic, ops.WindowFunction, ops.Subquery, ops.Impure)


@cache
def _parts(gauge: Gauge) -> tuple[list[ir.Value], list[ir.Value], list[ir.Value]]:
    """What is summed of a row, the parts of a row, and those of a person."""
    table = TRIALS[0].table
    rows, places = placed(table, list(gauge.lattices))
    row = gauge.of_row(rows, places)
    sums = table.select(**{f"sum{place}": table.world for place in range(len(row))})
    return row, gauge.of_record(row), gauge.of_person([sums[name] for name in sums.columns], 1)


def _check_gauge(measure: type[Measure], gauge: Gauge | Histogram, reach: Reach) -> None:
    """Refuse what worlds side by side would hide: a part that is no whole number, or not of its own row alone."""
    named = type(gauge).__name__
    if isinstance(gauge, Histogram):
        if reach.numbers != gauge.lattice.steps + 1:
            raise CannotBeChecked(measure, f"its reach states {reach.numbers} numbers, and {named} has one for a bin.")
        return
    try:
        row, record, person = _parts(gauge)
    except Exception as error:
        raise CannotBeChecked(
            measure, f"{named} cannot be asked of a row ({type(error).__name__}: {error})."
        ) from error
    for part in (*row, *record, *person):
        if not part.type().is_integer():
            raise CannotBeChecked(measure, f"a part of {named} is of type {part.type()}, not a whole number.")
        if part.op().find(OTHER_ROWS):
            raise CannotBeChecked(measure, f"a part of {named} depends on more than its own row.")
    if not len(record) == len(person) == reach.numbers:
        raise CannotBeChecked(
            measure,
            f"its reach states {reach.numbers} numbers, and {named} has {len(record)} of a row and {len(person)} of a "
            "person.",
        )


# ------------------------------------------------------------------------------------------------------ the contract


def faults(measure: type[Measure]) -> list[str]:
    """All that is wrong with what a measure states of its sums: too little, or more than any neighbours need."""
    found = []
    for one in tried(measure):
        for block in one.blocks:
            found += too_little(one, block.gauge, block.reach) + too_much(one, block.gauge, block.reach)
        found += _together(one)
    return found


def too_little(one: Tried, gauge: Gauge | Histogram, reach: Reach) -> list[str]:
    """Where neighbours are further apart than a reach states: the noise would be too small."""
    return [
        f"{one.trial.name}, {relation.value}: {type(gauge).__name__} moves by {norm} {moved}, and {bound} is stated"
        for relation, norm, moved, bound in _compared(one, gauge, reach)
        if moved > bound
    ]


def too_much(one: Tried, gauge: Gauge | Histogram, reach: Reach) -> list[str]:
    """Where no neighbours are as far apart as a reach states, without a reason; or not even half as far, with one."""
    return [
        f"{one.trial.name}, {relation.value}: {type(gauge).__name__} moves by no more than {norm} {moved}, and {bound} "
        f"is stated ({reach.loose or 'no reason: Reach(loose=...) takes one'})"
        for relation, norm, moved, bound in _compared(one, gauge, reach)
        if (2 * moved <= bound if reach.loose else moved < bound)
    ]


def _compared(one: Tried, gauge: Gauge | Histogram, reach: Reach) -> Iterator[tuple[Relation, str, int, Fraction]]:
    for relation in one.trial.relations:
        moved, bounds = one.moved([gauge], relation), one.stated(reach, relation)
        yield from ((relation, norm, moved[norm], bounds[norm]) for norm in NORMS)


def _together(one: Tried) -> list[str]:
    """Where neighbours are further apart than the sensitivity of a whole question, which is what noise is made for."""
    found = []
    for question, relation in product(one.questions, one.trial.relations):
        claim = stated(
            question.sensitivity(unit_of(one.trial.kind, relation), limit_for(one.trial.kind, one.trial.limit))
        )
        moved = one.moved((block.gauge for block in question.blocks), relation)
        found += [
            f"{one.trial.name}, {relation.value}: a question moves by {norm} {moved[norm]}, and {claim[norm]} is stated"
            for norm in claim
            if moved[norm] > claim[norm]
        ]
    return found


def halved(reach: Reach) -> Iterator[tuple[str, Reach]]:
    """Each bound of a reach halved in turn."""
    for side, norm in product(("alone", "met"), ("l1", "l2_squared", "linf")):
        move = getattr(reach, side)
        less = replace(move, **{norm: Fraction(getattr(move, norm)) / 2})
        yield f"{side}.{norm}", replace(reach, **{side: less})
