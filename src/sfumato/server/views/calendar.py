"""The calendar of plans: for each month of a year what is due, what was released, what was skipped, what is to come."""

from dataclasses import dataclass
from datetime import date

from sfumato.governance.plans import FigureSource
from sfumato.server.views.dashboard import Dashboard, Report, ReportState

__all__ = ["CalendarLine", "MonthCell", "calendar_of"]

MONTHS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthCell:
    """How many reports of a line fall into a month, by how they stand; a report falls where its last day lies."""

    month: int
    shown: int
    skipped: int
    waiting: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.shown + self.skipped + self.waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarLine:
    """A line of a plan over the months of its year, and the next day on which one of its reports is due."""

    plan: str
    digest: str
    year: int
    name: str
    every: str
    charges: bool
    cells: tuple[MonthCell, ...]
    next_due: date | None


def calendar_of(dashboards: tuple[Dashboard, ...], year: int) -> tuple[CalendarLine, ...]:
    """The calendar of all plans of a year."""
    return tuple(
        CalendarLine(
            plan=shown.plan,
            digest=shown.digest,
            year=shown.year,
            name=line.name,
            every=line.every.value,
            charges=line.source is not FigureSource.DERIVED,
            cells=tuple(
                MonthCell(
                    month=month,
                    shown=_count(line.reports, month, ReportState.SHOWN),
                    skipped=_count(line.reports, month, ReportState.SKIPPED),
                    waiting=_count(line.reports, month, ReportState.WAITING),
                )
                for month in range(1, MONTHS + 1)
            ),
            next_due=min((each.last for each in line.reports if each.state is ReportState.WAITING), default=None),
        )
        for shown in dashboards
        if shown.year == year
        for line in shown.lines
    )


def _count(reports: tuple[Report, ...], month: int, state: ReportState) -> int:
    return sum(report.last.month == month and report.state is state for report in reports)
