"""The lanes: each gives its worker one job after the other, and works out from the ledger what became of it.

The ledger is believed and the worker is not: a charge under the key of a job that has an answer is that answer; one
that has none was perhaps read for, and the job has failed; where there is none, nothing was read.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any  # what JSON holds

from sfumato.core.budget import Budget
from sfumato.core.documents import encode
from sfumato.core.units import Family, User
from sfumato.governance.durable import DurableLedger
from sfumato.reports.stored import stored_release
from sfumato.server.asking.offers import AskableDataset
from sfumato.server.jobs.process import COMMAND, WorkerProcess
from sfumato.server.jobs.queue import Job, JobQueue

if TYPE_CHECKING:
    from sfumato.governance.ledger import Ledger

__all__ = ["JobRunner"]

IDLE = 30.0
"""Seconds after which a lane looks by itself, should nobody wake it."""


class JobRunner:
    """Runs the jobs of a queue in worker processes, until it is stopped.

    Guarantee: a job is charged once at most, whichever process is killed at whichever step, and one that may have read
    is never run again; what leaves is a release that the ledger stored. Assumes: this is the one runner of the queue,
    and ``owner`` is the private socket of ``ledger``.
    """

    def __init__(
        self,
        queue: JobQueue,
        ledger: "Ledger",
        datasets: Mapping[str, AskableDataset],
        *,
        owner: str,
        key: str,
        command: Sequence[str] = COMMAND,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._queue, self._ledger, self._datasets = queue, ledger, datasets
        self._owner, self._key, self._log = owner, key, log
        self._workers = [WorkerProcess(command) for _ in range(queue.slots.lanes)]
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._unsettled: set[int] = set()

    @property
    def pids(self) -> tuple[int, ...]:
        """The numbers of the worker processes that are there now."""
        return tuple(worker.pid for worker in self._workers if worker.pid is not None)

    def start(self) -> None:
        """Settle what was cut off before, then run."""
        self.settle()
        for lane, worker in enumerate(self._workers):
            thread = threading.Thread(target=self._run, args=(lane, worker), name=f"lane {lane}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """End workers and lanes; jobs that were cut off are settled at the next start."""
        self._stopping.set()
        self._queue.wake()
        for worker in self._workers:
            worker.kill()
        for thread in self._threads:
            thread.join(10)
        for worker in self._workers:
            worker.kill()

    def settle(self) -> None:
        """Work out what became of jobs that were started, and whose end nobody saw."""
        for job in self._queue.started():
            self._settled(job, None)

    def _run(self, lane: int, worker: WorkerProcess) -> None:
        while not self._stopping.is_set():
            try:
                self._next(lane, worker)
            except Exception as bug:  # noqa: BLE001 - the lane goes on, and settles first what it began
                self._log(f"a lane failed: {type(bug).__name__}")
                self._unsettled.add(lane)
                self._stopping.wait(1)

    def _next(self, lane: int, worker: WorkerProcess) -> None:
        """Wait for the next job of a lane, have it answered, and work out what became of it."""
        if lane in self._unsettled:
            for begun in self._queue.started():
                if begun.lane == lane:
                    self._settled(begun, None)
            self._unsettled.discard(lane)
        if not worker.ready(until=time.time() + 1):
            self._stopping.wait(0.05)  # a worker that cannot begin is not begun over and over at once
            return
        job = self._queue.take(lane)
        if job is None:
            self._wait(lane)
            return
        left = job.ends - self._queue.slots.margin - self._queue.now()
        reply = worker.asked(self._task(job), until=time.time() + left)
        if not self._stopping.is_set():  # else it is settled at the next start
            self._settled(job, reply)

    def _wait(self, lane: int) -> None:
        starts = self._queue.next_start(lane)
        left = IDLE if starts is None else min(IDLE, max(0.0, starts - self._queue.now()))
        with self._queue.changed:
            if not self._stopping.is_set():
                self._queue.changed.wait(min(left, 1.0) or 0.01)

    def _settled(self, job: Job, reply: Mapping[str, Any] | None) -> None:
        account = self._account(job)
        charge, answer = account.charge_named(job.filed), account.answer_named(job.filed)
        if charge is not None and answer is not None:
            identifier = stored_release(answer).statement.identifier
            self._queue.released(job.name, release=identifier, charged=charge.cost)
        elif charge is not None:
            self._queue.failed(job.name)
            self._log(f"job {job.name} failed after its charge")
        elif reply is None:
            self._queue.again(job.name)
        elif reply.get("released") and self._ledger.certificate(str(reply["released"])) is not None:
            self._queue.released(job.name, release=str(reply["released"]), charged=Budget.none())
        elif reply.get("words"):
            self._queue.refused(job.name, str(reply["words"]))
        else:
            self._queue.failed(job.name)
            self._log(f"job {job.name} failed")

    def _account(self, job: Job) -> DurableLedger:
        unit = self._ledger.balance(job.account).unit
        return self._ledger.account(job.account, unit=unit, reader=stored_release)

    def _task(self, job: Job) -> dict[str, Any]:
        held = self._datasets.get(job.dataset)
        unit = self._ledger.balance(job.account).unit
        told = unit.column if isinstance(unit, User | Family) else None
        beside = [
            other
            for name, other in sorted(self._datasets.items())
            if held is not None and (name == job.dataset or (told is not None and other.schema.unit == told))
        ]
        return {
            "owner": self._owner,
            "key": self._key,
            "account": job.account,
            "unit": encode(unit),
            "purpose": None if held is None else held.purpose,
            "recipient": None if held is None else held.recipient,
            "reads": None if held is None else held.reads,
            "datasets": [{"place": each.place, "schema": each.schema.to_toml()} for each in beside],
            "query": job.query,
            "epsilon": str(job.spend.epsilon),
            "delta": str(job.spend.delta),
            "limit": None if job.limit is None else [job.limit.groups, job.limit.rows_per_group],
            "fresh": job.fresh,
            "even_if_useless": job.even_if_useless,
            "idempotency": job.key,
        }
