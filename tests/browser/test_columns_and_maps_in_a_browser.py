"""Several columns on a page and areas on a map, in a real browser: offline, silent, within the screen."""

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.reports import plots
from sfumato.reports.page import write
from sfumato.reports.plots.theme import THEMES
from tests import parts
from tests.browser.visiting import Open
from tests.reports.aggregates import table
from tests.reports.made import HOSTILE
from tests.reports.squares import collection
from tests.reports.test_map import by_district


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Measures that are named badly."""
    parts.package("vl_convert")
    asked = {HOSTILE[0]: sf.count(), HOSTILE[1]: sf.mean("sbp"), "sd": sf.standard_deviation("sbp")}
    made = table(budget=60).group_by("sex").agg(**asked).release(epsilon=50)
    return write(made, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A map whose last area is named badly."""
    parts.package("vl_convert")
    areas = collection()
    areas["features"][-1]["properties"]["district"] = HOSTILE[0]
    made = by_district().map(areas, property="district", column="sbp")
    return plots.save(made, tmp_path_factory.mktemp("map") / "map.html")


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_page_stays_within_the_screen_and_asks_nobody(visit: Open, report: Path, width: int, scheme: str) -> None:
    with visit(report, width=width, scheme=scheme) as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
        assert seen.page.locator("script, img").count() == 0
        drawing = seen.page.locator("figure svg:visible").first
        fills = drawing.locator("text").evaluate_all("all => all.map(node => getComputedStyle(node).fill)")
        ink, quiet = (getattr(THEMES[scheme], role) for role in ("ink", "quiet"))
        assert set(fills) == {
            f"rgb({', '.join(str(int(tone[at : at + 2], 16)) for at in (1, 3, 5))})" for tone in (ink, quiet)
        }
        first = seen.page.locator("tbody tr").first
        assert first.locator("td").count() == 3
        assert first.locator("td small").first.inner_text().count(" to ") == 1
        seen.has_kept_quiet(report)


@pytest.mark.long
def test_the_mouse_shows_the_number_and_the_interval_of_an_area(visit: Open, chart: Path) -> None:
    with visit(chart) as seen:
        seen.page.wait_for_selector("#chart svg")
        areas = seen.page.locator("#chart svg .mark-shape path")
        assert areas.count() == 2 * (9 + 7), "all areas, and above them those with a number, in two panels"
        areas.nth(9).hover()
        tip = seen.page.locator("#vg-tooltip-element.visible")
        tip.wait_for()
        assert "95% interval from" in tip.inner_text()
        assert seen.page.locator("#vg-tooltip-element img, #vg-tooltip-element script").count() == 0
        seen.has_kept_quiet(chart)
