"""The service: pages that fifty analysts read, a charge over HTTP beside the same in process, and kills under load.

Pages: the service in a process of its own on loopback, fifty analysts who think between pages, and a few who ask
meanwhile, so that what pages show changes; the seconds of each page as a client sees them. A charge: from the request
that hands a question in, to its settlement, and the request for its certificate; the rest of its slot, which has the
same length whatever the work, is left out. The same question is released by a vault in the same process, on the same
ledger, in turn. Kills: the service ends by SIGKILL at random moments for five minutes and is started again; afterwards
the ledger is verified, and held against what the analysts saw. Ratios are peer / ours; ``times_as_long`` is ours /
peer. The load of the machine is written down: other work on it makes seconds longer.
"""

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import uvicorn

from benchmarks.harness import PAIRS, ratio, write
from sfumato.cli.service import listening
from sfumato.governance import settings as ledger_settings
from sfumato.server.app import make_app
from sfumato.vault import Vault
from tests.server.asked_services import ACCOUNT, CAP, OTHER, PERSON, SCHEMA, AskedService, asked
from tests.server.load import Tally, Window, checked, furnished, running, visited

ANALYSTS, THINK = 50, 5.0
SIZES = (400, 1_000_000)
EPSILON = "1/1000"


def run(*, smoke: bool) -> Path:
    """Measure and write the result, after each part anew."""
    measured: dict[str, object] = {"read pages": _pages(seconds=6 if smoke else 90, analysts=4 if smoke else ANALYSTS)}
    written = write("service", measured, smoke=smoke)
    for size in SIZES[: 1 if smoke else 2]:
        measured[f"a charge over HTTP, {size:,} rows"] = _charges(size, pairs=2 if smoke else 3 * PAIRS)
        written = write("service", measured, smoke=smoke)
    if not smoke:
        measured["kills under load"] = _killed(seconds=300)
        written = write("service", measured, smoke=smoke)
    return written


# -------------------------------------------------------------------------------------------------------------- pages


def _pages(*, seconds: float, analysts: int) -> dict[str, object]:
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, _port() as port:
        made = furnished(Path(folder) / "service", port, analysts=analysts)
        with running(made):
            visited(made, Window(seconds=min(seconds, 10), think=1.0, asking=0))  # what is worked out once
            tally = visited(made, Window(seconds=seconds, think=THINK, asking=0.02))
        _check(made.folder, tally)
    return {
        "pairs": 0,
        "peers": {},
        "analysts": analysts,
        "think_seconds": THINK,
        "load_before": load,
        "questions": len(tally.released),
        **_quantiles([one for page in tally.pages.values() for one in page]),
        "pages": {_named(path): _quantiles(times) for path, times in sorted(tally.pages.items())},
    }


def _named(path: str) -> str:
    return "/public/releases/…" if path.startswith("/public/releases/") else path


def _quantiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
    found = {
        f"{name}_seconds": ordered[min(len(ordered) - 1, int(share * len(ordered)))] for name, share in shares.items()
    }
    return {"requests": len(ordered), **found}


# ------------------------------------------------------------------------------------------------------------- charges


def _charges(rows: int, *, pairs: int) -> dict[str, object]:
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory() as folder,
        asked(Path(folder) / "service", cap=CAP) as made,
        _served(made) as line,
    ):
        _rows(made.service.data / "visits.parquet", rows)
        vault = Vault(unit=PERSON, ledger=made.service.ledger, account=OTHER, key=made.service.release_key)
        table = vault.table(made.service.data / "visits.parquet", schema=SCHEMA)
        numbers = iter(range(10**6))

        def over_http() -> float:
            return _over_http(made, line, _question(next(numbers)))

        def in_process() -> float:
            began = time.perf_counter()
            table.sql(_question(next(numbers))).release(epsilon=EPSILON, even_if_useless=True)
            return time.perf_counter() - began

        jobs: tuple[Callable[[], float], ...] = (over_http, in_process)
        times: list[list[float]] = [[], []]
        for turn in range(pairs + 2):  # the first two warm up
            for place, job in enumerate(jobs):
                took = job()
                if turn >= 2:
                    times[place].append(took)
    ours, peer = times
    return {
        "pairs": pairs,
        "load_before": load,
        "ours_seconds": statistics.median(ours),
        "peers": {
            "the same charge in process": {
                "seconds": statistics.median(peer),
                "ratio": ratio([one / two for one, two in zip(peer, ours, strict=True)]),
                "times_as_long": ratio([one / two for one, two in zip(ours, peer, strict=True)]),
            }
        },
    }


def _question(number: int) -> str:
    """One that was not asked before."""
    return f'SELECT COUNT(*) AS n FROM "visits" WHERE "age" <> {number}'  # noqa: S608 - a number of ours


def _over_http(made: AskedService, line: httpx.Client, sql: str) -> float:
    """Seconds of a charge over HTTP without the rest of its slot, which is passed over by moving the clock."""
    body = {"dataset": "visits", "account": ACCOUNT, "sql": sql, "epsilon": EPSILON, "even_if_useless": True}
    began = time.perf_counter()
    sent = line.post("/api/v1/questions", json=body)
    if sent.status_code != 202:
        raise SystemExit(f"the question was refused: {sent.text}")
    name = sent.json()["name"]
    while made.desk.queue.job(name).phase != "done":
        time.sleep(0.004)
    settled = time.perf_counter()
    made.clock.pass_over(made.desk.queue.job(name).ends)
    asked_for = time.perf_counter()
    answer = line.get(f"/api/v1/questions/{name}/certificate")
    if answer.status_code != 200:
        raise SystemExit(f"there is no certificate: {answer.text}")
    return settled - began + time.perf_counter() - asked_for


@contextmanager
def _served(made: AskedService) -> Iterator[httpx.Client]:
    """The service on a port of this machine, and a program of an analyst that speaks to it."""
    with _port() as port:
        object.__setattr__(made.service.settings, "names", (f"127.0.0.1:{port}",))
        server = uvicorn.Server(uvicorn.Config(make_app(made.service), log_level="critical", lifespan="off", port=port))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            headers = {"authorization": f"Bearer {made.token()}"}
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as line:
                yield line
        finally:
            server.should_exit = True
            thread.join()


def _rows(place: Path, number: int) -> None:
    half = number // 2
    people = {"patient_id": [f"p{each}" for each in range(number)]}
    pq.write_table(pa.table(people | {"ward": ["east", "west"] * half, "age": [40, 60] * half}), place)


# --------------------------------------------------------------------------------------------------------------- kills


def _killed(*, seconds: float) -> dict[str, object]:
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, _port() as port:
        made = furnished(Path(folder) / "service", port, analysts=ANALYSTS)
        with running(made) as again:
            tally = visited(made, Window(seconds=seconds, think=THINK, asking=0.15), again=again)
        spent, allowed = _check(made.folder, tally)
    return {
        "pairs": 0,
        "peers": {},
        "load_before": load,
        "seconds": seconds,
        "kills": tally.kills,
        "requests_cut_off": tally.cut_off,
        "handed_in": len(tally.handed_in),
        "released": len(tally.released),
        "refused": len(tally.refused),
        "failed_after_their_charge": len(tally.failed),
        "spent": spent,
        "allowed": allowed,
    }


def _check(folder: Path, tally: Tally) -> tuple[float, float]:
    """Verify the ledger and hold it against what was seen; what two accounts spent, and what they were allowed."""
    if tally.faults:
        raise SystemExit(f"{len(tally.faults)} faults, such as: {tally.faults[0]}")
    ledger = ledger_settings.opened(folder)
    try:
        spent = checked(ledger, tally)
        allowed = sum(ledger.balance(f"hospital/{unit}").cap.epsilon for unit in ("wards", "kitchen"))
    finally:
        ledger.close()
    return float(spent), float(allowed)


@contextmanager
def _port() -> Iterator[int]:
    """A port that was free a moment ago."""
    with listening("127.0.0.1", 0) as place:
        port = place.getsockname()[1]
    yield int(port)
