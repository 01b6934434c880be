"""The live stream of the demonstration: invented arrivals that go on for as long as the service runs, in a file.

No broker is needed. The file holds what the invented hospitals would send; the feeder of the stream alone reads it.
"""

import secrets
import threading
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any  # a generator of NumPy, which is imported late

from sfumato.core.budget import Budget
from sfumato.server.live.feeds import FILE, OVER, Feeds, LiveStream
from sfumato.server.service import Service

__all__ = ["FEED", "InventedArrivals", "declare_stream", "open_stream", "write_arrivals_from_now_on"]

FEED, TITLE = "emergency", "Patients who came to emergency departments"
CAP = Budget(epsilon=3, delta=Fraction(1, 8 * 10**6))
PRICE = Budget(epsilon=1, delta=Fraction(1, 10**8))
EVERY, HORIZON, BEFORE = 10, 2_160, 3_600
"""Seconds of a step, their number, and how long before the first start the invented arrivals began, in seconds."""
A_SECOND, SWING = 0.5, 0.35
"""How many arrive in a second, and by which share a busy quarter of an hour differs from a quiet one."""
HEADER = "at,patient_id\n"


class InventedArrivals:
    """Appends invented arrivals to a file each second, from :meth:`start` to :meth:`stop`.

    Where the service stood still nobody arrived, but for the last hour, so that a chart begins with something.
    """

    def __init__(self, place: Path) -> None:
        self._place, self._stopping = place, threading.Event()
        self._thread: threading.Thread | None = None
        self._draw: Any = None

    def start(self) -> None:
        """Write what is missing of the last hour, then go on second by second."""
        import numpy as np

        self._stopping.clear()
        now = datetime.now(UTC).timestamp()
        # Insecure: it invents fictional people, others at each start. Noise never comes from it.
        self._draw = np.random.default_rng(int(now))
        last = self._place.stat().st_mtime if self._place.is_file() else 0.0
        self._write(max(last, now - BEFORE), now)
        self._thread = threading.Thread(target=self._go_on, args=(now,), name="invented arrivals", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write nothing more."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(5)

    def _go_on(self, last: float) -> None:
        while not self._stopping.wait(1):
            now = datetime.now(UTC).timestamp()
            self._write(last, now)
            last = now

    def _write(self, first: float, last: float) -> None:
        """Append the arrivals between two moments; a file that is new gets its header."""
        lines, moment = [] if self._place.is_file() else [HEADER], first
        while True:
            busy = 1 + SWING * (1 if moment // 900 % 2 else -1)
            moment += float(self._draw.exponential(1 / (A_SECOND * busy)))
            if moment >= last:
                break
            at = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
            lines.append(f"{at},{self._draw.integers(10**9)}\n")
        with self._place.open("a", encoding="utf-8") as file:
            file.write("".join(lines))


def declare_stream(service: Service, *, population: str, by: str) -> None:
    """Declare the feed of the demonstration."""
    feeds = _feeds(service)
    feeds.declare(
        name=FEED,
        edition="1",
        url=f"{FILE}{_place(service)}",
        key=FEED,
        time="at",
        person="patient_id",
        relation="add/remove",
        population=population,
        cap=CAP,
        trim=False,
        by=by,
        of_file=True,
    )


def open_stream(service: Service, account: str, *, by: str) -> None:
    """Write a stream down that began an hour ago, where none goes on and the account has its price left."""
    feeds = _feeds(service)
    declared, open_now = feeds.feeds(), [one for one in feeds.streams() if one.phase not in OVER]
    if open_now or not declared or not service.ledger.balance(account).left.covers(PRICE):
        return
    start = (service.now() - BEFORE) // EVERY * EVERY
    feeds.keep(
        LiveStream(
            name=secrets.token_hex(8),
            feed=FEED,
            edition="1",
            title=TITLE,
            account=account,
            login=by,
            start=start,
            every=EVERY,
            horizon=HORIZON,
            days=1,
            epsilon=str(PRICE.epsilon),
            delta=str(PRICE.delta),
            phase="opening",
            words="",
            release=None,
        )
    )


def write_arrivals_from_now_on(service: Service) -> None:
    """Have invented people arrive while a service runs."""
    arrivals = InventedArrivals(_place(service))
    service.on_start(arrivals.start)
    service.on_stop(arrivals.stop)


def _feeds(service: Service) -> Feeds:
    service.database.create()  # the tables of this area, which was imported since
    return Feeds(service.database, service.ledger, service.now)


def _place(service: Service) -> Path:
    return service.folder / f"{FEED}.csv"
