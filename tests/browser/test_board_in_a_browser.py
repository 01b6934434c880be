"""The public, the board and an auditor in a real browser, with JavaScript and without; no page complains."""

import io
import socket
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests import parts

parts.package("fastapi")
parts.package("uvicorn")

from sfumato.governance.ballots import Ballot  # noqa: E402 - after what may be missing
from sfumato.governance.board import Action, Choice  # noqa: E402
from sfumato.server.app import make_app  # noqa: E402
from sfumato.server.rendering import SESSION_COOKIE  # noqa: E402
from sfumato.server.words import PageWords  # noqa: E402
from tests.server.institution import Institution, institution  # noqa: E402

PATIENCE = 60_000
WAYS = [True, pytest.param(False, marks=pytest.mark.long)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Institution, str]]:
    """The hospital on a port of this machine; nothing of it is left at the end."""
    import uvicorn

    from sfumato.server.service import Service

    folder = tmp_path_factory.mktemp("board")
    made = institution(folder, today=date(2026, 11, 18), first=date(2026, 11, 12))
    made.service.close()
    line = socket.create_server(("127.0.0.1", 0))
    service = Service.open(folder / "service", port=line.getsockname()[1])
    server = uvicorn.Server(uvicorn.Config(make_app(service), log_level="critical"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [line]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the service did not start"
            time.sleep(0.05)
        yield Institution(service, made.keys), f"http://127.0.0.1:{line.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        service.close()
        line.close()


@contextmanager
def opened(
    chromium: Any,
    served: tuple[Institution, str],
    who: str | None,
    *,
    script: bool,
    width: int = 1280,
    dark: bool = False,
) -> Iterator[tuple[Any, list[str]]]:
    """A browser of somebody, and what it complained about."""
    context = chromium.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        java_script_enabled=script,
        accept_downloads=True,
    )
    if who is not None:
        secret = served[0].service.sessions.begin(who, how="password")
        cookie = {"name": SESSION_COOKIE, "value": secret, "domain": "127.0.0.1", "path": "/", "secure": True}
        context.add_cookies([cookie])
    page, complaints = context.new_page(), list[str]()
    page.set_default_timeout(PATIENCE)
    page.on("console", lambda said: complaints.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda wrong: complaints.append(str(wrong)))
    page.on("request", lambda asked: complaints.extend([] if asked.url.startswith(served[1]) else [asked.url]))
    try:
        yield page, complaints
    finally:
        context.close()


@pytest.mark.parametrize("script", WAYS)
@pytest.mark.parametrize("language", ["en", "zh-Hans"])
def test_the_public_reads_a_dashboard_and_a_release(
    chromium: Any, served: tuple[Institution, str], language: str, script: bool
) -> None:
    say = PageWords(language).say
    narrow = language != "en"
    width = 390 if narrow else 1280
    with opened(chromium, served, None, script=script, width=width, dark=narrow) as (page, complaints):
        page.goto(f"{served[1]}/public")
        if language != "en":
            page.get_by_role("link", name="简体中文").click()
        assert page.locator("html").get_attribute("lang") == language
        page.get_by_role("link", name=say("public.plan_title", plan="admissions", year=2026)).click()
        page.get_by_role("heading", name=say("public.skipped_title")).wait_for()
        assert say("public.why_no_data") in page.inner_text("main")
        assert page.locator("svg.drawn").count() >= 3
        _fits(page)
        page.get_by_role("link", name=say("public.back")).click()
        page.get_by_role("link", name="visits 2026-10").click()
        page.get_by_role("heading", name=say("public.raw")).wait_for()
        assert page.locator(".plate img").count() == 3
        for picture in page.locator(".plate img").all():
            picture.scroll_into_view_if_needed()
            for _ in range(600):
                if not script or picture.evaluate("each => each.complete && each.naturalWidth > 100"):
                    break
                page.wait_for_timeout(100)
            else:
                pytest.fail("a picture was not shown")
        _fits(page)
        with page.expect_download() as waiting:
            page.get_by_role("link", name=say("public.certificate")).click()
        assert '"statement"' in Path(waiting.value.path()).read_text("utf-8")
        assert complaints == []


@pytest.mark.parametrize("script", WAYS)
def test_a_raise_is_approved_by_two_members_and_a_veto_ends_a_request(
    chromium: Any, served: tuple[Institution, str], script: bool, tmp_path: Path
) -> None:
    hospital = served[0]
    before = hospital.ledger.balance("hospital/heart").cap.epsilon
    with opened(chromium, served, "board", script=script) as (page, complaints):
        paper = _asked(page, served[1], action="raise", account="hospital/heart", epsilon="1/2")
        number = _handed_in(page, served[1], tmp_path, paper.signed(hospital.keys["ada"]))
        for name in ("ben", "cho"):
            page.goto(f"{served[1]}/board/requests/{number}")
            with page.expect_download() as waiting:
                page.get_by_role("link", name="Paper to vote").click()
            vote = Ballot.load(waiting.value.path()).signed(hospital.keys[name], choice=Choice.YES)
            _handed_in(page, served[1], tmp_path, vote)
        page.goto(f"{served[1]}/board/requests/{number}")
        assert "approved" in page.inner_text("main .kicker")
        assert hospital.ledger.balance("hospital/heart").cap.epsilon - before == paper.proposal.amount.epsilon  # type: ignore[union-attr]
        asked = _asked(page, served[1], action="dataset", dataset="visits", epsilon="")
        number = _handed_in(page, served[1], tmp_path, asked.signed(hospital.keys["ada"]))
        page.goto(f"{served[1]}/board/requests")
        with page.expect_download() as waiting:
            page.locator("li", has_text="riverside · visits").get_by_role("link").click()
        veto = Ballot.load(waiting.value.path()).signed(hospital.keys["eva"], reason="no")
        _handed_in(page, served[1], tmp_path, veto)
        page.goto(f"{served[1]}/board/requests/{number}")
        assert "vetoed" in page.inner_text("main .kicker")
        page.goto(f"{served[1]}/public")
        assert "riverside vetoed the use of this dataset." in page.inner_text("main")
        hospital.ledger.lift_veto(
            by="eva", community="riverside", dataset="visits", reason="heard", key=hospital.keys["eva"]
        )
        hospital.decided(Action.DATASET, subject="visits again", account=None, datasets=("visits",), amount=None)
        assert complaints == []


@pytest.mark.parametrize("script", WAYS)
def test_an_auditor_verifies_and_takes_the_evidence(
    chromium: Any, served: tuple[Institution, str], script: bool
) -> None:
    with opened(chromium, served, "auditor", script=script) as (page, complaints):
        page.goto(f"{served[1]}/audit")
        page.get_by_role("button", name="Verify the whole record now").click()
        page.get_by_text("everything holds").wait_for()
        page.get_by_label("Reason for this ε").fill("beds are planned by it")
        page.get_by_label("Legal basis").fill("section 7")
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Download the evidence pack").click()
        with zipfile.ZipFile(io.BytesIO(Path(waiting.value.path()).read_bytes())) as archive:
            assert "evidence/registry.json" in archive.namelist()
        page.locator("#charges ~ .scroll a").first.click()
        page.get_by_text("is in the record up to the signed head").wait_for()
        assert complaints == []


@pytest.mark.parametrize("script", WAYS)
def test_sliders_say_what_a_plan_would_cost(chromium: Any, served: tuple[Institution, str], script: bool) -> None:
    with opened(chromium, served, "board", script=script, width=390) as (page, complaints):
        page.goto(f"{served[1]}/board/what-if")
        page.get_by_text("ε = 48.81 for the year").wait_for()
        page.locator('input[name="margin.days"]').fill("15")
        if not script:
            page.get_by_role("button", name="Work it out").click()
        page.get_by_text("than the cap of 60").wait_for()
        _fits(page)
        assert complaints == []


def _fits(page: Any) -> None:
    """No page scrolls sideways; asked of the page itself, which works with its scripts off too."""
    boxes = [page.locator(part).bounding_box() for part in ("main", "header.top")]
    assert all(box["x"] + box["width"] <= page.viewport_size["width"] + 1 for box in boxes)


def _asked(page: Any, address: str, *, action: str, epsilon: str, **about: str) -> Ballot:
    """Fill in the form of a request, and take the paper."""
    page.goto(f"{address}/board/ask")
    page.locator("#name").select_option("ada")
    page.locator("#action").select_option(action)
    page.locator("#subject").fill("as discussed")
    page.locator("#epsilon").fill(epsilon)
    if "account" in about:
        page.locator("#account").fill(about["account"])
    if "dataset" in about:
        page.locator("#dataset").select_option(about["dataset"])
    for name in ("benefit", "risk", "choice"):
        page.locator(f"#{name}").fill("in words")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Write the paper").click()
    return Ballot.load(waiting.value.path())


def _handed_in(page: Any, address: str, folder: Path, ballot: Ballot) -> int:
    """Hand a signed ballot in by the form; the number of the newest request then."""
    file = folder / f"{ballot.nonce}.ballot"
    file.unlink(missing_ok=True)
    ballot.save(file)
    page.goto(f"{address}/board/requests")
    page.locator("#ballot").set_input_files(str(file))
    page.get_by_role("button", name="Hand in").click()
    page.locator(".note[role=status]").wait_for()
    said = page.locator("ul.releases strong").first.inner_text()
    return int(said.partition(":")[0].split()[-1])
