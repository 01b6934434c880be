"""The process of one stream: it alone reads the events, charges through the owner's socket, and tells released totals.

It is told its stream in one line on its standard input, and ends when that is closed; what was released is sealed, and
the next process goes on from there.
"""

import json
import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import IO, Any  # what JSON holds

from sfumato.core.release import Release
from sfumato.errors import EngineFailed, LedgerError, Refused, SfumatoError
from sfumato.reports.declarations import DECLARATIONS
from sfumato.server.live.feeds import Feed, LiveStream
from sfumato.streams.running import RunningTotals, Told
from sfumato.streams.sources import Inbox, RedisEvents, watch
from sfumato.streams.stream import TotalQuestion
from sfumato.vault import Vault

__all__ = ["fed", "main"]

Tell = Callable[[dict[str, Any]], None]


class _Stopped(Exception):
    """The service is stopping."""


def fed(task: dict[str, Any], tell: Tell, sleep: Callable[[float], None]) -> None:
    """Open or resume a stream and feed it until it ends, telling each total as it is released.

    Guarantee: all of it goes through the gate, which charges the whole stream before an event is read; no event and no
    exact number is told. Sensitive: the feed of the task.
    """
    live, feed = LiveStream(**task["stream"]), Feed(**task["feed"])
    vault = Vault(
        unit=DECLARATIONS.decode(task["unit"], "unit"),
        ledger=task["owner"],
        account=live.account,
        key=task["key"],
        purpose=task["purpose"],
        recipient=task["recipient"],
    )
    question = live.question(vault)
    found = _begun(question, live, Path(task["state"]))
    if isinstance(found, Release):
        tell({"ended": found.statement.identifier})
        return
    spend = live.spend
    margins = question.margins(epsilon=spend.epsilon, delta=spend.delta)
    for place, total in enumerate(found.totals):
        tell(_point(place + 1, total, margins[place]))
    tell({"running": True})
    events = feed.events(live.name)
    try:
        inbox = Inbox(found, live.clock, source=events if isinstance(events, RedisEvents) else None)
        pause = timedelta(seconds=min(1.0, live.every / 4))
        for told in watch(inbox, events, pause=pause, sleep=sleep):
            if isinstance(told, Told):
                tell(_point(told.step, told.total, told.margin))
    finally:
        events.close()
    tell({"ended": found.close().statement.identifier})


def _begun(question: TotalQuestion, live: LiveStream, state: Path) -> RunningTotals | Release:
    """The stream as it goes on: from its state, for the first time, or closed already."""
    spend = live.spend
    if state.exists():
        return question.resume(epsilon=spend.epsilon, delta=spend.delta, state=state, idempotency=live.name)
    try:
        return question.open(epsilon=spend.epsilon, delta=spend.delta, state=state, idempotency=live.name)
    except Refused as wrong:
        if "was closed" not in str(wrong):
            raise
    return question.released(epsilon=spend.epsilon, delta=spend.delta, idempotency=live.name)


def _point(step: int, total: object, margin: float) -> dict[str, Any]:
    return {"step": step, "total": float(total), "margin": float(margin)}  # type: ignore[arg-type]  # no groups here


def main() -> None:
    """Feed the stream that the first line of the input says."""
    back = _own_output()

    def tell(said: dict[str, Any]) -> None:
        back.write(json.dumps(said) + "\n")
        back.flush()

    def sleep(seconds: float) -> None:
        if select.select([sys.stdin], [], [], seconds)[0]:  # it was closed
            raise _Stopped

    with suppress(BrokenPipeError, _Stopped):
        task = json.loads(sys.stdin.readline())
        begun = Path(task["state"]).exists()
        try:
            fed(task, tell, sleep)
        except (EngineFailed, LedgerError) as wrong:
            tell({"waiting": str(wrong)})
        except SfumatoError as wrong:
            tell({"waiting" if begun else "refused": str(wrong)})
        except _Stopped:
            raise
        except Exception:  # noqa: BLE001 - whatever it says may quote data
            tell({"waiting" if begun else "refused": ""})


def _own_output() -> IO[str]:
    """The way back to the service; whatever a library prints goes nowhere."""
    back = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    return os.fdopen(back, "w", encoding="utf-8")


if __name__ == "__main__":
    main()
