"""The picture that the page on maps shows is the one that its code draws, but for its noise."""

import pytest

from tests import parts
from tests.docs.maps import PAGE, PICTURE, drawn
from tests.docs.test_gallery import words


@pytest.mark.long
def test_the_map_is_what_the_page_draws() -> None:
    for package in ("altair", "vl_convert"):
        parts.package(package)
    from sfumato.reports.plots.saving import svg

    assert PICTURE.name in PAGE.read_text("utf-8")
    kept = PICTURE.read_text("utf-8")
    assert {text for text in words(kept) if text != "#"} == {text for text in words(svg(drawn())) if text != "#"}
    assert "areas have no number here" in kept
