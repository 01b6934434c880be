"""Many analysts at a service of its own process, which may be killed and started again at any moment.

Used by the long test of it and by ``benchmarks/service.py``. Everything is on loopback, and ends with the block.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random

import httpx
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.governance.entries import Reserved, unwrapped
from sfumato.governance.ledger import Ledger
from sfumato.reports.publication import Grounds
from sfumato.reports.verify import parsed, verify
from sfumato.server.publishing.grounds import Publications
from sfumato.server.rendering import SESSION_COOKIE
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.settings import ServiceSettings
from sfumato.vault import Vault
from tests.server.asked_services import PERSON, SCHEMA

__all__ = ["LoadedService", "Tally", "Window", "checked", "furnished", "running", "visited"]

CAP = Budget(epsilon=6)
EACH = Fraction(1, 10)
PATIENCE = 60.0
PAGES = ("/", "/public", "/ask", "/questions", "/ask/visits", "/ask/visits/offer?measure=count&by=margin&margin=20")
SLOTS = 1


@dataclass(frozen=True, kw_only=True)
class LoadedService:
    """A service in a folder: where it listens, and how each of its analysts is known."""

    folder: Path
    port: int
    cookies: tuple[str, ...]
    tokens: tuple[str, ...]
    releases: tuple[str, ...]
    """Published ones, whose pages are read too."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> tuple[str, ...]:
        """The pages that analysts read."""
        return (*PAGES, *(f"/public/releases/{identifier}" for identifier in self.releases))


@dataclass
class Tally:
    """What the analysts saw: seconds of each page that was answered, questions with what became of them, and faults."""

    pages: dict[str, list[float]] = field(default_factory=dict)
    handed_in: set[str] = field(default_factory=set)
    released: dict[str, tuple[str, Fraction]] = field(default_factory=dict)
    """By the name of the question: its release, and what it was charged."""
    refused: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    cut_off: int = 0
    kills: int = 0


@dataclass(frozen=True, kw_only=True)
class Window:
    """How long analysts come, how long they think, and which part of what they do is to ask."""

    seconds: float
    think: float
    asking: float


def furnished(folder: Path, port: int, *, analysts: int, cap: Budget = CAP, rows: int = 400) -> LoadedService:
    """A service that was not started: analysts of two accounts, one table, and some published releases."""
    made = Service.create(folder, ServiceSettings(port=port, slot_seconds=SLOTS, workers=2))
    try:
        whole = Budget(epsilon=100)
        made.ledger.open_account("hospital", unit=PERSON, cap=whole, reason="decided by the tests")
        accounts = ("hospital/wards", "hospital/kitchen")
        for path in accounts:
            made.ledger.open_account(path, unit=PERSON, cap=cap, reason="decided by the tests")
        made.ledger.open_account("hospital/reports", unit=PERSON, cap=whole, reason="decided by the tests")
        made.ledger.declare_population("patients", unit=PERSON, cap=whole, reason="decided by the tests")
        place = made.data / "visits.parquet"
        people = {"patient_id": [f"p{number}" for number in range(rows)]}
        wards = {"ward": ["east", "west"] * (rows // 2), "age": [40, 60] * (rows // 2)}
        pq.write_table(pa.table(people | wards), place)
        made.datasets.declare(SCHEMA, place, population="patients", relation="add/remove", cap=whole, by="stella")
        vault = Vault(unit=PERSON, ledger=made.ledger, account="hospital/reports", recipient="public")
        table = vault.table(place, schema=SCHEMA)
        found = [table.where(sf.col("age") >= age).group_by("ward").count().release(epsilon="1/10") for age in range(8)]
        held = Publications(made.database, now=made.now)
        for release in found:
            grounds = Grounds(reason="wards are staffed by it", legal_basis="section 7")
            held.put(release.statement.identifier, grounds, by="stella")
        cookies, tokens = [], []
        for number in range(analysts):
            paths = [accounts[number % 2]]
            person = made.people.add(f"a{number}", shown=f"A {number}", roles=[ServiceRole.ANALYST], accounts=paths)
            cookies.append(f"{SESSION_COOKIE}={made.sessions.begin(person.login, how='password')}")
            tokens.append(
                made.tokens.make(person, label="load", roles=[ServiceRole.ANALYST], accounts=paths, days=1)[0]
            )
    finally:
        made.close()
    return LoadedService(
        folder=folder,
        port=port,
        cookies=tuple(cookies),
        tokens=tuple(tokens),
        releases=tuple(release.statement.identifier for release in found[:2]),
    )


@contextmanager
def running(made: LoadedService) -> Iterator[Callable[[], None]]:
    """The service in a process of its own; what is handed out kills it and starts it again."""
    held: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        words = [sys.executable, "-m", "sfumato.cli", "serve", str(made.folder)]
        told = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        held.append(subprocess.Popen(words, env={**os.environ, "OMP_NUM_THREADS": "1"}, **told))  # type: ignore[call-overload]
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and held[-1].poll() is None:
            with suppress(httpx.HTTPError):
                if httpx.get(f"{made.address}/alive", timeout=5).status_code == 200:
                    return
            time.sleep(0.05)
        raise AssertionError(f"the service did not come back: {held[-1].poll()}")

    def again() -> None:
        held[-1].send_signal(signal.SIGKILL)
        held[-1].wait()
        held[-1].stderr.close()  # type: ignore[union-attr]  # it is a pipe
        start()

    start()
    try:
        yield again
    finally:
        if held[-1].poll() is None:
            held[-1].send_signal(signal.SIGTERM)
        try:
            held[-1].wait(60)
        except subprocess.TimeoutExpired:
            held[-1].kill()
            held[-1].wait()
        held[-1].stderr.close()  # type: ignore[union-attr]  # likewise


def visited(
    made: LoadedService, window: Window, *, again: Callable[[], None] | None = None, seed: int | None = None
) -> Tally:
    """Let all analysts come for a while, each at its own pace; with ``again`` the service is killed in between."""
    return asyncio.run(_visited(made, window, again, Random(seed)))


async def _visited(made: LoadedService, window: Window, again: Callable[[], None] | None, chance: Random) -> Tally:
    tally, ends = Tally(), time.monotonic() + window.seconds
    limits = httpx.Limits(max_connections=400, max_keepalive_connections=200)
    async with httpx.AsyncClient(base_url=made.address, timeout=30, limits=limits) as line:
        came = [
            _analyst(made, line, number, window, ends, tally, Random(chance.random())) for number in range(_many(made))
        ]
        if again is not None:
            came.append(_killer(again, ends, tally, chance))
        await asyncio.gather(*came)
        await _followed(made, line, tally)
    return tally


def _many(made: LoadedService) -> int:
    return len(made.tokens)


async def _killer(again: Callable[[], None], ends: float, tally: Tally, chance: Random) -> None:
    while time.monotonic() < ends - 5:
        await asyncio.sleep(chance.uniform(1.0, 6.0))
        await asyncio.to_thread(again)
        tally.kills += 1


async def _analyst(
    made: LoadedService,
    line: httpx.AsyncClient,
    number: int,
    window: Window,
    ends: float,
    tally: Tally,
    chance: Random,
) -> None:
    """Reads pages and asks, with pauses; a question is handed in under one key until it is known to be there."""
    await asyncio.sleep(chance.uniform(0, window.think))
    asked = 0
    while time.monotonic() < ends:
        if chance.random() < window.asking:
            asked += 1
            await _ask(made, line, number, f"a{number}-{asked}", ends, tally, chance)
        else:
            await _read(made, line, number, chance.choice(made.paths), tally)
        await asyncio.sleep(chance.expovariate(1 / window.think))


async def _read(made: LoadedService, line: httpx.AsyncClient, number: int, path: str, tally: Tally) -> None:
    began = time.perf_counter()
    try:
        answer = await line.get(path, headers={"cookie": made.cookies[number]})
    except httpx.HTTPError:
        tally.cut_off += 1
        return
    if answer.status_code != 200:
        tally.faults.append(f"{path}: {answer.status_code}")
        return
    tally.pages.setdefault(path.partition("?")[0], []).append(time.perf_counter() - began)


async def _ask(
    made: LoadedService, line: httpx.AsyncClient, number: int, key: str, ends: float, tally: Tally, chance: Random
) -> None:
    age = chance.choice([1, 2, 3, number % 50 + 4, chance.randrange(100)])
    body = {
        "dataset": "visits",
        "sql": f'SELECT COUNT(*) AS n FROM "visits" WHERE "age" >= {age}',  # noqa: S608 - a number of ours
        "epsilon": str(EACH),
        "idempotency": key,
    }
    while True:
        try:
            answer = await line.post("/api/v1/questions", json=body, headers=_token(made, number))
        except httpx.HTTPError:  # it may be there or not: the same key again
            tally.cut_off += 1
            if time.monotonic() > ends + PATIENCE:
                return
            await asyncio.sleep(0.3)
            continue
        break
    if answer.status_code == 202:
        tally.handed_in.add(f"{number} {answer.json()['name']}")
    elif answer.status_code == 409 and answer.json().get("error_class") in ("BudgetExceeded", "Refused"):
        tally.refused.add(key)
    else:
        tally.faults.append(f"a question: {answer.status_code} {answer.text[:200]}")


async def _followed(made: LoadedService, line: httpx.AsyncClient, tally: Tally) -> None:
    """What became of every question that was handed in; none may be lost or wait for ever."""
    until = time.monotonic() + 2 * PATIENCE + len(tally.handed_in)
    waiting = set(tally.handed_in)
    while waiting:
        if time.monotonic() > until:
            tally.faults.append(f"{len(waiting)} questions were never answered")
            return
        for each in sorted(waiting):
            number, _, name = each.partition(" ")
            answer = await line.get(f"/api/v1/questions/{name}", headers=_token(made, int(number)))
            if answer.status_code != 200:
                tally.faults.append(f"the question {name}: {answer.status_code}")
                waiting.discard(each)
                continue
            found = answer.json()
            if found["outcome"] == "pending":
                continue
            waiting.discard(each)
            if found["outcome"] == "released":
                tally.released[name] = found["release"], Fraction(found["charged"]["epsilon"])
            else:
                (tally.refused if found["outcome"] == "refused" else tally.failed).add(name)
        await asyncio.sleep(0.5)


def _token(made: LoadedService, number: int) -> dict[str, str]:
    return {"authorization": f"Bearer {made.tokens[number]}"}


def checked(ledger: Ledger, tally: Tally) -> Fraction:
    """Hold what the analysts saw against the ledger, which is verified whole; what was spent.

    No budget is overspent, every answer that was shown is stored and verifies, no question was charged twice, and what
    is spent is what was shown as charged and what was charged without an answer.
    """
    assert list(ledger.verification().findings) == []
    names: list[str] = []
    for row in ledger.rows():
        entry = unwrapped(row.entry) if row.kind == Reserved.KIND else None
        if isinstance(entry, Reserved) and entry.idempotency is not None:
            names.append(entry.idempotency)
    assert len(names) == len(set(names)), "a question was charged twice"
    balances = {balance.name.partition(" ")[2]: balance for balance in ledger.balances()}
    for balance in balances.values():
        assert balance.spent.epsilon <= balance.cap.epsilon, f"{balance.name} is overspent"
    certificates = {}
    for name, (release, _) in tally.released.items():
        text = certificates.get(release) or ledger.certificate(release)
        assert text is not None, f"the answer of {name} is lost"
        if release not in certificates:
            assert verify(parsed(text)).consistent
            certificates[release] = text
    spent = sum((balances[f"hospital/{unit}"].spent.epsilon for unit in ("wards", "kitchen")), Fraction(0))
    shown = sum((charged for _, charged in tally.released.values()), Fraction(0))
    assert shown <= spent <= shown + EACH * len(tally.failed), (shown, spent, len(tally.failed))
    return spent
