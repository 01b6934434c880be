"""A worker process as the service holds it: it is given a job, has until a moment, and is killed after it."""

import json
import os
import select
import signal
import subprocess  # the program is Python itself, with a module of ours
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any  # what JSON holds

__all__ = ["COMMAND", "WorkerProcess"]

COMMAND = (sys.executable, "-m", "sfumato.server.jobs.worker")
MOST_REPLY = 2**20


class WorkerProcess:
    """One worker, started when it is needed and again after it ended; used by one thread.

    Guarantee: :meth:`asked` comes back by the moment it was given, whatever the worker does.
    """

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command, self._turn = tuple(command), threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._seen, self._ready = b"", False

    @property
    def pid(self) -> int | None:
        """The number of the process, while there is one."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it, if it is not there."""
        if self._process is not None and self._process.poll() is None:
            return
        self.kill()
        self._seen, self._ready = b"", False
        self._process = subprocess.Popen(  # noqa: S603 - the command is ours
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C in the terminal stops the service, which then stops it
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def ready(self, *, until: float) -> bool:
        """Wait until it can be asked; whether it can, by then."""
        self.start()
        if not self._ready and self._line(until) is not None:
            self._ready = True
        return self._ready

    def asked(self, task: dict[str, Any], *, until: float) -> dict[str, Any] | None:
        """The reply to a task of a worker that is ready; None where it ended, or was stopped as the moment came."""
        process, reply = self._process, None
        if process is not None and process.stdin is not None and self._ready:
            with suppress(OSError):  # it has ended
                process.stdin.write(json.dumps(task).encode() + b"\n")
                process.stdin.flush()
                reply = self._line(until)
        if reply is None:
            self.kill()
        return reply

    def _line(self, until: float) -> dict[str, Any] | None:
        process = self._process
        if process is None or process.stdout is None:
            return None
        while b"\n" not in self._seen:
            left = until - time.time()
            if left <= 0 or len(self._seen) > MOST_REPLY:
                return None
            waited = select.poll()
            waited.register(process.stdout, select.POLLIN)
            if not waited.poll(left * 1000):
                return None
            part = os.read(process.stdout.fileno(), 65_536)
            if not part:
                return None
            self._seen += part
        line, _, self._seen = self._seen.partition(b"\n")
        found = json.loads(line)
        return found if isinstance(found, dict) else None

    def kill(self) -> None:
        """End it at once, and give back what it held."""
        with self._turn:
            process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was written last may not have been taken
                    pipe.close()
