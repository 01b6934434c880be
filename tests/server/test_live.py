"""A stream from a broker on the pages: declared, previewed, opened, fed by a process of its own, to its end."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.governance.ledger_state import population_line
from sfumato.server.live.drawing import drawn
from sfumato.server.live.feeds import LiveStream, StreamPoint
from sfumato.server.pages.live import live_of
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from tests.server.visiting import Visiting

PATIENCE = 40.0
CANARY = "p17-canary"
EVENT = sf.event(relation="add/remove")
LARGE = sf.Budget(epsilon=10_000, delta="1/1000000")


@pytest.fixture
def ward(tmp_path: Path, redis_url: str) -> Iterator["Ward"]:
    service = Service.create(tmp_path / "ward")
    try:
        yield Ward(service, redis_url)
    finally:
        service.close()


class Ward:
    """A started service with an account, and a broker."""

    def __init__(self, service: Service, url: str) -> None:
        import redis

        self.service, self.url = service, url
        self.redis = redis.Redis.from_url(url)
        ledger = service.ledger
        ledger.declare_population("arrivals", unit=EVENT, cap=LARGE, reason="test")
        ledger.open_account("hospital", unit=EVENT, cap=LARGE, reason="test")
        ledger.open_account("hospital/er", unit=EVENT, cap=sf.Budget(epsilon=500, delta="1/1000000"), reason="test")
        service.people.add("ada", shown="Ada", roles=[ServiceRole.ANALYST], accounts=["hospital/er"])
        service.people.add("sam", shown="Sam", roles=[ServiceRole.STEWARD])
        first = Visiting(service)
        self.analyst, self.steward = first.sign_in("ada"), first.other().sign_in("sam")
        service.start()

    def declare(self, **other: str) -> str:
        said = {"name": "er", "edition": "1", "url": self.url, "key": "er:arrivals", "time": "at", "person": ""}
        said |= {"relation": "add/remove", "population": "arrivals", "epsilon": "1000", "delta": "0.000001", **other}
        return self.steward.post("/live/feeds", said, page="/live/feeds").text

    def opened(self) -> str:
        """A stream that nobody feeds, and the address of its page."""
        self.declare()
        live = live_of(self.service)
        said = {"feed": "er", "title": "Emergency room", "account": "hospital/er", "by": "ada", "every": 1}
        spend = sf.Budget(epsilon=200, delta="1/1000000000")
        live.feeds.keep(live.feeds.drafted(**said, horizon=3, days=None, spend=spend))  # type: ignore[arg-type]  # texts
        return f"/live/{self.stream().name}"

    def form(self, **other: str) -> dict[str, str]:
        said = {"title": "Emergency room", "feed": "er", "account": "hospital/er", "every": "1", "horizon": "3"}
        return said | {"days": "", "epsilon": "200", "delta": "0.000000001", **other}

    def add(self, number: int, step: int) -> None:
        """Events in the middle of a step of the one stream: their own time says so, however slow this machine is."""
        stream = self.stream()
        at = stream.clock.begins(step) + timedelta(seconds=stream.every / 2)
        for _ in range(number):
            self.redis.xadd("er:arrivals", {"at": at.isoformat(), "person": CANARY})

    def stream(self) -> LiveStream:
        (one,) = live_of(self.service).feeds.streams()
        return one

    def totals(self) -> list[int]:
        return [round(each.total) for each in live_of(self.service).feeds.points(self.stream().name)]


def until(holds: Callable[[], bool]) -> None:
    last = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < last, "it did not come to that"
        time.sleep(0.05)


def test_a_stream_from_its_feed_to_its_certificate(ward: Ward) -> None:
    assert "Location" not in ward.declare()
    offered = ward.analyst.post("/live/new/preview", ward.form(), page="/live/new").text
    assert "± " in offered
    assert "ε = 500" in offered
    assert live_of(ward.service).feeds.streams() == ()  # nothing is charged by looking
    opened = ward.analyst.post("/live/new", ward.form(), page="/live/new")
    assert opened.status_code == 303
    page = opened.headers["location"]
    before = ward.analyst.get(page)
    assert before.status_code == 200
    assert f'data-from="{page}/chart"' in before.text
    ward.add(7, step=2)  # long before its feeder, a new process, reads the first one
    ward.add(2, step=3)
    until(lambda: ward.stream().phase == "ended")
    assert ward.totals() == [0, 7, 9]
    shown = ward.analyst.get(page).text
    assert "ended" in shown
    assert "<svg" in shown
    release = ward.stream().release
    assert release is not None
    assert release in shown
    assert ward.service.ledger.certificate(release) is not None
    assert ward.service.ledger.balance("hospital/er").spent.epsilon == 200
    assert CANARY not in shown
    assert ward.analyst.get(f"{page}/chart").status_code == 200
    assert "Emergency room" in ward.analyst.get("/live").text


@pytest.mark.long
def test_a_feeder_that_is_killed_goes_on_and_counts_each_event_once(ward: Ward) -> None:
    ward.declare()
    ward.analyst.post("/live/new", ward.form(horizon="9"), page="/live/new")
    live, killed = live_of(ward.service), set[int]()
    ward.add(5, step=2)
    for reached in ("opening", "running"):  # while it starts, and as soon as it has begun
        until(lambda reached=reached: ward.stream().phase in (reached, "running", "ended"))  # type: ignore[misc]
        until(lambda gone=frozenset(killed): live.feeders.pid(ward.stream().name) not in gone)  # type: ignore[misc]
        pid = live.feeders.pid(ward.stream().name)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            killed |= {pid}
    until(lambda: ward.stream().phase == "ended")
    assert killed
    assert ward.totals() == [0, *8 * [5]]
    assert ward.service.ledger.balance("hospital/er").spent.epsilon == 200


def test_a_service_that_stops_goes_on_with_its_streams(ward: Ward) -> None:
    ward.declare()
    ward.analyst.post("/live/new", ward.form(horizon="4"), page="/live/new")
    ward.add(3, step=1)
    until(lambda: live_of(ward.service).feeders.pid(ward.stream().name) is not None)
    live_of(ward.service).feeders.stop()
    assert live_of(ward.service).feeders.pid(ward.stream().name) is None
    live_of(ward.service).feeders.start()
    until(lambda: ward.stream().phase == "ended")
    assert ward.totals() == [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"epsilon": "600"}, "Nothing was read and nothing was spent"),
        ({"account": "hospital"}, "not yours to charge"),
        ({"every": "7"}, "a step lasts"),
        ({"horizon": "many"}, "whole number"),
        ({"horizon": "0"}, "1 to 100,000"),
        ({"days": "3"}, "for persons"),
        ({"feed": "none"}, "no such feed"),
        ({"epsilon": "<b>"}, "epsilon"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_opened_is_said_before_anything_is_charged(
    ward: Ward, other: dict[str, str], words: str
) -> None:
    ward.declare()
    answer = ward.analyst.post("/live/new", ward.form(**other), page="/live/new")
    assert words in answer.text
    assert "<b>" not in answer.text.replace("&lt;b&gt;", "")
    assert live_of(ward.service).feeds.streams() == ()
    assert ward.service.ledger.balance("hospital/er").spent.epsilon == 0


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"url": "http://user:hunter2@127.0.0.1/"}, "no address of Redis"),
        ({"population": "nobody"}, "no such population"),
        ({"person": "patient"}, "other units"),
        ({"relation": "replace"}, "other units"),
        ({"time": ""}, "named by texts"),
        ({"key": ""}, "named by texts"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_feed_that_does_not_fit_is_refused(ward: Ward, other: dict[str, str], words: str) -> None:
    text = ward.declare(**other)
    assert words in text
    assert live_of(ward.service).feeds.feeds() == ()
    lines = {balance.name for balance in ward.service.ledger.balances()}
    assert population_line("arrivals") in lines
    assert not any(name.rpartition(" ")[2] == "er" for name in lines)


@pytest.mark.parametrize("trim", ["yes", ""])
def test_no_second_stream_reads_what_the_first_one_removes(ward: Ward, trim: str) -> None:
    ward.declare(trim=trim)
    live_of(ward.service).feeders.stop()  # no feeder begins: the first stream stays as it was opened
    first = ward.analyst.post("/live/new", ward.form(epsilon="100"), page="/live/new")
    assert first.status_code == 303
    second = ward.analyst.post("/live/new", ward.form(epsilon="100"), page="/live/new")
    assert (second.status_code == 303) is (trim == "")
    assert ("would miss events" in second.text) is (trim == "yes")


def test_a_stream_is_seen_by_whoever_may_charge_its_account_and_by_those_who_watch(ward: Ward) -> None:
    address = ward.opened()
    ward.service.people.add("ben", shown="Ben", roles=[ServiceRole.ANALYST], accounts=[])
    ward.service.people.add("olga", shown="Olga", roles=[ServiceRole.AUDITOR])
    ben, auditor = (ward.steward.other().sign_in(each) for each in ("ben", "olga"))
    for each in (address, f"{address}/chart"):
        assert [one.get(each).status_code for one in (ward.analyst, ward.steward, auditor)] == [200] * 3
        assert ben.get(each).status_code == ben.get(each.replace(address, "/live/none")).status_code == 404
    assert address in ward.analyst.get("/live").text
    assert address not in ben.get("/live").text


def test_the_address_of_a_broker_is_shown_to_nobody(ward: Ward) -> None:
    secret = ward.url.replace("redis://", "redis://:hunter2@")
    ward.declare(url=secret)
    for browser in (ward.steward, ward.analyst):
        for page in ("/live", "/live/feeds", "/live/new"):
            assert "hunter2" not in browser.get(page).text
    assert "hunter2" not in repr(live_of(ward.service).feeds.feeds())


def test_pages_speak_chinese(ward: Ward) -> None:
    ward.declare()
    for browser, page in ((ward.analyst, "/live"), (ward.analyst, "/live/new"), (ward.steward, "/live/feeds")):
        assert '<html lang="zh-Hans">' in browser.get(f"{page}?lang=zh").text


def test_a_drawing_holds_the_line_within_its_band() -> None:
    said = {"name": "a", "feed": "er", "edition": "1", "title": "t", "account": "a", "login": "l", "start": 0.0}
    said |= {"every": 3600, "horizon": 2000, "days": None, "epsilon": "1", "delta": "0", "phase": "running"}
    stream = LiveStream(**said, words="", release=None)  # type: ignore[arg-type]
    assert drawn(stream, [StreamPoint(step=1, total=1, margin=1)]) is None
    points = [StreamPoint(step=step, total=3.0 * step, margin=20.0) for step in range(1, 2001)]
    chart = drawn(stream, points)
    assert chart is not None
    assert len(chart.line.split()) <= 602
    line = [tuple(map(float, each.split(","))) for each in chart.line.split()]
    band = [tuple(map(float, each.split(","))) for each in chart.band.split()]
    upper, lower = band[: len(line)], band[len(line) :][::-1]
    for (x, y), (x1, above), (x2, below) in zip(line, upper, lower, strict=True):
        assert x == x1 == x2
        assert chart.top <= above < y < below <= chart.bottom
    assert 4 <= len(chart.levels) <= 9
    assert line[-1] == chart.end
