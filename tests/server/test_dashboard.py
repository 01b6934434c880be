"""The dashboard of a plan: a simulated year within its cap, the error of every report, what was skipped and why."""

from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import pytest
from scipy.stats import binom

from sfumato.governance.ledger import Ledger
from sfumato.mechanisms.laplace import Laplace
from sfumato.server.views.dashboard import Dashboard, ReportState, WhySkipped, dashboard, dashboards_of
from sfumato.server.views.snapshot import Snapshots
from sfumato.server.views.trend import TrendDirection
from tests.claims.breaks import with_less
from tests.runner.clinic import ACCOUNT, YEAR
from tests.server.hospital import BROKEN, CAP, LATE, NEVER, OUTBREAK, Hospital, exact, the_year

NEW_YEAR = date(YEAR + 1, 1, 1)
ALPHA = 1e-10


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Hospital:
    return the_year(tmp_path_factory.mktemp("year"))


@pytest.fixture(scope="module")
def ledger(hospital: Hospital) -> Iterator[Ledger]:
    opened = hospital.clinic.ledger()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def shown(ledger: Ledger) -> Dashboard:
    return of(ledger)


def of(ledger: Ledger, today: date = NEW_YEAR) -> Dashboard:
    snapshot = Snapshots(ledger).now()
    return dashboard(snapshot, dashboards_of(snapshot)[-1], today=today)


def truth(first: date, last: date) -> tuple[int, int]:
    """What really happened in a period."""
    days = [exact(first + timedelta(days=place)) for place in range((last - first).days + 1)]
    return sum(women for women, _ in days), sum(men for _, men in days)


def outside(found: Dashboard, name: str) -> tuple[int, int]:
    """Of how many reports some number lies further from the truth than the plan states, and how many there are."""
    line = next(line for line in found.lines if line.name == name)
    wrong = 0
    for report in line.shown:
        far = [
            abs(number.value - real)
            for number, real in zip(report.numbers, truth(report.first, report.last), strict=True)
        ]
        wrong += max(far) > (line.margin or 0)
    return wrong, len(line.shown)


def most_wrong(reports: int) -> int:
    """How many of so many reports may lie outside a margin of 95%, by chance, but for one run in 10,000,000,000."""
    return int(binom.isf(ALPHA, reports, 0.05))


@pytest.mark.claim("S1-34")
def test_a_simulated_year_never_passes_the_cap(hospital: Hospital, ledger: Ledger, shown: Dashboard) -> None:
    assert len(hospital.spent) == 12
    assert all(CAP.covers(spent) for _, spent in hospital.spent)
    assert ledger.balance(ACCOUNT).spent == hospital.spent[-1][1]
    each = next(line.each for line in shown.lines if line.name == "days")
    assert shown.spent.epsilon == each * shown.charges
    assert shown.spent.epsilon + 3 == ledger.balance(ACCOUNT).epsilon_spent, (
        "what somebody else spent is not the plan's"
    )
    assert shown.within
    assert shown.left == shown.cap - shown.spent
    assert CAP.epsilon - hospital.spent[-1][1].epsilon < each, "the year went to the end of its cap, and not beyond"
    assert ledger.verify() == ()


@pytest.mark.claim("S1-34")
@pytest.mark.alpha(1e-9)
def test_every_report_meets_its_stated_error(shown: Dashboard) -> None:
    """Each states no more than its plan, and lies as far off as that says; noise twice as wide is found."""
    for line in shown.lines:
        assert line.shown
        assert all(report.meets for report in line.shown), line.name
        assert all(report.stated == line.margin for report in line.shown)
        wrong, reports = outside(shown, line.name)
        assert wrong <= most_wrong(reports), f"{wrong} of {reports} {line.name} lie further off than stated"
    for line in shown.lines:  # and the interval of each number holds it 95 times in 100
        hit = [
            (number.low <= real <= number.high)
            for report in line.shown
            for number, real in zip(report.numbers, truth(report.first, report.last), strict=True)
        ]
        assert hit.count(False) <= most_wrong(len(hit)), line.name


@pytest.mark.alpha(1e-9)
def test_wider_noise_is_noticed(tmp_path: Path) -> None:
    """The broken twin of the test above: noise five times as wide, which two months suffice to see."""
    with patch.object(Laplace, "add_noise", with_less("scale", Fraction(5))(Laplace.add_noise)):
        found = the_year(tmp_path, until=date(YEAR, 2, 29), spender=False)
    ledger = found.clinic.ledger()
    wrong, reports = outside(of(ledger, date(YEAR, 3, 1)), "days")
    ledger.close()
    assert wrong > most_wrong(reports)


@pytest.mark.claim("S1-34")
def test_it_says_what_was_skipped_and_why(shown: Dashboard) -> None:
    why = {(line.name, report.label): report.why for line, report in shown.skipped}
    days = {label: reason for (name, label), reason in why.items() if name == "days"}
    assert days.get(NEVER.isoformat()) is WhySkipped.NO_DATA
    assert days.get(BROKEN.isoformat()) is WhySkipped.UNREADABLE
    assert LATE.isoformat() not in days, "it came late, and was released when it came"
    rest = {label: reason for label, reason in days.items() if label > f"{YEAR}-12-01"}
    assert set(rest.values()) == {WhySkipped.BUDGET}
    assert min(rest) > f"{YEAR}-12-01", "December began before the budget was used up"
    assert why.get(("weeks", f"{YEAR}-W10")) is WhySkipped.PARTS
    assert why.get(("months", f"{YEAR}-03")) is WhySkipped.PARTS
    counts = Counter(report.state for line in shown.lines for report in line.reports)
    assert counts[ReportState.WAITING] == 0
    assert counts[ReportState.SKIPPED] == len(shown.skipped)


@pytest.mark.claim("S1-34")
@pytest.mark.alpha(1e-9)
def test_an_outbreak_sets_off_an_alarm_and_a_trend(shown: Dashboard) -> None:
    """Three times as many women for a week; the day lies 30 scales of noise beyond the limit of an alarm."""
    alarms = {(line.name, report.first, number.name) for line, report, number in shown.alarms if number.alarm.high}
    assert ("weeks", OUTBREAK[0], "F") in alarms
    assert ("days", OUTBREAK[0], "F") in alarms
    weeks = next(line for line in shown.lines if line.name == "weeks")
    week, women = next((report, number) for report, number in weeks.of_group("F") if report.first == OUTBREAK[0])
    assert women.direction is TrendDirection.UP
    assert women.change is not None
    assert women.change[1] > 0
    after = next(number for report, number in weeks.of_group("F") if report.first > week.last)
    assert after.direction is TrendDirection.DOWN


def test_a_year_that_is_not_over_waits_for_its_rest(ledger: Ledger, shown: Dashboard) -> None:
    found = of(ledger, date(YEAR, 2, 1))
    days, whole = found.lines[0], shown.lines[0]
    assert days.skipped == ()
    assert days.waiting == len(whole.skipped), "what was released is shown, whatever the day is"
    assert days.shown == whole.shown
