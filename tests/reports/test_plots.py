"""The pictures: drawn, legible, told apart without colour, in both languages, light and dark, with 3 and 300 groups."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import exp, sqrt
from pathlib import Path
from statistics import NormalDist
from time import process_time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.data_kind import kinds
from sfumato.core.release import Release, presenter_of
from sfumato.errors import InvalidInput, MissingExtra, Unsupported
from sfumato.laws import DiscreteLaplace, Laplace, RoundedGaussian, Sum, SumTerm
from sfumato.mechanisms import Gaussian
from sfumato.reports import plots
from sfumato.reports.plots import fonts, saving
from sfumato.reports.plots.frontier_of_epsilon import recalibrated
from sfumato.reports.plots.labels import clean, distinct
from sfumato.reports.plots.law_of_noise import shares
from sfumato.reports.plots.theme import THEMES, Palette
from tests import parts
from tests.reports.drawn import LOOKS, Drawn
from tests.reports.made import HOSTILE, grouped, release
from tests.reports.pixels import Picture

LANGUAGES = ("en", "zh")


@pytest.fixture(autouse=True)
def drawer() -> None:
    for name in ("altair", "vl_convert"):
        parts.package(name)


def spent(language: str, theme: str) -> Any:
    names = {"en": "release", "zh": "发布"}
    charges = [(f"{names[language]} {place}", sf.Budget(epsilon=f"{place}/20")) for place in range(1, 5)]
    return plots.burn_down(charges, sf.Budget(epsilon=1), language, theme)


PICTURES: dict[str, Callable[[str, str], Any]] = {
    "3 groups": lambda language, theme: plots.intervals(grouped(3, language), language, theme),
    "300 groups": lambda language, theme: plots.intervals(grouped(300, language), language, theme),
    "noise": lambda language, theme: plots.draw(grouped(3, language), "noise", language, theme),
    "belief": lambda language, theme: plots.draw(grouped(3, language), "belief", language, theme),
    "people": lambda language, theme: plots.draw(grouped(3, language), "people", language, theme),
    "frontier": lambda language, theme: plots.draw(grouped(3, language), "frontier", language, theme),
    "burn-down": spent,
}
FEW = [name for name in PICTURES if name != "300 groups"]


def rows(chart: Any, *needed: str) -> list[dict[str, Any]]:
    """The rows of a chart that have these fields, each once, as several layers hold the same."""
    found = {json.dumps(row, sort_keys=True): row for row in _rows(chart.to_dict()) if set(needed) <= set(row)}
    return list(found.values())


def _rows(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        for row in part.get("values", []) if isinstance(part.get("values"), list) else []:
            if isinstance(row, dict):
                yield row
        for inner in part.values():
            yield from _rows(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _rows(inner)


def texts(chart: Any) -> list[str]:
    """All that stands written in the drawing."""
    return Drawn.of(chart).texts


@cache
def drawn_as(name: str, language: str, theme: str) -> Drawn:
    return Drawn.of(PICTURES[name](language, theme), theme)


def whole(name: str, language: str, theme: str) -> None:
    marked = drawn_as(name, language, theme).marked()
    height, width = marked.shape
    assert 0.01 < marked.mean() < 0.5
    assert not marked[:6].any(), "something is cut off at the top"
    assert not marked[-6:].any(), "something is cut off at the foot"
    assert not marked[:, :6].any(), "something is cut off on the left"
    assert not marked[:, -6:].any(), "something is cut off on the right"
    assert marked[: min(50, height // 2), : width // 2].any(axis=1).sum() >= 8, "the title is missing"
    body = marked[height // 4 :]
    for part in (body[:, : width // 2], body[:, width // 2 :]):
        assert 0.004 < part.mean() < 0.75, "half of the picture is empty, or full"


@pytest.mark.few(2)
@pytest.mark.parametrize(("language", "theme"), LOOKS)
@pytest.mark.parametrize("name", FEW)
def test_it_is_drawn_whole_and_not_blank(name: str, language: str, theme: str) -> None:
    whole(name, language, theme)


@pytest.mark.long
@pytest.mark.parametrize("theme", sorted(THEMES))
@pytest.mark.parametrize("language", ["en", pytest.param("zh", marks=pytest.mark.long)])
def test_300_groups_are_drawn_whole_and_not_blank(language: str, theme: str) -> None:
    whole("300 groups", language, theme)


def test_a_blank_picture_would_be_found() -> None:
    """The twin of the test above: the same measure on a picture of nothing."""
    nothing = fonts.drawer().svg_to_png(
        '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><rect '
        'width="40" height="30" fill="#ffffff"/></svg>'
    )
    assert Picture.read(nothing).marked("#ffffff").mean() == 0


@pytest.mark.parametrize("name", FEW)
def test_chinese_pictures_say_everything_in_chinese(name: str) -> None:
    words = " ".join(drawn_as(name, "zh", "dark").texts)
    assert set(re.findall(r"[A-Za-z]{2,}", words)) <= {"region"}
    assert re.search(r"[\u4e00-\u9fff]{4}", words)
    assert fonts.missing(words) == ""


@pytest.mark.long
def test_two_chinese_labels_are_drawn_as_different_signs() -> None:
    """A missing font would draw the same box for all."""
    one, other = (
        Picture.read(saving.png(_still(release(keys=(label, "北")), "zh"), scale=1)).dots for label in ("南", "东")
    )
    assert one.shape == other.shape
    where = (one != other).any(axis=2).nonzero()
    assert len(where[0]) > 20
    assert max(where[1]) < 60, "they differ elsewhere than in the label"


def _still(made: Release, language: str) -> Any:
    """The picture with numbers that do not change from run to run."""
    return plots.intervals(
        replace(made, presenter=presenter_of(made), statement=replace(made.statement, values=(40, 90))), language
    )


@pytest.mark.long
def test_a_missing_font_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chart, path = plots.intervals(grouped(3, "zh"), "zh"), tmp_path / "chart.png"
    monkeypatch.setattr(fonts, "_drawn", lambda sign, families: b"an empty box")
    with pytest.raises(MissingExtra, match=r"Chinese sign.*sfumato\[plots\].*use_fonts"):
        plots.save(chart, path)
    assert not path.exists()
    plots.save(chart, path.with_suffix(".svg"))  # set in the fonts of whoever opens it
    plots.save(plots.intervals(grouped(3, "en")), path)


def test_the_extra_brings_a_chinese_font_so_that_the_machine_needs_none() -> None:
    """The folder that is handed to what draws, once, holds the family that Chinese texts ask for first."""
    parts.package("noto_cjk_sans_otc")
    fonts._bring_font.cache_clear()
    registered: list[str] = []
    twin = SimpleNamespace(register_font_directory=registered.append)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "vl_convert", twin)
        fonts.drawer()
        fonts.drawer()
    fonts._bring_font.cache_clear()
    (folder,) = registered
    (file,) = Path(folder).glob("*.tt[cf]")
    assert fonts.CHINESE.partition(",")[0].encode("utf-16-be") in file.read_bytes()


def test_missing_signs_are_found_by_drawing_them() -> None:
    assert fonts.missing("visits ± ε 数据") == ""
    assert fonts.missing("a\U0010fffdb\U0010fffcc") == "\U0010fffd\U0010fffc"


def test_fonts_of_a_folder_are_used(tmp_path: Path) -> None:
    plots.use_fonts(tmp_path)
    with pytest.raises(InvalidInput, match="is not a folder"):
        plots.use_fonts(tmp_path / "nowhere")


def luminance(colour: str) -> float:
    """Of WCAG 2: how light a colour is, whatever its hue."""
    parts_ = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts_]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", sorted(THEMES))
def test_colours_are_told_apart_in_grey(theme: str) -> None:
    colours = THEMES[theme]
    assert contrast(colours.ink, colours.paper) >= 7
    assert contrast(colours.quiet, colours.paper) >= 4.5
    assert contrast(colours.mark, colours.band) >= 3
    assert contrast(colours.mark, colours.faint) >= 3
    assert contrast(colours.band, colours.paper) >= 3
    assert contrast(colours.faint, colours.paper) >= 1.25
    assert len({getattr(colours, role.name) for role in fields(Palette)}) == len(fields(Palette))


@pytest.mark.parametrize(("language", "theme"), LOOKS)
@pytest.mark.parametrize("name", FEW)
def test_only_colours_of_the_theme_are_used(name: str, language: str, theme: str) -> None:
    """Else a page could not repaint the drawing for the dark."""
    used = drawn_as(name, language, theme).colours
    assert used <= {getattr(THEMES[theme], role.name) for role in fields(Palette)}
    assert THEMES[theme].paper in used


def test_each_number_stands_on_its_interval() -> None:
    made = grouped(3, "en")
    drawn = rows(plots.intervals(made), "group", "value")
    assert [(row["group"], row["value"], (row["low"], row["high"])) for row in drawn] == [
        (f"Region {place:03}", value, ends)
        for place, (value, ends) in enumerate(zip(made.values, made.interval(), strict=True))
    ]


def test_the_picture_says_its_margin() -> None:
    said = grouped(3, "en").statement
    each, joint = said.law.margin(0.95), said.law.margin(0.95, numbers=3)
    held = "the count of these data under the limit"
    expected = f"95 times in 100 within ±{each} of {held}, all 3 at once within ±{joint} · ε = 1/2"
    assert any(text.startswith(expected) for text in texts(plots.intervals(grouped(3, "en"))))


def test_many_numbers_stand_in_columns_and_can_be_sorted() -> None:
    made = grouped(300, "en")
    drawn = rows(plots.intervals(made), "column")
    assert [row["column"] for row in drawn] == [place // 100 for place in range(300)]
    values = [row["value"] for row in rows(plots.intervals(made, sort="value"), "column")]
    assert values == sorted(made.values, reverse=True)
    with pytest.raises(InvalidInput, match="'size' is neither"):
        plots.intervals(made, sort="size")


@pytest.mark.long
def test_beyond_600_numbers_the_picture_says_that_it_is_cut() -> None:
    made = release(keys=tuple(str(number) for number in range(601)))
    chart = plots.intervals(made)
    assert len(rows(chart, "group", "value")) == 600
    assert "The first 600 of 601 numbers." in chart.to_dict()["title"]["subtitle"]


def test_two_label_columns_make_panels_and_more_make_lines() -> None:
    few, many = _two_columns(4), _two_columns(40)
    drawn = rows(plots.intervals(few), "panel")
    assert [(row["panel"], row["group"]) for row in drawn] == [(sex, str(n)) for sex in "FM" for n in range(4)]
    drawn = rows(plots.intervals(many), "group", "value")
    assert [row["group"] for row in drawn] == [f"{sex} · {n}" for sex in "FM" for n in range(40)]


def _two_columns(wards: int) -> Release:
    import pyarrow as pa

    vault = sf.Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=1), name="wards")
    keys = {"sex": ["F", "M"], "ward": list(range(wards))}
    table = vault.table(pa.table({"sex": ["F"], "ward": [1]}), name="wards", version="1", keys=keys)
    return table.group_by("sex", "ward").count().release(epsilon=1)


def test_one_number_has_a_picture() -> None:
    import pyarrow as pa

    vault = sf.Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=1), name="rows")
    made = vault.table(pa.table({"a": [1]}), name="rows", version="1").count().release(epsilon=1)
    words = texts(plots.intervals(made))
    assert "rows: counts with 95% margins" in words
    assert f"{made.values[0]:,}".replace("-", "−") in words


@pytest.mark.few(1)
@pytest.mark.parametrize("language", LANGUAGES)
def test_hostile_labels_are_drawn_as_text(language: str, tmp_path: Path) -> None:
    chart = plots.intervals(release(name=HOSTILE[0], keys=HOSTILE, column=HOSTILE[1]), language)
    path = plots.save(chart, tmp_path / "chart.svg")
    drawn = ET.parse(path)  # noqa: S314 - well-formed, or this fails
    tags = {part.tag.rpartition("}")[2] for part in drawn.iter()}
    assert tags <= {"svg", "g", "path", "text", "rect", "line", "tspan"}
    looked = Drawn(path.read_text("utf-8"), "light")
    words = looked.texts
    assert HOSTILE[0] in words
    assert "family 👩‍👩‍👧" in words
    assert "line one two�" in [word.replace("��", "�") for word in words]
    assert "1�2�" in words
    marked = looked.marked()
    assert not marked[:, :6].any()
    assert not marked[:, -6:].any()


@pytest.mark.long
@given(st.text(max_size=300))
def test_a_label_is_one_line_of_xml(text: str) -> None:
    label = clean(text)
    assert len(label) <= 120
    assert len(label.splitlines()) <= 1
    safe = label.replace("&", "&amp;").replace("<", "&lt;")
    ET.fromstring(f"<a>{safe}</a>")  # noqa: S314


def test_long_labels_are_cleaned_at_once() -> None:
    start = process_time()
    assert clean("数\u202e" * 100_000).startswith("数\ufffd数")
    assert process_time() - start < 1


@given(st.lists(st.sampled_from(["a", "b", "a (2)", "a (3)", ""]), max_size=9))
def test_no_two_labels_are_alike(labels: list[str]) -> None:
    found = distinct(labels)
    assert len(set(found)) == len(labels)
    assert all(new.startswith(old) for old, new in zip(labels, found, strict=True))


def test_truth_values_are_named_in_the_language() -> None:
    import pyarrow as pa

    vault = sf.Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=1), name="rows")
    table = vault.table(pa.table({"ill": [True]}), name="rows", version="1", keys={"ill": [True, False]})
    made = table.group_by("ill").count().release(epsilon=1)
    assert [row["group"] for row in rows(plots.intervals(made, "zh"), "group")] == ["真", "假"]


LAPLACE, NORMAL = DiscreteLaplace(scale=Fraction(4)), RoundedGaussian(sigma=Fraction(5))


def test_the_law_is_drawn_as_it_is() -> None:
    width, bars = shares(LAPLACE, Fraction(LAPLACE.margin(0.95)))
    ratio = exp(-1 / 4)
    assert width == 1
    for place, share in bars:
        assert float(share) == pytest.approx((1 - ratio) / (1 + ratio) * ratio ** abs(place), rel=1e-9)
    width, bars = shares(NORMAL, Fraction(NORMAL.margin(0.95)))
    bell = NormalDist(sigma=5)
    for place, share in bars:
        assert float(share) == pytest.approx(bell.cdf(place + 0.5) - bell.cdf(place - 0.5), abs=1e-9)


def test_a_wide_law_is_drawn_in_wider_bars() -> None:
    wide = RoundedGaussian(sigma=Fraction(1000))
    width, bars = shares(wide, Fraction(wide.margin(0.95)))
    assert width % 2 == 1
    assert len(bars) <= 183
    bell = NormalDist(sigma=1000)
    for place, share in bars:
        reach = width / 2
        assert float(share) == pytest.approx(bell.cdf(place + reach) - bell.cdf(place - reach), abs=1e-9)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "law",
    [
        Sum(parts=(LAPLACE,) * 3),
        Sum(parts=(DiscreteLaplace(scale=Fraction(1000)),) * 20, cells=256),  # on a coarser lattice
        Sum(parts=(LAPLACE, SumTerm(coefficient=Fraction(-2, 3), law=NORMAL))),  # on thirds
        Laplace(scale=Fraction(5, 2)),  # continuous
    ],
    ids=["whole", "wide", "thirds", "continuous"],
)
def test_sums_and_continuous_laws_are_drawn(law: Any) -> None:
    width, bars = shares(law, Fraction(law.margin(0.95)))
    sizes = [float(share) for _, share in bars]
    assert sizes == sizes[::-1]
    assert 0.99 < sum(sizes) < 1
    spread = sqrt(sum(share * place**2 for (place, _), share in zip(bars, sizes, strict=True)))
    assert spread == pytest.approx(sqrt(float(law.variance)), rel=0.06)
    assert [one for one, other in pairwise(sizes[len(sizes) // 2 :]) if other > 1.1 * one] == [], "a comb"
    assert len(rows(plots.law(law), "share")) == len(bars) <= 183
    assert float(width) * len(bars) >= 4 * float(law.margin(0.95))


def test_bars_within_the_margin_are_dark() -> None:
    margin = LAPLACE.margin(0.95)
    inside = [row for row in rows(plots.law(LAPLACE), "within") if row["within"]]
    assert len(inside) == 2 * margin + 1
    assert sum(row["share"] for row in inside) >= 0.95
    assert "Of 100 errors, on average at least 95 lie within ±" in " ".join(texts(plots.law(LAPLACE)))


def test_a_law_without_a_tail_is_refused() -> None:
    class Odd:
        KIND = "law.odd"

    with pytest.raises(Unsupported, match=r"a law\.odd has no tail"):
        plots.law(Odd())  # type: ignore[arg-type]


@pytest.mark.claim("S1-30")
def test_the_belief_curve_holds_the_stated_figures() -> None:
    """ε = 1/2: a chance of 100 in 1,000 becomes at most 155 and at least 63; the curve is e^±ε in the odds."""
    chart = plots.belief(release())
    ends = {row["end"] for row in rows(chart, "end")}
    assert ends == {155, 63}
    curves = rows(chart, "about", "high")
    assert {row["about"] for row in curves} == {
        "that a given person is in the data",
        "that a given person, known to be in the data, has a certain trait",
    }
    for row in curves:
        factor = exp(1 / 2 if row["about"].endswith("is in the data") else 1)
        prior = row["prior"] / 1000
        assert row["high"] / 1000 == pytest.approx(factor * prior / (1 - prior + factor * prior), abs=1e-9)
        assert row["low"] / 1000 == pytest.approx(prior / (prior + factor * (1 - prior)), abs=1e-9)


def test_under_replace_the_belief_is_about_a_trait_alone() -> None:
    curves = rows(plots.belief(release(relation="replace")), "about", "high")
    assert {row["about"] for row in curves} == {"that a given person has a certain trait"}


def _with_delta(made: Release) -> Release:
    """The same release on an account that has spent a δ."""
    account = replace(made.statement.account, spent=sf.Budget(epsilon=1, delta=1e-6))
    return replace(made, presenter=presenter_of(made), statement=replace(made.statement, account=account))


@pytest.mark.parametrize("kind", ["belief", "people"])
def test_with_delta_guesses_are_drawn_and_no_belief(kind: str) -> None:
    words = texts(plots.draw(_with_delta(release()), kind))
    assert "500 in 1,000" in words
    assert "732 in 1,000" in words  # (e + 1e-6)/(1 + e) = 0.73106, rounded up
    assert not [word for word in words if "can believe" in word]
    assert any("δ = 1e-6" in word for word in words)


@pytest.mark.long
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000))
def test_exactly_so_many_dots_are_dark(one: int, two: int, three: int) -> None:
    low, prior, high = sorted((one, two, three))
    dots = rows(plots.icons(prior, low, high), "to")
    dark = THEMES["light"].mark
    for place, expected in enumerate((prior, low, high)):
        left = place * 229.5
        runs = [row for row in dots if left <= row["x"] < left + 187.5]
        count = {
            colour: sum(round((row["to"] - row["x"]) / 7.5) + 1 for row in runs if (row["colour"] == dark) is colour)
            for colour in (True, False)
        }
        assert count == {True: expected, False: 1000 - expected}


def test_a_belief_outside_its_own_range_is_refused() -> None:
    with pytest.raises(InvalidInput, match="100 in 1,000"):
        plots.icons(100, 120, 155)
    with pytest.raises(InvalidInput, match="at most 1,000"):
        plots.icons(100, 63, 1001)


def test_the_frontier_follows_the_mechanism() -> None:
    made = release()
    said = made.statement
    assert recalibrated(said, said.spend.epsilon) == said.mechanism
    chart = plots.frontier(made)
    marked = sorted(rows(chart, "chosen"), key=lambda row: row["epsilon"])
    assert [row["epsilon"] for row in marked] == [0.125, 0.25, 0.5, 1, 2]
    assert [row["margin"] for row in marked] == [recalibrated(said, row["epsilon"]).law.margin(0.95) for row in marked]
    assert [row["text"] for row in marked if row["chosen"]] == [f"±{said.law.margin(0.95)}"]
    for line in ("each number", "all 2 at once"):
        margins = [row["margin"] for row in rows(chart, "line") if row["line"] == line]
        assert all(one >= other for one, other in pairwise(margins))


def test_the_frontier_of_gaussian_noise_keeps_its_delta() -> None:
    made = release()
    squared = made.statement.sensitivity.l2
    assert squared is not None
    mechanism = Gaussian.calibrated(l2=squared, epsilon=0.5, delta=1e-6)
    said = replace(made.statement, mechanism=mechanism, law=mechanism.law, spend=sf.Budget(epsilon=0.5, delta=1e-6))
    assert recalibrated(said, "1/2") == mechanism
    (here,) = [
        row
        for row in rows(plots.frontier(replace(made, presenter=presenter_of(made), statement=said)), "chosen")
        if row["chosen"]
    ]
    assert here["margin"] == mechanism.law.margin(0.95)


def test_a_mechanism_without_a_frontier_is_named() -> None:
    class Odd:
        KIND = "mechanism.odd"

    said = replace(release().statement, mechanism=Odd())  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match=r"mechanism\.odd cannot be calibrated"):
        recalibrated(said, 1)


def charges(*costs: str) -> list[tuple[str, sf.Budget]]:
    return [(f"release {place}", sf.Budget(epsilon=cost)) for place, cost in enumerate(costs)]


@pytest.mark.claim("S1-32")
def test_charges_add_up_to_the_line() -> None:
    chart = plots.burn_down(charges(*["1/10"] * 10), sf.Budget(epsilon=1))
    drawn = rows(chart, "after")
    assert [row["after"] for row in drawn] == [place / 10 for place in range(1, 11)]
    assert [row["before"] for row in drawn] == [place / 10 for place in range(10)]
    assert rows(chart, "cap")[0] == {"cap": 1.0, "words": "the account stops at ε = 1"}
    assert "Spent so far: ε = 1 of ε = 1, in 10 charges." in texts(chart)


def test_many_charges_become_a_stair() -> None:
    drawn = rows(plots.burn_down(charges(*["1/300"] * 300), sf.Budget(epsilon=2)), "place")
    assert [row["place"] for row in drawn] == list(range(301))
    assert drawn[-1]["before"] == 1.0


@pytest.mark.long
def test_a_budget_with_delta_has_two_panels() -> None:
    costs = [("one", sf.Budget(epsilon=1, delta=1e-7)), ("two", sf.Budget(epsilon=0.5))]
    chart = plots.burn_down(costs, sf.Budget(epsilon=2, delta=1e-6), "zh")
    assert [row["cap"] for row in rows(chart, "cap")] == [2.0, 1e-6]
    assert "迄今已用 ε = 3/2、δ = 1e-7，总预算 ε = 2、δ = 1e-6，共 2 次扣减。" in texts(chart)


def test_charges_stand_at_their_times() -> None:
    east = timezone(timedelta(hours=8))
    whens = [date(2026, 1, 5), datetime(2026, 2, 1, 9, 30), datetime(2026, 2, 1, 20, tzinfo=east)]
    cost = sf.Budget(epsilon=0.25)
    chart = plots.burn_down([(when, cost) for when in whens], sf.Budget(epsilon=1))
    drawn = rows(chart, "when")
    assert [row["name"] for row in drawn] == ["2026-01-05 00:00"] * 2 + ["2026-02-01 09:30", "2026-02-01 12:00"]
    assert [row["before"] for row in drawn] == [0, 0.25, 0.5, 0.75]
    assert drawn[-1]["when"] == datetime(2026, 2, 1, 12, tzinfo=UTC).timestamp() * 1000
    with pytest.raises(InvalidInput, match="order of their times"):
        plots.burn_down([(when, cost) for when in reversed(whens)], sf.Budget(epsilon=1))


def test_a_burn_down_of_nothing_shows_the_line() -> None:
    assert "the account stops at ε = 1" in texts(plots.burn_down([], sf.Budget(epsilon=1)))


def test_what_is_no_burn_down_is_refused() -> None:
    mixed: list[Any] = [("one", sf.Budget(epsilon=1)), (date(2026, 1, 1), sf.Budget(epsilon=1))]
    with pytest.raises(InvalidInput, match="label all charges with text, or all with a day"):
        plots.burn_down(mixed, sf.Budget(epsilon=2))
    with pytest.raises(InvalidInput, match="pairs of a label"):
        plots.burn_down([("one", 1)], sf.Budget(epsilon=2))  # type: ignore[list-item]


def test_unknown_kinds_themes_languages_are_refused() -> None:
    made = release()
    with pytest.raises(Unsupported, match="'pie'; the plots are intervals, noise, belief, people, frontier"):
        made.plot("pie")
    with pytest.raises(Unsupported, match="'sepia'; the themes are light and dark"):
        made.plot(theme="sepia")
    with pytest.raises(Unsupported, match="'fr'"):
        made.plot(language="fr")


def test_only_releases_are_drawn() -> None:
    brought = [name for kind in kinds() for name in kind.plots]
    assert {"degrees", "series", "training"} <= set(brought)
    for name in (*plots.GENERAL, *brought):
        with pytest.raises(InvalidInput, match="takes releases"):
            getattr(plots, name)([1, 2, 3])


def test_a_name_that_nothing_draws_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'pie'"):
        plots.pie  # noqa: B018


def test_the_ending_decides_the_format(tmp_path: Path) -> None:
    chart = release().plot()
    assert plots.save(chart, tmp_path / "chart.svg").read_text("utf-8").startswith("<svg")
    assert plots.save(chart, str(tmp_path / "chart.PNG"), scale=1).read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_the_page_of_a_chart_names_no_address_to_fetch(tmp_path: Path) -> None:
    text = plots.save(release(name=HOSTILE[0]).plot(), tmp_path / "chart.html").read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert re.findall(r"""(?:src|href)=["'](?!data:)[^"']*""", text.partition("<script>")[0]) == []
    assert text.count("</script>") == 2
    spec = json.loads(text.partition('id="spec">')[2].partition("</script>")[0])
    assert spec["title"]["text"].startswith(HOSTILE[0])
    assert "script-src 'sha256-" in text


def test_a_picture_is_written_as_a_pdf_of_one_page(tmp_path: Path) -> None:
    content = plots.save(release().plot(), tmp_path / "chart.pdf").read_bytes()
    assert content.startswith(b"%PDF")


@pytest.mark.parametrize("name", ["chart.eps", "chart"])
def test_other_endings_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"written as \.svg, \.png, \.pdf or \.html"):
        plots.save(release().plot(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere.*cannot be written: No such file"):
        plots.save(release().plot(), tmp_path / "nowhere" / "chart.svg")


def test_what_is_no_chart_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"a chart is needed.*not list"):
        plots.save([1, 2], tmp_path / "chart.svg")


@pytest.mark.parametrize("module", ["altair", "vl_convert"])
def test_without_the_extra_the_error_says_how_to_get_it(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    made = release()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"sfumato\[plots\]"):
        plots.save(made.plot(), tmp_path / "chart.png")
