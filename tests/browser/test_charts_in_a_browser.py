"""Charts as pages of their own: they answer to the mouse, and ask nobody for anything."""

from pathlib import Path

import pytest

from sfumato.reports import plots
from tests import parts
from tests.browser.visiting import Open
from tests.reports.made import HOSTILE, release


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parts.package("vl_convert")
    made = release(name=HOSTILE[0], keys=HOSTILE, column=HOSTILE[1])
    return plots.save(plots.intervals(made, "zh", "dark"), tmp_path_factory.mktemp("chart") / "chart.html")


def test_it_is_drawn_offline_without_a_request_or_a_complaint(visit: Open, chart: Path) -> None:
    with visit(chart) as seen:
        seen.page.wait_for_selector("#chart svg")
        texts = seen.page.locator("#chart svg text").all_text_contents()
        assert HOSTILE[0] in texts
        assert "计数（含噪声）" in texts
        assert seen.page.locator("html").get_attribute("lang") == "zh-Hans"
        assert seen.page.locator("body").evaluate("node => getComputedStyle(node).backgroundColor") == "rgb(22, 25, 29)"
        seen.has_kept_quiet(chart)


@pytest.mark.long
def test_the_mouse_shows_the_figures(visit: Open, chart: Path) -> None:
    with visit(chart) as seen:
        seen.page.wait_for_selector("#chart svg")
        seen.page.locator("#chart svg .layer_1_marks path").first.hover()
        tip = seen.page.locator("#vg-tooltip-element.visible")
        tip.wait_for()
        assert "95% 置信区间下限" in tip.inner_text()
        assert seen.page.locator("#vg-tooltip-element img, #vg-tooltip-element script").count() == 0
        seen.has_kept_quiet(chart)


@pytest.mark.long
def test_it_can_be_exported_and_leads_nowhere_else(visit: Open, chart: Path) -> None:
    with visit(chart) as seen:
        seen.page.wait_for_selector("#chart svg")
        assert seen.page.locator("#chart details a").count() == 2
        assert not [link for link in seen.page.locator("a").all() if "//" in (link.get_attribute("href") or "")]
