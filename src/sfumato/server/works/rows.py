"""Synthetic rows of answers: made in a process of their own, one file after the other, and kept in the folder.

It is post-processing: the process is given a certificate and public declarations, and its time tells nothing of data
that the certificate does not.
"""

import hashlib
import json
import os
import shutil
import subprocess  # the program is Python itself, with a module of ours
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any  # what JSON holds

from sfumato.core.documents import canonical
from sfumato.server.works.answers import WorkAnswer
from sfumato.server.works.kinds import kept

__all__ = ["MADE", "FileMaker", "task_of"]

MADE = "made"
PATIENCE = 900.0
COMMAND = (sys.executable, "-m", "sfumato.server.works.row_process")
MOST_WAITING = 50


class FileMaker:
    """Makes the files of answers, one at a time; each once.

    Guarantee: what lies in a folder of it is a function of one certificate and of declarations.
    """

    def __init__(
        self, folder: Path, *, command: Sequence[str] = COMMAND, log: Callable[[str], None] = lambda _: None
    ) -> None:
        self._folder, self._command, self._log = folder, tuple(command), log
        self._turn, self._begun = threading.Lock(), set[str]()
        self._failed: set[str] = set()
        self._pool: ThreadPoolExecutor | None = None
        self._running: subprocess.Popen[bytes] | None = None

    def made(self, answer: WorkAnswer) -> Path | None:
        """The folder with the files of an answer; None while they are made. Begins where nobody did."""
        task = task_of(answer)
        name = _name(task)
        place = self._folder / name
        if place.is_dir():
            return place
        with self._turn:
            if name not in self._begun and name not in self._failed and len(self._begun) < MOST_WAITING:
                self._begun.add(name)
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(1, thread_name_prefix="rows")
                self._pool.submit(self._make, name, task)
        return None

    def failed(self, answer: WorkAnswer) -> bool:
        """Whether the last try to make these files ended without them."""
        return _name(task_of(answer)) in self._failed

    def stop(self) -> None:
        """End what is being made; it is begun again when somebody asks."""
        with self._turn:
            pool, self._pool = self._pool, None
            running = self._running
        if running is not None:
            running.kill()
        if pool is not None:
            pool.shutdown(cancel_futures=True)

    def _make(self, name: str, task: dict[str, Any]) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        aside = self._folder / f".{name}"
        shutil.rmtree(aside, ignore_errors=True)
        done = self._run({**task, "folder": str(aside)})
        if done and aside.is_dir():
            aside.rename(self._folder / name)
        else:
            shutil.rmtree(aside, ignore_errors=True)
            self._failed.add(name)
            self._log(f"files of {name} were not made")
        with self._turn:
            self._begun.discard(name)

    def _run(self, task: dict[str, Any]) -> bool:
        process = subprocess.Popen(  # noqa: S603 - the command is ours
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        with self._turn:
            self._running = process
        try:
            process.communicate(json.dumps(task).encode(), timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finally:
            with self._turn:
                self._running = None
        return process.returncode == 0


def task_of(answer: WorkAnswer) -> dict[str, Any]:
    """All that the files follow from, as the process is told it: no key, no address, no place of data."""
    return {
        "certificate": answer.release.certificate.text,
        "schema": answer.schema.to_toml(),
        "form": kept(answer.form),
        "epsilon": str(answer.job.spend.epsilon),
        "delta": str(answer.job.spend.delta),
    }


def _name(task: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(task).encode()).hexdigest()[:40]
