"""The quality page in a real browser: offline, silent, light and dark, wide and on a phone, by keyboard."""

from pathlib import Path

import pytest

from sfumato.reports.plots.theme import THEMES
from sfumato.synthesis.result import SyntheticTable
from tests.browser.test_report_in_a_browser import COLOUR, rgb
from tests.browser.visiting import Open
from tests.synthesis.test_quality_page import few

NAMELESS = """() => [...document.querySelectorAll('a, summary, [role=img], [role=region], nav')]
    .filter(node => node.checkVisibility() && !(node.getAttribute('aria-label') || node.textContent.trim())).length"""
CELLS = """() => [...document.querySelectorAll('table')].filter(table => table.checkVisibility())
    .every(table => table.tHead && [...table.tBodies[0].rows].every(row =>
        row.cells.length === table.tHead.rows[0].cells.length && row.cells[0].scope === 'row'))"""


@pytest.fixture(scope="module")
def quality() -> SyntheticTable:
    return few()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, quality: SyntheticTable) -> Path:
    return quality.report(tmp_path_factory.mktemp("quality") / "quality.html")


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
        assert shown.locator("figure:visible").count() == 3
        assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
        drawings = shown.locator("figure svg:visible")
        assert all(drawing.bounding_box()["width"] <= width for drawing in drawings.all())
        colours = THEMES[scheme]
        bars = shown.locator(f'figure svg:visible rect[fill="{THEMES["light"].band}"]').first
        assert bars.evaluate(COLOUR.format("fill")) == rgb(colours.band)
        names = shown.locator(f'figure svg:visible text[fill="{THEMES["light"].ink}"]').first
        assert names.evaluate(COLOUR.format("fill")) == rgb(colours.ink)
        assert shown.evaluate(NAMELESS) == 0, "a part that a screen reader has no words for"
        seen.has_kept_quiet(report)


def test_figures_are_unfolded_by_keyboard_as_tables_with_heads(visit: Open, report: Path) -> None:
    with visit(report, width=390) as seen:
        shown = seen.page
        folds = shown.locator("section#en details")
        assert folds.count() == 3
        for place in range(3):
            assert not folds.nth(place).locator("table").is_visible()
            folds.nth(place).locator("summary").focus()
            shown.keyboard.press("Enter")
            assert folds.nth(place).locator("table").is_visible()
        assert shown.evaluate(CELLS)
        assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
        link = shown.locator("section#en nav.languages").get_by_text("中文")
        link.focus()
        shown.keyboard.press("Enter")
        assert shown.locator("section#zh-Hans").is_visible()
        assert not shown.locator("section#en").is_visible()
        assert seen.complaints == []


@pytest.mark.long
def test_it_is_printed_unfolded(quality: SyntheticTable, tmp_path: Path) -> None:
    printed = quality.report(tmp_path / "quality.pdf", languages=["en"])
    assert printed.read_bytes().startswith(b"%PDF")
