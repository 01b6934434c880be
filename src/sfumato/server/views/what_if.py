"""What a plan would cost, and how exact it would be, if it were another: sliders for a board. Nothing is spent."""

import json
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.core.budget import Budget
from sfumato.core.exact import rational
from sfumato.core.guarantees import Pure
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.governance.decision_state import Adopted
from sfumato.governance.plans import (
    Aim,
    Cadence,
    FigureSource,
    Margin,
    Plan,
    PlannedRelease,
    Price,
    Schedule,
    solve,
)
from sfumato.reports.frequencies import PRIOR, Frequencies, believed

__all__ = ["Imagined", "ImaginedLine", "Knob", "imagined", "knobs_of"]

MOST_FIGURE = ROOMY = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """What of a release can be turned: how exact it is, and how often it comes; with the ends of its slider."""

    name: str
    margin: Fraction
    least: int
    most: int
    every: Cadence


@dataclass(frozen=True, slots=True, kw_only=True)
class ImaginedLine:
    """A release as it would be: what each costs, what the year costs, and within what all its numbers lie."""

    name: str
    every: Cadence
    source: FigureSource
    periods: int
    each: Fraction
    total: Fraction
    margin: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Imagined:
    """A plan as it would be: whether it fits, its ε for the year, and how far a belief about one person could move.

    ``refused`` says in the solver's words why it does not fit; then there are no lines.
    """

    cap: Budget
    total: Fraction | None
    lines: tuple[ImaginedLine, ...]
    beliefs: Frequencies | None
    refused: str

    @property
    def fits(self) -> bool:
        """Whether all of it fits into the cap."""
        return self.total is not None and self.total <= self.cap.epsilon


def knobs_of(plan: Plan) -> tuple[Knob, ...]:
    """A knob for each release that states a margin."""
    return tuple(
        Knob(
            name=release.name,
            margin=Fraction(release.wanted.margin),
            least=max(1, int(release.wanted.margin) // 10),
            most=max(10, int(release.wanted.margin) * 4),
            every=release.every,
        )
        for release in plan.releases
        if isinstance(release.wanted, Margin)
    )


def imagined(
    adopted: Adopted, *, margins: dict[str, str], cadences: dict[str, str] | None = None, cap: str | None = None
) -> Imagined:
    """Solve the plan with other margins, cadences or another cap; what is not given stays as it was adopted.

    Public: all of it follows from the plan. A plan that does not fit its cap is solved again without one, so that a
    board sees what it would cost.
    """
    plan = adopted.schedule.plan
    allowed = plan.cap if cap is None else Budget(epsilon=_amount(cap), delta=plan.cap.delta)
    other = replace(plan, releases=tuple(_turned(each, margins, cadences or {}) for each in plan.releases))
    solved = Budget(epsilon=ROOMY, delta=plan.cap.delta) if plan.aim is Aim.LEAST_COST else allowed
    try:
        schedule = solve(replace(other, cap=solved), prices=_prices(adopted.schedule))
    except SfumatoError as wrong:
        return Imagined(cap=allowed, total=None, lines=(), beliefs=None, refused=str(wrong))
    return Imagined(
        cap=allowed,
        total=schedule.total,
        lines=tuple(_line(schedule, line.name) for line in schedule.lines),
        beliefs=believed(Pure(epsilon=schedule.total), PRIOR),
        refused="",
    )


def _turned(release: PlannedRelease, margins: dict[str, str], cadences: dict[str, str]) -> PlannedRelease:
    changed = release
    if release.name in margins and isinstance(release.wanted, Margin):
        changed = replace(changed, wanted=replace(release.wanted, margin=_whole(margins[release.name])))
    if release.name in cadences:
        try:
            changed = replace(changed, every=Cadence(cadences[release.name]))
        except ValueError:
            raise InvalidInput(f"{cadences[release.name][:20]!r} is not how often something comes.") from None
    return changed


def _prices(schedule: Schedule) -> dict[str, Price]:
    """The prices of answers that are not counts: ε goes as the inverse of the margin, from the one that was adopted."""
    plan = schedule.plan
    return {
        release.name: _scaled(schedule.line(release.name).amount, Fraction(release.wanted.margin))
        for release in plan.releases
        if isinstance(release.wanted, Margin) and not _counts(release.question)
    }


def _scaled(amount: Fraction, margin: Fraction) -> Price:
    def price(release: PlannedRelease) -> Fraction:
        return amount * margin / Fraction(release.wanted.margin) if isinstance(release.wanted, Margin) else amount

    return price


def _counts(question: str | None) -> bool:
    """Whether a planned question counts, and does nothing else; one in other words than a file's is taken to."""
    import sqlglot
    from sqlglot import exp

    try:
        said = json.loads(question or "{}")
    except ValueError:
        return True
    sql = said.get("sql") if isinstance(said, dict) else None
    asked = [] if sql is None else sqlglot.parse_one(sql, read="duckdb").find_all(exp.AggFunc)
    return all(isinstance(each, exp.Count) for each in asked)


def _line(schedule: Schedule, name: str) -> ImaginedLine:
    line = schedule.line(name)
    return ImaginedLine(
        name=name,
        every=schedule.plan.release(name).every,
        source=line.source,
        periods=line.periods,
        each=line.amount,
        total=line.total,
        margin=Fraction(schedule.margin(name)),
    )


def _amount(text: str) -> Fraction:
    value = rational(text.strip(), "a figure of the form")
    if not 0 < value <= MOST_FIGURE:
        raise InvalidInput("a figure of the form is not above 0, or is too large; nothing was worked out.")
    return value


def _whole(text: str) -> int:
    value = _amount(text)
    if value.denominator != 1:
        raise InvalidInput("a margin is a whole number; nothing was worked out.")
    return value.numerator
