"""A service of a hospital with a board, a plan that was carried out, and releases by region; made in seconds."""

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
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.core.units import user
from sfumato.demo.network import REGIONS, generate
from sfumato.governance.board import Action, Board, Choice, Community, Reasons
from sfumato.governance.consent import Ground, HipaaBasis, SpecialCategory, Terms
from sfumato.governance.ledger import Ledger
from sfumato.reports.publication import Grounds
from sfumato.runner import PlanFile, Runner, adopt
from sfumato.server.publishing.grounds import Publications
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.tables.store import TableStore
from sfumato.vault import Vault

__all__ = ["PEOPLE", "Institution", "institution"]

PATIENT = user("patient_id", relation="add/remove")
ACCOUNT, PURPOSE = "hospital/epidemiology", "public health"
PEOPLE = ("ada", "ben", "cho", "eva")
REASONS = Reasons(
    benefit="beds and staff are planned by it, a month ahead",
    risk="in a small region somebody could be guessed to have been ill",
    choice="a margin of 100 is enough to plan by",
)
SCHEMA = """
kind = "schema"
version = 1
[dataset]
name = "wards"
[unit]
column = "patient_id"
[limit]
groups = 1
rows_per_group = 1
[columns.patient_id]
type = "whole"
[columns.ward]
type = "text"
keys = ["Cardiology", "Emergency", "Surgery"]
"""
PLAN = """
kind = "plan"
version = 1
name = "admissions"
year = {year}
account = "hospital/epidemiology"
purpose = "public health"
recipient = "public"
aim = "least cost"
reason = "wards are staffed by these figures"
legal_basis = "section 7 of the health statistics act"
[unit]
kind = "user"
column = "patient_id"
relation = "add/remove"
[cap]
epsilon = 60
[releases.days]
every = "daily"
{asked}
wanted = {{ margin = 30, confidence = 0.95 }}
[releases.weeks]
every = "weekly"
{asked}
wanted = {{ margin = 110, confidence = 0.95 }}
sums = "days"
[releases.months]
every = "monthly"
{asked}
wanted = {{ margin = 180, confidence = 0.95 }}
sums = "days"
"""
ASKED = """question = "SELECT ward, COUNT(*) FROM wards GROUP BY ward"
schema = "wards.toml"
data = "wards/{period}.parquet\""""


@dataclass(frozen=True)
class Institution:
    """The service, and the keys of its board, which lie elsewhere."""

    service: Service
    keys: dict[str, SigningKey]

    @property
    def ledger(self) -> Ledger:
        return self.service.ledger

    def decided(self, action: Action, **asked: Any) -> int:
        """A request of ada that ben and cho approve; its number."""
        made = self.ledger.submit(
            self.ledger.request_ballot(by="ada", action=action, reasons=REASONS, **asked).signed(self.keys["ada"])
        )
        for name in ("ben", "cho"):
            self.ledger.vote(made.number, by=name, choice=Choice.YES, reason="", key=self.keys[name])  # type: ignore[union-attr]
        return int(made.number)  # type: ignore[union-attr]


def institution(folder: Path, *, today: date, first: date, missing: tuple[date, ...] = ()) -> Institution:
    """A service with everything that its pages show; days before ``first`` and those ``missing`` never had data."""
    service = Service.create(folder / "service")
    for role in ServiceRole:
        if role is not ServiceRole.PUBLIC:
            service.people.add(role.value, shown=f"The {role.value}", roles=[role])
    keys = {name: SigningKey.new() for name in PEOPLE}
    made = Institution(service, keys)
    _opened(made.ledger, keys)
    _plan(made, folder, today=today, first=first, missing=missing)
    _regions(made, folder)
    return made


def _opened(ledger: Ledger, keys: dict[str, SigningKey]) -> None:
    ledger.open_account("hospital", unit=PATIENT, cap=Budget(epsilon=80), reason="decided by the directors")
    ledger.open_account(ACCOUNT, unit=PATIENT, cap=Budget(epsilon=70), reason="the dashboards of the year")
    ledger.open_account("hospital/heart", unit=PATIENT, cap=Budget(epsilon=4), reason="the heart study")
    ledger.declare_population("patients", unit=PATIENT, cap=Budget(epsilon=90), reason="everybody treated here")
    for name, cap in (("wards", 70), ("visits", 10)):
        ledger.declare_dataset(Dataset(name=name, edition="before"), population="patients", cap=Budget(epsilon=cap))
        terms = Terms(
            dataset=name,
            purposes=(PURPOSE,),
            ground=Ground.PUBLIC_TASK,
            condition=SpecialCategory.PUBLIC_HEALTH,
            hipaa=HipaaBasis.NOT_SUBJECT,
            recipients=("public",),
            consent=(),
            consent_text="",
            forbidden=(),
            sites=(),
            until="2099-12-31",
        )
        ledger.declare_terms(terms)
    board = Board(
        members=("ada", "ben", "cho"),
        quorum=2,
        communities=(Community(name="riverside", representatives=("eva",), datasets=("visits",)),),
        keys=tuple((name, key.public_text) for name, key in keys.items()),
    )
    ledger.seat(board, by="director", reason="statute of 5 January")


def _plan(made: Institution, folder: Path, *, today: date, first: date, missing: tuple[date, ...]) -> None:
    ledger = made.ledger
    (folder / "wards").mkdir()
    (folder / "wards.toml").write_text(SCHEMA, "utf-8")
    place = folder / "plan.toml"
    place.write_text(PLAN.format(year=today.year, asked=ASKED), "utf-8")
    file = PlanFile.load(place)
    made.decided(Action.DATASET, subject="wards, for the dashboard", account=None, datasets=("wards",), amount=None)
    made.decided(Action.PLAN, subject=file.digest, account=ACCOUNT, datasets=("wards",), amount=None)
    adopt(ledger, file)
    columns = pa.schema([("patient_id", pa.int64()), ("ward", pa.string())])
    day = first
    while day < today:
        if day not in missing:
            pq.write_table(columns.empty_table(), folder / "wards" / f"{day}.parquet")
        day += timedelta(days=1)
    with _simulated():
        for _ in Runner.of(file, ledger).run(folder / "results", today=today):
            pass


def counts_of(day: date) -> list[int]:
    """How many come to each ward on a day; in one week of October three times as many to the emergency ward."""
    week = day.weekday() < 5
    surge = 3 if date(day.year, 10, 12) <= day <= date(day.year, 10, 18) else 1
    season = abs(183 - day.timetuple().tm_yday)
    return [90 + season // 8 if week else 60, (150 + season // 4) * surge, 70 if week else 20]


@contextmanager
def _simulated() -> Iterator[None]:
    def read(_: TableStore, query: Any) -> list[int]:
        return counts_of(date.fromisoformat(query.dataset.edition.partition(".")[0]))

    with patch.object(TableStore, "read", read):
        yield


def _regions(made: Institution, folder: Path) -> None:
    """Three releases about visits by region: published, not on record, and for the hospital's own staff alone."""
    file = generate(folder / "incoming", patients=3_000, seed=1)
    made.decided(Action.DATASET, subject="visits by region", account=None, datasets=("visits",), amount=None)
    ledger = made.ledger
    ledger.declare_version(Dataset(name="visits", edition="2026-10"))
    vault = Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT, purpose=PURPOSE, recipient="public")
    table = vault.table(
        file, name="visits", version="2026-10", limit=Limit(groups=1, rows_per_group=2), keys={"region": list(REGIONS)}
    )
    published = table.sql("SELECT region, COUNT(*) FROM visits GROUP BY region").release(epsilon="0.5")
    table.sql("SELECT COUNT(*) FROM visits").release(epsilon="0.1")
    held = Publications(made.service.database, now=made.service.now)
    grounds = Grounds(reason="regions plan their beds by it", legal_basis="section 7 of the health statistics act")
    held.put(published.statement.identifier, grounds, by="steward")
