"""Forked children that tell where they are and answer once, a few of them at a time."""

import contextlib
import json
import os
import selectors
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["Job", "Key", "Outcome", "Tell", "Unusable", "each"]

Key = TypeVar("Key")
Tell = Callable[[str], None]
Job = Callable[[Tell], dict[str, Any]]  # what a child does; it may tell where it is as often as it likes


class Unusable(Exception):
    """The run cannot say anything about the mutants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer of a child, or how it ended without one and what it was at; the CPU seconds that it took."""

    answer: dict[str, Any] | None
    end: str
    at: str
    seconds: float
    said: str


@dataclass(slots=True, kw_only=True)
class _Child:
    pid: int
    pipe: int
    log: Path
    moved: float
    at: str = "its start"
    answer: dict[str, Any] | None = None
    stopped: bool = False
    received: bytearray = field(default_factory=bytearray)

    @classmethod
    def start(cls, job: Job, log: Path) -> "_Child":
        read, write = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            _live(job, write, log)
        os.close(write)
        return cls(pid=pid, pipe=read, log=log, moved=time.monotonic())

    def read(self) -> bool:
        """Take what has arrived; false when the child is done."""
        part = os.read(self.pipe, 1 << 16)
        self.received += part
        *lines, self.received = self.received.split(b"\n")
        for line in lines:
            kind, value = json.loads(line)
            self.moved = time.monotonic()
            if kind == "at":
                self.at = value
            else:
                self.answer = value
        return bool(part)

    def stop(self) -> None:
        """Kill the child and whatever it started; its pipe closes, so the next turn finds that it did not answer."""
        self.stopped = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def finish(self) -> Outcome:
        os.close(self.pipe)
        _, status, used = os.wait4(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        said = self.log.read_text("utf-8", errors="replace")[-4000:] if self.log.exists() else ""
        self.log.unlink(missing_ok=True)
        if code == os.EX_SOFTWARE:
            raise Unusable(f"a child failed before its verdict:\n{said}")
        answer = self.answer if code == 0 else None
        end = "" if answer else "the time limit" if self.stopped or code == -signal.SIGPROF else "a crash"
        return Outcome(answer=answer, end=end, at=self.at, seconds=used.ru_utime + used.ru_stime, said=said)


def each(
    keys: Iterable[Key], job_of: Callable[[Key], Job], *, at_once: int, patience: float, logs: Path
) -> Iterator[tuple[Key, Outcome]]:
    """Run a child for each key and yield outcomes as they come; one that tells nothing for ``patience`` s is stopped.

    The job of a key is made when its child starts, so that it may depend on outcomes that came before.
    """
    waiting = deque(enumerate(keys))
    with selectors.DefaultSelector() as running:
        try:
            while waiting or running.get_map():
                while waiting and len(running.get_map()) < at_once:
                    number, key = waiting.popleft()
                    child = _Child.start(job_of(key), logs / str(number))
                    running.register(child.pipe, selectors.EVENT_READ, (key, child))
                for ready, _ in running.select(timeout=1.0):
                    key, child = ready.data
                    if not child.read():
                        running.unregister(child.pipe)
                        yield key, child.finish()
                for _, child in [it.data for it in running.get_map().values()]:
                    if time.monotonic() - child.moved > patience:
                        child.stop()
        finally:
            for _, child in [it.data for it in running.get_map().values()]:
                child.stop()
                os.waitpid(child.pid, 0)


def _live(job: Job, pipe: int, log: Path) -> None:
    """The whole life of a child."""
    status = os.EX_SOFTWARE

    def send(kind: str, value: object) -> None:
        rest = json.dumps([kind, value]).encode() + b"\n"
        while rest:
            rest = rest[os.write(pipe, rest) :]

    try:
        os.setpgid(0, 0)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, descriptor in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, descriptor)
        send("answer", job(lambda where: send("at", where)))
        status = 0
    except BaseException:  # noqa: BLE001 - the child must never return into its parent's code
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)
