"""A worker that goes wrong once: ``python -m tests.server.unreliable_worker HOW FILE``; afterwards it is a good one.

``HOW`` is what goes wrong, ``FILE`` is there once it has. What it would say names a canary.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from sfumato.governance.owner.client import RemoteLedger
from sfumato.server.jobs import worker
from sfumato.tables.store import TableStore

STEPS: dict[str, tuple[type, str, bool]] = {
    "before the charge": (RemoteLedger, "reserve", False),
    "after the charge": (RemoteLedger, "reserve", True),
    "after the read": (TableStore, "read", True),
    "before the store": (RemoteLedger, "commit", False),
    "after the store": (RemoteLedger, "commit", True),
}
CANARY = "Zanzibar-4711"


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stuck() -> None:
    time.sleep(3600)


def raised() -> None:
    raise ValueError(f"cannot convert {CANARY} to a number")


def breaking(home: type, name: str, act: Callable[[], None], marker: Path, *, after: bool) -> None:
    original = getattr(home, name)

    @wraps(original)
    def broken(*given: Any, **said: Any) -> Any:
        found = original(*given, **said) if after else None
        if not marker.exists():
            marker.touch()
            act()
        return found if after else original(*given, **said)

    setattr(home, name, broken)


def main() -> None:
    how, file = sys.argv[1], Path(sys.argv[2])
    worker.warm_up()
    worker.warm_up = lambda: None  # what goes wrong is the first question about somebody
    if how in STEPS:
        home, name, after = STEPS[how]
        breaking(home, name, killed, file, after=after)
    else:
        breaking(TableStore, "read", {"stuck": stuck, "raised": raised}[how], file, after=True)
    worker.main()


if __name__ == "__main__":
    main()
