"""The demonstration in a real browser: every page by the rules of accessibility, and journeys through several roles."""

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests import parts

parts.package("fastapi")
parts.package("uvicorn")

from sfumato.core.signature import SigningKey  # noqa: E402 - after what may be missing
from sfumato.governance.ballots import Ballot  # noqa: E402
from sfumato.governance.board import Choice  # noqa: E402
from sfumato.server.app import areas  # noqa: E402
from sfumato.server.demo import HEART, KEYS, opened_demo  # noqa: E402
from sfumato.server.roles import routes_of  # noqa: E402
from sfumato.server.service import Service  # noqa: E402
from tests.browser.accessibility import broken_rules, unreached  # noqa: E402
from tests.browser.served import become, free_port, listening, opened  # noqa: E402

VISITORS = (None, "ada", "ben", "stella", "mira", "otto", "rosa", "nils")
"""Nobody in particular, and somebody of every role; two analysts, since one has a stream and the other none."""
PHONE = 390
CANARY = "zanzibar4711"
WAYS = [True, pytest.param(False, marks=pytest.mark.long)]
FIRST = ("/", "/sign-in", "/enter?secret=none", "/confirm")
BY_ROLE = frozenset({"home", "live", "research", "board.home"})
"""Pages that lead some roles to places where they lead no others."""
NO_PAGES = frozenset(
    (
        *("ask.offer", "work.offer", "live.chart", "question.download", "question.picture", "static"),
        "data.suggestion_certificate",
        *("audit.certificate", "audit.export", "audit.head", "audit.receipt", "board.paper", "board.veto_paper"),
        *("operation.alive", "operation.health", "operation.metrics", "identity.provider", "identity.provider.back"),
        *("public.certificate", "public.picture", "public.plan_table", "public.registry", "api.description"),
        *("research.release", "research.trial_paper"),
    )
)
"""Files, parts of pages, and what speaks to monitors or to a provider."""
ELSEWHERE = frozenset({"question", "project", "research.trial", "data.suggestion"})
"""Pages that begin with what somebody did: the journeys look at them."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str]]:
    line = free_port()
    made = opened_demo(tmp_path_factory.mktemp("demo") / "service", port=line.getsockname()[1], patients=400)
    with listening(made.service, line) as address:
        yield made.service, address


def route_of(path: str) -> str | None:
    """The name of the route that a path leads to by a click; None where there is none."""
    for route in routes_of(areas()):
        if "GET" in route.methods and re.fullmatch(route.path_regex, path):
            return str(route.name)
    return None


def links_of(page: Any, address: str) -> list[str]:
    """The addresses on a page that lead to other pages of the service; not those that download something."""
    found = page.evaluate("[...document.querySelectorAll('a[href]:not([download])')].map((each) => each.href)")
    return [each.removeprefix(address).partition("#")[0] for each in found if each.startswith(f"{address}/")]


@pytest.mark.parametrize("way", ["light", *(pytest.param(way, marks=pytest.mark.long) for way in ("dark", "zh"))])
def test_every_page_of_every_role_keeps_the_rules_of_accessibility(
    chromium: Any, demo: tuple[Service, str], way: str
) -> None:
    """From the first page on, by links: each route once, as the first role that comes by it sees it.

    In light with a keyboard and on a phone, in the dark, and in Chinese.
    """
    service, address = demo
    broken: dict[str, list[str]] = {}
    looked: set[str] = set()
    with opened(chromium, service, address, None, dark=way == "dark") as (page, complaints):
        for who in VISITORS:
            if who is not None:
                become(page.context, service, who)
            waiting, seen = [*FIRST], set[str]()
            while waiting:
                path = waiting.pop(0)
                name = route_of(path.partition("?")[0])
                if name is None or name in seen | NO_PAGES or (name in looked and name not in BY_ROLE):
                    continue
                seen.add(name)
                answer = page.goto(f"{address}{path}{'&' if '?' in path else '?'}lang={'zh' if way == 'zh' else 'en'}")
                assert answer.status == 200, path
                waiting += links_of(page, address)
                if name in looked:
                    continue
                found = broken_rules(page)
                if way == "light":
                    found += [*unreached(page), *too_wide(page)]
                looked.add(name)
                if found:
                    broken[f"{who} {path}"] = found
    assert broken == {}
    assert complaints == []
    pages = [route for route in routes_of(areas()) if "GET" in route.methods and not route.path.startswith("/api/")]
    assert {route.name for route in pages} - looked - NO_PAGES == ELSEWHERE


def too_wide(page: Any) -> list[str]:
    """Whether a phone would have to scroll the page sideways."""
    size = page.viewport_size
    page.set_viewport_size({"width": PHONE, "height": 900})
    wide = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size(size)
    return [] if wide <= PHONE else [f"on a phone it is {wide} wide"]


def test_what_is_too_much_can_be_proposed_and_is_decided_by_the_board(
    chromium: Any, demo: tuple[Service, str], tmp_path: Path
) -> None:
    service, address = demo
    keys = service.folder / KEYS
    question = f"{address}/ask/visits?measure=count&group1=region&by=epsilon&epsilon=4.5&account={quote(HEART)}&lang=en"
    with opened(chromium, service, address, "ada") as (page, complaints):
        page.goto(question)
        offer = page.locator("#offer")
        assert "This is more than is left" in offer.inner_text()
        assert broken_rules(page) == []
        offer.get_by_role("link", name="instead").wait_for()
        offer.get_by_role("link", name="Propose to the board").click()
        assert page.locator("#account").input_value() == HEART
        assert page.locator("#action").input_value() == "raise"
        assert page.locator("#name").input_value() == "ada"
        assert "ε = 4.5" in page.locator("#choice").input_value()
        more = Fraction(page.locator("#epsilon").input_value())
        before = service.ledger.balance(HEART)
        assert before.left.epsilon + more >= Fraction("4.5")
        page.locator("#benefit").fill("small regions are seen")
        page.locator("#risk").fill("somebody could be guessed to have been ill")
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Write the paper").click()
        paper = Ballot.load(waiting.value.path()).signed(SigningKey.load(keys / "ada.key"))
        hand_in(page, paper, tmp_path)
        page.get_by_text("The board can now vote on it").wait_for()
        number = service.ledger.minutes().proposals[-1].number
        for voter in ("mira", "wei"):
            become(page.context, service, voter)
            page.goto(f"{address}/board/requests/{number}")
            with page.expect_download() as waiting:
                page.get_by_role("link", name="Paper to vote").click()
            vote = Ballot.load(waiting.value.path()).signed(SigningKey.load(keys / f"{voter}.key"), choice=Choice.YES)
            hand_in(page, vote, tmp_path)
            page.locator(".note[role=status]").wait_for()
        assert service.ledger.balance(HEART).cap.epsilon == before.cap.epsilon + more
        become(page.context, service, "ada")
        page.goto(question)
        page.locator("#offer").get_by_text("You can ask this").wait_for()
        assert complaints == []


@pytest.mark.parametrize("script", WAYS)
def test_a_steward_declares_a_file_and_no_page_shows_a_value(
    chromium: Any, demo: tuple[Service, str], script: bool, tmp_path: Path
) -> None:
    service, address = demo
    name = f"stays{script:d}"
    file = tmp_path / f"{CANARY}.csv"
    file.write_text(f"patient_id,ward,days\n{CANARY},{CANARY},731931\n", "utf-8")
    with opened(chromium, service, address, "stella", script=script, width=PHONE if script else 1280) as (page, heard):
        page.goto(f"{address}/data?lang=en")
        page.get_by_role("link", name="Declare a file").click()
        page.locator("#file").set_input_files(str(file))
        page.get_by_role("button", name="Look at its columns").click()
        page.locator("#name").fill(name)
        page.locator("#edition").fill("2026-10")
        page.locator("input[name=person][value='0']").check()
        for place in range(3):
            page.locator(f"input[name=used-{place}]").set_checked(place < 2)
        page.locator("select[name=kind-1]").select_option("text")
        page.locator("textarea[name=keys-1]").fill("east\nwest")
        for field, said in (("groups", "1"), ("rows", "1"), ("epsilon", "2"), ("delta", "0"), ("purposes", "research")):
            page.locator(f"#{field}").fill(said)
        page.locator("#recipients").fill("public")
        assert CANARY not in page.content()
        page.get_by_role("button", name="Declare").click()
        page.get_by_role("heading", name=name).wait_for()
        page.get_by_text("The board has not approved").or_(page.locator(".note.attention")).first.wait_for()
        assert "east, west" in page.inner_text("main")
        assert CANARY not in page.content()
        assert "731" not in page.inner_text("main")
        assert heard == []
    assert service.datasets[name].schema.unit == "patient_id"


@pytest.mark.parametrize("script", WAYS)
def test_the_stream_of_the_demonstration_is_drawn_without_a_broker(
    chromium: Any, demo: tuple[Service, str], script: bool
) -> None:
    service, address = demo
    with opened(chromium, service, address, "ben", script=script, width=PHONE) as (page, complaints):
        page.goto(f"{address}/live?lang=en")
        page.locator("table a").first.click()
        for _ in range(60):
            if page.locator("svg.live-chart").count():
                break
            page.wait_for_timeout(500)
            page.reload()
        assert page.locator("svg.live-chart polyline").get_attribute("points").count(",") > 100
        assert "±" in page.locator(".live-number").inner_text()
        assert complaints == []


def hand_in(page: Any, ballot: Ballot, folder: Path) -> None:
    """Hand a signed paper in by the form of the page, or by that of all requests."""
    file = folder / f"{ballot.nonce}.ballot"
    file.unlink(missing_ok=True)
    ballot.save(file)
    if not page.locator("#ballot").count():
        page.goto(f"{page.url.partition('/board')[0]}/board/requests")
    page.locator("#ballot").set_input_files(str(file))
    page.get_by_role("button", name="Hand in").click()
