"""The picture of estimated shares: what it shows, what it refuses, and that the guide shows this one."""

from pathlib import Path

import pytest

from sfumato.errors import InvalidInput
from sfumato.local import Collection, DuchiMean, KaryResponse, estimate_shares
from sfumato.reports import plots
from tests import parts
from tests.docs.networks import IMAGES, run
from tests.docs.test_gallery import words
from tests.local.picture import NAME, PAGE

ASKED = Collection(name="smoking", ask=KaryResponse(epsilon=1, values=3), labels=("never", "former", "now"), reports=4)
SHARES = estimate_shares(ASKED.ask, [0] * 230 + [1] * 170 + [2] * 100)


@pytest.fixture(autouse=True)
def drawer() -> None:
    for name in ("altair", "vl_convert"):
        parts.package(name)


def rows(chart) -> list[dict]:
    drawn = chart.to_dict()
    return (drawn["data"] if "data" in drawn else drawn["layer"][0]["data"])["values"]


def test_estimates_and_intervals_are_drawn_as_they_are() -> None:
    chart = plots.shares(SHARES, ASKED, against=(0.7, 0.2, 0.1))
    drawn = rows(chart)
    assert [row["name"] for row in drawn] == ["never", "former", "now"]
    assert [row["share"] for row in drawn] == SHARES.estimates.tolist()
    assert [(row["low"], row["high"]) for row in drawn] == list(zip(SHARES.low, SHARES.high, strict=True))
    assert [row["against"] for row in drawn] == [0.7, 0.2, 0.1]
    assert drawn[2]["share"] < 0  # drawn where it is
    title = chart.to_dict()["title"]
    assert "500" in title["subtitle"][0]
    assert "a given value" in title["subtitle"][0]
    assert "ε = 1" in title["subtitle"][1]
    assert "ε = 4" in title["subtitle"][1]


def test_the_cost_of_memoised_reports_is_shown_with_its_condition() -> None:
    kept = Collection(name="smoking", ask=ASKED.ask, reports=4, memoised=True)
    said = plots.shares(SHARES, kept).to_dict()["title"]["subtitle"][1]
    assert "no bound; if it is public which of them share a value, ε = 3" in said
    assert "没有上界" in plots.shares(SHARES, kept, "zh").to_dict()["title"]["subtitle"][1]


def test_joint_intervals_and_chinese_are_said() -> None:
    joint = estimate_shares(ASKED.ask, [0] * 25 + [1] * 13 + [2] * 12, joint=True)
    assert "all intervals" in plots.shares(joint, ASKED).to_dict()["title"]["subtitle"][0]
    assert "全部置信区间" in plots.shares(joint, ASKED, "zh", "dark").to_dict()["title"]["subtitle"][0]
    assert len(plots.shares(joint, ASKED).to_dict()["layer"]) == 2
    unnamed = Collection(name="smoking", ask=ASKED.ask)
    assert [row["name"] for row in rows(plots.shares(joint, unnamed))] == ["0", "1", "2"]


def test_what_does_not_belong_together_is_refused() -> None:
    wide = KaryResponse(epsilon=1, values=61)
    for shares, collection, more in (
        (SHARES, Collection(name="two", ask=KaryResponse(epsilon=1, values=2)), {}),
        (SHARES, Collection(name="mean", ask=DuchiMean(epsilon=1)), {}),
        (SHARES, ASKED, {"against": (0.5, 0.5)}),
        (estimate_shares(ASKED.ask, [0], confidence="0.9"), ASKED, {}),
        (estimate_shares(wide, [0]), Collection(name="wide", ask=wide), {}),
    ):
        with pytest.raises(InvalidInput, match="nothing was drawn"):
            plots.shares(shares, collection, **more)


@pytest.mark.long
def test_the_guide_shows_what_its_code_draws(tmp_path: Path) -> None:
    run(PAGE, tmp_path)
    kept, drawn = ((where / NAME).read_text("utf-8") for where in (IMAGES, tmp_path))
    assert f"../images/{NAME}" in PAGE.read_text("utf-8")
    assert len(kept) < 200_000
    assert words(kept) == words(drawn)
