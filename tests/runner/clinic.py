"""A small clinic with a ledger, a plan for a year that is over, and a file of visits for each period."""

import secrets
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.core.units import user
from sfumato.governance.ledger import Ledger
from sfumato.governance.periods import Cadence, Period, period_of, periods
from sfumato.runner import PlanFile, adopt

YEAR = 2024
PATIENT = user("patient_id", relation="add/remove")
ACCOUNT = "hospital/epidemiology"
SCHEMA = """
kind = "schema"
version = 1
[dataset]
name = "visits"
[unit]
column = "patient_id"
[limit]
groups = 1
rows_per_group = 1
[columns.patient_id]
type = "whole"
[columns.sex]
type = "text"
keys = ["F", "M"]
[columns.cost]
type = "whole"
bounds = [0, 100]
"""
HEAD = f"""
kind = "plan"
version = 1
name = "dashboard"
year = {YEAR}
account = "{ACCOUNT}"
aim = "least cost"
[unit]
kind = "user"
column = "patient_id"
relation = "add/remove"
[cap]
epsilon = 60
"""
QUESTION = 'question = "SELECT sex, COUNT(*) FROM visits GROUP BY sex"\nschema = "visits.toml"'
MONTHS = f"""
[releases.months]
every = "monthly"
{QUESTION}
data = "data/{{period}}.parquet"
wanted = {{ margin = 3, confidence = 0.95 }}
"""
QUARTERS = f"""
[releases.quarters]
every = "quarterly"
{QUESTION}
data = "data/{{period}}.parquet"
wanted = {{ margin = 20, confidence = 0.95 }}
sums = "months"
"""


@dataclass(frozen=True)
class Clinic:
    """Where everything of it lies; plain paths, so that another process can open it too."""

    folder: Path

    @property
    def plan(self) -> Path:
        return self.folder / "plan.toml"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def ledger(self) -> Ledger:
        return Ledger.open(self.folder / "ledger.db", key=self.folder / "key", anchor=self.folder / "apart" / "anchor")

    def data(self, period: Period) -> Path:
        return self.folder / "data" / f"{period.label}.parquet"

    def write_plan(self, text: str) -> PlanFile:
        self.plan.write_text(text, "utf-8")
        return PlanFile.load(self.plan)

    def adopt(self, text: str) -> PlanFile:
        file = self.write_plan(text)
        ledger = self.ledger()
        adopt(ledger, file)
        ledger.close()
        return file


def built(folder: Path, *, cap: Budget | None = None) -> Clinic:
    """A clinic with accounts, people and a first version of its visits, and no data yet."""
    roomy = Budget(epsilon=1000)
    (folder / "apart").mkdir()
    (folder / "data").mkdir()
    (folder / "visits.toml").write_text(SCHEMA, "utf-8")
    SigningKey.new().save(folder / "key")
    ledger = Ledger.create(folder / "ledger.db", key=folder / "key", anchor=folder / "apart" / "anchor")
    ledger.open_account("hospital", unit=PATIENT, cap=roomy, reason="decided by the tests")
    ledger.open_account(ACCOUNT, unit=PATIENT, cap=cap or roomy, reason="decided by the tests")
    ledger.declare_population("city", unit=PATIENT, cap=roomy, reason="decided by the tests")
    ledger.declare_dataset(Dataset(name="visits", edition="before"), population="city", cap=roomy)
    ledger.close()
    return Clinic(folder)


def people_of(period: Period) -> tuple[int, int]:
    """How many women and men come in a period; known, so that a released figure can be held to it."""
    days = (period.last - period.first).days + 1
    return 40 * days, 20 * days + period.first.month


def fill(clinic: Clinic, *several: Period) -> None:
    """Write the data of some periods, each put into its place whole."""
    for period in several:
        women, men = people_of(period)
        rows = {
            "patient_id": list(range(women + men)),
            "sex": ["F"] * women + ["M"] * men,
            "cost": [secrets.randbelow(100) for _ in range(women + men)],
        }
        place = clinic.data(period)
        beside = place.with_name(f".{place.name}")
        pq.write_table(pa.table(rows), beside)
        beside.replace(place)


def months(*numbers: int) -> list[Period]:
    """Months of the plan's year; all of them if none is named."""
    every = periods(Cadence.MONTHLY, YEAR)
    return [every[number - 1] for number in numbers] if numbers else list(every)


def days(first: date, count: int) -> list[Period]:
    """Some days from a first one on."""
    return [period_of(Cadence.DAILY, first + timedelta(days=place)) for place in range(count)]
