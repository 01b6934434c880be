"""Pictures of streams: the bands are the releases' own intervals, nothing private is drawn, and all can be read."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.demo.building import building
from sfumato.errors import InvalidInput, Unsupported
from sfumato.reports import page, plots
from sfumato.reports.plots import fonts
from sfumato.reports.plots.theme import THEMES
from sfumato.streams.post import consistent, forecast, smoothed
from tests import parts
from tests.reports.drawn import LOOKS, Drawn
from tests.reports.made import release as table_release
from tests.reports.test_plots import rows, texts

NAMES = {"en": "occupancy", "zh": "占用"}
STEPS = 48
TWIN = building(people=40, rooms=3, steps=2 * STEPS)


@pytest.fixture(autouse=True)
def drawer() -> None:
    for name in ("altair", "vl_convert"):
        parts.package(name)


def stream(unit: Any, language: str, **said: Any) -> Any:
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=40, delta=1e-6), name="twin")
    return vault.stream(name=NAMES[language], version="1", bounds=(0, 40), **{"horizon": 2 * STEPS} | said)


@cache
def totals(language: str = "en", *, steps: int = 2 * STEPS, groups: tuple[str, ...] = ()) -> Release:
    running = stream(sf.event(relation="add/remove"), language, groups=groups).running_total()
    opened = running.open(epsilon=1, delta=1e-7)
    opened.add_many((TWIN.by_room if groups else TWIN.counts)[:steps])
    return opened.close()  # type: ignore[no-any-return]


@cache
def persons(language: str = "en") -> Release:
    limit = sf.Limit(groups=24, rows_per_group=1)
    opened = stream(sf.user("id", relation="add/remove"), language, limit=limit).running_total()
    running = opened.open(epsilon=1, delta=1e-7)
    for step in range(2 * STEPS):
        running.add(people=TWIN.people_at(step))
    return running.close()  # type: ignore[no-any-return]


@cache
def raised(language: str = "en") -> Release:
    watch = stream(sf.event(relation="add/remove"), language).alarms(threshold=25, alarms=4).open(epsilon=4)
    for value in TWIN.counts.tolist():
        if not watch.halted:
            watch.check(value)
    return watch.close()  # type: ignore[no-any-return]


CURVES = [
    plots.Curve(name="1", steps=(4, 64), right=(0.2, 0.9), allowed=(0.4, 1.0)),
    plots.Curve(name="2", steps=(4, 64), right=(0.12, 0.15), allowed=(0.3, 0.3)),
]
BUDGET = sf.Budget(epsilon="1/10", delta="1/100")

PICTURES: dict[str, Callable[[str, str], Any]] = {
    "series": lambda language, theme: totals(language).plot(language=language, theme=theme),
    "one step": lambda language, theme: plots.series(totals(language, steps=1), language, theme),
    "groups": lambda language, theme: plots.series(totals(language, groups=("1", "2", "3")), language, theme),
    "smoothed": lambda language, theme: plots.series(smoothed(totals(language)), language, theme),
    "forecast": lambda language, theme: plots.series(
        consistent(totals(language)).by(1),
        language,
        theme,
        then=forecast(totals(language), steps=12, season=24),
    ),
    "levels": lambda language, theme: plots.event_and_person(totals(language), persons(language), language, theme),
    "alarms": lambda language, theme: raised(language).plot(language=language, theme=theme),
    "alarms over totals": lambda language, theme: plots.alarms(
        raised(language), language, theme, over=totals(language)
    ),
    "trajectories": lambda language, theme: plots.trajectories(CURVES, language, theme, blind=0.1),
    "advantages": lambda language, theme: plots.advantages([("1", 0.03), ("2", 0.09)], 0.1, BUDGET, language, theme),
}


@cache
def drawn_as(name: str, language: str, theme: str) -> Drawn:
    return Drawn.of(PICTURES[name](language, theme), theme)


@pytest.mark.few(1)
@pytest.mark.parametrize(("language", "theme"), LOOKS)
@pytest.mark.parametrize("name", PICTURES)
def test_it_is_drawn_whole_and_not_blank(name: str, language: str, theme: str) -> None:
    drawn, palette = drawn_as(name, language, theme), THEMES[theme]
    marked = drawn.marked(0.5)
    assert 0.01 < marked.mean() < 0.6
    for edge in (marked[:6], marked[-6:], marked[:, :6], marked[:, -6:]):
        assert not edge.any(), "something is cut off"
    assert marked[:50, : marked.shape[1] // 2].any(axis=1).sum() >= 8, "the title is missing"
    assert drawn.colours <= {getattr(palette, role) for role in palette.__slots__}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", PICTURES)
def test_chinese_pictures_say_everything_in_chinese(name: str) -> None:
    words = " ".join(drawn_as(name, "zh", "dark").texts)
    assert re.findall(r"[A-Za-z]{2,}", words) == []
    assert re.search(r"[\u4e00-\u9fff]{4}", words)
    assert fonts.missing(words) == ""


def test_the_bands_are_the_intervals_of_the_release() -> None:
    release = totals()
    drawn = {row["step"]: row for row in rows(release.plot()) if "least" in row}
    assert len(drawn) == 2 * STEPS
    near, wide = release.interval(), release.interval(joint=True)
    for place, value in enumerate(release["total"].values):
        row = drawn[place + 1]
        assert (row["low"], row["high"]) == near[place]
        assert (row["least"], row["most"]) == wide[place]
        assert row["value"] == value


@pytest.mark.long
def test_nothing_but_released_numbers_is_drawn() -> None:
    """Of alarms only their steps and gaps; the numbers that were watched are nowhere."""
    release = raised()
    drawn = [row for row in rows(release.plot()) if "gap" in row]
    pairs = {(row["step"], row["gap"]) for row in drawn}
    assert pairs == set(zip(release.values[::2], release.values[1::2], strict=True))
    assert set().union(*rows(release.plot())) <= {"step", "gap", "to"}


@pytest.mark.long
def test_a_long_series_is_thinned_and_says_so() -> None:
    opened = stream(sf.event(relation="add/remove"), "en", horizon=1300).running_total().open(epsilon=1, delta=1e-7)
    opened.add_many([3] * 1300)
    chart = plots.series(opened.close())
    drawn = {row["step"] for row in rows(chart) if "least" in row}
    assert len(drawn) <= 601
    assert {1, 1300} <= drawn
    assert any("Of 1,300 steps, one in 3 is drawn." in text for text in texts(chart))


@pytest.mark.long
def test_what_a_smoothed_band_leaves_open_is_written_on_it() -> None:
    words = " ".join(drawn_as("smoothed", "en", "light").texts)
    assert "what the same smoothing makes of the exact series" in words
    assert "its bias, is in neither band" in words
    assert "if the series goes on as it went" in " ".join(texts(plots.series(forecast(totals(), steps=12, season=24))))


@pytest.mark.long
def test_pages_of_closed_streams_have_their_picture_and_no_law_of_one_number() -> None:
    for release, kind in ((totals(), "series"), (raised(), "alarms")):
        text = page.page(release, ["en", "zh"])
        assert text.count("<figure") == 4  # the series or the alarms, and the people, in two languages
        assert "query." not in text.partition('id="certificate"')[0]
        assert {"series": "The running total as a line", "alarms": "with a mark for each alarm"}[kind] in text


@pytest.mark.long
def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not a series of a stream"):
        plots.series(table_release())
    with pytest.raises(InvalidInput, match="not a release of alarms"):
        plots.alarms(totals())
    with pytest.raises(InvalidInput, match="has groups"):
        plots.event_and_person(totals(groups=("1", "2", "3")), persons())
    with pytest.raises(Unsupported, match="depends on its step"):
        totals().plot("noise")
    with pytest.raises(InvalidInput, match="not about a column"):
        totals().plot("series", column="total")
    empty = stream(sf.event(relation="add/remove"), "en").running_total().open(epsilon=1, delta=1e-7).close()
    with pytest.raises(Unsupported, match="no totals here to draw"):
        empty.plot()
    assert page.page(empty, ["en"]).count("<figure") == 1
