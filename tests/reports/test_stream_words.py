"""Words for releases of streams: what was told, who is protected and who not, and that all was charged at the start."""

import re
import subprocess
import sys
import textwrap
from functools import cache
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.core.units import Unit
from sfumato.mechanisms import SparseVector
from sfumato.reports.catalogue import messages
from sfumato.reports.particulars import particulars
from sfumato.reports.words import AUDIENCES, Facts
from sfumato.streams import STREAM_QUERIES
from sfumato.streams.describe import slack_of

EVENT, PERSON = sf.event(relation="add/remove"), sf.user("id", relation="add/remove")
LIMIT = sf.Limit(groups=3, rows_per_group=1)
WEEKS = {"event": "What somebody does for weeks is not protected", "window": "for longer than 6 steps is not protected"}
WEEKS_ZH = {"event": "一个人几周内的行为不受此保护", "window": "持续超过 6 步的行为不受此保护"}


def opened(unit: Unit = EVENT, **said: Any) -> Any:
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=20, delta=1e-6), name="arrivals")
    return vault.stream(name="er", version="1", horizon=48, bounds=(0, 90), **said)


def totals(stream: Any, values: Any, **open_with: Any) -> Release:
    running = stream.running_total(**open_with).open(epsilon=1, delta=1e-7)
    for value in values:
        running.add(people=value) if isinstance(value, str) else running.add(value)
    return running.close()  # type: ignore[no-any-return]


def persons(stream: Any) -> Release:
    running = stream.running_total().open(epsilon=1, delta=1e-7)
    for _ in range(5):
        running.add(people=["a", "b"])
    return running.close()  # type: ignore[no-any-return]


def watched(stream: Any, values: Any, **asked: Any) -> Release:
    watch = stream.alarms(threshold=40, alarms=2, **asked).open(epsilon=8)
    for value in values:
        watch.check(value)
    return watch.close()  # type: ignore[no-any-return]


MADE: dict[str, tuple[Any, str, str]] = {
    "events": (lambda: totals(opened(), [4] * 5), "event", "The running total of the stream {data} after each step,"),
    "one step": (lambda: totals(opened(), [4]), "event", "The running total of the stream {data} after each step, for"),
    "window": (lambda: totals(opened(window=6), [4] * 5), "window", "The running total of the stream {data} after"),
    "replaced": (
        lambda: totals(opened(sf.event(relation="replace")), [4] * 5),
        "event",
        "The running total of the stream {data} after each step, for 5 steps: 5 numbers.",
    ),
    "pure": (
        lambda: opened().running_total().open(epsilon=1).close(),
        "event",
        "Running totals of the stream {data}, which was closed before its first step: no number was released.",
    ),
    "not kept": (
        lambda: totals(opened(), [4] * 5, keep=False),
        "event",
        "Running totals of the stream {data}: 5 steps were released as they came, and the totals are not in the",
    ),
    "groups": (
        lambda: totals(opened(groups=("A", "B")), [[4, 1]] * 5),
        "event",
        "The running totals of the stream {data} after each step, for 5 steps and 2 groups: 10 numbers.",
    ),
    "persons": (
        lambda: persons(opened(PERSON, limit=LIMIT)),
        "person",
        "The running total of the stream {data} after each step, for 5 steps: 5 numbers.",
    ),
    "persons apart": (lambda: persons(opened(PERSON, limit=LIMIT, separation=7)), "person", "The running total of"),
    "alarms": (
        lambda: watched(opened(), [0, 80, 1]),
        "event",
        "Alarms on the stream {data}: 3 steps looked at, one alarm raised where the number of a step reached 40, both",
    ),
    "no alarm": (lambda: watched(opened(), [0]), "event", "Alarms on the stream {data}: one step looked at, no alarm"),
    "cusum": (
        lambda: watched(opened(window=6), [0, 90], watched="cusum", drift=2),
        "window",
        "Alarms on the stream {data}: 2 steps looked at, ",
    ),
}


@cache
def made(name: str) -> Release:
    return MADE[name][0]()  # type: ignore[no-any-return]


def test_every_question_is_among_them() -> None:
    assert {type(made(name).statement.query) for name in MADE} == set(STREAM_QUERIES)


@pytest.mark.few(16)
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("audience", AUDIENCES)
def test_every_reader_is_told_what_and_in_both_languages(name: str, audience: str) -> None:
    english, chinese = (made(name).explain(language, audience) for language in ("en", "zh"))
    assert english.startswith(MADE[name][2].format(data="“er” (version 1)"))
    assert "{" not in english + chinese
    assert set(re.findall(r"[A-Za-z]{2,}", chinese)) <= {"er", "arrivals", "total"}
    assert not re.search(r"for each value of|rows count|at most \d+ groups", english)


@pytest.mark.few(16)
@pytest.mark.claim("S4-08")
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("audience", AUDIENCES)
def test_every_reader_is_told_what_an_event_does_not_protect(name: str, audience: str) -> None:
    level = MADE[name][1]
    english, chinese = (made(name).explain(language, audience) for language in ("en", "zh"))
    for kind in ("event", "window"):
        assert (WEEKS[kind] in english) is (kind == level)
        assert (WEEKS_ZH[kind] in chinese) is (kind == level)
    assert ("a person with everything that this person does in the stream" in english) is (level == "person")
    assert ("至少相隔 7 步" in chinese) is (name == "persons apart")
    assert ("at least 7 steps apart" in english) is (name == "persons apart")
    unit = {"event": "Protected is one event", "window": "Protected are the events of any 6 steps in a row"}
    assert level == "person" or unit[level] in english


@pytest.mark.few(16)
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("audience", AUDIENCES)
def test_every_reader_is_told_that_all_was_charged_at_the_start(name: str, audience: str) -> None:
    english, chinese = (made(name).explain(language, audience) for language in ("en", "zh"))
    watch = name in ("alarms", "no alarm", "cusum")
    assert "was charged once, when it was opened and before" in english or watch
    assert ("All of at most 2 alarms were charged once, when the watch was opened" in english) is watch
    assert "在开启时、读取任何内容之前" in chinese
    assert "answered from the store" not in english


def test_the_margins_are_those_of_the_release() -> None:
    release = made("events")
    ends = [(high - low) / 2 for low, high in release.interval()]
    joint = max((high - low) / 2 for low, high in release.interval(joint=True))
    text = release.explain("en", "board")
    least, most = re.search(r"total ±([\d.]*\d) to ±([\d.]*\d)", text).groups()  # type: ignore[union-attr]
    at_once = float(re.search(r"at once are within ±([\d.]*\d)", text)[1])  # type: ignore[index]
    for told, exact in ((float(least), min(ends)), (float(most), max(ends)), (at_once, joint)):
        assert exact * (1 - 1e-12) <= told <= exact * 1.02
    assert "no margin to state" in made("not kept").explain("en", "public")
    assert "±" not in made("alarms").explain("en", "public")


def test_the_slack_of_an_alarm_holds_95_times_in_100() -> None:
    """Exact: the two noises together, by convolution; a twin with half of it fails."""
    import numpy as np

    mechanism = SparseVector.calibrated(sensitivity=1, alarms=2, epsilon=1, monotone=True)
    slack, reach = slack_of(mechanism), np.arange(-2000, 2001)
    parts = []
    for scale in (mechanism.threshold_scale, mechanism.query_scale):
        weight = np.exp(-np.abs(reach) / float(scale))
        parts.append(weight / weight.sum())
    both = np.convolve(*parts, mode="same")
    assert both[np.abs(reach) <= slack].sum() >= 0.95
    assert both[np.abs(reach) <= slack // 2].sum() < 0.95


@pytest.mark.parametrize("name", MADE)
def test_the_facts_of_a_page_have_words_for_all(name: str) -> None:
    english, chinese = (dict(particulars(made(name), language)) for language in ("en", "zh"))
    assert english.keys() == chinese.keys()
    assert "mechanism." not in english["noise"] + chinese["noise"]
    assert ("in a row" in english["unit"]) is (MADE[name][1] == "window")
    assert ("a person counts in at most 3 steps" in english["limit"]) is (MADE[name][1] == "person")


@pytest.mark.parametrize("name", ["events", "alarms", "no alarm", "not kept", "pure"])
def test_a_closed_stream_has_a_table_and_a_snippet(name: str) -> None:
    release = made(name)
    rows = release.to_arrow().num_rows
    assert rows == Facts.of(release).description.numbers
    assert release._repr_html_().count("<tr>") == rows + 1


def test_the_words_of_a_run_of_events_are_there_for_every_role() -> None:
    roles = {name.partition(".")[2] for name in messages("en") if name.startswith("window.")}
    assert roles == {
        *("unit", "member", "this", "that", "another", "yours", "thing", "several", "together"),
        *("trait", "traits", "example", "case"),
    }


@pytest.mark.long
def test_words_come_without_numpy() -> None:
    """A certificate is explained where NumPy is not: the margins are then not worked out."""
    program = """
        import json, sys
        sys.modules["numpy"] = None
        from sfumato.core.certificate import Certificate
        from sfumato.reports.declarations import DECLARATIONS
        from sfumato.reports.presenter import Reports
        from sfumato.core.release import Release
        certificate = Certificate(sys.stdin.read())
        said = DECLARATIONS.decode(json.loads(certificate.text)["statement"], "statement")
        print(Release(statement=said, certificate=certificate, charged=said.spend, repeated=False,
                      presenter=Reports()).explain())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        input=made("events").certificate.to_json(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "not computed here" in done.stdout
