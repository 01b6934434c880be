"""What every test pays for without asking for it, made light: waiting for the disk, tables of characters, and logs.

- The folders of tests lie in memory where there is room: each entry of a ledger waits for the disk, a few milliseconds
  thousands of times over. No test cuts the power.
- Which characters UTF-8 has is known, and not tried out on a million of them by each worker of a fresh clone.
- Log handlers are put on the root alone, unless a test reads the log. pytest puts them on every logger that does not
  propagate as well, six times for each test, and torch has fifty such.
"""

import logging
import os
import shutil
from collections.abc import Generator
from functools import cache
from pathlib import Path

import _pytest.logging as logs
import pytest
from hypothesis.internal import charmap
from hypothesis.internal.intervalsets import IntervalSet

MEMORY = Path("/dev/shm")
ENOUGH = 4 << 30
ROOT = "PYTEST_DEBUG_TEMPROOT"
UTF_8 = ((0, 0xD7FF), (0xE000, 0x10FFFF))  # all but the halves of pairs


def in_memory(place: Path = MEMORY, enough: int = ENOUGH) -> bool:
    """Whether folders can lie in some place that is held in memory."""
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK) and shutil.disk_usage(place).free >= enough


if ROOT not in os.environ and in_memory():
    os.environ[ROOT] = str(MEMORY)


tried_out = charmap.intervals_from_codec


@cache
def known(codec: str) -> tuple[IntervalSet, IntervalSet]:
    """The characters that a codec has, and those of them that do not come back as they were."""
    return (IntervalSet(UTF_8), IntervalSet(())) if codec == "utf-8" else tried_out(codec)


charmap.intervals_from_codec = known

everywhere = logs.catching_logs


class _AtTheRoot(everywhere[logging.Handler]):
    """Catches what reaches the root."""

    def __enter__(self) -> logging.Handler:
        if self.level is not None:
            return super().__enter__()
        root = logging.getLogger()
        root.addHandler(self.handler)
        self.attached_loggers.append(root)
        return self.handler


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    reads = "caplog" in getattr(item, "fixturenames", ())
    logs.catching_logs = everywhere if reads else _AtTheRoot  # type: ignore[misc,assignment]
    return (yield)
