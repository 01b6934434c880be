"""Pictures of several computed columns: drawn whole, in units of the column, refused where nothing can be told."""

import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, Unsupported
from sfumato.reports import plots
from sfumato.reports.columns import columns_of, magnitude
from sfumato.reports.plots.law_of_noise import Carried, shares
from tests import parts
from tests.reports.aggregates import five, mean_of, table
from tests.reports.drawn import LOOKS, Drawn
from tests.reports.test_plots import rows, texts

NAMES = {"visits", "sex", "sbp", "total", "sd", "old", "age", "region", "mean"}


@pytest.fixture(autouse=True)
def drawer() -> None:
    for name in ("altair", "vl_convert"):
        parts.package(name)


PICTURES: dict[str, Callable[[str, str], Any]] = {
    "five columns": lambda language, theme: five().plot(language=language, theme=theme),
    "one column": lambda language, theme: five().plot(column="sbp", language=language, theme=theme),
    "thirty means": lambda language, theme: mean_of(30).plot(language=language, theme=theme),
    "noise in rows": lambda language, theme: five().plot("noise", language=language, theme=theme),
    "noise in a sum": lambda language, theme: five().plot("noise", column="total", language=language, theme=theme),
    "frontier of a sum": lambda language, theme: five().plot(
        "frontier", column="total", language=language, theme=theme
    ),
    "frontier of a mean": lambda language, theme: five().plot("frontier", column="sbp", language=language, theme=theme),
    "belief": lambda language, theme: five().plot("belief", language=language, theme=theme),
}


@cache
def drawn_as(name: str, language: str, theme: str) -> Drawn:
    return Drawn.of(PICTURES[name](language, theme), theme)


@pytest.mark.few(1)
@pytest.mark.parametrize(("language", "theme"), LOOKS)
@pytest.mark.parametrize("name", PICTURES)
def test_it_is_drawn_whole_and_not_blank(name: str, language: str, theme: str) -> None:
    marked = drawn_as(name, language, theme).marked()
    assert 0.01 < marked.mean() < 0.7
    for edge in (marked[:6], marked[-6:], marked[:, :6], marked[:, -6:]):
        assert not edge.any(), "something is cut off"
    height, width = marked.shape
    for part in (marked[height // 4 :, : width // 2], marked[height // 4 :, width // 2 :]):
        assert part.mean() > 0.004, "half of the picture is empty"


@pytest.mark.few(3)
@pytest.mark.parametrize("name", PICTURES)
def test_chinese_pictures_say_everything_in_chinese(name: str) -> None:
    words = " ".join(drawn_as(name, "zh", "dark").texts)
    assert set(re.findall(r"[A-Za-z]{2,}", words)) <= NAMES
    assert re.search(r"[\u4e00-\u9fff]{4}", words)


@pytest.mark.long
def test_each_column_has_a_panel_with_its_own_numbers() -> None:
    found = rows(five().plot(), "figure", "from", "to")
    counts, *columns = columns_of(five())
    assert counts.name == "n"
    assert counts.whole
    assert set(counts.values) <= {row["value"] for row in rows(five().plot(), "low", "value")}
    assert len(found) == 8
    assert {row["figure"] for row in found} == {column.text(place) for column in columns for place in (0, 1)}
    for column in columns:
        for place in (0, 1):
            low, high = column.interval(place) or ("", "")
            assert any(row["from"] == low and row["to"] == high for row in found)
    assert {"n", "sbp", "total", "sd", "old"} <= set(texts(five().plot()))


def test_one_column_is_drawn_alone_and_an_unknown_one_is_refused() -> None:
    assert len(rows(five().plot(column="sd"), "figure")) == 2
    for kind in ("intervals", "noise", "frontier"):
        with pytest.raises(InvalidInput, match=r"no column 'dbp'; it has n, sbp, total, sd, old\. Nothing was drawn"):
            five().plot(kind, column="dbp")
    with pytest.raises(InvalidInput, match="not about a column"):
        five().plot("belief", column="sd")


def test_the_largest_can_come_first() -> None:
    chart = plots.intervals(mean_of(30), sort="value")
    drawn = [row["value"] for row in rows(chart, "figure")]
    assert drawn == sorted(mean_of(30)["mean"].values, reverse=True)


@pytest.mark.long
def test_intervals_without_ends_are_called_open_and_drawn_without_a_bar() -> None:
    """An interval has ends where the noise of the denominator is beyond its own margin, about once in twenty draws."""
    asked = table().group_by("sex").agg(q=sf.ratio("sbp", "age"))
    drawn = (asked.release(epsilon="1/100", fresh=True) for _ in range(30))
    made = next(each for each in drawn if {low for low, _ in each["q"].interval()} == {-math.inf})
    found = rows(made.plot(), "figure")
    assert {row["figure"] for row in found} == {"open"}
    assert {row["low"] for row in found} == {None}
    assert "open" in texts(made.plot())


@pytest.mark.long
def test_hundreds_of_groups_are_drawn_in_part_and_it_says_so() -> None:
    keys = tuple(f"R{place:02}" for place in range(50))
    asked = table(keys=keys, column="region").group_by("region").agg(n=sf.count(), p=sf.persons())
    assert "The first 40 of 50 numbers." in " ".join(texts(asked.release(epsilon=90).plot()))


@pytest.mark.long
def test_the_noise_is_drawn_in_units_of_the_column() -> None:
    column = next(each for each in columns_of(five()) if each.name == "total")
    margin = column.halves[0]
    assert margin is not None
    assert any(f"±{magnitude(margin)} " in text for text in texts(five().plot("noise", column="total")))
    carried = Carried(five()["total"].forms[0])
    _, bars = shares(carried, carried.margin("0.95"))
    assert sum(share for _, share in bars) == pytest.approx(1, abs=0.01)
    within = sum(share for place, share in bars if abs(place) <= carried.margin("0.95"))
    assert 0.93 < within < 0.97
    middle = [share for _, share in bars][len(bars) // 2 - 2 : len(bars) // 2 + 3]
    assert max(middle) == middle[2], "the most likely error is none"


@pytest.mark.long
def test_the_frontier_of_a_sum_is_that_of_its_law_and_of_a_mean_about_its_interval() -> None:
    for name in ("total", "sbp"):
        column = next(each for each in columns_of(five()) if each.name == name)
        marked = [row for row in rows(five().plot("frontier", column=name), "chosen") if row["chosen"]]
        told = [float(half) for half in column.told]
        assert min(told) * 0.9 <= marked[0]["margin"] <= max(told) * 1.1
    drawn = rows(five().plot("frontier", column="total"), "line")
    double = {row["line"] for row in drawn}
    assert double == {"each number", "all 2 at once"}


@pytest.mark.parametrize("kind", ["noise", "frontier"])
def test_what_cannot_be_told_is_refused_by_name(kind: str) -> None:
    with pytest.raises(Unsupported, match=r"'?sd'?.*nothing was drawn"):
        five().plot(kind, column="sd")


def test_whole_counts_of_an_aggregate_stay_whole() -> None:
    made = table().group_by("sex").agg(p=sf.persons()).release(epsilon=1)
    column = columns_of(made)[0]
    assert column.whole
    assert column.shared == made.statement.law.margin("0.95")
    assert [row["value"] for row in rows(made.plot(), "low", "value")] == list(made["p"].values)
    assert Fraction(column.values[0]) == made.values[0]
