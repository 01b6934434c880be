"""The pictures that the page on plots shows are those that the code draws, but for their noise."""

import ast
import re
from pathlib import Path

import pytest

from tests import parts
from tests.docs.gallery import DRAWN, IMAGES
from tests.docs.twenty import PAGE as TWENTY
from tests.docs.twenty import PICTURED, drawn
from tests.reports.pixels import Picture

PAGE = (IMAGES.parent / "how-to" / "plots-and-reports.md").read_text("utf-8")
SHOWN = [Path(name).name for name in re.findall(r"\]\(\.\./images/([^)]+)\)", PAGE)]


def words(svg: str) -> set[str]:
    """What stands written in a drawing, with every number as #, as noise is new each time."""
    return {re.sub(r"[−+]?\d[\d,./]*", "#", text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)}


def test_the_page_shows_what_is_drawn() -> None:
    assert set(DRAWN) <= set(SHOWN)
    assert [name for name in SHOWN if not (IMAGES / name).is_file()] == []


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in DRAWN if name.endswith(".svg")])
def test_a_drawing_is_what_the_code_draws(name: str) -> None:
    for package in ("altair", "vl_convert"):
        parts.package(package)
    from sfumato.reports.plots.saving import svg

    assert words((IMAGES / name).read_text("utf-8")) == words(svg(DRAWN[name]()))


@pytest.mark.parametrize("name", [name for name in SHOWN if name.endswith(".png")])
def test_a_photograph_shows_something(name: str) -> None:
    data = (IMAGES / name).read_bytes()
    assert len(data) < 200_000, "the repository keeps its pictures small"
    marked = Picture.read(data).marked("#16191d" if "dark" in name else "#ffffff")
    assert 0.02 < marked.mean() < 0.5


def test_the_gallery_has_twenty_pictures_each_with_at_most_ten_lines_above_it() -> None:
    found = PICTURED.findall(TWENTY.read_text("utf-8"))
    assert [name for _, name in found] == [f"images/gallery-{number:02}.svg" for number in range(1, 21)]
    assert [name for _, name in found if not (TWENTY.parent / name).is_file()] == []
    statements = {name: len(ast.parse(code).body) for code, name in found}
    assert max(statements.values()) <= 10


@pytest.mark.long
def test_each_picture_of_the_gallery_is_what_its_lines_draw() -> None:
    for package in ("altair", "vl_convert"):
        parts.package(package)
    from sfumato.reports.plots.saving import svg

    for place, chart in drawn():
        assert words(place.read_text("utf-8")) & words(svg(chart)), place.name
