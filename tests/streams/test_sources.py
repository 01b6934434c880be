"""Sources feed an open stream: each step once, in order, by a public clock, and no error because of a row."""

import asyncio
import csv
import json
import os
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.streams.clock import LATE
from sfumato.streams.running import RunningTotals
from sfumato.streams.sources import (
    Arrival,
    Clock,
    Columns,
    GrowingFile,
    Inbox,
    PolledTable,
    each_batch,
    follow,
    follow_async,
    watch,
    watch_async,
)
from sfumato.streams.sources.growing_file import LONGEST, WIDEST
from sfumato.streams.watching import Watching
from sfumato.vault import Vault

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
CLOCK = Clock(start=START, every=HOUR)
CLEAR = {
    "epsilon": 10**5,
    "delta": 1e-7,
}  # so much that totals are exact to the whole number: what is tested is feeding
EVENT, USER = sf.event(relation="add/remove"), sf.user("id", relation="add/remove")


def at(hours: float) -> datetime:
    return START + hours * HOUR


def vault(unit: Any = EVENT) -> Vault:
    return Vault(unit=unit, budget=sf.Budget(epsilon=10**6, delta=1e-6), name="er")


def totals(unit: Any = EVENT, horizon: int = 6, state: Path | None = None, **said: Any) -> RunningTotals:
    return (
        vault(unit).stream(name="er", version="1", horizon=horizon, **said).running_total().open(**CLEAR, state=state)
    )


def alarms(unit: Any = EVENT, count: int = 2, **said: Any) -> Watching:
    return vault(unit).stream(name="er", horizon=6, **said).alarms(threshold=50, alarms=count).open(epsilon=10**4)


def near(told: Any) -> list[tuple[int, Any]]:
    """Steps and totals to the nearest whole number."""
    return [(one.step, np.rint(one.total).astype(int).tolist()) for one in told]


# ------------------------------------------------------------------------------------------------------- iterators


def test_an_iterator_gives_a_step_an_item_and_is_read_no_further_than_the_horizon() -> None:
    def counts() -> Iterator[Any]:
        yield from (3, None, np.int64(4), 5)
        pytest.fail("an item was taken that cannot count")

    total = totals(horizon=4)
    assert near(follow(total, counts())) == [(1, 3), (2, 3), (3, 7), (4, 12)]
    assert list(follow(total, [1])) == []


def test_steps_come_as_the_items_do() -> None:
    asked = []

    def counts() -> Iterator[int]:
        for one in (1, 2):
            asked.append(one)
            yield one

    told = follow(totals(), counts())
    assert asked == []
    assert next(told).step == 1  # type: ignore[union-attr]
    assert asked == [1]


def test_persons_and_groups_of_an_iterator() -> None:
    people = totals(USER, limit=sf.Limit(groups=2, rows_per_group=1))
    days = [["a", "b", "a", None, 3.5, ""], None, ("a",), {"a", "b"}]
    assert near(follow(people, days)) == [(1, 2), (2, 2), (3, 3), (4, 4)]
    amounts = totals(USER, limit=sf.Limit(groups=6, rows_per_group=9))
    households = [{"a": 5, "b": np.int64(99)}, {"a": -3, None: 4, "c": None, "d": 1.5}, {np.int64(7): 2}]
    assert near(follow(amounts, households)) == [(1, 14), (2, 14), (3, 16)]
    grouped = totals(groups=("x", "y"))
    steps = [{"x": 1, "y": np.int64(2)}, None, [3, 0], {"y": 5}]
    assert near(follow(grouped, steps)) == [(1, [1, 2]), (2, [1, 2]), (3, [4, 2]), (4, [4, 7])]
    both = totals(USER, groups=("x", "y"), limit=sf.Limit(groups=1, rows_per_group=1))
    assert near(follow(both, [{"x": ["a"], "y": ["a", "b"]}, {"z": ["c"]}, {"x": ["d", None]}])) == [
        (1, [1, 1]),
        (2, [1, 1]),
        (3, [2, 1]),
    ]


def test_numbers_of_data_frames_are_whole_numbers_and_what_they_miss_is_dropped() -> None:
    """Where one amount or id is missing, a data frame makes floats of all, and none of them may be an error."""
    frame = pd.DataFrame({"who": ["a", "b", "c"], "n": [1, None, 4], "id": [7, 8, None]})
    amounts = totals(USER, limit=sf.Limit(groups=6, rows_per_group=9))
    households = [frame.set_index("who")["n"].to_dict(), {"a": pd.NA, "b": np.inf, "c": 2.5, "d": np.float32(3)}]
    assert near(follow(amounts, households)) == [(1, 5), (2, 8)]
    people = totals(USER, limit=sf.Limit(groups=1, rows_per_group=1))
    assert near(follow(people, [frame["id"], [7, np.int64(8), pd.NA]])) == [(1, 2), (2, 2)]
    grouped = totals(USER, groups=("x", "y"), limit=sf.Limit(groups=1, rows_per_group=1))
    assert near(follow(grouped, [{"x": None, "y": {1.0: 1.0}}])) == [(1, [0, 1])]


def test_a_watch_ends_at_its_horizon() -> None:
    def counts() -> Iterator[int]:
        yield from [0] * 6
        pytest.fail("an item was taken that cannot count")

    assert len(list(follow(alarms(), counts()))) == 6
    inbox = Inbox(alarms(), CLOCK)
    assert len(list(inbox.tell(at(99)))) == 6
    assert inbox.has_ended


def test_a_watch_ends_after_its_last_alarm() -> None:
    found = list(follow(alarms(), [0, 100, 0, 100, 100, 0]))
    assert [one.alarm for one in found] == [False, True, False, True]  # type: ignore[union-attr]
    people = alarms(USER, limit=sf.Limit(groups=6, rows_per_group=1))
    crowd = [f"p{number}" for number in range(100)]
    assert [one.alarm for one in follow(people, [crowd[:3], crowd, None])] == [False, True, False]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("unit", "said", "item"),
    [
        (EVENT, {}, 1.5),
        (EVENT, {}, True),
        (EVENT, {"groups": ("x", "y")}, [1]),
        (USER, {}, "ab"),
        (USER, {}, 7),
        (USER, {"groups": ("x", "y")}, ["a"]),
    ],
)
def test_an_item_that_is_no_step_is_refused_and_nothing_is_told(unit: Any, said: Any, item: Any) -> None:
    total = totals(unit, **said)
    with pytest.raises((InvalidInput, Unsupported)):
        list(follow(total, [item]))
    assert total.steps == 0


def test_after_a_crash_a_source_is_read_from_its_start_and_each_step_counts_once(tmp_path: Path) -> None:
    counts = [3, 1, 4, 1, 5, 9]
    home = vault()
    question = home.stream(name="er", version="1", horizon=6).running_total()
    first = question.open(**CLEAR, state=tmp_path / "state")
    told = []
    for one in follow(first, counts):
        told.append(one)
        if one.step == 2:  # type: ignore[union-attr]
            break  # and the process is gone
    first._end()  # what the end of a process does: the lock on the state is free again
    again = question.resume(**CLEAR, state=tmp_path / "state")
    told += follow(again, counts, first=1)
    assert near(told) == [(1, 3), (2, 4), (3, 8), (4, 9), (5, 14), (6, 23)]
    assert home.spent.epsilon == CLEAR["epsilon"]


def test_a_gap_before_the_first_item_is_refused() -> None:
    with pytest.raises(InvalidInput, match="next step is 1"):
        list(follow(totals(), [1], first=2))
    with pytest.raises(InvalidInput, match="not an open stream"):
        list(follow(object(), [1]))  # type: ignore[arg-type]


def test_a_source_that_is_waited_for() -> None:
    async def counts() -> AsyncIterator[int]:
        for one in (3, 1, 4, 1, 5, 9, 2, 6):
            await asyncio.sleep(0)
            yield one

    async def main() -> list[Any]:
        return [told async for told in follow_async(totals(), counts(), first=1)]

    assert near(asyncio.run(main())) == [(1, 3), (2, 4), (3, 8), (4, 9), (5, 14), (6, 23)]


# ----------------------------------------------------------------------------------------------------------- inbox


def test_an_inbox_tells_all_steps_that_ended_also_empty_ones() -> None:
    inbox = Inbox(totals(max_per_event=5), CLOCK)
    inbox.put_all([Arrival(at=at(2.5), amount=9), Arrival(at=at(0.5), amount=2), Arrival(at=at(0.6), amount=-4)])
    assert inbox.next_due == at(1)
    assert near(inbox.tell(at(0.9))) == []
    assert near(inbox.tell(at(3))) == [(1, 2), (2, 2), (3, 7)]  # each event between 0 and 5
    assert near(inbox.tell(at(99))) == [(4, 7), (5, 7), (6, 7)]
    assert inbox.has_ended
    assert list(inbox.tell(at(999))) == []


def test_an_inbox_holds_events_that_may_count_down_to_what_one_may_count() -> None:
    inbox = Inbox(totals(bounds=(-10, 10)), CLOCK)
    inbox.put_all([Arrival(at=at(0.5), amount=5), Arrival(at=at(1.5), amount=-5)])
    assert near(inbox.tell(at(2))) == [(1, 1), (2, 0)]


def test_an_inbox_of_persons_and_of_a_watch() -> None:
    inbox = Inbox(totals(USER, limit=sf.Limit(groups=1, rows_per_group=1)), CLOCK)
    inbox.put_all(Arrival(at=at(hours), person=name) for hours, name in [(0.1, "a"), (0.2, "a"), (1.1, "a"), (1, 7)])
    assert near(inbox.tell(at(2))) == [(1, 1), (2, 2)]
    watching = Inbox(alarms(count=1), CLOCK)
    watching.put_all(Arrival(at=at(1.5)) for _ in range(100))
    assert [one.alarm for one in watching.tell(at(5))] == [False, True]  # type: ignore[union-attr]
    assert watching.has_ended
    assert list(watching.tell(at(9))) == []


def test_a_new_inbox_for_a_resumed_stream_drops_what_may_have_counted(tmp_path: Path) -> None:
    events = [Arrival(at=at(hours)) for hours in (0.5, 1.2, 1.7, 2.5)]
    question = vault().stream(name="er", version="1", horizon=4).running_total()
    first = question.open(**CLEAR, state=tmp_path / "state")
    inbox = Inbox(first, CLOCK, late="now")
    inbox.put_all(events)
    assert near(inbox.tell(at(2))) == [(1, 1), (2, 3)]
    first._end()
    again = question.resume(**CLEAR, state=tmp_path / "state")
    inbox = Inbox(again, CLOCK, late="now")
    inbox.put_all(events)  # all of it, once more
    assert near(inbox.tell(at(4))) == [(3, 4), (4, 4)]


@pytest.mark.claim("S4-08")
@pytest.mark.parametrize("late", LATE)
def test_wherever_it_stops_and_goes_on_no_event_counts_twice(late: str, tmp_path: Path) -> None:
    """Events as they become known at each poll, late ones too; the process ends after each poll in turn."""
    polls = [(1.0, [0.1, 0.9]), (2.0, [1.5, 0.5]), (3.0, [0.2, 2.5, 3.5]), (4.0, [1.1]), (5.0, [])]

    def run(stops: int | None) -> list[tuple[int, int]]:
        question = vault().stream(name="er", version="1", horizon=5).running_total()
        path = tmp_path / f"{late} {stops}"
        total, known, told = question.open(**CLEAR, state=path), [], []
        inbox = Inbox(total, CLOCK, late=late)
        for place, (now, hours) in enumerate(polls):
            new = [Arrival(at=at(each)) for each in hours]
            known += new
            inbox.put_all(new)
            if place == stops:  # between reading and telling
                total._end()
                total = question.resume(**CLEAR, state=path)
                inbox = Inbox(total, CLOCK, late=late)
                inbox.put_all(known)  # the source, from its start
            told += near(inbox.tell(at(now)))
        return told

    straight = run(None)
    assert [step for step, _ in straight] == [1, 2, 3, 4, 5]
    assert straight[-1][1] == {"drop": 5, "now": 8}[late]
    for stops in range(len(polls)):
        found = run(stops)
        assert [step for step, _ in found] == [1, 2, 3, 4, 5]
        if late == "drop":
            assert found == straight
        else:  # a late event that was read and not told is lost, and none is counted twice
            assert all(one <= other for (_, one), (_, other) in zip(found, straight, strict=True))
            assert found[-1][1] >= 5


def test_late_events_of_a_window_are_dropped_and_nothing_else() -> None:
    """Two events of two steps, protected together as one in each, could both count in one step."""
    with pytest.raises(InvalidInput, match="meet in one step"):
        Inbox(totals(window=2), CLOCK, late="now")
    Inbox(totals(window=2), CLOCK)
    Inbox(totals(USER, limit=sf.Limit(groups=2, rows_per_group=1)), CLOCK, late="now")


def test_a_stream_that_something_else_feeds_is_noticed() -> None:
    total = totals()
    inbox = Inbox(total, CLOCK)
    total.add(1)
    with pytest.raises(Refused, match="something else feeds it"):
        list(inbox.tell(at(1)))


# ------------------------------------------------------------------------------------------------- rows and files


@pytest.mark.parametrize(
    ("found", "moment"),
    [
        ("2026-01-01T01:00:00+01:00", START),
        (" 2026-01-01 00:00:00Z ", START),
        ("2026-01-01T00:00:00", None),
        ("2026-13-01", None),
        ("", None),
        (None, None),
        (1767225600, None),
        (START, START),
        (datetime(2026, 1, 1), None),
        (pd.NaT, None),
    ],
)
def test_a_time_is_read_or_the_row_is_dropped(found: Any, moment: datetime | None) -> None:
    assert Columns(time="at").event({"at": found}).at == moment


def test_times_without_a_zone_are_read_in_the_one_declared() -> None:
    columns = Columns(time="at", zone=ZoneInfo("Europe/Zurich"))
    assert columns.event({"at": "2026-01-01 01:00"}).at == START
    twice = columns.event({"at": "2026-10-25 02:30"}).at  # the first of the two is meant
    assert twice is not None
    assert twice.astimezone(UTC) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert columns.event({"at": "2026-01-01T00:00Z"}).at == START


@pytest.mark.parametrize(
    ("found", "amount"),
    [
        *((3, 3), ("3", 3), (3.0, 3), ("-2", -2), (np.int64(3), 3), (np.float32(3), 3)),
        *((wrong, None) for wrong in (3.5, "3.5", None, True, "1" * 9999, float("nan"), float("inf"), [1])),
    ],
)
def test_an_amount_is_a_whole_number_or_the_row_is_dropped(found: Any, amount: int | None) -> None:
    assert Columns(time="at", amount="n").event({"at": START, "n": found}).amount == amount


@pytest.mark.parametrize("wrong", [{"time": ""}, {"time": "at", "person": 3}, {"time": "at", "zone": "Europe/Zurich"}])
def test_columns_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput):
        Columns(**wrong)


def line(hours: float, person: str) -> str:
    return f"{at(hours).isoformat()},{person}\n"


def people(file: GrowingFile) -> list[Any]:
    return [event.person for event in file.poll()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "visits.csv"


VISITS = Columns(time="at", person="who")
HEADER = "at,who\n"


def append(path: Path, text: str | bytes) -> None:
    with path.open("ab") as file:
        file.write(text.encode() if isinstance(text, str) else text)


def test_a_file_is_read_as_its_lines_are_finished_and_each_once(path: Path) -> None:
    with GrowingFile(path, VISITS) as file:
        assert people(file) == []  # it is not there yet
        append(path, "\ufeffat, wh")
        assert people(file) == []
        append(path, 'o\r\n2026-01-01T00:00:00Z,"a, b"\r\n2026-01-01T00:0')
        assert people(file) == ["a, b"]
        assert people(file) == []
        append(path, "0:00Z,c\n\n")
        assert people(file) == ["c"]
    with pytest.raises(Refused, match="closed"):
        people(file)


BAD = [b"\xff\xfe", b'a,"b', b"a,b,c", b"", b"{}", b"[1]", b"[" * 20_000, b'"x"', b"a" * (3 * 2**20), b"\0,\0"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_bad_lines_are_dropped_and_never_an_error(path: Path, kind: str) -> None:
    """A line more or less must not show: with each bad line between, the good ones are told as without it."""
    names = [f"p{number}" for number in range(len(BAD) + 1)]
    rows = {"csv": [line(0.5, name) for name in names]}
    rows["jsonl"] = [json.dumps({"at": at(0.5).isoformat(), "who": name}) + "\n" for name in names]
    good = [row.encode() for row in rows[kind]]
    with GrowingFile(path, VISITS, kind=kind) as file:
        append(path, HEADER if kind == "csv" else "")
        append(path, b"".join(row + bad + b"\n" for row, bad in zip(good, BAD, strict=False)) + good[-1])
        inbox = Inbox(totals(USER, limit=sf.Limit(groups=1, rows_per_group=1)), CLOCK)
        inbox.put_all(file.poll())
        assert near(inbox.tell(at(1))) == [(1, len(BAD) + 1)]


PADS = 9  # columns of a row that is long and whose fields are not


def long_row(kind: str, person: str, length: int) -> bytes:
    """A row of so many bytes, its end not counted."""
    moment = at(0.5).isoformat()
    if kind == "jsonl":
        bare = json.dumps({"at": moment, "who": person, "pad": ""}).encode()
        return bare[:-2] + b"x" * (length - len(bare)) + bare[-2:]
    bare = f"{moment},{person}".encode() + b"," * PADS
    share, more = divmod(length - len(bare), PADS)
    return f"{moment},{person}".encode() + b"".join(b"," + b"x" * (share + (pad < more)) for pad in range(PADS))


LONG_HEADER = {"csv": "at,who" + "".join(f",pad{pad}" for pad in range(PADS)) + "\n", "jsonl": ""}


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("offset", [0, 40, LONGEST // 2, LONGEST - 1000, LONGEST])
def test_whether_a_long_line_counts_hangs_on_its_own_length_alone(path: Path, kind: str, offset: int) -> None:
    """Wherever in the file it lies; else who writes long lines could make one row of another turn many on or off."""
    lengths = {"shorter": LONGEST - 1, "longest": LONGEST, "longer": LONGEST + 1}
    rows = {name: long_row(kind, name, length) for name, length in lengths.items()}
    assert [len(row) for row in rows.values()] == list(lengths.values())
    before = long_row(kind, "before", 300) + b"\n"
    for row, more in ((name, more) for name in rows for more in (b"", before)):
        path.write_bytes(LONG_HEADER[kind].encode() + b"x" * offset + b"\n" + more + rows[row] + b"\n" + before)
        with GrowingFile(path, VISITS, kind=kind) as file:
            assert people(file) == ["before"] * bool(more) + [row] * (row != "longer") + ["before"]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_whether_a_long_line_counts_does_not_hang_on_when_it_was_written(path: Path, mark: bytes) -> None:
    for length, counts in ((LONGEST, True), (LONGEST + 1, False)):
        row = mark + long_row("jsonl", "long", length)
        for cut in (1, len(mark), length // 2, len(row) - 1, len(row)):
            path.write_bytes(row[:cut])
            with GrowingFile(path, VISITS, kind="jsonl") as file:
                assert people(file) == []
                append(path, row[cut:] + b"\n" + long_row("jsonl", "short", 99) + b"\n")
                assert people(file) == ["long"] * counts + ["short"]


@pytest.mark.parametrize("limit", [None, 2**30])
def test_whether_a_row_with_a_long_field_counts_hangs_on_that_field_alone(path: Path, limit: int | None) -> None:
    """Whatever limit somebody has set for all readers of the process."""
    before = csv.field_size_limit()
    try:
        if limit is not None:
            csv.field_size_limit(limit)
        for length, counts in ((WIDEST - 1, True), (WIDEST, True), (WIDEST + 1, False)):
            for more in ("", line(0.5, "b")):
                path.write_text(HEADER + more + line(0.5, "a" * length) + line(0.5, '"' + "é" * length + '"') + more)
                with GrowingFile(path, VISITS) as file:
                    found = people(file)
                assert [len(person) for person in found if person != "b"] == [length] * 2 * counts
                assert found.count("b") == 2 * bool(more)
    finally:
        csv.field_size_limit(before)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_byte_order_mark_belongs_to_the_file_and_not_to_its_first_row(path: Path, kind: str) -> None:
    rows = [long_row(kind, name, 300).decode() + "\n" for name in "ab"]
    path.write_text("".join([LONG_HEADER[kind], *rows]), "utf-8-sig")
    with GrowingFile(path, VISITS, kind=kind) as file:
        file.check_columns()
        assert people(file) == ["a", "b"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_the_last_line_of_a_complete_file_counts_without_an_end(path: Path, kind: str) -> None:
    rows = [long_row(kind, name, 300).decode() for name in "ab"]
    for end, read in (("", ["a", "b"]), ("\n", ["a", "b"]), ("\n" + "x" * (3 * LONGEST), ["a", "b"])):
        path.write_text(LONG_HEADER[kind] + "\n".join(rows) + end)
        with GrowingFile(path, VISITS, kind=kind, complete=True) as file:
            assert people(file) == read
            assert people(file) == []
    path.write_text(LONG_HEADER[kind] + "\n".join(rows))
    with GrowingFile(path, VISITS, kind=kind) as growing:
        assert people(growing) == ["a"]  # the second may go on
    with pytest.raises(InvalidInput, match="does not rotate"):
        GrowingFile(path, VISITS, kind=kind, complete=True, rotates=True)


def test_columns_are_looked_for_also_in_a_first_line_that_is_all_or_too_long(path: Path) -> None:
    for header, complete in (("at,whom", True), ("at,who," + "x" * LONGEST, False), ("at,\rwho\n", False)):
        path.write_text(header, newline="")
        with (
            GrowingFile(path, VISITS, complete=complete) as file,
            pytest.raises(InvalidInput, match="must name column"),
        ):
            file.check_columns()
    append(path.with_name("long.csv"), "at,who," + "x" * LONGEST + "\n" + HEADER + line(0.5, "a"))
    with GrowingFile(path.with_name("long.csv"), VISITS) as file, pytest.raises(InvalidInput, match="must name column"):
        people(file)  # the second line is no header
    path.write_text("at,who")
    with GrowingFile(path, VISITS) as file:
        file.check_columns()
        assert people(file) == []


def test_json_lines_with_numbers_and_ids_of_all_kinds(path: Path) -> None:
    columns = Columns(time="at", person="who", amount="n", group="ward")
    rows = [{"at": "2026-01-01T00:00Z", "who": who, "n": 2, "ward": "x"} for who in (7, "7", None, [1], "\ud800")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with GrowingFile(path, columns, kind="jsonl") as file:
        events = list(file.poll())
    assert [event.person for event in events[:3]] == [7, "7", None]
    assert {(event.amount, event.group) for event in events} == {(2, "x")}  # of a person 1 counts, as declared
    inbox = Inbox(totals(USER, groups=("x", "y"), limit=sf.Limit(groups=1, rows_per_group=1)), CLOCK)
    inbox.put_all(events)
    assert near(inbox.tell(at(1))) == [(1, [2, 0])]


def test_a_file_without_its_columns_is_refused(path: Path) -> None:
    for header in ("at,whom\n", "at,who,who\n", "\n", "\xff\n"):
        path.write_text(header, "latin-1")
        with GrowingFile(path, VISITS) as file, pytest.raises(InvalidInput, match="must name column"):
            people(file)
    with pytest.raises(InvalidInput, match="kind="):
        GrowingFile(path.with_suffix(".txt"), VISITS)
    with GrowingFile(path.parent, VISITS, kind="csv") as folder, pytest.raises(InvalidInput, match="cannot be read"):
        people(folder)


def test_a_file_that_became_shorter_is_refused(path: Path) -> None:
    append(path, HEADER + line(0.5, "a") + line(0.6, "b"))
    with GrowingFile(path, VISITS, rotates=True) as file:
        assert people(file) == ["a", "b"]
        os.truncate(path, len(HEADER))
        with pytest.raises(Refused, match="become shorter"):
            people(file)


def test_another_file_of_its_name_is_refused_unless_the_file_rotates(path: Path) -> None:
    append(path, HEADER + line(0.5, "a"))
    with GrowingFile(path, VISITS) as plain, GrowingFile(path, VISITS, rotates=True) as rotating:
        assert people(plain) == people(rotating) == ["a"]
        append(path, line(0.6, "b") + "2026-01-01T00:00:00Z,half")
        path.rename(path.with_suffix(".1"))
        assert people(rotating) == ["b"]  # the old one, whose name is free
        append(path.with_suffix(".1"), "-way\n" + line(0.7, "c"))
        append(path, HEADER + line(0.8, "d"))
        assert people(rotating) == ["half-way", "c", "d"]
        with pytest.raises(Refused, match="another file"):
            people(plain)


def test_a_growing_file_feeds_a_stream_by_the_clock_until_it_ends(path: Path) -> None:
    """The clock, and not the file, says when a step is told; ``sleep`` plays the world that goes on meanwhile."""
    now = [0.25]

    def sleep(seconds: float) -> None:
        assert seconds == 60
        if now[0] < 2:
            append(path, line(now[0], f"p{now[0]}"))
        now[0] += 0.5

    append(path, HEADER)
    total = totals(USER, horizon=4, limit=sf.Limit(groups=1, rows_per_group=1))
    with GrowingFile(path, VISITS) as file:
        told = watch(Inbox(total, CLOCK), file, pause=timedelta(minutes=1), now=lambda: at(now[0]), sleep=sleep)
        assert near(told) == [(1, 2), (2, 4), (3, 4), (4, 4)]
    assert now[0] == 4.25
    with pytest.raises(InvalidInput, match="pause"):
        next(watch(Inbox(totals(), CLOCK), file, pause=-HOUR))


def test_events_that_are_waited_for_are_told_by_the_clock_also_when_they_have_ended() -> None:
    now = [0.0]

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0)  # lets the events come
        now[0] += seconds / 3600

    async def events() -> AsyncIterator[Arrival]:
        for hours in (0.5, 0.7, 2.5):
            yield Arrival(at=at(hours))

    async def failing() -> AsyncIterator[Arrival]:
        yield Arrival(at=at(0.5))
        raise ConnectionError("the line is dead")

    async def main(source: AsyncIterator[Arrival], horizon: int) -> list[Any]:
        now[0] = 0.0
        inbox = Inbox(totals(horizon=horizon), CLOCK)
        return [told async for told in watch_async(inbox, source, now=lambda: at(now[0]), sleep=sleep)]

    assert near(asyncio.run(main(events(), 4))) == [(1, 2), (2, 2), (3, 3), (4, 3)]
    with pytest.raises(ConnectionError):
        asyncio.run(main(failing(), 4))


# ----------------------------------------------------------------------------------------- declared in vain


@pytest.mark.parametrize("wrong", [{"key": ""}, {"key": "id", "back": 60}, {"key": "id", "back": -HOUR}])
def test_a_polled_table_is_declared_in_full(wrong: Any) -> None:
    pytest.importorskip("psycopg")
    table = sf.engines.sources.postgres("postgresql://reader@db.example/clinic", table="visits")
    with pytest.raises(InvalidInput):
        PolledTable(table, VISITS, CLOCK, **wrong)


def test_only_postgresql_is_polled(tmp_path: Path) -> None:
    for table in (sf.engines.sources.duckdb(tmp_path / "x.duckdb", table="visits"), "visits.csv"):
        with pytest.raises(Unsupported, match="only tables of PostgreSQL"):
            PolledTable(table, VISITS, CLOCK, key="id")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        (totals, {"person": "id"}),
        (lambda: totals(USER), {}),
        (totals, {"group": "ward"}),
        (lambda: totals(groups=("x",)), {}),
        (totals, {"first": -1}),
    ],
)
def test_batches_are_declared_as_the_stream_is(stream: Any, said: Any) -> None:
    with pytest.raises(InvalidInput):
        each_batch(stream(), **said)
