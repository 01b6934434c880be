"""Streams on the command line: the building that is watched, and running totals of the events in a file."""

import io
import json
import re
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from sfumato.cli import stream
from sfumato.core.deprecation import GONE
from sfumato.demo.live_chart import ALARM, BOTH, RELEASED, TRUE, Point, chart
from sfumato.demo.watched_building import ALARMS, WatchedBuilding
from sfumato.reports.verify import read, verify
from tests.cli.institution import done

SMALL = ("--people", 60, "--fast")


# ------------------------------------------------------------------------------------------------------- the building


@pytest.fixture(scope="module")
def watched():
    """Two days, at an ε that makes the alarm sure: over 600 of 1,200 people meet, and the threshold is 400."""
    found = WatchedBuilding(epsilon=10, steps=192, people=1200)
    return found, list(found)


@pytest.mark.long
def test_it_prints_plain_lines_where_there_is_no_terminal(run):
    said = done(run, "stream", "demo", "--steps", 40, *SMALL)
    assert "\x1b" not in said
    assert "Nobody lives in it: that is why the true line may be shown." in " ".join(said.split())
    lines = re.findall(r"^(day 1 \d\d:\d\d)  true (\d+)  event (-?\d+) ±(\d+)  user (-?\d+) ±(\d+)", said, re.MULTILINE)
    # Of so few people the alarm is unsure, and steps with an alarm have a line too.
    assert {line[0] for line in lines} >= {"day 1 03:00", "day 1 06:00", "day 1 09:00", "day 1 10:00"}
    assert len(lines) <= 4 + ALARMS
    assert all(int(line[3]) < int(line[5]) for line in lines)  # what a person costs
    assert "spent ██████████████████████████████ 1 of 1" in said
    assert "1.5 of 1.5" in said
    assert said.count(RELEASED) + said.count(BOTH) > 40


def test_it_says_what_a_long_stream_of_persons_costs(run):
    said = " ".join(done(run, "stream", "demo", "--steps", 100, *SMALL).split())
    assert "What that costs: a person may count in all 100 steps." in said


def test_the_same_for_programs(run):
    found = json.loads(done(run, "stream", "demo", "--steps", 12, "--epsilon", "1/2", *SMALL, "--json"))
    assert found["generated"] is True
    assert (found["steps"], found["people"], len(found["true"])) == (12, 60, 12)
    spent = {name: series["spent"]["epsilon"] for name, series in found["series"].items()}
    assert spent == {"event level": "1/2", "user level": "3/4"}
    assert all(len(series["released"]) == 12 for series in found["series"].values())


@pytest.mark.parametrize("words", [("--steps", 0), ("--people", 0), ("--epsilon", "-1"), ("--epsilon", "none")])
def test_nonsense_is_refused(run, words):
    assert run("stream", "demo", *words).exit_code in (1, 2)


def test_all_is_charged_before_the_first_step():
    found = WatchedBuilding(epsilon="1/2", steps=9, people=9)
    assert (found.event_level.spent.epsilon, found.user_level.spent.epsilon) == (Fraction(1, 2), Fraction(3, 4))
    assert found.event_level.left.epsilon == found.user_level.left.epsilon == 0
    before = len(list(found))
    assert (before, found.event_level.spent.epsilon) == (9, Fraction(1, 2))


@pytest.mark.long
@pytest.mark.alpha(1e-15)
def test_alarms_are_raised_when_most_meet_and_end(watched):
    """Counts of the hall are at least 140 away from the threshold, over 50 scales of the noise: α < 1e-18."""
    found, seen = watched
    hall = found.twin.by_room[:, 0]
    assert abs(hall - found.threshold).min() > 140
    meeting = {step + 1 for step in range(192) if hall[step] > found.threshold}
    assert len(meeting) == 4
    assert set(found.raised) == meeting
    assert [moment.step for moment in seen if moment.alarm] == found.raised
    assert not found.halted
    assert len(found.raised) < ALARMS


@pytest.mark.alpha(1e-9)
def test_what_is_shown_as_true_is_true_and_margins_hold(watched):
    """All 384 within 3.6 margins, over seven standard deviations: α < 1e-9; and a tenth of the margin does not hold."""
    found, seen = watched
    assert [moment.event.true for moment in seen[3:]] == [
        found.twin.counts[place - 3 : place + 1].mean() for place in range(3, 192)
    ]
    for points in ([moment.event for moment in seen], [moment.user for moment in seen]):
        assert all(abs(point.released - point.true) <= 3.6 * point.margin for point in points)
        assert any(abs(point.released - point.true) > point.margin / 10 for point in points)
    assert seen[-1].event.margin < seen[-1].user.margin / 5


def test_on_a_terminal_the_chart_grows(monkeypatch):
    heard = io.StringIO()
    console = Console(file=heard, force_terminal=True, width=150, height=40, highlight=False)
    monkeypatch.setattr(stream, "terminal", lambda **_: console)
    waits = []
    monkeypatch.setattr(stream, "time", SimpleNamespace(sleep=waits.append))  # not that of other threads
    stream.demo(epsilon="1", steps=6, people=30, fast=False, as_json=False)
    text = heard.getvalue()
    assert waits == [stream.FRAME] * 6
    assert text.count("event level: people in the building") >= 6  # a picture for each step
    assert "day 1 01:30" in text
    heard.truncate(0)
    stream.demo(epsilon="1", steps=2, people=30, fast=True, as_json=False)
    assert len(waits) == 6


def test_a_chart_shows_what_came_and_leaves_room_for_the_rest():
    points = [Point(true=place, released=9, margin=0) for place in range(5)]
    *lines, below = chart(points, top=9, steps=10, width=10, height=10, alarms=[2, 10])
    assert len(lines) == 10
    assert lines[0] == f"9 ┤{RELEASED * 5}"  # five of ten columns
    assert [line[3:].count(TRUE) for line in lines[1:]] == [0] * 4 + [1] * 5
    assert below == f"    {ALARM}{' ' * 7}{ALARM}"
    packed = chart(
        [Point(true=0, released=place, margin=0) for place in range(100)], top=99, steps=100, width=10, alarms=[91]
    )
    assert packed[0].endswith(RELEASED)  # a column shows the last of its steps
    assert {len(packed[0]), len(packed[-1])} == {4 + 10}
    beyond = chart(
        [Point(true=0, released=1e9, margin=5), Point(true=9, released=-5, margin=1)], top=9, steps=2, width=2
    )
    assert beyond[0] == f"9 ┤{RELEASED}{TRUE}"
    assert beyond[-2] == f"0 ┤{TRUE}{RELEASED}"
    assert chart([Point(true=9, released=9, margin=0)], top=9, steps=1, width=1)[0] == f"9 ┤{BOTH}"
    assert chart([], top=9, steps=3, width=3)[0] == "9 ┤"


# ------------------------------------------------------------------------------------------------- totals of a file

DAY = ("--start", "2026-01-01T00:00Z", "--every", "1h", "--steps", 3)
CLEAR = ("--epsilon", "1000000")  # another whole number than the exact one is over 20 standard deviations away


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [
        "2026-01-01T00:10:00Z,a,1",
        "2026-01-01T01:20:00+01:00,a,5",
        "2026-01-01 02:30:00Z,b,2",
        "2026-01-01 00:30:00,c,1",  # no zone
        "yesterday,c,1",
        "2025-12-31T23:59:59Z,c,1",
        "2026-01-01T03:00:00Z,c,1",
        "nonsense",
    ]
    Path("visits.csv").write_text("\n".join(["time,who,n", *rows]) + "\n", "utf-8")
    lines = [dict(zip(("time", "who", "n"), row.split(","), strict=False)) for row in rows]
    Path("visits.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return tmp_path


def told(run, *words: object) -> list[float]:
    found = json.loads(done(run, "stream", "total", *words, *CLEAR, "--json"))
    return [round(one) for one in found["columns"]["total"]["values"]]


@pytest.mark.few(1)
@pytest.mark.parametrize("data", ["visits.csv", "visits.jsonl"])
def test_events_are_totalled_step_by_step(run, folder, data):
    assert told(run, data, *DAY) == [2, 2, 3]
    assert told(run, data, *DAY, "--amount", "n", "--max-per-event", 3) == [4, 4, 6]
    assert told(run, data, *DAY, "--zone", "Europe/London") == [3, 3, 4]
    assert told(run, data, *DAY, "--person", "who", "--limit", 1, "--delta", "1e-6") == [1, 1, 2]
    assert told(run, data, *DAY, "--most", 1) == [1, 1, 2]
    person = ("--person", "who", "--delta", "1e-6", "--amount", "n")
    assert told(run, data, *DAY, *person, "--max-per-event", 7) == [6, 6, 8]
    assert told(run, data, *DAY, *person, "--max-per-event", 4) == [4, 4, 6]


def test_the_old_name_of_an_option_works_says_the_new_one_and_is_not_in_the_help(run, folder):
    asked = ("stream", "total", "visits.csv", *DAY, "--amount", "n", *CLEAR, "--json")
    old = run(*asked, "--each", 3)
    assert old.exit_code == 0
    assert [round(one) for one in json.loads(old.stdout)["columns"]["total"]["values"]] == [4, 4, 6]
    assert f"--each is now --max-per-event. The old name goes in sfumato {GONE}." in old.stderr
    both = run(*asked, "--each", 3, "--max-per-event", 1)
    assert both.exit_code != 0
    assert "both were given" in both.stderr
    assert "--each" not in run("stream", "total", "--help").stdout


@pytest.mark.parametrize("data", ["visits.csv", "visits.jsonl"])
def test_the_first_row_after_a_mark_and_the_last_without_an_end_are_rows(run, folder, data):
    text = Path(data).read_text("utf-8")
    Path(data).write_text(text + text.splitlines()[1 if data.endswith(".csv") else 0], "utf-8-sig")
    assert told(run, data, *DAY) == [3, 3, 4]


def test_a_first_line_without_an_end_is_checked_before_anything_is_spent(run, folder):
    Path("visits.csv").write_text("when,who")
    outcome = run("stream", "total", "visits.csv", *DAY, "--epsilon", 1, "--save", "total.json")
    assert outcome.exit_code == 1
    assert "must name column time" in outcome.stderr
    assert not Path("total.json").exists()


@pytest.mark.few(2)
@pytest.mark.parametrize("offset", [0, 2**19, 2**20])
def test_a_row_before_a_long_line_counts_one_and_no_more(run, folder, offset):
    """Long lines of a hostile writer: whether they count does not depend on where the rows before them end."""
    row = json.dumps({"time": "2026-01-01T00:10:00Z", "who": "a"})
    lines = [row[:-1] + f', "pad": "{"x" * (2**20 + many)}"}}' for many in (-100, 0, 500_000)]
    found = []
    for before in ([], [row]):
        Path("long.jsonl").write_text("\n".join(["x" * offset, *before, *lines]) + "\n")
        found.append(told(run, "long.jsonl", *DAY))
    assert found == [[1, 1, 1], [2, 2, 2]]


def test_it_says_what_is_protected_and_writes_what_is_asked_for(run, folder):
    files = ("--save", "total.json", "--csv", "total.csv")
    said = done(run, "stream", "total", "visits.csv", *DAY, *CLEAR, *files)
    assert "protected: event, add/remove; one event and nothing larger" in said
    assert "charged: ε = 1000000\n" in said
    assert "steps: of 1h each, the first from 2026-01-01 00:00:00+00:00 on" in said
    assert {path.name for path in folder.iterdir()} >= {"total.json", "total.csv"}
    assert verify(read(Path("total.json"))).consistent
    assert Path("total.csv").read_text().splitlines()[0] == '"step","total","total_data_low","total_data_high"'


def test_a_preview_reads_nothing(run, folder):
    Path("visits.csv").write_text("time,who\n")
    said = done(run, "stream", "total", "visits.csv", *DAY, "--epsilon", 1, "--preview")
    assert "after step 3 within ±" in said
    found = json.loads(done(run, "stream", "total", "visits.csv", *DAY, "--epsilon", 1, "--preview", "--json"))
    assert len(found["margins"]) == 3


def test_a_long_stream_of_persons_is_warned_of(run, folder):
    outcome = run("stream", "total", "visits.csv", *DAY[:-1], 120, "--person", "who", "--epsilon", 1, "--delta", "1e-6")
    assert outcome.exit_code == 0, outcome.stderr
    assert "a person may count in all 120 steps" in outcome.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--start", "2026-01-01"), "time with a zone"),
        (("--start", "soon"), "is not a time"),
        (("--every", "fortnight"), "not a length"),
        (("--zone", "Mars/Olympus"), "is not a time zone"),
        (("--limit", 3), "for persons"),
        (("--separation", 3), "for persons"),
        (("--time", "when"), "must name column when"),
        (("--account", "a/b/c"), "--version"),
        (("--purpose", "research"), "--account"),
        (("--preview", "--csv", "x.csv"), "no answer to write"),
        (("--csv", "x.txt"), "cannot be written"),
        (("--epsilon", "0"), "epsilon"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_spent(run, folder, words, reason):
    outcome = run("stream", "total", "visits.csv", *DAY, "--epsilon", 1, *words)
    assert outcome.exit_code == 1, outcome.stdout
    assert reason in outcome.stderr
    assert "charged" not in outcome.stdout


def test_a_file_that_is_not_there_or_is_of_no_kind_is_refused(run, folder):
    assert "no file nowhere.csv" in run("stream", "total", "nowhere.csv", *DAY, *CLEAR).stderr
    Path("visits.xlsx").write_text("x")
    assert "CSV or as JSON lines" in run("stream", "total", "visits.xlsx", *DAY, *CLEAR).stderr


def test_the_same_output_whatever_the_rows_are_like(run, folder):
    """Bad rows more or less leave every word the same, but for the noise, which is held still at this ε."""
    said = []
    for extra in ("", 'nonsense\n,,\n"\n2026-01-01T00:10:00Z\n'):
        text = "time,who\n2026-01-01T00:10:00Z,a\n" + extra
        Path("some.csv").write_text(text)
        outcome = run("stream", "total", "some.csv", *DAY, *CLEAR, "--json")
        found = json.loads(outcome.stdout)
        said.append((outcome.stderr, [round(one) for one in found["columns"]["total"]["values"]]))
    assert said[0] == said[1]


def test_an_account_is_charged_for_the_whole_stream(run, folder, monkeypatch):
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    who = ("--unit", "user:who")
    done(run, "ledger", "init")
    done(run, "account", "open", "hospital", *who, "--epsilon", 4, "--reason", "for 2026")
    done(run, "ledger", "population", "patients", *who, "--epsilon", 8, "--reason", "lifetime")
    done(run, "ledger", "dataset", "visits", "--version", "1", "--population", "patients", "--epsilon", 4)
    asked = ("stream", "total", "visits.csv", *DAY, "--person", "who", "--account", "hospital", "--version", "1")
    said = done(run, *asked, "--epsilon", "1/2")
    assert "charged: ε = 1/2\n" in said
    assert "ledger: hospital, which may still ask for ε = 7/2" in said
    refusal = run(*asked, "--epsilon", 4)
    assert refusal.exit_code == 1
    assert "Nothing was read and nothing was spent" in refusal.stderr
    done(run, "ledger", "verify")


@pytest.mark.claim("S1-19")
def test_a_stream_says_by_its_steps_which_days_it_reads(run, folder, monkeypatch):
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    who = ("--unit", "user:who")
    done(run, "ledger", "init")
    done(run, "account", "open", "hospital", *who, "--epsilon", 4, "--reason", "for 2026")
    done(run, "account", "windows", "hospital", "--every", "daily", "--epsilon", 1, "--most-windows", 2)
    done(run, "ledger", "population", "patients", *who, "--epsilon", 8, "--reason", "lifetime")
    done(run, "ledger", "dataset", "visits", "--version", "1", "--population", "patients", "--epsilon", 4)
    start = ("--start", "2026-01-01T00:00+01:00", "--every", "12h", "--steps", 3)
    asked = ("stream", "total", "visits.csv", *start, "--person", "who", "--account", "hospital", "--version", "1")
    done(run, *asked, "--epsilon", "1/2")
    (found,) = json.loads(done(run, "budget", "show", "--json"))["windows"]
    assert [each["name"] for each in found["charged"]] == ["2026-01-01", "2026-01-02"]
    assert found["lifetime"]["spent"]["epsilon"] == "1/2"
    beyond = (*asked[:3], "--start", "9999-12-30T00:00Z", "--every", "1w", "--steps", 9, *asked[9:], "--epsilon", 1)
    assert "beyond the calendar" in run(*beyond).stderr
