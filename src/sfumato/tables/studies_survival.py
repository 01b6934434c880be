"""Survival of the rows of a table: one count of exits by group, by event or censored, and by step of time."""

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.description import plain
from sfumato.core.exact import Exact, natural, rational
from sfumato.core.query import Dataset
from sfumato.core.question import Preview
from sfumato.core.release import Release
from sfumato.core.suggestion import did_you_mean
from sfumato.engines.expressions import (
    Expression,
    Named,
    Term,
    Value,
    col,
    columns_of,
    greatest,
    least,
    surely_whole,
    when,
    written,
)
from sfumato.engines.expressions.bounds import bounds_of
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.studies.exit_cells import best_widths
from sfumato.studies.survival import SurvivalLayout, SurvivalResult
from sfumato.tables.keys import Keys
from sfumato.tables.of_person import PublicFacts
from sfumato.tables.persons import Step
from sfumato.tables.queries.count import Count
from sfumato.tables.queries.marginals import Marginals

__all__ = ["SurvivalQuestion", "check_groups", "survival_question"]

MOST_STEPS = 1000
FEWEST_STEPS = 10  # whole units of time that are taken one by one where the column may hold parts of them
LITTLE = Fraction(1, 10**9)  # of a step: a time that is later than its end by less is at its end
MOST_GROUPS = 20
CLEAR = 6  # standard deviations of the noise in the number at risk that curves and mean times want
EXITS = ("event", "censored")


@dataclass(frozen=True, kw_only=True)
class SurvivalQuestion:
    """The one query of a survival study, and what its numbers are."""

    query: Count | Marginals
    layout: SurvivalLayout

    def result(self, release: Release) -> SurvivalResult:
        """The curves of a release."""
        return SurvivalResult(release, self.layout)

    def enough(self, preview: Preview, rows: int) -> bool:
        """Whether curves and tests stand clear of the noise with so many rows in each group."""
        noise = self.layout.noise(float(preview.mechanism.law.variance))
        return rows >= CLEAR * math.sqrt(noise.at_risk.max())

    def foreseen(self, preview: Preview, rows: int | None) -> tuple[str, ...]:
        """How many rows curves and tests need at this spend, and whether ``rows`` are enough."""
        noise = self.layout.noise(float(preview.mechanism.law.variance))
        spread = math.sqrt(noise.at_risk.max())
        test, curve = math.ceil(3 * spread), math.ceil(CLEAR * spread)
        each = "in each group" if self.layout.groups else "in all"
        notes = [
            f"The number at risk has a noise of standard deviation {math.ceil(spread):,} at most; curves and "
            f"mean times want {max(curve, 200):,} rows {each}"
            + (f", the log-rank test {test:,}." if self.layout.groups else ".")
        ]
        if rows is not None and rows < 2 * spread:
            notes.append(f"With {rows:,} rows {each} most of it is lost in the noise: expect no verdict.")
        elif rows is not None and rows < test and self.layout.groups:
            notes.append(f"With {rows:,} rows {each} the log-rank test may give no verdict.")
        return tuple(notes)


def survival_question(
    *,
    dataset: Dataset,
    facts: PublicFacts,
    where: Expression | None,
    joins: tuple[Step, ...],
    time: str | Term,
    event: str | Term | Expression,
    until: Exact | None,
    steps: int | None,
    group: Keys | None,
    grouped: bool = False,
) -> SurvivalQuestion:
    """The count that a survival study asks for; what it cannot be asked of is refused before anything is read."""
    if grouped:
        raise InvalidInput("survival(...) names its own groups; nothing was done. Say by='arm' and leave group_by out.")
    value = col(time) if isinstance(time, str) else time
    if not isinstance(value, Term):
        raise InvalidInput(
            f"time is a column or a value such as sf.col('left').days_since(sf.col('came')) and was given "
            f"{type(time).__name__}; nothing was done."
        )
    low, high = _range(value, facts)
    last = high if until is None else rational(until, "until")
    if last > high:
        raise InvalidInput(
            f"until = {plain(last)} is beyond the declared bounds of {written(value.node)}, {plain(low)} to "
            f"{plain(high)}: times are held to them, and a curve beyond would be made up. Nothing was read and nothing "
            "was spent. Leave until out, or declare wider bounds where people were followed for longer."
        )
    if last <= low:
        raise InvalidInput(f"time is followed until {plain(last)}, and begins at {plain(low)}; nothing was done.")
    whole = surely_whole(value.node, facts.whole_columns)
    times = _times(low, last, steps, whole=whole, text=written(value.node))
    happened, not_yet = _happened(event, facts)
    held = greatest(least(value, _constant(last, whole=whole)), _constant(low, whole=whole))
    gone = value > _constant(last, whole=whole)
    name = value.node.column if isinstance(value.node, Named) else "time"
    exits = when(happened & ~gone).then(EXITS[0]).when(not_yet | gone).then(EXITS[1])
    exit_keys = Keys(column="exit", values=EXITS, value=exits.node)
    widths = best_widths(len(times))
    numbered = None if len(widths) == 1 or (whole and steps is None) else _step_of(held, low, times, whole=whole)
    levels = []
    for width in widths:
        column = name if width == 1 else f"{name} in blocks of {width}"
        ends = [times[min(place + width, len(times)) - 1] for place in range(0, len(times), width)]
        if numbered is not None:
            keys = _numbered(f"{name} in {len(times)} steps" if width == 1 else column, numbered, width, len(ends))
        elif width == 1 and whole and steps is None:
            keys = _single(column, ends, held.node)
        else:
            keys = _blocks(column, low, ends, held, whole=whole)
        levels.append((*(() if group is None else (group,)), exit_keys, keys))
    if len(levels) == 1:
        query: Count | Marginals = Count(dataset=dataset, where=where, by=levels[0], joins=joins)
    else:
        query = Marginals(dataset=dataset, tables=tuple(levels), where=where, joins=joins)
    layout = SurvivalLayout(
        time=name,
        times=times,
        groups=() if group is None else tuple(map(str, group.labels)),
        by="" if group is None else group.column,
        widths=widths,
        rounded=not whole or steps is not None,
    )
    return SurvivalQuestion(query=query, layout=layout)


def check_groups(group: Keys) -> Keys:
    """Refuse one group, or more than can be told apart in a picture or a test."""
    if not 2 <= group.size <= MOST_GROUPS:
        raise InvalidInput(
            f"{group.column!r} has {group.size:,} groups, and survival is compared between 2 to {MOST_GROUPS}; nothing "
            "was done."
        )
    return group


def _range(value: Term, facts: PublicFacts) -> tuple[Fraction, Fraction]:
    bounds = bounds_of(value, facts.bounds)
    if bounds is None:
        missing = sorted(columns_of(value.node) - set(facts.bounds)) or ["week"]
        known = ", ".join(sorted(facts.bounds)) or "none"
        raise NotDeclared(
            f"the range of {written(value.node)} does not follow from declared bounds (declared: {known}), and reading "
            "it off the data would reveal who is in it. Nothing was read and nothing was spent. Declare "
            f"bounds={{{missing[0]!r}: (0, 52)}} with its own range, or say table.with_bounds(...)."
            f"{did_you_mean(missing[0], facts.bounds)}"
        )
    if bounds[0] < 0:
        raise InvalidInput(
            f"{written(value.node)} can be negative, down to {plain(bounds[0])}, and time in a study begins at 0; "
            "nothing was done. Declare its bounds from 0 on."
        )
    return bounds


def _times(low: Fraction, last: Fraction, steps: int | None, *, whole: bool, text: str) -> tuple[Fraction, ...]:
    """The ends of the steps of time; without a number of steps these are the whole numbers, from the lower bound on."""
    number = int(last // 1 - low // 1) + 1 if whole or low.denominator == last.denominator == 1 else None
    if steps is None:
        if number is None or not (whole or number > FEWEST_STEPS):
            raise InvalidInput(
                f"{text} goes from {plain(low)} to {plain(last)} and is no whole number, or not known to be one; "
                "nothing was done. Say in how many steps to cut it: steps=52."
            )
        if number > MOST_STEPS:
            raise InvalidInput(
                f"{text} has {number:,} whole numbers, more than {MOST_STEPS:,}; nothing was done. Say in how many "
                "steps to cut it: steps=52."
            )
        return tuple(Fraction(int(low) + place) for place in range(number))
    natural(steps, "steps", least=2, most=MOST_STEPS)
    if not whole or number is None:
        return tuple(low + (last - low) * place / steps for place in range(1, steps + 1))
    if steps > number:
        raise InvalidInput(f"{text} has {number:,} whole numbers, which make no {steps} steps; nothing was done.")
    return tuple(Fraction(int(low) - 1 + -(-number * place // steps)) for place in range(1, steps + 1))


def _happened(event: str | Term | Expression, facts: PublicFacts) -> tuple[Expression, Expression]:
    """Whether the event happened, and whether it did not: of a column of truth values neither, where it is missing."""
    value = col(event) if isinstance(event, str) else event
    if isinstance(value, Expression):
        return value, ~value
    if not isinstance(value, Term):
        raise InvalidInput(
            f"event is a column of truth values, or a condition such as sf.col('arrest') == 1, and was given "
            f"{type(event).__name__}; nothing was done."
        )
    named = value.node.column if isinstance(value.node, Named) else None
    if named is not None and (named in facts.bounds or named in facts.whole_columns):
        raise InvalidInput(
            f"{named!r} holds numbers, and an event is a column of truth values or a condition; nothing was done. Say "
            f"event=sf.col({named!r}) == 1."
        )
    if named is not None and named in facts.keys and not all(isinstance(v, bool) for v in facts.keys[named].values):
        raise InvalidInput(
            f"{named!r} has {len(facts.keys[named].values)} categories, and an event is a column of truth values or a "
            f"condition; nothing was done. Say event=sf.col({named!r}) == {facts.keys[named].values[-1]!r}."
        )
    return value == True, value == False  # noqa: E712 - conditions


def _constant(value: Fraction, *, whole: bool) -> int | Fraction:
    return int(value) if whole and value.denominator == 1 else value


def _single(column: str, ends: list[Fraction], value: Value) -> Keys:
    """One step for each whole number."""
    return Keys(column=column, values=tuple(int(end) for end in ends), value=value)


def _blocks(column: str, low: Fraction, ends: list[Fraction], held: Term, *, whole: bool) -> Keys:
    """Steps that end with their upper end, which a cut of the negative value makes: its bins hold their lower edge."""
    starts = [low, *ends[:-1]]
    labels = [f"{plain(start)} to {plain(end)}" for start, end in zip(starts, ends, strict=True)]
    edges = [_constant(-end, whole=whole) for end in reversed(ends)]
    cut = (-held).cut(edges, labels=labels[::-1], above=True)
    return Keys(column=column, values=tuple(labels), value=cut.node)


def _step_of(held: Term, low: Fraction, times: tuple[Fraction, ...], *, whole: bool) -> Term:
    """In which of many steps a time lies, counted from 0, by arithmetic: a cut would have an edge for each of them."""
    if whole:
        number = int(times[-1]) - int(low) + 1
        return ((held - int(low)) * len(times) / number).cast("whole")
    first = int(times[0] == low)  # the lower bound is a step of its own where steps end with whole numbers
    rate = Fraction(len(times) - first) / (times[-1] - low)
    return greatest(((held - low) * rate + (first - LITTLE)).cast("whole"), 0)


def _numbered(column: str, step: Term, width: int, number: int) -> Keys:
    """Steps, or blocks of them, by their number from 1 on."""
    place = step if width == 1 else (step / width).cast("whole")
    return Keys(column=column, values=tuple(range(1, number + 1)), value=(place + 1).node)
