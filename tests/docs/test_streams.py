"""The tutorials on streams against the truth, which can be had because the four records are public.

α: intervals are taken at 1 − 10⁻¹⁰ for all numbers of a release at once, and squared errors at 10⁻¹⁰ on either side:
two of the former and about twenty of the latter.
"""

import re
from collections import Counter
from itertools import combinations_with_replacement
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy import stats

from examples import bicycles, levels, messages, meters, occupancy
from sfumato.errors import InvalidInput
from sfumato.mechanisms.matrix.steps.pattern import Pattern
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz
from sfumato.streams.people import People, listed
from sfumato.streams.strategy_encoder import encoder_of
from tests import parts
from tests.docs.networks import IMAGES, run
from tests.docs.streams import PERSONS, PLACES
from tests.docs.test_gallery import words

SURE = "9999999999/10000000000"
ALPHA = 1e-10
NORMAL = NormalDist().inv_cdf(0.975)
Page = tuple[dict[str, Any], Path]
Tables = list[list[tuple[levels.Level, np.ndarray]]]


@pytest.fixture(scope="module", autouse=True)
def drawer() -> None:
    for name in ("altair", "vl_convert"):
        parts.package(name)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("places")
    return run(PLACES, folder), folder


@pytest.fixture(scope="module")
def persons(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("persons")
    return run(PERSONS, folder), folder


def senders(many: int, days: list[list[int]]) -> list[int]:
    """How many senders of each step count, if each does in at most so many."""
    people = People(times=many, separation=1, each=1)
    return [people.counted(step, [listed(each)])[0] for step, each in enumerate(days)]


@pytest.mark.long
def test_the_records_are_those_that_were_published(places: Page, persons: Page) -> None:
    assert len(places[0]["minutes"]) == occupancy.DAYS * 24
    assert sum(places[0]["minutes"]) == 4750
    assert max(places[0]["minutes"]) == 60
    assert sum(places[0]["rides"]) == 3_292_679
    assert len(places[0]["rides"]) == bicycles.DAYS
    mail = persons[0]["mail"]
    assert len(mail) == 59_835
    assert len({name for each in mail for name in each[:2]}) == 1_899
    assert len({each[:2] for each in mail}) == 20_296
    assert max(each.day for each in mail) == messages.DAYS - 1
    readings = persons[0]["readings"]
    assert {each.shape for each in readings.values()} == {(meters.WEEKS, 336)}
    assert sum(int(each.sum()) for each in readings.values()) == 35_339_437


@pytest.mark.parametrize("read", [occupancy.hours, bicycles.days, meters.half_hours, messages.read])
def test_a_file_that_is_not_there_is_named(read: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not there; nothing was read"):
        read(tmp_path / "missing")


def missed(release: Any, steps: list[int]) -> int:
    """How many totals of a release lie outside their intervals, all of which hold at once."""
    found = release["total"].interval(SURE, joint=True)
    return sum(not low <= total <= high for (low, high), total in zip(found, np.cumsum(steps).tolist(), strict=True))


@pytest.mark.alpha(2 * ALPHA)
def test_what_is_released_holds_the_truth(places: Page, persons: Page) -> None:
    assert missed(places[0]["office"], places[0]["minutes"]) == 0
    assert missed(persons[0]["release"], senders(20, persons[0]["by_day"])) == 0
    assert places[0]["office"].charged.epsilon == persons[0]["release"].charged.epsilon == 1


@pytest.mark.alpha(ALPHA)
def test_another_truth_would_be_noticed(places: Page, persons: Page) -> None:
    """The twins: a day later, and senders whom no limit held."""
    assert missed(places[0]["office"], [0] * 24 + places[0]["minutes"][:-24]) > 100
    assert missed(persons[0]["release"], senders(messages.DAYS, persons[0]["by_day"])) > 20


def counted(page: dict[str, Any], level: levels.Level) -> np.ndarray:
    """What of the truth may count at a level; elsewhere all of it."""
    if level.name == "one reading":
        return np.asarray(page["held"] / 1000)
    if level.name == "one household":
        return np.array([sum(min(many, 150) for many in Counter(week).values()) for week in page["listed"]])
    if level.name.endswith("20 a week"):
        return np.array([sum(min(many, 20) for many in Counter(week).values()) for week in page["weeks"]])
    if level.name.startswith("a sender"):
        return np.array(senders(int(level.name.split()[2]), page["active"]))
    return level.exact


@pytest.fixture(scope="module")
def tables(places: Page, persons: Page) -> Tables:
    """The levels of each table of both pages, in their order, with what counts at them."""
    one, two = places[0], persons[0]
    found = [(one, one["office_levels"]), (one, one["four_weeks"]), (one, one["totals"])]
    found += [(two, [two["reading"], two["household"]]), (two, [two["one_week"], *two["senders"].values()])]
    found += [(two, [two["one_message"], two["one_sender"]])]
    return [[(level, counted(page, level)) for level in some] for page, some in found]


def surprising(level: levels.Level, truth: np.ndarray, margin: float) -> bool:
    """Whether the numbers of all releases err too much or too little for a margin.

    Where every number has the same margin, each has a noise of its own, and all are looked at; elsewhere the last.
    """
    alone = float(level.margins.min()) == float(level.margins.max())
    errors = (level.told - truth if alone else level.told[:, -1] - truth[-1]) / (margin / NORMAL)
    law = stats.chi2(df=errors.size)
    return not law.ppf(ALPHA) <= (errors**2).sum() <= law.isf(ALPHA)


@pytest.mark.alpha(44 * ALPHA)
def test_the_margins_are_those_of_the_errors(tables: Tables) -> None:
    for table in tables:
        assert [level.name for level, truth in table if surprising(level, truth, level.margins[-1])] == []


@pytest.mark.alpha(1e-9)
def test_margins_of_another_level_would_be_noticed(tables: Tables) -> None:
    """The twin: the margin of an event at the last level, which is a person's or close to it.

    The least of these is 5.3 times as wide (weeks of a sender), seen in 280 numbers.
    """
    for first, *_, last in tables:
        assert surprising(*last, first[0].margins[-1]), last[0].name


ROW = re.compile(r"^\| ([^|]+) \| ±([\d,.]+) \| ([\d,.]+)% \| ([\d,.]+) \| (\d+)% \|$", re.MULTILINE)


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_the_pages_state_these_numbers(tables: Tables) -> None:
    """Margins to 2%; what was seen in one run to what ten releases allow, given the noise and what was cut off."""
    stated = [found for page in (PLACES, PERSONS) for found in ROW.findall(page.read_text("utf-8"))]
    shown = [pair for table in tables for pair in table]
    assert [name for name, *_ in stated] == [level.name for level, _ in shown]
    for (name, margin, share, error, held), (level, truth) in zip(stated, shown, strict=True):
        assert number(margin) == pytest.approx(level.margin, rel=0.02), name
        assert number(share) / 100 == pytest.approx(level.margin / level.exact.mean(), rel=0.06, abs=6e-4), name
        sigmas, off = level.margins / NORMAL, truth - level.exact
        assert number(error) == pytest.approx(float(np.sqrt((sigmas**2 + off**2).mean())), rel=0.3), name
        chance = stats.norm.cdf((level.margins - off) / sigmas) - stats.norm.cdf((-level.margins - off) / sigmas)
        assert number(held) / 100 == pytest.approx(float(chance.mean()), abs=0.07), name


def test_the_pages_say_what_is_so(places: Page, persons: Page) -> None:
    one, two = places[0], persons[0]
    assert 40 <= one["office_levels"][-1].margin / 1440 < 42  # forty days
    first, second = sum(one["rides"][:365]), sum(one["rides"][365:])
    assert second / first == pytest.approx(5 / 3, abs=0.02)
    assert two["held"].sum() / 1000 / two["used"].sum() == pytest.approx(0.98, abs=0.005)
    cut = 1 - counted(two, two["one_sender"]).sum() / sum(two["sent"])
    assert cut == pytest.approx(1 / 3, abs=0.03)
    apart = [
        two["days"](limit=two["sf"].Limit(groups=10, rows_per_group=1), separation=days).running_total()
        for days in (1, 7)
    ]
    assert [each.margins(**two["spend"])[-1] for each in apart] == [
        pytest.approx(227, rel=0.02),
        pytest.approx(181, rel=0.02),
    ]
    assert two["people"].left.epsilon == 0


def test_minutes_move_no_further_apart_than_in_one_step() -> None:
    """What the page says of ``each``: three units, in whatever steps, move what is measured by no more than in one."""
    root = Toeplitz(form="square root", horizon=5, bits=8)
    most = 3**2 * root.squared(Pattern(times=1, separation=1, change="added"))
    for places in combinations_with_replacement(range(5), 3):
        moved = encoder_of(root).measure(np.bincount(places, minlength=5))
        assert (moved**2).sum() <= most
    assert (encoder_of(root).measure(np.array([4, 0, 0, 0, 0])) ** 2).sum() > most  # the twin: four units do


@pytest.mark.parametrize("page", ["places", "persons"])
def test_the_pictures_are_those_that_the_page_draws(page: str, request: pytest.FixtureRequest) -> None:
    _, folder = request.getfixturevalue(page)
    text = {"places": PLACES, "persons": PERSONS}[page].read_text("utf-8")
    shown = re.findall(r"\]\(\.\./images/([^)]+)\)", text)
    assert set(shown) == {path.name for path in folder.glob("*.svg")}
    for name in shown:
        kept, drawn = ((where / name).read_text("utf-8") for where in (IMAGES, folder))
        assert len(kept) < 200_000, "the repository keeps its pictures small"
        assert words(kept) == words(drawn), name


def test_levels_need_the_truth_and_something_to_draw(places: Page) -> None:
    question = places[0]["stream"].running_total()
    with pytest.raises(InvalidInput, match="nothing was opened"):
        levels.released("senders", question, [["a"], ["b"]], epsilon=1)
    with pytest.raises(InvalidInput, match="nothing was drawn"):
        levels.side_by_side([], title="", across="", up="")
