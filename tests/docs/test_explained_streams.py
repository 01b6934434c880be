"""The page that explains streams (its code is run with that of all pages) shows the pictures that its code draws."""

import re

import pytest

from sfumato.audit.filters import Filtering
from sfumato.reports.catalogue import message
from tests.docs.explained_streams import IMAGES, PAGE

TEXT = PAGE.read_text("utf-8")
SHOWN = re.findall(r"\]\(\.\./images/([^)]+)\)", TEXT)
TITLES = {
    "streams-levels.svg": message("en", "stream_plot.levels", dataset="occupancy"),
    "streams-trajectories.svg": message("en", "stream_plot.adversary"),
    "streams-filter.svg": message("en", "stream_plot.advantage"),
    "streams-smoothed.svg": message("en", "stream_plot.series_of", dataset="occupancy"),
}


def written(name: str) -> set[str]:
    return set(re.findall(r"<text[^>]*>([^<]*)</text>", (IMAGES / name).read_text("utf-8")))


def test_all_pictures_are_drawn_by_the_page_and_shown() -> None:
    assert re.findall(r'plots\.save\(.*, "([\w-]+\.svg)"\)', TEXT) == SHOWN
    assert set(SHOWN) == set(TITLES)


@pytest.mark.parametrize("name", SHOWN)
def test_a_picture_is_kept_small_and_is_what_it_should_be(name: str) -> None:
    assert (IMAGES / name).stat().st_size < 200_000, "the repository keeps its pictures small"
    assert TITLES[name] in written(name), "draw it again: .venv/bin/python -m tests.docs.explained_streams"


@pytest.mark.claim("S4-18")
def test_the_bars_have_the_figures_of_the_filter() -> None:
    found = Filtering(steps=50, decay=0.9, deviation=30, epsilon=0.1)
    assert {f"{1000 * found.filtered:.1f}", f"{1000 * found.worst:.1f}"} <= written("streams-filter.svg")
