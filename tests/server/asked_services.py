"""A service that is asked in tests: one dataset with a canary in its rows, two analysts, lanes with short slots."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.engines.expressions import Type
from sfumato.server.asking.desk import QuestionDesk, open_desk
from sfumato.server.jobs.process import COMMAND
from sfumato.server.jobs.queue import Job, Slots
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.settings import ServiceSettings
from sfumato.server.visitors import Visitor
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.schema import Schema
from tests.server.visiting import ORIGIN, Visiting

PERSON = sf.user("patient_id", relation="add/remove")
CANARY = "Zanzibar-4711"
ACCOUNT, OTHER = "hospital/wards", "hospital/kitchen"
CAP = Budget(epsilon=4, delta="1/1000000")
PATIENCE = 120.0
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
ADA = Visitor(lang="en", name="ada", roles=frozenset({ServiceRole.ANALYST}), accounts=(ACCOUNT,))
BY_WARD = 'SELECT "ward", COUNT(*) AS "count" FROM "visits" GROUP BY "ward"'


@dataclass(frozen=True, kw_only=True)
class AskedService:
    """A service with its desk."""

    service: Service
    desk: QuestionDesk
    clock: "MovedClock"

    @property
    def spent(self) -> Fraction:
        """What the account lost so far."""
        return self.service.ledger.balance(ACCOUNT).spent.epsilon

    def token(self, login: str = "ada", account: str = ACCOUNT) -> str:
        """A token of somebody."""
        person = self.service.people.get(login)
        assert person is not None
        label = f"test {time.monotonic_ns()}"
        return self.service.tokens.make(person, label=label, roles=[ServiceRole.ANALYST], accounts=[account], days=1)[0]

    def submitted(self, sql: str = BY_WARD, *, epsilon: str = "1/10") -> Job:
        """A question that was offered and handed in."""
        from sfumato.server.asking.offers import Precision

        asked = self.desk.asker.question(ACCOUNT, "visits", sql)
        offer = self.desk.asker.offer(ACCOUNT, "visits", asked, Precision(epsilon=Fraction(epsilon)), sql=sql)
        return self.desk.ask(ADA, offer)

    def settled(self, name: str) -> None:
        """Wait until a question is settled, whether or not anybody may see it."""
        end = time.monotonic() + PATIENCE
        while self.desk.queue.job(name).phase != "done":
            assert time.monotonic() < end, "the job was not settled"
            time.sleep(0.02)

    def ended(self, name: str) -> Job:
        """A question after its deadline."""
        self.settled(name)
        self.clock.pass_over(self.desk.queue.job(name).ends)
        return self.desk.queue.job(name)


class MovedClock:
    """The time of the machine, and what a test adds to it."""

    def __init__(self) -> None:
        self._more = 0.0

    def __call__(self) -> float:
        return time.time() + self._more

    def pass_over(self, moment: float) -> None:
        """Go on to just after a moment."""
        self._more += max(0.0, moment - self() + 0.01)


def furnished(folder: Path, *, cap: Budget = CAP, settings: ServiceSettings | None = None) -> Service:
    """A service in a new folder, which was not started."""
    made = Service.create(folder, settings or ServiceSettings(slot_seconds=1, workers=1))
    for path, amount in (("hospital", Budget(epsilon=10, delta="1/100000")), (ACCOUNT, cap), (OTHER, cap)):
        made.ledger.open_account(path, unit=PERSON, cap=amount, reason="decided by the tests")
    many = Budget(epsilon=10, delta="1/100000")
    made.ledger.declare_population("patients", unit=PERSON, cap=many, reason="decided by the tests")
    pq.write_table(ROWS, made.data / "visits.parquet")
    made.datasets.declare(
        SCHEMA, made.data / "visits.parquet", population="patients", relation="add/remove", cap=many, by="stella"
    )
    made.people.add("ada", shown="Ada", roles=[ServiceRole.ANALYST], accounts=[ACCOUNT])
    made.people.add("ben", shown="Ben", roles=[ServiceRole.ANALYST], accounts=[OTHER])
    return made


@contextmanager
def asked(
    folder: Path, *, slots: Slots | None = None, command: Sequence[str] = COMMAND, cap: Budget = CAP
) -> Iterator[AskedService]:
    """A service with its lanes running; stopped at the end."""
    made = furnished(folder, cap=cap)
    try:
        desk, clock = open_desk(made, slots or Slots(length=PATIENCE, lanes=1), command), MovedClock()
        desk.queue.now = clock
        made.start()
        yield AskedService(service=made, desk=desk, clock=clock)
    finally:
        made.close()


class InProcess(httpx.BaseTransport):
    """Carries what a client says to an application in this process."""

    def __init__(self, browser: Visiting) -> None:
        self._app = browser.app

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
                return await client.request(
                    request.method, str(request.url), headers=dict(request.headers), content=request.read()
                )

        answer = asyncio.run(sent())
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)
