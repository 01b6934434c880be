"""A process that was started as a box: two pipes, an end that leaves nothing behind, a control group around it."""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from sfumato.boxes.control_groups import control_group, entering

__all__ = ["StartedBox", "started_box"]

_PATIENCE = 10.0


class StartedBox:
    """A box as the host sees it: its first process, and all processes that belong to it once they are known."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process, self._known = process, dict[int, int]()

    @property
    def stdin(self) -> IO[bytes] | None:
        """Where its program and its rows go in."""
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes] | None:
        """Where its answer comes out."""
        return self._process.stdout

    def settle(self, cores: Iterable[int]) -> None:
        """Hold every thread of it on these processors, and remember its processes, to end them later."""
        cores, moved = set(cores), set[int]()
        while new := [thread for thread in self._threads() if thread not in moved]:
            for thread in new:
                moved.add(thread)
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(thread, cores)

    def kill(self) -> None:
        """End it; what is not known yet ends with its first process."""
        for known in self._known.values():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(known, signal.SIGKILL)
        if not self._known:
            self._process.kill()

    def close(self) -> None:
        """End it and wait until all of it is gone."""
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)  # it clears up after the others
        self._process.kill()
        self._process.wait()
        end = time.monotonic() + _PATIENCE
        for known in self._known.values():
            select.select([known], [], [], max(0.0, end - time.monotonic()))
            os.close(known)
        self._known = {}
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _threads(self) -> list[int]:
        """All threads of the box now; processes among them are remembered."""
        found, waiting = list[int](), [self._process.pid]
        while waiting:
            process = waiting.pop()
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if process != self._process.pid and process not in self._known:
                    self._known[process] = os.pidfd_open(process)
                for thread in Path(f"/proc/{process}/task").iterdir():
                    found.append(int(thread.name))
                    waiting += map(int, (thread / "children").read_text().split())
        return found


@contextlib.contextmanager
def started_box(
    command: Sequence[str], *, memory: int, tasks: int, cores: Iterable[int], passed: Sequence[int] = ()
) -> Iterator[StartedBox]:
    """Start a command with an empty environment, in a control group where the host has them; it is gone at the end."""
    with control_group(memory=memory, tasks=tasks) as groups:
        mine = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)  # this thread's, and so that of what it starts
        try:
            process = subprocess.Popen(  # noqa: S603 - a fixed command
                entering(groups, command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                pass_fds=tuple(passed),
                start_new_session=True,
            )
        finally:
            os.sched_setaffinity(0, mine)
        box = StartedBox(process)
        try:
            yield box
        finally:
            box.close()
