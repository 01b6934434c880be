"""The dashboard of a plan as its page shows it: words by identifier, figures as text, charts as paths."""

import csv
import io
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.spreadsheet import harmless_cell
from sfumato.governance.plans import FigureSource
from sfumato.server.views.chart import SeriesChart, series_chart
from sfumato.server.views.dashboard import Dashboard, PlanLineShown, Report
from sfumato.server.views.trend import Shown
from sfumato.server.views.written import left, number, spent

__all__ = [
    "AlarmRow",
    "Charted",
    "LineShown",
    "NumberShown",
    "PlanShown",
    "ReportRow",
    "SkippedRow",
    "plan_csv",
    "plan_shown",
]

MOST_CHARTS, MOST_ROWS, NEWEST = 6, 400, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberShown:
    """A number with its interval, and how it changed, as text; ``direction`` and ``alarm`` are identifiers of words."""

    name: str
    value: str
    low: str
    high: str
    direction: str
    change: str
    alarm: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """A report in a table."""

    label: str
    version: str
    numbers: tuple[NumberShown, ...]
    why: str
    by: str
    identifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Charted:
    """A chart with the words beside it."""

    chart: SeriesChart
    top: str
    bottom: str
    newest: NumberShown
    period: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineShown:
    """A line of the plan on its page; ``newest`` are the last few reports, ``rows`` all that are over."""

    name: str
    every: str
    source: str
    of: str
    parts: int
    margin: str
    confidence: str
    each: str
    total: str
    shown: int
    skipped: int
    waiting: int
    groups: tuple[str, ...]
    charts: tuple[Charted, ...]
    newest: tuple[ReportRow, ...]
    rows: tuple[ReportRow, ...]
    all_meet: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRow:
    """Periods of a line that have no report for one reason, the first and the last of them, and how many they are."""

    line: str
    first: str
    last: str
    count: int
    why: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmRow:
    """A number that stands out."""

    line: str
    every: str
    label: str
    name: str
    value: str
    expected: str
    within: str
    high: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanShown:
    """The page of a plan in the language of nobody in particular: words come from the catalogue."""

    plan: str
    year: int
    digest: str
    cap: str
    spent: str
    left: str
    share: float
    within: bool
    shown: int
    skipped_count: int
    waiting: int
    reason: str
    legal_basis: str
    lines: tuple[LineShown, ...]
    skipped: tuple[SkippedRow, ...]
    alarms: tuple[AlarmRow, ...]


def plan_shown(found: Dashboard) -> PlanShown:
    """The page of a dashboard."""
    cap = found.cap.epsilon
    return PlanShown(
        plan=found.plan,
        year=found.year,
        digest=found.digest,
        cap=left(cap),
        spent=spent(found.spent.epsilon),
        left=left(found.left.epsilon) if found.within else "0",
        share=float(min(Fraction(1), found.spent.epsilon / cap)),
        within=found.within,
        shown=sum(len(line.shown) for line in found.lines),
        skipped_count=len(found.skipped),
        waiting=sum(line.waiting for line in found.lines),
        reason=found.grounds.reason,
        legal_basis=found.grounds.legal_basis,
        lines=tuple(_line(line) for line in found.lines),
        skipped=tuple(_skipped(found)),
        alarms=tuple(
            AlarmRow(
                line=line.name,
                every=line.every.value,
                label=report.label,
                name=one.name,
                value=number(one.value),
                expected=number(round(one.alarm.expected)),
                within=number(-(-one.alarm.within.numerator // one.alarm.within.denominator)),
                high=one.alarm.high,
            )
            for line, report, one in found.alarms
            if one.alarm is not None
        ),
    )


def _line(line: PlanLineShown) -> LineShown:
    rows = [_row(report) for report in reversed(line.reports) if report in line.shown or report in line.skipped]
    charts = []
    for name in line.groups[:MOST_CHARTS]:
        chart, newest = series_chart(line, name), line.of_group(name)[-1]
        if chart is not None:
            top, bottom = number(round(chart.top)), number(round(chart.bottom))
            charts.append(
                Charted(chart=chart, top=top, bottom=bottom, newest=_number(newest[1]), period=newest[0].label)
            )
    return LineShown(
        name=line.name,
        every=line.every.value,
        source="own" if line.source is FigureSource.OWN else line.source.value,
        of=line.of or "",
        parts=line.parts,
        margin="" if line.margin is None else number(line.margin),
        confidence=f"{float(100 * line.confidence):g}",
        each=spent(line.each),
        total=spent(line.total),
        shown=len(line.shown),
        skipped=len(line.skipped),
        waiting=line.waiting,
        groups=line.groups,
        charts=tuple(charts),
        newest=tuple(rows[:NEWEST]),
        rows=tuple(rows[:MOST_ROWS]),
        all_meet=all(report.meets for report in line.shown),
    )


def _row(report: Report) -> ReportRow:
    return ReportRow(
        label=report.label,
        version=report.version,
        numbers=tuple(_number(one) for one in report.numbers),
        why="" if report.why is None else report.why.value,
        by=", ".join(report.by),
        identifier=report.identifiers[0] if len(report.identifiers) == 1 else "",
    )


def _number(one: Shown) -> NumberShown:
    return NumberShown(
        name=one.name,
        value=number(one.value),
        low=number(one.low),
        high=number(one.high),
        direction=one.direction.value,
        change="" if one.change is None else ("+" if one.change[0] > 0 else "") + number(one.change[0]),
        alarm="" if one.alarm is None else "high" if one.alarm.high else "low",
    )


def _skipped(found: Dashboard) -> list[SkippedRow]:
    """What was skipped, runs of periods with one reason in one row, the newest first."""
    rows: list[SkippedRow] = []
    for line in found.lines:
        run: list[Report] = []
        for report in (*line.reports, None):
            same = report is not None and report.why is not None and (not run or report.why is run[-1].why)
            if run and not same:
                rows.append(_run(line, run))
                run = []
            if report is not None and report.why is not None:
                run.append(report)
    return sorted(rows, key=lambda row: row.last, reverse=True)


def _run(line: PlanLineShown, run: list[Report]) -> SkippedRow:
    why = run[0].why
    return SkippedRow(
        line=line.name,
        first=run[0].label,
        last=run[-1].label,
        count=len(run),
        why="" if why is None else why.value,
        by=", ".join(run[0].by),
    )


COLUMNS = ("period", "first", "last", "state", "why", "number", "value", "data_low", "data_high", "version")


def plan_csv(line: PlanLineShown) -> str:
    """All reports of a line as a table; cells that a spreadsheet would take for a formula are made harmless."""
    held = io.StringIO()
    table = csv.writer(held)
    table.writerow(COLUMNS)
    for report in line.reports:
        where = [report.label, report.first, report.last, report.state.value, report.why.value if report.why else ""]
        for one in report.numbers:
            ends = (float(one.value), float(one.low), float(one.high))
            table.writerow([*where, harmless_cell(one.name), *ends, report.version])
        if not report.numbers:
            table.writerow([*where, "", "", "", "", ""])
    return held.getvalue()
