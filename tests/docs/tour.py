"""Takes the pictures of docs/tour.md: the demonstration as people of several roles see it, in a real browser.

Run it as: python -m tests.docs.tour [FOLDER], where FOLDER holds a demonstration that was made before, or none.
"""

import io
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sfumato.server.demo import HEART, opened_demo
from tests import parts
from tests.browser.served import free_port, listening, opened

__all__ = ["FOLDER", "MOST_BYTES", "PICTURES"]

FOLDER = Path(__file__).parents[2] / "docs" / "images" / "tour"
MOST_BYTES = 150_000
DESKTOP, PHONE = (1440, 900), (390, 844)
ILL = "where1_column=diagnosis&where1_operator==&where1_value=ILI"
ASKED = f"/ask/visits?measure=count&group1=region&{ILL}&account={quote(HEART)}"


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A page of somebody, as wide and as dark as they have it; ``act`` is what they do before it is taken."""

    name: str
    who: str | None
    path: str
    size: tuple[int, int] = DESKTOP
    dark: bool = False
    language: str = "en"
    act: Callable[[Any], None] = lambda page: None
    top: str = ""
    """The part that is scrolled to the top of the picture."""


def _first(chosen: str) -> Callable[[Any], None]:
    def follow(page: Any) -> None:
        page.locator(chosen).first.click()
        page.wait_for_load_state()

    return follow


def _answered(page: Any) -> None:
    page.locator("#offer form.submit button").first.click()
    page.locator("table.answer").wait_for()
    page.locator("figure.answer img").evaluate("image => image.decode()")


def _drawn(page: Any) -> None:
    page.locator("table a").first.click()
    for _ in range(120):
        page.wait_for_load_state()
        if page.locator("svg.live-chart").count():
            return
        page.wait_for_timeout(500)
        page.reload()


def _told(page: Any) -> None:
    page.locator(".releases a").first.click()
    page.wait_for_load_state()
    page.locator(".plate img").first.evaluate("image => image.decode()")


PICTURES = (
    Picture(name="overview", who="ada", path="/"),
    Picture(name="question", who="ada", path=f"{ASKED}&by=margin&margin=60"),
    Picture(name="answer", who="ada", path=f"{ASKED}&by=margin&margin=60", act=_answered),
    Picture(name="over-budget-phone", who="ada", path=f"{ASKED}&by=epsilon&epsilon=4.5", size=PHONE, top="#offer"),
    Picture(name="propose", who="ada", path=f"{ASKED}&by=epsilon&epsilon=4.5", act=_first(".choice a[href*=action]")),
    Picture(name="dashboard", who=None, path="/public", act=_first(".cards a")),
    Picture(
        name="dashboard-phone-zh-dark",
        who=None,
        path="/public",
        size=PHONE,
        dark=True,
        language="zh",
        act=_first(".cards a"),
    ),
    Picture(name="release-zh", who=None, path="/public", language="zh", act=_told, top="#pictures"),
    Picture(name="board-dark", who="mira", path="/board", dark=True),
    Picture(name="onboarding", who="stella", path="/data/new", act=lambda page: _looked_at(page), top="#columns"),
    Picture(name="live-phone", who="ben", path="/live", size=PHONE, act=_drawn),
    Picture(name="research", who="stella", path="/research", act=lambda page: _ran(page)),
    Picture(name="audit-zh-dark", who="otto", path="/audit", dark=True, language="zh"),
)


def _ran(page: Any) -> None:
    page.locator(".scroll th a").first.click()
    page.wait_for_load_state()
    if not page.locator("main li a[download]").count():
        page.locator("form[action$=run] button").click()
    for _ in range(240):
        if page.locator("main li a[download]").count():
            return
        page.wait_for_timeout(500)
        page.reload()


def _looked_at(page: Any) -> None:
    rows = b"patient_id,ward,days\na,north,3\n"
    page.locator("#file").set_input_files({"name": "stays.csv", "mimeType": "text/csv", "buffer": rows})
    page.locator("main button").first.click()
    page.locator("#name").fill("stays")
    page.locator("#edition").fill("2026-10")
    page.locator("input[name=person]").first.check()
    page.locator("textarea[name=keys-1]").fill("north\nsouth")


def taken(folder: Path, chosen: tuple[str, ...]) -> None:
    """Take the pictures, each in a browser of its own."""
    from playwright.sync_api import sync_playwright

    line = free_port()
    demo = opened_demo(folder, port=line.getsockname()[1])
    with listening(demo.service, line) as address, sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(parts.browser()), chromium_sandbox=False)
        for picture in PICTURES:
            if not chosen or picture.name in chosen:
                with opened(chromium, demo.service, address, picture.who, width=picture.size[0], dark=picture.dark) as (
                    page,
                    _,
                ):
                    page.set_viewport_size({"width": picture.size[0], "height": picture.size[1]})
                    page.goto(f"{address}/?lang={picture.language}")
                    page.goto(f"{address}{picture.path}")
                    picture.act(page)
                    if picture.top:
                        page.locator(picture.top).evaluate("part => part.scrollIntoView()")
                    page.mouse.move(0, 0)
                    _kept(page.screenshot(), FOLDER / f"{picture.name}.png")
        chromium.close()


def _kept(shot: bytes, place: Path) -> None:
    """Keep a picture with a palette, which these pages need no more than."""
    from PIL import Image

    place.parent.mkdir(parents=True, exist_ok=True)
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(place, optimize=True)
    assert place.stat().st_size <= MOST_BYTES, place.name


if __name__ == "__main__":
    if len(sys.argv) > 1:
        taken(Path(sys.argv[1]), tuple(sys.argv[2:]))
    else:
        with tempfile.TemporaryDirectory() as made:
            taken(Path(made) / "service", ())
