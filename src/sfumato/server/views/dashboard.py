"""The dashboard of a plan: every report of its year with margins, trend and alarms, and what was skipped and why.

Made of the ledger alone: the plan as it was adopted, the charges under its keys and their stored answers. Nothing is
charged for it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from fractions import Fraction

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, Refused
from sfumato.governance.decision_state import Adopted
from sfumato.governance.digest import digest_of
from sfumato.governance.periods import Cadence, Period, periods
from sfumato.governance.plans import FigureSource, Margin, Plan, Schedule
from sfumato.governance.provenance import ChargeFate, Provenance
from sfumato.governance.terms import levels_of
from sfumato.inference.figure import Figure
from sfumato.reports.columns import columns_of
from sfumato.reports.publication import Grounds
from sfumato.runner.figures import Recipe, computed, expected_margin
from sfumato.runner.record import check_planned, corrected, key_of
from sfumato.runner.steps import Ingredient
from sfumato.server.views.gate import EVERYBODY, grounds_of_plan
from sfumato.server.views.snapshot import Snapshot
from sfumato.server.views.trend import Shown, shown_series

__all__ = ["Dashboard", "PlanLineShown", "Report", "ReportState", "WhySkipped", "dashboard", "dashboards_of"]

CONFIDENCE = Fraction(19, 20)


class ReportState(Enum):
    """How a report of a period stands."""

    SHOWN = "shown"
    WAITING = "waiting"
    SKIPPED = "skipped"


class WhySkipped(Enum):
    """Why a period that is over has no report; the newest reason that holds."""

    NO_DATA = "no_data"
    UNREADABLE = "unreadable"
    CLOSED = "closed"
    CUT_OFF = "cut_off"
    NO_ANSWER = "no_answer"
    VETO = "veto"
    BUDGET = "budget"
    PARTS = "parts"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One report of one period: its numbers, or why there are none.

    ``reached`` is within what all its numbers lie at once, with the confidence that its line states; ``identifiers``
    are the releases that it is made of.
    """

    label: str
    first: date
    last: date
    state: ReportState
    why: WhySkipped | None = None
    by: tuple[str, ...] = ()
    numbers: tuple[Shown, ...] = ()
    reached: Fraction | None = None
    stated: Fraction | None = None
    identifiers: tuple[str, ...] = ()
    version: str = ""

    @property
    def meets(self) -> bool:
        """Whether its numbers keep the margin that the plan states for them."""
        return self.reached is not None and self.stated is not None and self.reached <= self.stated

    @property
    def alarms(self) -> tuple[Shown, ...]:
        """Its numbers that stand out."""
        return tuple(number for number in self.numbers if number.alarm is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLineShown:
    """A line of the plan: how often, where it comes from, its stated margin, what it costs, and its reports."""

    name: str
    every: Cadence
    source: FigureSource
    of: str | None
    parts: int
    margin: Fraction | None
    confidence: Fraction
    each: Fraction
    total: Fraction
    labels: tuple[str, ...]
    reports: tuple[Report, ...]

    @property
    def shown(self) -> tuple[Report, ...]:
        """The reports that have numbers, in order."""
        return tuple(report for report in self.reports if report.state is ReportState.SHOWN)

    @property
    def skipped(self) -> tuple[Report, ...]:
        """The periods that are over and have no report."""
        return tuple(report for report in self.reports if report.state is ReportState.SKIPPED)

    @property
    def waiting(self) -> int:
        """How many periods are not over yet."""
        return sum(report.state is ReportState.WAITING for report in self.reports)

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of its numbers, in order."""
        return tuple(dict.fromkeys(number.name for report in self.shown for number in report.numbers))

    def of_group(self, name: str) -> tuple[tuple[Report, Shown], ...]:
        """One number over time."""
        return tuple((report, number) for report in self.shown for number in report.numbers if number.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """A plan's year as everybody may see it: no account, and no purpose.

    Guarantee: post-processing of published releases; ``spent`` is the exact sum of what counts under the plan's keys.
    """

    plan: str
    year: int
    digest: str
    account: str
    grounds: Grounds
    cap: Budget
    spent: Budget
    charges: int
    lines: tuple[PlanLineShown, ...]
    public: bool

    @property
    def left(self) -> Budget:
        """What the plan's cap leaves."""
        return self.cap - self.spent

    @property
    def within(self) -> bool:
        """Whether what was charged is within the cap."""
        return self.cap.covers(self.spent)

    @property
    def skipped(self) -> tuple[tuple[PlanLineShown, Report], ...]:
        """Every period that is over and has no report, the newest first."""
        found = [(line, report) for line in self.lines for report in line.skipped]
        return tuple(sorted(found, key=lambda each: each[1].last, reverse=True))

    @property
    def alarms(self) -> tuple[tuple[PlanLineShown, Report, Shown], ...]:
        """Every number that stands out, the newest first."""
        found = [(line, report, number) for line in self.lines for report in line.shown for number in report.alarms]
        return tuple(sorted(found, key=lambda each: each[1].last, reverse=True))


def dashboards_of(snapshot: Snapshot) -> tuple[Adopted, ...]:
    """The newest version of each plan and year, in the order in which they were adopted."""
    newest = {
        (each.account, each.schedule.plan.name, each.schedule.plan.year): each for each in snapshot.decisions.plans
    }
    return tuple(sorted(newest.values(), key=lambda each: each.number))


def dashboard(snapshot: Snapshot, adopted: Adopted, *, today: date) -> Dashboard:
    """The dashboard of an adopted plan, as of a day."""
    plan = adopted.schedule.plan
    made = _Made(snapshot=snapshot, adopted=adopted, today=today, datasets=_datasets(snapshot, plan))
    lines = tuple(made.line(line.name) for line in adopted.schedule.lines)
    charges = made.counted()
    grounds = [grounds_of_plan(plan, release.name) for release in plan.releases]
    whole = next((each for each in grounds if each.missing), grounds[0])
    return Dashboard(
        plan=plan.name,
        year=plan.year,
        digest=digest_of(plan),
        account=adopted.account,
        grounds=whole,
        cap=plan.cap,
        spent=sum((charge.cost for charge in charges), start=Budget.none()),
        charges=len(charges),
        lines=lines,
        public=not whole.missing and made.everybody(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    """What a report is made of; without columns, why there are none."""

    columns: Mapping[str, Figure] = field(default_factory=dict)
    counting: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    version: str = ""
    why: WhySkipped | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A plan in a snapshot: what was released of each period, under whichever version of the plan.

    ``known`` holds what was worked out once.
    """

    snapshot: Snapshot
    adopted: Adopted
    today: date
    datasets: Mapping[str, str]
    known: dict[str, Period | None] = field(default_factory=dict)

    @property
    def schedule(self) -> Schedule:
        return self.adopted.schedule

    @property
    def versions(self) -> tuple[Plan, ...]:
        """All adopted versions of the plan in any year, the newest first."""
        mine = self.schedule.plan
        return tuple(
            each.schedule.plan
            for each in reversed(self.snapshot.decisions.plans)
            if each.account == self.adopted.account and each.schedule.plan.name == mine.name
        )

    def counted(self) -> list[Provenance]:
        """Every charge of the plan's year that counts."""
        starts = tuple(f"plan/{digest_of(plan)}/" for plan in self.versions if plan.year == self.schedule.plan.year)
        return [charge for key, charge in self.snapshot.keys.items() if key.startswith(starts) and charge.counts]

    def everybody(self) -> bool:
        """Whether what was charged for it so far was for everybody, or for nobody in particular."""
        return all(charge.recipient in (None, EVERYBODY) for charge in self.counted())

    def line(self, name: str) -> PlanLineShown:
        plan, line = self.schedule.plan, self.schedule.line(name)
        release = plan.release(name)
        wanted = release.wanted
        confidence = wanted.confidence if isinstance(wanted, Margin) else CONFIDENCE
        margin = Fraction(wanted.margin) if isinstance(wanted, Margin) else self._expected(name, confidence)
        due = periods(release.every, plan.year)
        figures = [self._figure(name, period) for period in due]
        counting = frozenset(column for figure in figures for column in figure.counting)
        series = shown_series(
            [figure.columns for figure in figures], counting=counting, daily=release.every is Cadence.DAILY
        )
        reports = tuple(
            self._report(period, figure, numbers, confidence, margin)
            for period, figure, numbers in zip(due, figures, series, strict=True)
        )
        heads = next((tuple(column.labels) for figure in figures for column in figure.columns.values()), ())
        return PlanLineShown(
            name=name,
            every=release.every,
            source=line.source,
            of=line.of,
            parts=line.parts,
            margin=margin,
            confidence=confidence,
            each=line.amount,
            total=line.total,
            labels=heads,
            reports=reports,
        )

    def _expected(self, name: str, confidence: Fraction) -> Fraction | None:
        try:
            return expected_margin(self.schedule, name, confidence)
        except InvalidInput:
            return None

    def _report(
        self,
        period: Period,
        figure: "_Figure",
        numbers: tuple[Shown, ...],
        confidence: Fraction,
        stated: Fraction | None,
    ) -> Report:
        state, why = ReportState.SHOWN, None
        if not figure.columns:
            state = ReportState.WAITING if period.last >= self.today else ReportState.SKIPPED
            why = None if state is ReportState.WAITING else figure.why
        return Report(
            label=period.label,
            first=period.first,
            last=period.last,
            state=state,
            why=why,
            by=self._vetoed_by() if why is WhySkipped.VETO else (),
            numbers=numbers,
            reached=_reached(figure.columns, confidence),
            stated=stated,
            identifiers=figure.identifiers,
            version=figure.version,
        )

    # --------------------------------------------------------------------------------------- what there is of a period

    def _figure(self, name: str, period: Period) -> "_Figure":
        """The columns of a report, or why there are none."""
        parts = Recipe(schedule=self.schedule).of(name, period)
        answers: dict[Ingredient, Release] = {}
        for part in parts:
            found = self._answer(part.of)
            if isinstance(found, WhySkipped):
                alone = len(parts) == 1
                return _Figure(why=found if alone or found is WhySkipped.VETO else WhySkipped.PARTS)
            answers[part.of] = found
        counting = [each.name for each in columns_of(next(iter(answers.values()))) if each.counts]
        return _Figure(
            columns=computed(parts, answers.__getitem__),
            counting=tuple(counting),
            identifiers=tuple(release.statement.identifier for release in answers.values()),
            version=_corrections(answers),
        )

    def _answer(self, of: Ingredient) -> Release | WhySkipped:
        """The release of a period under the newest version of the plan that has one."""
        vetoed = self._vetoed_by()
        edition = self._edition(of)
        for plan in self.versions:
            charge = self.snapshot.keys.get(key_of(digest_of(plan), of.release, edition))
            if charge is None or charge.fate is not ChargeFate.ANSWERED:
                continue
            release = self.snapshot.release(charge)
            if release is None or not _is_planned(plan, of, release, edition):
                return WhySkipped.FOREIGN
            return WhySkipped.VETO if vetoed else release
        return self._why(of, edition, vetoed=bool(vetoed))

    def _why(self, of: Ingredient, edition: str, *, vetoed: bool) -> WhySkipped:
        """Why a period has no answer, by what the record says of it."""
        dataset = Dataset(name=self.datasets[of.release], edition=edition)
        keys = [key_of(digest_of(plan), of.release, edition) for plan in self.versions]
        charges = [self.snapshot.keys[key] for key in keys if key in self.snapshot.keys]
        if dataset in self.snapshot.closed:
            return WhySkipped.CLOSED
        if any(charge.fate is ChargeFate.OPEN for charge in charges):
            return WhySkipped.CUT_OFF
        if any(charge.counts for charge in charges):
            return WhySkipped.NO_ANSWER
        if vetoed:
            return WhySkipped.VETO
        if "stopped" not in self.known:
            self.known["stopped"] = self._stopped()
        stopped = self.known["stopped"]
        if stopped is not None and of.period.last >= stopped.last and self._too_dear(of.release):
            return WhySkipped.BUDGET
        return WhySkipped.UNREADABLE if dataset in self.snapshot.versions else WhySkipped.NO_DATA

    def _stopped(self) -> Period | None:
        """The period at which the ledger refused the last run; None where the run went through.

        A run declares the version of a period before it charges, and goes on after a file that cannot be read. Where
        the last version that it declared has no charge, and nothing was charged for the plan since, it stopped there.
        """
        last = max((charge.number for charge in self.counted()), default=0)
        found = [
            period
            for line in self.schedule.lines
            if line.source is not FigureSource.DERIVED
            for period in periods(self.schedule.plan.release(line.name).every, self.schedule.plan.year)
            if self._declared(line.name, period) > last
        ]
        return max(found, key=lambda period: period.last, default=None)

    def _declared(self, name: str, period: Period) -> int:
        of = Ingredient(name, period)
        return self.snapshot.versions.get(Dataset(name=self.datasets[name], edition=self._edition(of)), 0)

    def _too_dear(self, name: str) -> bool:
        """Whether some balance that a release draws on has less left than it costs."""
        cost = Budget(epsilon=self.schedule.line(name).amount)
        dataset = self.datasets[name]
        held = next((each for each in self.snapshot.overview.datasets if each.level.name == dataset), None)
        names = [f"account {level}" for level in levels_of(self.adopted.account)]
        names += [] if held is None else [f"dataset {dataset}", f"population {held.population}"]
        known = [self.snapshot.balances[line] for line in names if line in self.snapshot.balances]
        return any(not balance.left.covers(cost) for balance in known)

    def _edition(self, of: Ingredient) -> str:
        """The newest version of a period's data that was declared."""
        name, label, times = self.datasets[of.release], of.period.label, 0
        while Dataset(name=name, edition=corrected(label, times + 1)) in self.snapshot.versions:
            times += 1
        return corrected(label, times)

    def _vetoed_by(self) -> tuple[str, ...]:
        minutes = self.snapshot.decisions.minutes
        if minutes is None:
            return ()
        names = dict.fromkeys(self.datasets[release.name] for release in self.schedule.plan.releases)
        return tuple(veto.community for name in names for veto in minutes.vetoes(name))


def _datasets(snapshot: Snapshot, plan: Plan) -> dict[str, str]:
    """The dataset that each planned release reads: what its charges read, else the table that its SQL names."""
    found = {release.name: _table_of(release.question) for release in plan.releases}
    start = f"plan/{digest_of(plan)}/"
    for key, charge in snapshot.keys.items():
        if key.startswith(start) and charge.readings and (name := key.split("/")[2]) in found:
            found[name] = charge.readings[0].dataset.name
    return found


def _table_of(question: str | None) -> str:
    """The table that a planned question reads; empty where it is planned in other words than a file's."""
    import sqlglot
    from sqlglot import exp

    try:
        said = json.loads(question or "{}")
    except ValueError:
        return ""
    sql = said.get("sql") if isinstance(said, dict) else None
    tables = [] if sql is None else list(sqlglot.parse_one(sql, read="duckdb").find_all(exp.Table))
    return tables[0].name if tables else ""


def _is_planned(plan: Plan, of: Ingredient, release: Release, edition: str) -> bool:
    try:
        check_planned(plan, of, release.statement, edition)
    except Refused:
        return False
    return True


def _corrections(answers: Mapping[Ingredient, Release]) -> str:
    """The versions of corrected data among those that were released; empty where there was no correction."""
    editions = [release.statement.dataset.edition for release in answers.values()]
    return ", ".join(edition for edition in editions if "." in edition)


def _reached(columns: Mapping[str, Figure], confidence: Fraction) -> Fraction | None:
    """Within what all numbers of a report lie at once; of several columns the widest."""
    widest: list[Fraction] = []
    for figure in columns.values():
        for value, (low, high) in zip(figure.values, figure.interval(confidence, joint=True, of="data"), strict=True):
            widest.append(max(Fraction(high) - Fraction(value), Fraction(value) - Fraction(low)))
    return max(widest, default=None)
