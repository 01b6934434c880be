"""An analyst in a real browser, with JavaScript and without: accuracy first, then the answer, its plot and a file."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.reports.verify import parsed, verify
from tests import parts

parts.package("fastapi")
parts.package("uvicorn")

from sfumato.core.budget import Budget  # noqa: E402 - after what may be missing
from sfumato.server.app import make_app  # noqa: E402
from tests.browser.accessibility import broken_rules  # noqa: E402
from tests.server.asked_services import ACCOUNT, CANARY, furnished  # noqa: E402

WIDE, PHONE = 1280, 390
PASSWORD = "correct horse battery"  # noqa: S105 - of nobody
PATIENCE = 60_000


@contextmanager
def listening(folder: Path) -> Iterator[tuple[Any, str]]:
    """A service on a port of this machine, its address, and nothing of it left at the end."""
    import uvicorn

    from sfumato.server.service import Service
    from sfumato.server.settings import FILE

    furnished(folder, cap=Budget(epsilon=2)).close()
    line = socket.create_server(("127.0.0.1", 0))
    port = line.getsockname()[1]
    text = (folder / FILE).read_text("utf-8")
    lines = [each for each in text.splitlines() if not each.startswith(("port", "slot_seconds", "names"))]
    (folder / FILE).write_text("\n".join([*lines, f"port = {port}", "slot_seconds = 4", ""]), "utf-8")
    service = Service.open(folder)
    service.people.set_password("ada", PASSWORD)
    server = uvicorn.Server(uvicorn.Config(make_app(service), log_level="critical"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [line]})
    thread.start()
    try:
        end = time.monotonic() + 60
        while not server.started:
            assert time.monotonic() < end
            time.sleep(0.05)
        yield service, f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(60)
        service.close()
        line.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    with listening(tmp_path_factory.mktemp("browsed") / "service") as found:
        yield found


@contextmanager
def visiting(
    chromium: Any, served: tuple[Any, str], *, script: bool, width: int = WIDE
) -> Iterator[tuple[Any, list[str]]]:
    """A browser of somebody who signed in, and what it complained about."""
    _, address = served
    context = chromium.new_context(
        viewport={"width": width, "height": 900}, java_script_enabled=script, accept_downloads=True
    )
    page, complaints = context.new_page(), list[str]()
    page.on("console", lambda said: complaints.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda wrong: complaints.append(str(wrong)))
    page.on("requestfailed", lambda asked: complaints.extend(_failed(asked)))
    page.set_default_timeout(PATIENCE)
    try:
        page.goto(f"{address}/sign-in")
        page.locator("input[name=login]").fill("ada")
        page.locator("input[type=password]").fill(PASSWORD)
        page.locator("main button[type=submit]").first.click()
        page.get_by_text("Sign out").wait_for()
        yield page, complaints
    finally:
        context.close()


def _failed(asked: Any) -> list[str]:
    """A request that failed; an offer that nobody waits for any more is none."""
    return [] if asked.failure == "net::ERR_ABORTED" else [f"failed: {asked.url}"]


@pytest.mark.parametrize("script", [True, pytest.param(False, marks=pytest.mark.long)], ids=["script", "no script"])
def test_from_a_margin_to_an_answer_its_plot_and_its_file(chromium: Any, served: tuple[Any, str], script: bool) -> None:
    with visiting(chromium, served, script=script) as (page, complaints):
        page.goto(f"{served[1]}/ask")
        page.get_by_role("link", name="visits").click()
        page.get_by_label("One answer for each").select_option("ward")
        margin = page.get_by_role("textbox", name="Margin of error, plus or minus")
        margin.fill("20" if script else "21")
        if not script:
            page.get_by_role("button", name="Show error and price").click()
        offer = page.locator("#offer")
        offer.get_by_text("±20" if script else "±21", exact=True).wait_for()
        assert "You can ask this" in offer.inner_text()
        if script:  # the error follows the price while it moves
            page.get_by_role("slider").fill("-100")
            offer.get_by_text("±30", exact=True).wait_for()
            margin.fill("20")
            offer.get_by_text("±20", exact=True).wait_for()
        offer.get_by_role("button", name="Ask for ε").click()
        page.get_by_text("Ready at").wait_for()
        page.locator("table.answer").wait_for()  # the page comes back by itself at the deadline
        assert {"east", "west"} <= set(page.locator("table.answer tbody th").all_inner_texts())
        picture = page.locator("figure.answer img")
        picture.scroll_into_view_if_needed()
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100 if script else True
        assert broken_rules(page) == []
        with page.expect_download() as file:
            page.get_by_role("link", name="Certificate").click()
        assert json.loads(file.value.path().read_text("utf-8"))["kind"] == "certificate"
        assert CANARY not in page.content()
        assert complaints == []


def test_what_is_too_much_is_shown_calmly_with_what_would_fit(chromium: Any, served: tuple[Any, str]) -> None:
    with visiting(chromium, served, script=True, width=PHONE) as (page, complaints):
        answer = page.goto(f"{served[1]}/ask/visits?measure=count&group1=ward&by=epsilon&epsilon=9&account={ACCOUNT}")
        assert answer.status == 200
        offer = page.locator("#offer")
        assert "This is more than is left" in offer.inner_text()
        assert offer.get_by_role("button", name="Ask for").count() == 0
        offer.get_by_role("link", name="instead").click()
        page.locator("#offer").get_by_text("You can ask this").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
        assert complaints == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_field_has_a_label_and_the_page_its_language(
    language: str, chromium: Any, served: tuple[Any, str]
) -> None:
    with visiting(chromium, served, script=True) as (page, complaints):
        page.goto(f"{served[1]}/ask/visits?lang={language}&margin=20")
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a, img")]
                .filter((each) => !(each.labels && each.labels.length) && !each.getAttribute("aria-label")
                    && !each.textContent.trim() && !each.getAttribute("alt")).map((each) => each.outerHTML)"""
        )
        assert unnamed == []
        assert page.evaluate("document.documentElement.lang") == {"en": "en", "zh": "zh-Hans"}[language]
        levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map((each) => Number(each.tagName[1]))")
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert complaints == []


def test_a_token_made_in_a_browser_opens_sf_connect(chromium: Any, served: tuple[Any, str]) -> None:
    service, address = served
    with visiting(chromium, served, script=False) as (page, complaints):
        page.goto(f"{address}/account")
        page.locator("#label").fill("my notebook")
        page.get_by_role("button", name="Make the token").click()
        token = page.locator("pre.secret").inner_text().strip()
        assert complaints == []
    before = service.ledger.balance(ACCOUNT).spent.epsilon
    with sf.connect(address, token=token, account=ACCOUNT) as home:
        asked = home.table("visits").group_by("ward").count()
        assert asked.preview(epsilon="1/4").spend.epsilon == Fraction(1, 4)
        release = asked.release(epsilon="1/4")
    assert service.ledger.balance(ACCOUNT).spent.epsilon - before == Fraction(1, 4)
    assert verify(parsed(release.certificate.text), key=service.release_public_key).authenticated
    assert CANARY not in release.certificate.text
    with visiting(chromium, served, script=True) as (page, complaints):
        page.goto(f"{address}/account")
        page.get_by_role("button", name="Revoke").first.click()
        page.wait_for_load_state()
        assert complaints == []
    with pytest.raises(SfumatoError):
        sf.connect(address, token=token)
