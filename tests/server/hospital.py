"""A hospital whose plan was carried out for a year: days with noise, weeks and months that are their sums.

What is simulated is the reading alone: the exact counts of a day come from :func:`exact`, and not from rows in a file.
Vault, gate, ledger, noise, certificates and the runner are the product's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.core.budget import Budget
from sfumato.errors import BudgetExceeded
from sfumato.governance.ledger import Ledger
from sfumato.governance.periods import Cadence, Period, periods
from sfumato.runner import PlanFile, Runner, adopt
from sfumato.tables.store import TableStore
from sfumato.vault import Vault
from tests.runner.clinic import ACCOUNT, HEAD, PATIENT, QUESTION, YEAR, Clinic, built

__all__ = [
    "BROKEN",
    "CAP",
    "GROUNDS",
    "LATE",
    "NEVER",
    "OUTBREAK",
    "Hospital",
    "exact",
    "plan_text",
    "simulated",
    "the_year",
]

CAP = Budget(epsilon=45)
GROUNDS = 'reason = "wards are staffed by these figures"\nlegal_basis = "section 7 of the health statistics act"\n'
LATE, NEVER, BROKEN = date(YEAR, 3, 4), date(YEAR, 3, 6), date(YEAR, 6, 10)
OUTBREAK = (date(YEAR, 9, 16), date(YEAR, 9, 22))
"""The days of one week in which three times as many women come."""


@dataclass(frozen=True)
class Hospital:
    """The clinic, and what every moment of its year showed: the day, and what the account had spent by then."""

    clinic: Clinic
    spent: tuple[tuple[date, Budget], ...]


def plan_text(*, days: int = 30, weeks: int = 100, months: int = 160, grounds: str = GROUNDS) -> str:
    """The plan: daily counts within a margin, weeks and months as their sums."""
    head = HEAD.replace("epsilon = 60", f"epsilon = {CAP.epsilon}").replace("[unit]", f"{grounds}[unit]")
    return head + "".join(
        f"""
[releases.{name}]
every = "{every}"
{QUESTION}
data = "data/{{period}}.parquet"
wanted = {{ margin = {margin}, confidence = 0.95 }}
{sums}
"""
        for name, every, margin, sums in (
            ("days", "daily", days, ""),
            ("weeks", "weekly", weeks, 'sums = "days"'),
            ("months", "monthly", months, 'sums = "days"'),
        )
    )


def exact(day: date) -> tuple[int, int]:
    """How many women and men come on a day: more on weekdays, and many women in one week of September."""
    women, men = (160, 120) if day.weekday() < 5 else (110, 80)
    return (3 * women if OUTBREAK[0] <= day <= OUTBREAK[1] else women), men


@contextmanager
def simulated() -> Iterator[None]:
    """Exact counts come from :func:`exact`; the file of a day has its columns, and no rows."""

    def read(_: TableStore, query: Any) -> list[int]:
        day = date.fromisoformat(query.dataset.edition.partition(".")[0])
        return list(exact(day))

    with patch.object(TableStore, "read", read):
        yield


def arrive(clinic: Clinic, day: date) -> None:
    """The file of a day comes, whole; that of one day is broken."""
    place = clinic.data(Period(label=day.isoformat(), first=day, last=day))
    if day == BROKEN:
        place.write_bytes(b"no table")
        return
    columns = pa.schema([("patient_id", pa.int64()), ("sex", pa.string()), ("cost", pa.int64())])
    pq.write_table(columns.empty_table(), place)


def the_year(
    folder: Path, *, text: str | None = None, until: date = date(YEAR, 12, 31), spender: bool = True
) -> Hospital:
    """A year of the plan, run once a month; in November somebody else spends what December would have needed.

    Two days of March do not arrive in time, one of them never; a file of June cannot be read.
    """
    clinic = built(folder, cap=CAP)
    ledger = clinic.ledger()
    file = clinic.write_plan(text or plan_text())
    adopt(ledger, file)
    seen: list[tuple[date, Budget]] = []
    with simulated():
        for month in range(1, 13):
            for day in _days(month):
                if day not in (LATE, NEVER):
                    arrive(clinic, day)
            if month == 4:
                arrive(clinic, LATE)
            if month == 12 and spender:
                _somebody_else(clinic, ledger)
            today = min(date(YEAR, month, 1) + timedelta(days=32), until + timedelta(days=1)).replace(day=1)
            _run(file, ledger, clinic, today)
            seen.append((today, ledger.balance(ACCOUNT).spent))
            if today > until:
                break
    ledger.close()
    return Hospital(clinic=clinic, spent=tuple(seen))


def _run(file: PlanFile, ledger: Ledger, clinic: Clinic, today: date) -> None:
    """Carry out what is due; a budget that is used up stops the run, and what was made stands."""
    try:
        for _ in Runner.of(file, ledger).run(clinic.out, today=today):
            pass
    except BudgetExceeded:
        return


def _somebody_else(clinic: Clinic, ledger: Ledger) -> None:
    """A release outside the plan, which takes a part of what the account has left."""
    first = Period(label=f"{YEAR}-01-01", first=date(YEAR, 1, 1), last=date(YEAR, 1, 1))
    asked = PlanFile.load(clinic.plan).entry("days").asked
    table = Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT).table(
        clinic.data(first), schema=asked.schema, version=first.label
    )
    table.sql(asked.sql.replace("sex, ", "").replace(" GROUP BY sex", "")).release(epsilon=3, even_if_useless=True)


def _days(month: int) -> list[date]:
    return [period.first for period in periods(Cadence.DAILY, YEAR) if period.first.month == month]
