"""The feeders of a service: one process for each open stream, begun again when it ends before the stream does."""

import json
import subprocess  # the program is Python itself, with a module of ours
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any  # what JSON holds

from sfumato.core.documents import encode
from sfumato.errors import SfumatoError
from sfumato.server.live.feeds import OVER, Feeds, LiveStream, StreamPoint
from sfumato.server.views.gate import EVERYBODY

if TYPE_CHECKING:
    from sfumato.governance.ledger import Ledger

__all__ = ["COMMAND", "Feeders"]

COMMAND = (sys.executable, "-m", "sfumato.server.live.feeder")
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
PATIENCE = 5.0


class Feeders:
    """Keeps a feeder for each stream that has not ended, from :meth:`start` to :meth:`stop`.

    Guarantee: at most one feeder of a stream runs; the state of the stream is held by it, and refuses another.
    """

    def __init__(self, feeds: Feeds, ledger: "Ledger", *, owner: Callable[[], str], key: Path, folder: Path) -> None:
        self._feeds, self._ledger, self._owner, self._key, self._folder = feeds, ledger, owner, key, folder
        self._stopping = threading.Event()
        self._threads: dict[str, threading.Thread] = {}
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Go on with all streams that have not ended."""
        self._stopping.clear()
        self._folder.mkdir(mode=0o700, exist_ok=True)
        for stream in self._feeds.streams():
            if stream.phase not in OVER:
                self.feed(stream)

    def feed(self, stream: LiveStream) -> None:
        """Begin to feed a stream."""
        thread = threading.Thread(target=self._keep, args=(stream,), name=f"stream {stream.name}", daemon=True)
        with self._lock:
            self._threads[stream.name] = thread
        thread.start()

    def pid(self, name: str) -> int | None:
        """The process of a stream, while there is one."""
        with self._lock:
            process = self._running.get(name)
        return None if process is None else process.pid

    def stop(self) -> None:
        """End all feeders; their streams go on at the next start."""
        self._stopping.set()
        with self._lock:
            processes, threads = list(self._running.values()), list(self._threads.values())
        for process in processes:
            _close_input(process)
        for process in processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
        for thread in threads:
            thread.join(PATIENCE)

    def _keep(self, stream: LiveStream) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            told = self._fed(stream)
            if told == "over":
                return
            pause = FIRST_PAUSE if told == "some" else min(2 * pause, LONGEST_PAUSE)
            self._stopping.wait(pause)

    def _fed(self, stream: LiveStream) -> str:
        """Run one feeder to its end: whether the stream is over then, or ``some`` or ``none`` of it was released."""
        process = subprocess.Popen(  # noqa: S603 - the command is ours
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        with self._lock:
            self._running[stream.name] = process
        told = "none"
        try:
            assert process.stdin is not None  # noqa: S101 - it is a pipe
            assert process.stdout is not None  # noqa: S101 - likewise
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps(self._task(stream)) + "\n")
                process.stdin.flush()
            for line in process.stdout:
                said: dict[str, Any] = json.loads(line)
                if self._heard(stream, said):
                    return "over"
                told = "some" if "step" in said else told
            return told
        finally:
            _close_input(process)
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
            with self._lock:
                self._running.pop(stream.name, None)

    def _heard(self, stream: LiveStream, said: dict[str, Any]) -> bool:
        """Keep what a feeder said; whether its stream is over."""
        if "step" in said:
            self._feeds.told(stream.name, StreamPoint(step=said["step"], total=said["total"], margin=said["margin"]))
        elif "running" in said:
            self._feeds.moved(stream.name, "running")
        elif "waiting" in said:
            self._feeds.moved(stream.name, "waiting", words=said["waiting"])
        elif "ended" in said:
            self._feeds.moved(stream.name, "ended", release=said["ended"])
            return True
        elif "refused" in said:
            self._feeds.moved(stream.name, "refused", words=said["refused"])
            return True
        return False

    def recipient(self, stream: LiveStream) -> str | None:
        """Whom the totals of a stream are for; None where its feed has no terms."""
        terms = self._ledger.terms(stream.feed)
        return None if terms is None else next(iter(terms.recipients), EVERYBODY)

    def _task(self, stream: LiveStream) -> dict[str, Any]:
        terms = self._ledger.terms(stream.feed)
        return {
            "owner": self._owner(),
            "key": str(self._key),
            "unit": encode(self._ledger.balance(stream.account).unit),
            "purpose": None if terms is None else terms.purposes[0],
            "recipient": self.recipient(stream),
            "state": str(self._folder / f"{stream.name}.state"),
            "stream": asdict(stream),
            "feed": asdict(self._feeds.feed(stream.feed)),
        }


def _close_input(process: "subprocess.Popen[str]") -> None:
    if process.stdin is not None:
        with suppress(OSError, SfumatoError):
            process.stdin.close()
