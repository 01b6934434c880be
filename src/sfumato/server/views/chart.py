"""Charts as paths in a box of 1000 × 200: a page stretches the box, and its style has the colours.

Shapes alone: words and figures stand beside the box as text, so that they stay legible on a phone. Dots are paths
without length, which a round pen draws as circles however the box is stretched.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from sfumato.server.views.budgets import BurnDown
from sfumato.server.views.dashboard import PlanLineShown, ReportState

__all__ = ["HIGH", "WIDE", "SeriesChart", "StepChart", "series_chart", "step_chart"]

WIDE, HIGH = 1000, 200
ROOM = Fraction(1, 20)
"""Of the height, above and below what is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesChart:
    """A number over time: its band, its line, its dots, and what stands out or was skipped, as paths."""

    name: str
    band: str
    line: str
    dots: str
    alarms: str
    skipped: str
    top: float
    bottom: float
    first: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepChart:
    """What was spent over time as a stair below its cap: the area, the stair, and the height of the cap."""

    area: str
    stair: str
    cap: float
    first: str
    last: str


def series_chart(line: PlanLineShown, name: str) -> SeriesChart | None:
    """One number of a line of a plan; None where it has fewer than two periods."""
    places = {report.label: place for place, report in enumerate(line.reports)}
    shown = [(places[report.label], number) for report, number in line.of_group(name)]
    if len(shown) < 2:
        return None
    top = float(max(number.high for _, number in shown))
    bottom = float(min(number.low for _, number in shown))
    bottom = min(bottom, 0.0) if bottom < float(top) / 3 else bottom
    last = max(len(line.reports) - 1, 1)

    def x(place: int) -> float:
        return round(WIDE * place / last, 1)

    def y(value: object) -> float:
        room = float(ROOM) * HIGH
        part = (float(value) - bottom) / ((top - bottom) or 1.0)  # type: ignore[arg-type]  # a number
        return round(HIGH - room - part * (HIGH - 2 * room), 1)

    runs = _runs([place for place, _ in shown])
    at = dict(shown)
    return SeriesChart(
        name=name,
        band=" ".join(
            _closed([(x(place), y(at[place].high)) for place in run], [(x(place), y(at[place].low)) for place in run])
            for run in runs
        ),
        line=" ".join(_path([(x(place), y(at[place].value)) for place in run]) for run in runs),
        dots=_dots([(x(place), y(number.value)) for place, number in shown]) if len(shown) <= 60 else "",
        alarms=_dots([(x(place), y(number.value)) for place, number in shown if number.alarm is not None]),
        skipped=" ".join(
            f"M{x(places[report.label])} {HIGH}v-9" for report in line.reports if report.state is ReportState.SKIPPED
        ),
        top=top,
        bottom=bottom,
        first=line.reports[0].label,
        last=line.reports[-1].label,
    )


def step_chart(found: BurnDown, until: datetime) -> StepChart:
    """How ε of a balance was spent, up to a moment."""
    cap = float(found.cap.epsilon) or 1.0
    begun = found.steps[0][0] if found.steps else until
    length = max((until - begun).total_seconds(), 1.0)
    top = max(cap, float(sum((cost.epsilon for _, cost in found.steps), Fraction(0)))) * 1.08

    def y(value: float) -> float:
        return round(HIGH - HIGH * value / top, 2)

    spent, points = Fraction(0), [(0.0, float(HIGH))]
    for when, cost in found.steps:
        x = round(WIDE * max((when - begun).total_seconds(), 0.0) / length, 2)
        points.append((x, points[-1][1]))
        spent += cost.epsilon
        points.append((x, y(float(spent))))
    points.append((float(WIDE), points[-1][1]))
    stair = _path(points)
    return StepChart(
        area=f"{stair} L{WIDE} {HIGH} L0 {HIGH} Z",
        stair=stair,
        cap=y(cap),
        first=begun.date().isoformat(),
        last=until.date().isoformat(),
    )


def _runs(places: Sequence[int]) -> list[list[int]]:
    """Places that follow each other, so that a gap stays a gap."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + " L".join(f"{x:g} {y:g}" for x, y in points)


def _closed(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]]) -> str:
    if len(upper) == 1:
        (x, high), (_, low) = upper[0], lower[0]
        return f"M{x - 1:g} {high:g} L{x + 1:g} {high:g} L{x + 1:g} {low:g} L{x - 1:g} {low:g} Z"
    return _path([*upper, *reversed(lower)]) + " Z"


def _dots(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"M{x:g} {y:g}h0" for x, y in points)
