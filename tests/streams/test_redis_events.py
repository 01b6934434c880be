"""Events of a Redis stream: each counts once, in its step, however often whoever reads them stops and goes on."""

import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import EngineFailed, InvalidInput
from sfumato.streams.sources import Clock, Columns, Inbox, RedisEvents, watch
from sfumato.streams.sources import redis_events as source_module
from tests.governance.homes import Home, sqlite_home
from tests.steps import Steps
from tests.streams.feeder import UNIT, furnished

START = datetime(2026, 1, 1, tzinfo=UTC)
HOURS = Clock(start=START, every=timedelta(hours=1))
HORIZON, LOUD = 5, 100
"""The steps, and what one event counts: so much that the noise, 14 standard deviations below half of it, hides none."""
SPEND = {"epsilon": 2_000, "delta": "1/1000000000"}
COLUMNS = Columns(time="at", amount="amount")


class Feed:
    """One stream of events and one of totals, fed and stopped by a test; what is released is kept."""

    def __init__(self, url: str, folder: Path, **options: Any) -> None:
        import redis

        self.url, self.options, self.state = url, options, folder / "er.state"
        self.redis = redis.Redis.from_url(url)
        self.redis.delete("er")
        budget = sf.Budget(epsilon=10**6, delta="1/1000000")
        vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=budget, name="er")
        stream = vault.stream(name="er", version="1", horizon=HORIZON, max_per_event=LOUD)
        self.question = stream.running_total(strategy="totals")
        self.total = self.question.open(**SPEND, state=self.state)
        self.released: list[int] = []
        self._begin()

    def _begin(self) -> None:
        self.source = RedisEvents(self.url, "er", COLUMNS, **self.options)
        self.inbox = Inbox(self.total, HOURS, source=self.source)

    def add(self, step: int) -> None:
        """An event in the middle of a step."""
        at = START + timedelta(hours=step - 1, minutes=30)
        self.redis.xadd("er", {"at": at.isoformat(), "amount": LOUD})

    def poll(self) -> None:
        self.inbox.put_all(self.source.poll())

    def tell(self, hours: int) -> None:
        """Release what has ended so many hours after the start."""
        for told in self.inbox.tell(START + timedelta(hours=hours)):
            self.released.append(round(float(told.total) / LOUD))  # type: ignore[arg-type]

    def crash(self) -> None:
        """What the process knew is gone; the state and Redis remain."""
        self.total._stack.close()  # the lock of a process that is gone is gone
        self.source.close()
        self.total = self.question.resume(**SPEND, state=self.state)
        self._begin()

    def close(self) -> None:
        self.total._stack.close()
        self.source.close()
        self.redis.close()


@pytest.fixture
def feed(redis_url: str, tmp_path: Path) -> Iterator[Feed]:
    one = Feed(redis_url, tmp_path)
    yield one
    one.close()


def followed(feed: Feed, actions: list[tuple[str, int]]) -> tuple[list[int], list[int]]:
    """Totals that were released, and those that follow from the rule: an event counts if it was there at a poll
    before its step was told."""
    there: Counter[int] = Counter()
    seen: Counter[int] = Counter()
    expected: list[int] = []
    for action, step in actions:
        if action == "add":
            feed.add(step)
            there[step] += 1
        elif action == "crash":
            feed.crash()
        else:
            feed.poll()  # as watch does: first what is there, then the clock
            told = len(expected)
            seen = Counter({each: number for each, number in seen.items() if each <= told})
            seen |= Counter({each: number for each, number in there.items() if each > told})
            feed.tell(step)
            for each in range(told + 1, max(told, step) + 1):
                expected.append((expected[-1] if expected else 0) + seen[each])
    return feed.released, expected


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, HORIZON + 1)),
        st.tuples(st.just("add"), st.integers(1, HORIZON)),
        st.tuples(st.just("crash"), st.just(0)),
        st.tuples(st.just("tell"), st.integers(0, HORIZON)),
    ),
    max_size=25,
)


@given(actions=ACTIONS, batch=st.sampled_from([1, 2, 1000]), trim=st.booleans())
def test_a_crash_loses_no_event_and_counts_none_twice(
    redis_server: str, tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, int]], batch: int, trim: bool
) -> None:
    feed = Feed(redis_server, tmp_path_factory.mktemp("er"), batch=batch, trim=trim, group="sfumato")
    try:
        released, expected = followed(feed, [*actions, ("crash", 0), ("tell", HORIZON)])
        assert released == expected
    finally:
        feed.close()


def _all_that_was_read(self: RedisEvents, step: int) -> str:
    return source_module._text(self._read)


def _from_the_start(self: RedisEvents, step: int) -> str:
    return "0-0"


LOST = [("add", 1), ("add", 2), ("tell", 1), ("crash", 0), ("tell", 2)]


def test_a_position_of_all_that_was_read_would_lose_what_waits(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RedisEvents, "after", _all_that_was_read)
    released, expected = followed(feed, LOST)
    assert expected == [1, 2]
    assert released == [1, 1]


def test_an_inbox_that_forgets_the_steps_it_had_would_count_twice(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RedisEvents, "after", _from_the_start)
    assert followed(feed, LOST) == ([1, 2], [1, 2])  # the inbox drops the events of steps that the stream has had
    feed.add(3)
    feed.poll()
    feed.inbox._steps._floor = 0  # one that does not: what it reads again counts in the next step
    feed.inbox._steps._told, feed.inbox._steps._late = 2, "now"
    feed.source._read = (0, 0)
    feed.poll()
    feed.tell(3)
    assert feed.released[-1] > 3


def test_the_position_lies_sealed_in_the_state(feed: Feed) -> None:
    feed.add(1)
    feed.add(3)
    feed.poll()
    feed.tell(1)
    first, waiting = (name.decode() for name, _ in feed.redis.xrange("er"))
    assert feed.total.position >= first
    assert feed.total.position < waiting
    assert feed.total.position.encode() not in feed.state.read_bytes()
    feed.crash()
    assert feed.total.position < waiting
    feed.poll()
    feed.tell(HORIZON)
    assert feed.released == [1, 1, 2, 2, 2]


def test_nobody_takes_an_event_by_reading_with_the_group(redis_url: str, tmp_path: Path) -> None:
    feed = Feed(redis_url, tmp_path, group="sfumato")
    feed.add(1)
    feed.poll()
    feed.tell(1)
    feed.add(2)
    feed.poll()  # now Redis hears of the first step
    (group,) = feed.redis.xinfo_groups("er")
    assert group["lag"] == 1
    feed.add(2)
    taken = feed.redis.xreadgroup("sfumato", "somebody else", {"er": ">"})
    assert len(taken[0][1]) == 2
    feed.poll()
    feed.tell(2)
    assert feed.released == [1, 3]
    feed.close()


def test_with_trim_only_what_was_counted_is_removed(redis_url: str, tmp_path: Path) -> None:
    feed = Feed(redis_url, tmp_path, trim=True)
    for step in (1, 1, 3, 2):
        feed.add(step)
    feed.poll()
    feed.tell(1)
    assert feed.redis.xlen("er") == 4
    feed.poll()
    assert feed.redis.xlen("er") == 2
    feed.crash()
    feed.poll()
    feed.tell(HORIZON)
    assert feed.released == [2, 3, 4, 4, 4]
    feed.close()


ODD: list[dict[Any, Any]] = [
    {"amount": 100},
    {"at": "soon", "amount": 100},
    {"at": "2026-01-01T00:30:00", "amount": 100},  # without a zone
    {"at": "2026-01-01T00:30:00+00:00", "amount": "many"},
    {"at": "2026-01-01T00:30:00+00:00", "amount": "1" * 5000},
    {"at": b"\xff\xfe", "amount": 100},
    {b"\xff": "x", "at": "2026-01-01T00:30:00+00:00"},
]


@pytest.mark.parametrize("fields", ODD, ids=range(len(ODD)))
def test_an_entry_that_is_no_event_is_dropped_without_a_word(feed: Feed, fields: dict[Any, Any]) -> None:
    feed.redis.xadd("er", fields)
    feed.add(1)
    feed.poll()
    feed.tell(1)
    assert feed.released == [1]


def test_entries_that_are_deleted_meanwhile_do_not_stop_it(redis_url: str, tmp_path: Path) -> None:
    feed = Feed(redis_url, tmp_path, batch=1)
    for _ in range(3):
        feed.add(1)
    polled = feed.source.poll()
    feed.inbox.put(next(polled))
    feed.redis.xtrim("er", maxlen=0, approximate=False)
    feed.inbox.put_all(polled)
    feed.tell(1)
    assert feed.released == [1]
    feed.close()


def test_while_redis_is_silent_no_step_is_released(feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from redis.exceptions import ConnectionError as Unreachable

    feed.add(1)
    original: Callable[..., Any] = feed.source._redis.xrevrange
    fails = iter([True, True])

    def silent(*given: Any, **said: Any) -> Any:
        if next(fails, False):
            raise Unreachable("a password of somebody")
        return original(*given, **said)

    monkeypatch.setattr(feed.source._redis, "xrevrange", silent)
    monkeypatch.setattr(source_module, "PAUSE", 0.001)
    (told,) = watch(feed.inbox, feed.source, now=lambda: START + timedelta(hours=1), sleep=lambda _: feed.total._end())
    assert round(told.total / LOUD) == 1  # type: ignore[union-attr, operator]
    feed.crash()
    feed.source._patience = 0
    monkeypatch.setattr(feed.source._redis, "xrevrange", lambda *given, **said: (_ for _ in ()).throw(Unreachable("x")))
    with pytest.raises(EngineFailed, match="no event is lost") as raised:
        next(watch(feed.inbox, feed.source, now=lambda: START + timedelta(hours=2)))
    assert "password" not in str(raised.value)
    assert feed.total.steps == 1


def test_what_is_no_stream_is_refused_without_what_it_holds(feed: Feed) -> None:
    feed.redis.delete("er")
    feed.redis.set("er", "p17 was here")
    with pytest.raises(EngineFailed, match="that of a stream") as raised:
        feed.poll()
    assert "p17" not in str(raised.value)


def test_wrong_uses_are_refused(feed: Feed, redis_url: str) -> None:
    loose = RedisEvents(redis_url, "er", COLUMNS)
    with pytest.raises(InvalidInput, match="have no inbox"):
        list(loose.poll())
    with pytest.raises(InvalidInput, match="belong to an inbox already"):
        Inbox(feed.total, HOURS, source=feed.source)
    with pytest.raises(InvalidInput, match="late events are dropped"):
        Inbox(feed.total, HOURS, source=loose, late="now")
    for url in ("http://127.0.0.1/secret", "", "redis://127.0.0.1:port/0"):
        with pytest.raises(InvalidInput, match="no address of Redis") as raised:
            RedisEvents(url, "er", COLUMNS)
        assert "secret" not in str(raised.value)
    for wrong in ({"stream": ""}, {"group": ""}, {"batch": 0}, {"patience": 3}):
        with pytest.raises(InvalidInput):
            RedisEvents(**{"url": redis_url, "stream": "er", "columns": COLUMNS, **wrong})  # type: ignore[arg-type]
    loose.close()


FED = (3, 1, 4, 1, 5)
"""How many events there are in each step."""


def _killed_reader(home: Home, url: str, state: Path, last: int) -> int:
    """A process that opens, polls and releases step by step, and kills itself at its step ``last``; its exit code."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            step = Steps(last)
            step.watch(os, "fsync", "replace")
            running = _asked(home).open(**SPEND, state=state, idempotency=state.name)
            source = RedisEvents(url, state.name, COLUMNS, group="sfumato", trim=True)
            step.watch(source, "_move_group", "_asked")
            inbox = Inbox(running, HOURS, source=source)
            for hours in range(HORIZON):
                inbox.put_all(source.poll())
                list(inbox.tell(START + timedelta(hours=hours)))
            code = min(100, step.done // 5) if last == 0 else 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _asked(home: Home) -> Any:
    vault = sf.Vault(unit=UNIT, ledger=home.url, account="er", key=home.key, anchor=home.anchor)
    stream = vault.stream(name="er", version="1", horizon=HORIZON, max_per_event=LOUD)
    return stream.running_total(strategy="totals")


@pytest.mark.few(1)
@pytest.mark.parametrize("stride", [29, pytest.param(2, marks=pytest.mark.long)])
def test_killed_at_any_step_it_counts_each_event_once(redis_url: str, tmp_path: Path, stride: int) -> None:
    import redis

    home = sqlite_home(tmp_path)
    furnished(home).close()
    with redis.Redis.from_url(redis_url) as client:

        def filled(state: Path) -> None:
            for step, number in reversed(
                tuple(enumerate(FED, start=1))
            ):  # the last first: a position must wait for them
                for _ in range(number):
                    at = START + timedelta(hours=step - 1, minutes=30)
                    client.xadd(state.name, {"at": at.isoformat(), "amount": LOUD})

        whole = tmp_path / "whole"
        filled(whole)
        steps = 5 * _killed_reader(home, redis_url, whole, 0)
        assert steps > 60
        for last in range(1 + secrets.randbelow(stride), steps + 1, stride):
            state = tmp_path / f"killed {last}"
            filled(state)
            assert _killed_reader(home, redis_url, state, last) == -9
            given = {**SPEND, "state": state, "idempotency": state.name}
            question = _asked(home)
            running = question.resume(**given) if state.exists() else question.open(**given)
            source = RedisEvents(redis_url, state.name, COLUMNS, group="sfumato", trim=True)
            inbox = Inbox(running, HOURS, source=source)
            inbox.put_all(source.poll())
            list(inbox.tell(START + timedelta(hours=HORIZON)))
            assert [round(each / LOUD) for each in running.totals] == [3, 4, 8, 9, 14], last
            running.close()
            source.close()
