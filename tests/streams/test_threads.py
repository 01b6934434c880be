"""What is promised once is kept once where threads share it: steps of an inbox, items, batches, and polls."""

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sfumato.engines.sources import postgres
from sfumato.errors import Refused
from sfumato.streams.sources import (
    Arrival,
    Columns,
    GrowingFile,
    Inbox,
    PolledTable,
    batches,
    each_batch,
    follow,
    following,
    inbox,
    polled_table,
)
from sfumato.streams.sources.open_stream import tell
from tests.streams.test_sources import CLOCK, at, totals

ROUNDS = 6


def at_once(jobs: list[Callable[[], Any]]) -> list[Any]:
    """What each job gave, or the error that it ended with."""
    found: list[Any] = []

    def run(job: Callable[[], Any]) -> None:
        try:
            found.append(job())
        except Refused as refused:
            found.append(refused)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def meeting() -> Callable[..., Any]:
    """A step that is told only when two threads are about to tell one, or after a moment: where a check grows old."""
    together = threading.Barrier(2)

    def met(stream: Any, held: Any) -> Any:
        with suppress(threading.BrokenBarrierError):
            together.wait(timeout=0.1)
        return tell(stream, held)

    return met


def test_two_threads_tell_each_step_of_an_inbox_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "tell", meeting())
    stream = totals(horizon=ROUNDS)
    box = Inbox(stream, CLOCK)
    box.put(Arrival(at=at(0.5)))
    found = at_once([lambda: [told.step for told in box.tell(at(ROUNDS))]] * 2)
    assert not [each for each in found if isinstance(each, Refused)]
    assert sorted(step for steps in found for step in steps) == list(range(1, ROUNDS + 1))
    assert stream.steps == ROUNDS


def test_threads_that_put_lose_no_event() -> None:

    box = Inbox(totals(horizon=2, max_per_event=10**6, bounds=(0, 10**6)), CLOCK)
    held = box._steps._held

    class Waiting(dict[Any, Any]):
        """Reading what a step holds takes a moment, in which another thread could write it."""

        together = threading.Barrier(2)

        def get(self, key: Any, default: Any = None) -> Any:
            found = super().get(key, default)
            with suppress(threading.BrokenBarrierError):
                self.together.wait(timeout=0.1)
            return found

    held[1] = Waiting()
    at_once([lambda: box.put(Arrival(at=at(0.5)))] * 2)
    assert dict(held[1]) == {"": 2}


def test_a_source_that_two_threads_read_from_its_start_counts_each_step_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "tell", meeting())
    stream = totals(horizon=9)
    at_once([lambda: list(follow(stream, [5] * ROUNDS, first=1))] * 2)
    assert stream.steps == ROUNDS


def test_a_batch_that_spark_gives_to_two_threads_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "tell", meeting())
    monkeypatch.setattr(batches, "_numbers", lambda *_: 5)
    monkeypatch.setattr(batches, "our_settings", lambda _: nullcontext())
    stream = totals(horizon=9)
    step = each_batch(stream)
    at_once([lambda: step(SimpleNamespace(sparkSession=None), 0)] * 2)
    assert stream.steps == 1


def test_a_row_is_read_once_though_two_polls_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second poll finds a row that the first does not, and ends before it: the first would forget that row."""
    rows = {1: at(0.1), 2: at(0.2)}

    def rows_since(*_: Any, **__: Any) -> Iterator[tuple[int, dict[str, Any]]]:
        yield from [(key, {"at": when}) for key, when in rows.items()]

    monkeypatch.setattr(polled_table, "rows_since", rows_since)
    table = PolledTable(
        postgres("postgresql://reader@db.example/clinic", table="visits"),
        Columns(time="at"),
        CLOCK,
        key="id",
        back=timedelta(hours=9),
        now=lambda: at(1),
    )
    first = table.poll()
    read = [next(first)]
    rows[3] = at(0.3)
    with suppress(Refused):
        read += table.poll()
    read += [*first, *table.poll()]
    assert sorted(event.at for event in read) == [at(0.1), at(0.2), at(0.3)]


def test_two_polls_of_a_file_do_not_run_at_once(tmp_path: Path) -> None:
    path = tmp_path / "visits.jsonl"
    path.write_text('{"at": "2026-01-01T00:10:00Z"}\n{"at": "2026-01-01T00:20:00Z"}\n')
    with GrowingFile(path, Columns(time="at")) as file:
        first = file.poll()
        next(first)
        with pytest.raises(Refused, match=r"visits.jsonl is being polled already.*nothing was read"):
            next(file.poll())
        assert len(list(first)) == 1
        assert list(file.poll()) == []
