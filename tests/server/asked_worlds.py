"""A service in miniature for tests: a ledger with its private owner, one dataset with a canary in it, a queue."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.engines.expressions import Type
from sfumato.governance.ledger import Ledger
from sfumato.governance.owner.server import OwnerServer
from sfumato.reports.stored import stored_release
from sfumato.server.asking.offers import Asker
from sfumato.server.database import Database
from sfumato.server.jobs.process import COMMAND
from sfumato.server.jobs.queue import JobQueue, Slots
from sfumato.server.jobs.runner import JobRunner
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.schema import Schema
from tests.governance.owners import short_folder

PERSON = sf.user("patient_id", relation="add/remove")
CANARY = "Zanzibar-4711"
ACCOUNT = "hospital/wards"
SCHEMA = Schema(
    name="visits",
    edition="2026-10",
    unit="patient_id",
    limit=sf.Limit(groups=1, rows_per_group=1),
    columns=(
        ColumnFacts(name="patient_id", type=Type.TEXT),
        ColumnFacts(name="ward", type=Type.TEXT, keys=("east", "west")),
        ColumnFacts(name="age", type=Type.WHOLE, bounds=(Fraction(0), Fraction(99))),
    ),
)
ROWS = pa.table(
    {
        "patient_id": [f"{CANARY}-{place}" for place in range(400)],
        "ward": ["east", "west"] * 200,
        "age": [40, 60] * 200,
    }
)


@dataclass(frozen=True, kw_only=True)
class HeldTable:
    """A dataset as a service holds it."""

    schema: Schema
    place: str
    purpose: str | None = None
    recipient: str | None = None
    reads: tuple[str, str] | None = None


@dataclass
class World:
    """All that jobs need."""

    ledger: Ledger
    datasets: dict[str, HeldTable]
    queue: JobQueue
    asker: Asker
    owner: str
    key: Path

    def runner(self, command: Sequence[str] = COMMAND) -> JobRunner:
        return JobRunner(self.queue, self.ledger, self.datasets, owner=self.owner, key=str(self.key), command=command)

    @property
    def spent(self) -> Fraction:
        return self.ledger.balance(ACCOUNT).spent.epsilon


def furnished(folder: Path, cap: Budget) -> Ledger:
    """A hospital with one account, and the dataset declared."""
    SigningKey.new().save(folder / "ledger.key")
    (folder / "apart").mkdir()
    ledger = Ledger.create(str(folder / "ledger.db"), key=folder / "ledger.key", anchor=folder / "apart" / "anchor")
    ledger.open_account("hospital", unit=PERSON, cap=Budget(epsilon=10), reason="decided by the tests")
    ledger.open_account(ACCOUNT, unit=PERSON, cap=cap, reason="decided by the tests")
    ledger.declare_population("patients", unit=PERSON, cap=Budget(epsilon=10), reason="decided by the tests")
    ledger.declare_dataset(Dataset(name="visits", edition="2026-10"), population="patients", cap=Budget(epsilon=10))
    return ledger


@contextmanager
def world(folder: Path, *, slots: Slots | None = None, cap: Budget | None = None) -> Iterator[World]:
    """It with its owner process in a thread; both stopped at the end."""
    ledger = furnished(folder, cap or Budget(epsilon=4))
    pq.write_table(ROWS, folder / "visits.parquet")
    SigningKey.new().save(folder / "worker.key")
    database = Database(f"sqlite:///{folder / 'service.db'}")
    database.create()
    datasets = {"visits": HeldTable(schema=SCHEMA, place=str(folder / "visits.parquet"))}
    with short_folder() as place:
        server = OwnerServer(ledger, place / "o", reader=stored_release)
        ready = threading.Event()
        thread = threading.Thread(target=server.serve, args=(ready.set,))
        thread.start()
        assert ready.wait(10)
        try:
            yield World(
                ledger=ledger,
                datasets=datasets,
                queue=JobQueue(database, slots=slots or Slots(length=4, lanes=1)),
                asker=Asker(ledger, datasets),
                owner=f"unix:{server.place}",
                key=folder / "worker.key",
            )
        finally:
            server.stop()
            thread.join(30)
            database.close()
            ledger.close()
