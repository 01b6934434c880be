"""A whole charge beside a bare durable INSERT, what of it is waiting for the disk, and a ledger of a million entries.

A whole charge is two durable transactions (reserve; store the answer and commit) and one durable anchor in between:
three waits for the disk where a bare INSERT has one. The row of the INSERT is as long as the entry that holds the
answer. The same charge without any waiting is measured beside it: SQLite with synchronous=OFF, PostgreSQL with
fsync=off, and an anchor that is not waited for. A charge through the socket of an owner process is measured beside the
same charge in one process; both sign their certificate, and the owner verifies it. Ratios are peer / ours, as
everywhere; ``times_as_long`` says how many times longer a charge takes. Under other load the CPU seconds say more than
the seconds; the load is written down.
"""

import json
import os
import secrets
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import sqlalchemy as sa

import sfumato as sf
from benchmarks.harness import PAIRS, ratio, write
from sfumato.core.budget import Budget
from sfumato.governance import rows, store
from sfumato.governance.durable import DurableLedger
from sfumato.governance.entries import Committed, Reserved, Row
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import account_line, apply, dataset_line, end_of, population_line, replay
from sfumato.governance.owner.client import RemoteLedger
from sfumato.governance.state_map import EMPTY
from sfumato.governance.terms import levels_of, written
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, furnished, postgres_home, sqlite_home
from tests.governance.owners import COST as SIGNED
from tests.governance.owners import answer, process

CAP = Budget(epsilon=10**6)
COST = Budget(epsilon="1/10")
BLOCK = 40  # charges whose times are summed
FIGURES = ("seconds", "cpu_seconds", "commit_seconds", "anchor_seconds")
LATER = 500  # charges since a checkpoint
SHORT = 500  # signs of an answer in a ledger that grows
SIZES = (10**3, 10**4, 10**5, 10**6)
BARE = "(number BIGINT PRIMARY KEY, kind TEXT, body TEXT, previous TEXT, digest TEXT)"
INSERT = "INSERT INTO bare (number, kind, body, previous, digest) VALUES (?, ?, ?, ?, ?)"

Job = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Homes of ledgers on one store: durable ones, and ones that never wait for the disk."""

    name: str
    durable: Callable[[], Home]
    quick: Callable[[], Home]


def run(*, smoke: bool) -> Path:
    """Measure and write the result, after each part anew: a run that is cut off leaves what it has measured."""
    pairs, block, sizes = (2, 3, (40, 120)) if smoke else (3 * PAIRS, BLOCK, SIZES)
    measured: dict[str, object] = {}
    with ExitStack() as stack:
        places = [stack.enter_context(_sqlite())]
        try:
            places.append(stack.enter_context(_postgres()))
        except (FileNotFoundError, ImportError) as absent:
            measured["PostgreSQL"] = {"pairs": pairs, "peers": {}, "absent": str(absent)}
        for place in places:
            measured[f"{place.name}, a whole charge"] = _beside_an_insert(place, pairs, block)
            written_to = write("ledger", measured, smoke=smoke)
            for what, figures in _through_a_socket(place, pairs, block):
                measured[f"{place.name}, {what} through an owner process"] = figures
            written_to = write("ledger", measured, smoke=smoke)
        for place in places:
            for size, figures in _grown(place, sizes, pairs):
                measured[f"{place.name}, {size:,} entries"] = figures
                written_to = write("ledger", measured, smoke=smoke)
    return written_to


# ------------------------------------------------------------------------------------------------------- one charge


def _beside_an_insert(place: Place, pairs: int, block: int) -> dict[str, object]:
    """A whole charge, a bare INSERT and a charge that waits for no disk, each in turn; ratios of sums over a block.

    In turn one by one, since the disk is shared: whoever took a block at a time would meet other waits than the rest.
    """
    load, answer = os.getloadavg()[0], _certificate()
    home, quick = place.durable(), place.quick()
    account = _account(home)
    unwaited = _account(quick)
    if home.lite:
        _unsynced(unwaited)
    _charge(account, answer)
    with account.ledger.record.reading() as transaction:
        length = max(len(row.body) for row in transaction.rows())
    jobs: dict[str, Job] = {"ours": lambda: _charge(account, answer)}
    with _inserts(place.durable(), length) as inserts:
        jobs |= inserts
        jobs["the same charge, waiting for no disk"] = lambda: _charge(unwaited, answer)
        times: dict[str, list[dict[str, float]]] = {name: [] for name in jobs}
        for turn in range(pairs + 1):  # the first one warms up
            rounds = [
                {name: _block(job, 1, durable="no disk" not in name) for name, job in jobs.items()}
                for _ in range(block)
            ]
            for name, runs in times.items() if turn else ():
                runs.append({figure: statistics.fmean(each[name][figure] for each in rounds) for figure in FIGURES})
    own = times.pop("ours")
    middle = {name: _median(runs) for name, runs in (("ours", own), *times.items())}
    quickest = middle["the same charge, waiting for no disk"]["seconds"]
    return {
        "pairs": pairs,
        "charges_in_a_block": block,
        "load_before": load,
        "bytes_of_a_row": length,
        **{f"ours_{figure}": value for figure, value in middle["ours"].items()},
        "share_waiting_for_the_disk": max(0.0, 1 - quickest / middle["ours"]["seconds"]),
        "peers": {
            name: middle[name]
            | {
                "ratio": _ratio(runs, own, "seconds"),
                "ratio_of_cpu": _ratio(runs, own, "cpu_seconds"),
                "times_as_long": _ratio(own, runs, "seconds"),
            }
            for name, runs in times.items()
        },
    }


def _through_a_socket(place: Place, pairs: int, block: int) -> Iterator[tuple[str, dict[str, object]]]:
    """A whole charge, and a look at the balance, through an owner process beside the same in one process, in turn."""
    direct, home = _account(place.durable()), place.durable()
    _account(home).ledger.close()
    with process(home) as owner:
        remote = owner.account()
        pairs_of_jobs: dict[str, tuple[Job, Job]] = {
            "a charge": (lambda: _settle(remote), lambda: _settle(direct)),
            "a balance": (lambda: remote.left, lambda: direct.left),
        }
        for what, (ours, peer) in pairs_of_jobs.items():
            load = os.getloadavg()[0]

            def job(times: int, one: Job) -> float:
                return statistics.fmean(_block(one, 1, durable=True)["seconds"] for _ in range(times))

            own, other = [], []
            for turn in range(pairs + 1):  # the first one warms up
                seconds = job(block, ours), job(block, peer)
                if turn:
                    own.append(seconds[0])
                    other.append(seconds[1])
            yield (
                what,
                {
                    "pairs": pairs,
                    "in_a_block": block,
                    "load_before": load,
                    "ours_seconds": statistics.median(own),
                    "peers": {
                        "the same, without an owner process": {
                            "seconds": statistics.median(other),
                            "ratio": ratio([one / two for one, two in zip(other, own, strict=True)]),
                            "times_as_long": ratio([one / two for one, two in zip(own, other, strict=True)]),
                        }
                    },
                },
            )


def _settle(account: DurableLedger | RemoteLedger) -> None:
    """Reserve, sign a certificate that states the charge, store it and commit."""
    reservation = account.reserve(SIGNED, datasets=[VISITS])
    account.commit(reservation, f"question {reservation.number}", answer(reservation))


def _account(home: Home) -> DurableLedger:
    ledger = furnished(home, hospital=CAP, department=CAP, project=CAP, dataset=CAP, population=CAP)
    return ledger.account(ACCOUNT, unit=PATIENT)


def _charge(account: DurableLedger, answer: str) -> None:
    """Reserve, anchor, store the answer and commit."""
    reservation = account.reserve(COST, datasets=[VISITS])
    account.commit_text(reservation, f"question {reservation.number}", answer)


def _certificate() -> str:
    """A real one, of a count."""
    import pyarrow as pa

    vault = sf.Vault(unit=sf.user("person", relation="add/remove"), budget=sf.Budget(epsilon=1), name="benchmark")
    table = vault.table(
        pa.table({"person": [1, 2, 3]}), name="rows", version="1", limit=sf.Limit(groups=1, rows_per_group=1)
    )
    return table.count().release(epsilon=1).certificate.text


@contextmanager
def _inserts(home: Home, length: int) -> Iterator[dict[str, Job]]:
    """A bare durable INSERT of one row, by the driver alone and by SQLAlchemy."""
    numbers = iter(range(10**9))

    def row() -> tuple[object, ...]:
        return next(numbers), "bare", "x" * length, "0" * 64, "0" * 64

    engine = store._engine(store._address(home.url))
    with ExitStack() as stack:
        stack.callback(engine.dispose)
        plain = stack.enter_context(_driver(home))
        plain.execute(f"CREATE TABLE bare {BARE}")
        statement = INSERT if home.lite else INSERT.replace("?", "%s")
        table = sa.Table("bare", sa.MetaData(), *(sa.Column(name) for name in BARE_COLUMNS))
        added = sa.insert(table)

        def by_sqlalchemy() -> None:
            with engine.connect().execution_options(sfumato_writes=True) as connection, connection.begin():
                connection.execute(added, dict(zip(BARE_COLUMNS, row(), strict=True)))

        yield {
            "bare durable INSERT, by the driver": lambda: plain.execute(statement, row()),
            "bare durable INSERT, by SQLAlchemy": by_sqlalchemy,
        }


BARE_COLUMNS = ("number", "kind", "body", "previous", "digest")


@contextmanager
def _driver(home: Home) -> Iterator[Any]:
    """A connection of the driver's, as durable as the ledger's, that commits each statement."""
    if home.lite:
        plain = sqlite3.connect(home.url, isolation_level=None)
        for setting in ("journal_mode=WAL", "synchronous=FULL"):
            plain.execute(f"PRAGMA {setting}")
    else:
        import psycopg

        plain = psycopg.connect(home.url, autocommit=True)  # type: ignore[assignment]
    try:
        yield plain
    finally:
        plain.close()


def _unsynced(account: DurableLedger) -> None:
    engine = account.ledger.record.store._connected()
    engine.dispose()

    @sa.event.listens_for(engine, "connect")
    def quick(connection: Any, _: object) -> None:
        connection.execute("PRAGMA synchronous=OFF")


def _block(job: Job, times: int, *, durable: bool) -> dict[str, float]:
    """Seconds of one run, and those spent inside commit and fdatasync."""
    waits = {"commit_seconds": 0.0, "anchor_seconds": 0.0}

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*given)
            finally:
                waits[name] += (time.perf_counter() - start) / times

        return run

    sync = os.fdatasync if durable else lambda _: None
    with (
        mock.patch.object(rows, "commit", timed("commit_seconds", rows.commit)),
        mock.patch.object(os, "fdatasync", timed("anchor_seconds", sync)),
    ):
        start, spent = time.perf_counter(), time.process_time()
        for _ in range(times):
            job()
        seconds, cpu = time.perf_counter() - start, time.process_time() - spent
    return {"seconds": seconds / times, "cpu_seconds": cpu / times, **waits}


def _median(runs: list[dict[str, float]]) -> dict[str, float]:
    return {figure: statistics.median(run[figure] for run in runs) for figure in runs[0]}


def _ratio(above: list[dict[str, float]], below: list[dict[str, float]], figure: str) -> dict[str, float]:
    return ratio([one[figure] / other[figure] for one, other in zip(above, below, strict=True)])


# ------------------------------------------------------------------------------------------------------ many entries


def _grown(place: Place, sizes: tuple[int, ...], pairs: int) -> Iterator[tuple[int, dict[str, object]]]:
    """Opening, balance, charge and verification of one ledger as it grows."""
    home, answer = place.durable(), _certificate()[:SHORT]
    ledger = furnished(home, hospital=CAP, department=CAP, project=CAP, dataset=CAP, population=CAP)
    account, filled = ledger.account(ACCOUNT, unit=PATIENT), 0.0
    smallest: dict[str, float] | None = None
    for size in sizes:
        start = time.perf_counter()
        _fill(ledger, size, answer)
        filled += time.perf_counter() - start
        ledger.close()
        load = os.getloadavg()[0]
        charged = _block(lambda: _charge(account, answer), 3 * pairs, durable=True)
        balanced = _block(lambda: ledger.balance(ACCOUNT), 3 * pairs, durable=True)
        entries = ledger.head().head.number
        opened = _child("open", home)
        checked, chained = _child("verify", home), _child("chain", home)
        since = ledger.verification().checkpoint(ledger.key, datetime.now(UTC)).checkpoint
        for _ in range(LATER if size >= 1000 else 3):
            _charge(account, answer)
        later = _block(partial(ledger.verification, since=since), 1, durable=True)
        smallest = smallest or charged
        yield (
            size,
            {
                "pairs": 3 * pairs,
                "peers": {},
                "load_before": load,
                "entries": entries,
                "fill_seconds": filled,
                "charge_seconds": charged["seconds"],
                "charge_cpu_seconds": charged["cpu_seconds"],
                "growth": charged["seconds"] / smallest["seconds"],
                "growth_of_cpu": charged["cpu_seconds"] / smallest["cpu_seconds"],
                "balance_seconds": balanced["seconds"],
                "open_seconds": opened["seconds"],
                "open_peak_mb": opened["peak_mb"],
                "verify_seconds": checked["seconds"],
                "verify_cpu_seconds": checked["cpu_seconds"],
                "verify_seconds_per_entry": checked["seconds"] / entries,
                "verify_peak_mb": checked["peak_mb"],
                "verified_a_cpu_second": entries / checked["cpu_seconds"],
                "chained_a_cpu_second": entries / chained["cpu_seconds"],
                "since_a_checkpoint_seconds": later["seconds"],
            },
        )
    ledger.close()


def _fill(ledger: Ledger, size: int, answer: str) -> None:
    """Charges and their answers up to a number of entries, chained, signed and replayed as ever, in one transaction.

    The map of the state is made once, at the end: the root in the heads of the rows above it is that of nothing, which
    only a head of that entry that was published would show.
    """
    lines = tuple(account_line(level) for level in levels_of(ACCOUNT))
    lines += (dataset_line(VISITS.name), population_line("patients"))
    record, at = ledger.record, written(datetime.now(UTC))
    with record.store.rewriting() as (transaction, _):
        state = replay(transaction.rows())

        def entered(entry: Reserved | Committed) -> int:
            end = end_of(state)
            row = Row.after(end.number, end.digest, entry)
            apply(state, row, entry)
            end = end_of(state)
            transaction.put_row(row, record.signed(replace(end, state=EMPTY)), end.frontier)
            if row.number % 1000 == 0:
                transaction.flush()
            return row.number

        def charge() -> int:
            balance = state.kept[account_line(ACCOUNT)].moved(COST, None, times=1, charges=1)
            entry = Reserved(
                at=at,
                account=balance.account(ACCOUNT, ledger.identifier),
                unit=PATIENT,
                datasets=(VISITS,),
                lines=lines,
                cost=COST,
                rho=None,
                idempotency=secrets.token_hex(8),
                queued=False,
                expires=None,
            )
            return entered(entry)

        def answered(number: int) -> Committed:
            return Committed(at=at, charge=number, question=f"question {number}", certificate=answer)

        while end_of(state).number + 3 < size:
            entered(answered(charge()))
        head = record.rewrite(transaction, state, [answered(charge())])
    record.advance(head, durable=True)


def _child(job: str, home: Home) -> dict[str, float]:
    """Run one job of this file in a process of its own, so that its peak memory is its own."""
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.ledger", job, home.url, home.folder],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    if answer.returncode != 0:
        raise SystemExit(f"the job {job!r} failed:\n{answer.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return figures


def _peak_mb() -> float:
    """The most memory that this program has held; the usual figure counts the program that started it too."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def _job(name: str, url: str, folder: str) -> dict[str, float]:
    home = Home(url=url, folder=folder)
    home.open().close()  # what is imported when it is first used is loaded before the clock starts
    start, spent = time.perf_counter(), time.process_time()
    ledger = home.open()
    if name in ("verify", "chain"):
        start, spent = time.perf_counter(), time.process_time()
        found = ledger.verification(chain_only=name == "chain").findings
        if found:
            raise SystemExit(f"the ledger does not verify: {found[0]}")
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - spent,
        "peak_mb": _peak_mb(),
    }


# ------------------------------------------------------------------------------------------------------------ stores


@contextmanager
def _sqlite() -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder:

        def home() -> Home:
            return sqlite_home(Path(tempfile.mkdtemp(dir=folder)))

        yield Place(name=f"SQLite {sqlite3.sqlite_version}", durable=home, quick=home)


@contextmanager
def _postgres() -> Iterator[Place]:
    """Two private servers, of which one never waits for the disk."""
    import psycopg

    from tests.servers import private_postgres

    with (
        tempfile.TemporaryDirectory() as folder,
        private_postgres(max_wal_size="4GB") as durable,
        private_postgres(fsync="off", max_wal_size="4GB") as quick,
    ):
        with psycopg.connect(durable.url) as connection:
            version = connection.info.server_version // 10_000

        def homes(server: str) -> Callable[[], Home]:
            return lambda: postgres_home(Path(tempfile.mkdtemp(dir=folder)), server)

        yield Place(name=f"PostgreSQL {version}", durable=homes(durable.url), quick=homes(quick.url))


if __name__ == "__main__":
    print(json.dumps(_job(*sys.argv[1:])))
