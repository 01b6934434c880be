"""A small institution on either store: where its database, its anchor and its key are, and its first entries."""

import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy.engine import make_url

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.core.units import user
from sfumato.governance.durable import DurableLedger
from sfumato.governance.ledger import Ledger

PATIENT = user("patient_id", relation="add/remove")
VISITS = Dataset(name="visits", edition="2026-10")
ACCOUNT = "hospital/oncology/readmissions"
STORES = ["sqlite", "postgresql"]


@dataclass(frozen=True)
class Home:
    """Where a ledger is; plain text, so that another process can open it too."""

    url: str
    folder: str
    socket: str = ""
    """The address of the owner process through which vaults charge it, if there is one."""

    @property
    def anchor(self) -> Path:
        return Path(self.folder) / "anchor"

    @property
    def key(self) -> Path:
        return Path(self.folder) / "ledger.key"

    @property
    def lite(self) -> bool:
        return "://" not in self.url

    def create(self, clock: Callable[[], datetime] | None = None) -> Ledger:
        if not self.key.exists():
            SigningKey.new().save(self.key)
        return Ledger.create(self.url, key=self.key, anchor=self.anchor, **_given(clock))

    def open(self, clock: Callable[[], datetime] | None = None) -> Ledger:
        return Ledger.open(self.url, key=self.key, anchor=self.anchor, **_given(clock))

    def account(self, path: str = ACCOUNT) -> DurableLedger:
        return self.open().account(path, unit=PATIENT)

    def execute(self, *statements: str) -> list[Any]:
        """Do what only somebody with the database's password can, past the ledger and its triggers."""
        import sqlalchemy as sa

        url = f"sqlite:///{self.url}" if self.lite else make_url(self.url).set(drivername="postgresql+psycopg")
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        rows: list[Any] = []
        with engine.begin() as connection:
            for statement in statements:
                result = connection.exec_driver_sql(statement)
                rows = list(result) if result.returns_rows else []
        return rows

    def unlocked(self, *statements: str) -> None:
        """The same after taking the triggers away that keep the record from honest mistakes."""
        if self.lite:
            drops = ["DROP TRIGGER IF EXISTS record_no_update", "DROP TRIGGER IF EXISTS record_no_delete"]
        else:
            drops = ["DROP TRIGGER IF EXISTS record_kept ON record"]
        self.execute(*drops, *statements)


def _given(clock: Callable[[], datetime] | None) -> dict[str, Any]:
    return {} if clock is None else {"clock": clock}


def sqlite_home(folder: Path) -> Home:
    (folder / "apart").mkdir()
    return Home(url=str(folder / "ledger.db"), folder=str(folder / "apart"))


def postgres_home(folder: Path, server: str) -> Home:
    import psycopg

    name = f"ledger_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[call-overload]
    (folder / "apart").mkdir()
    url = make_url(server).set(database=name).render_as_string(hide_password=False)
    return Home(url=url, folder=str(folder / "apart"))


def dropped(home: Home, server: str) -> None:
    """Throw a database away, so that the server has little to write when it stops."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{make_url(home.url).database}" WITH (FORCE)')  # type: ignore[call-overload]


def older(folder: Path, revision: str = "0004") -> Home:
    """A ledger of an older migration, written when it was the newest; its key protects nothing."""
    shutil.copytree(Path(__file__).parent / "ledgers" / revision, folder / "old")
    (folder / "old" / "ledger.key").chmod(0o600)  # a checkout gives it to everybody
    return Home(url=str(folder / "old" / "ledger.db"), folder=str(folder / "old"))


def readable(ledger: Ledger) -> Dataset:
    """The version of the visits that may be read: after a recovery that lost entries, one that is declared since."""
    unsure = ledger.decision_state().unsure
    if not unsure:
        return VISITS
    version = Dataset(name=VISITS.name, edition=f"after entry {unsure}")
    ledger.declare_version(version)
    return version


def furnished(
    home: Home,
    *,
    hospital: Budget | None = None,
    department: Budget | None = None,
    project: Budget | None = None,
    dataset: Budget | None = None,
    population: Budget | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Ledger:
    """A hospital with one department, one project and one dataset; caps of ε = 100 where none is given."""
    roomy = Budget(epsilon=100, delta="1/1000")
    ledger = home.create(clock)
    caps = (hospital, department, project)
    for depth, cap in enumerate(caps, start=1):
        path = "/".join(ACCOUNT.split("/")[:depth])
        ledger.open_account(path, unit=PATIENT, cap=cap or roomy, reason="decided by the tests")
    ledger.declare_population("patients", unit=PATIENT, cap=population or roomy, reason="decided by the tests")
    ledger.declare_dataset(VISITS, population="patients", cap=dataset or roomy)
    return ledger
