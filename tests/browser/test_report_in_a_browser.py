"""The report in a real browser: offline, silent, in the light, in the dark, on a phone and on paper."""

import json
import re
import sys
from pathlib import Path

import pytest

from sfumato.core.release import Release
from sfumato.errors import InvalidInput, MissingExtra
from sfumato.reports import browser
from sfumato.reports.page import file_name, page, write
from sfumato.reports.plots.theme import THEMES
from sfumato.reports.verify import verify
from tests import parts
from tests.browser.visiting import Open
from tests.reports.made import HOSTILE, release
from tests.reports.pixels import Picture

COLOUR = "node => getComputedStyle(node).{}"


@pytest.fixture(scope="module")
def hostile() -> Release:
    """Everything that a steward can name is named badly."""
    return release(name=HOSTILE[0], keys=HOSTILE, column=HOSTILE[1])


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, hostile: Release) -> Path:
    parts.package("vl_convert")
    return write(hostile, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without pictures, which take the time."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[place : place + 2], 16)) for place in (1, 3, 5))})"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1200, "light"),
        (390, "dark"),
        pytest.param(1200, "dark", marks=pytest.mark.long),
        pytest.param(390, "light", marks=pytest.mark.long),
    ],
)
def test_it_opens_offline_without_a_request_or_a_complaint(visit: Open, report: Path, width: int, scheme: str) -> None:
    with visit(report, width=width, scheme=scheme) as seen:
        shown = seen.page
        drawings = shown.locator("figure svg:visible")
        assert drawings.count() == 3, "one language, and of each picture the one for this screen"
        assert all(drawing.bounding_box()["width"] <= width for drawing in drawings.all())
        assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
        colours = THEMES[scheme]
        assert shown.locator("body").evaluate(COLOUR.format("backgroundColor")) == rgb(colours.paper)
        drawing = drawings.first
        assert drawing.locator("rect").first.evaluate(COLOUR.format("fill")) == rgb(colours.paper)
        fills = drawing.locator("text").evaluate_all("all => all.map(node => getComputedStyle(node).fill)")
        assert set(fills) == {rgb(colours.ink), rgb(colours.quiet)}
        marked = Picture.read(shown.screenshot(clip={"x": 0, "y": 0, "width": 390, "height": 600})).marked(
            colours.paper
        )
        assert 0.01 < marked.mean() < 0.6, "the first screen is blank, or full"
        seen.has_kept_quiet(report)


@pytest.mark.long
@pytest.mark.usefixtures("plain")
def test_a_link_switches_the_language_without_a_script(visit: Open, tmp_path: Path) -> None:
    """By mouse, by keyboard and from a bookmark; only what is shown is printed."""
    path = write(release(), tmp_path / "page.html")
    with visit(path, width=390) as seen:
        shown = seen.page
        english, chinese = shown.locator("section#en"), shown.locator("section#zh-Hans")
        for switch, here, away in (("中文", chinese, english), ("English", english, chinese)):
            assert away.is_visible()
            assert not here.is_visible()
            link = away.locator("nav.languages").get_by_text(switch)
            link.focus()
            shown.keyboard.press("Enter")
            assert here.is_visible()
            assert not away.is_visible()
        shown.goto(f"{path.as_uri()}#zh-Hans-certificate")
        assert chinese.is_visible()
        assert shown.locator(".certificate h2:visible").all_inner_texts() == ["发布证书"]
        assert shown.locator("a.save").inner_text() == "保存发布证书"
        shown.emulate_media(media="print")
        assert chinese.is_visible()
        assert not english.is_visible()
        assert seen.complaints == []


@pytest.mark.long
def test_names_that_are_programs_are_shown_as_names(visit: Open, report: Path) -> None:
    with visit(report) as seen:
        assert seen.page.locator("script, img, iframe, object, embed, link, form").count() == 0
        assert HOSTILE[0] in seen.page.locator("h1").first.inner_text()
        heads = seen.page.locator("tbody th").all_inner_texts()
        assert HOSTILE[1] in heads


@pytest.mark.long
def test_the_certificate_can_be_saved_and_verifies(visit: Open, report: Path, hostile: Release, tmp_path: Path) -> None:
    with visit(report) as seen:
        with seen.page.expect_download() as saved:
            seen.page.locator("a.save").click()
        saved.value.save_as(tmp_path / saved.value.suggested_filename)
        assert seen.complaints == []
    (file,) = tmp_path.iterdir()
    document = json.loads(file.read_text("utf-8"))
    assert document == hostile.certificate.document
    assert verify(document).consistent
    said = hostile.statement
    assert file.name == file_name(said.dataset, said.identifier)


@pytest.mark.long
def test_readers_unfold_their_part(visit: Open, report: Path) -> None:
    with visit(report) as seen:
        part = seen.page.locator("section#en details").first
        assert not part.locator("div").is_visible()
        part.locator("summary").click()
        assert part.locator("div").is_visible()


@pytest.mark.usefixtures("plain")
def test_a_script_would_be_blocked(visit: Open, tmp_path: Path) -> None:
    """The policy holds: what the escaping keeps out would not run either."""
    path = tmp_path / "page.html"
    path.write_text(page(release(), ["en"]).replace("</main>", "<script>alert(1)</script></main>"), encoding="utf-8")
    with visit(path) as seen:
        assert [words for words in seen.complaints if "Content Security Policy" in words]
        assert not [words for words in seen.complaints if words.startswith("dialog")]


@pytest.mark.long
@pytest.mark.usefixtures("plain")
def test_it_is_printed_unfolded(tmp_path: Path) -> None:
    parts.browser()
    made = release()
    path = made.report(tmp_path / "report.pdf", languages=["en"])
    data = path.read_bytes()
    assert data.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", data)) >= 3
    assert page(made, ["en"], unfolded=True).count("<details open>") == 5


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("missing", ["", "no-such-browser"])
def test_without_a_browser_the_error_says_what_to_do(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "COMMANDS", ())
    monkeypatch.setattr(browser, "PLACES", ())
    monkeypatch.setenv(browser.NAMED, missing)
    with pytest.raises(MissingExtra, match=r"nothing was written.*"):
        write(release(), tmp_path / "report.pdf", ["en"])
    assert list(tmp_path.iterdir()) == []


def test_a_browser_that_prints_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 7\n")
    broken.chmod(0o755)
    monkeypatch.setenv(browser.NAMED, str(broken))
    with pytest.raises(MissingExtra, match=r"broken ended with 7 and printed nothing.*\.html"):
        browser.print_pdf("<p>page</p>", tmp_path / "page.pdf")
    assert not (tmp_path / "page.pdf").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printer = tmp_path / "printer"
    printer.write_text(
        '#!/bin/sh\nfor word in "$@"; do case $word in --print-to-pdf=*) echo %PDF > "${word#*=}";; esac; done\n'
    )
    printer.chmod(0o755)
    monkeypatch.setenv(browser.NAMED, str(printer))
    assert browser.print_pdf("<p>page</p>", tmp_path / "page.pdf").read_bytes() == b"%PDF\n"
    with pytest.raises(InvalidInput, match="cannot be written"):
        browser.print_pdf("<p>page</p>", tmp_path / "nowhere" / "page.pdf")


def test_only_root_leaves_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    for user, expected in ((0, True), (1000, False)):
        monkeypatch.setattr(browser.os, "geteuid", lambda user=user: user)
        assert ("--no-sandbox" in browser._unconfined()) is expected
