"""Releases that a limit can cut differently are not set against each other."""

from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import Refused
from sfumato.inference import Figure, consistent, figure, weighted_mean

EXACTLY = 1000  # an ε at which the noise is 0 but for one case in e^100
REGIONS = ["north", "south"]
SIX_EACH = pa.table({
    "id": [person for person in range(1000) for _ in range(6)],
    "region": REGIONS * 3000,
    "ill": [row % 6 == 0 for row in range(6000)],
})  # fmt: skip


def table(*, groups: int = 2, rows: int = 3, unit: Any = None, version: str = "1", data: pa.Table = SIX_EACH) -> Any:
    unit = unit or sf.user("id", relation="add/remove")
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=10**5), name="people")
    held = {"limit": sf.Limit(groups=groups, rows_per_group=rows)} if hasattr(unit, "column") else {}
    return vault.table(data, name="visits", version=version, keys={"region": REGIONS}, **held)


@pytest.fixture(scope="module")
def world() -> dict[str, Any]:
    visits = table()
    asked = {
        "everyone": visits.count(),
        "by": visits.group_by("region").count(),
        "ill": visits.where(sf.col("region") == "north").count(),
        "persons": visits.agg(persons=sf.persons()),
        "northern": visits.where(sf.col("region") == "north").agg(persons=sf.persons()),
        "sum": visits.agg(n=sf.count()),
    }
    return {name: question.release(epsilon=EXACTLY) for name, question in asked.items()}


def test_a_region_over_everyone_is_refused(world: dict[str, Any]) -> None:
    """Three rows in each of two regions and three in all: the ratio would be 1, and the truth is one half."""
    by, everyone = world["by"], world["everyone"]
    assert by.values == (3000, 3000)
    assert everyone.values == (3000,)
    with pytest.raises(Refused, match="their ratio would be off by that") as refused:
        by / everyone
    assert "in one question" in str(refused.value)
    assert "sf.persons()" in str(refused.value)
    with pytest.raises(Refused, match="their difference"):
        by - everyone
    with pytest.raises(Refused, match="their difference"):
        by + (-1) * everyone
    with pytest.raises(Refused, match="their difference"):
        (-1) * figure(everyone) + by
    with pytest.raises(Refused, match="what they add up to"):
        consistent([everyone, by])
    with pytest.raises(Refused, match="their mean"):
        weighted_mean([by.figure.total(), everyone], [1, 1])


def test_a_part_of_the_rows_over_all_of_them_is_refused(world: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="can cut these releases differently"):
        world["ill"] / world["everyone"]


def test_figures_of_one_release_are_set_against_each_other(world: dict[str, Any]) -> None:
    by = world["by"].figure
    assert (by.at(region="north") / by.total()).values == (0.5,)
    assert (by.at(region="north") - by.at(region="south")).values == (0,)


def test_persons_are_not_cut(world: dict[str, Any]) -> None:
    assert (world["northern"] / world["persons"]).values == (1.0,)
    assert (world["persons"] - world["northern"]).values == (0,)
    assert (world["everyone"] / world["persons"]).values == (3.0,)  # the same rows, and it says: at most 3 rows
    with pytest.raises(Refused, match="all rows"):
        world["by"] / world["persons"]


def test_the_same_question_in_another_form_is_fine(world: dict[str, Any]) -> None:
    assert (world["sum"] / world["everyone"]).values == (1.0,)
    assert (world["sum"] + world["everyone"]).limit_words() == "at most 3 rows per person"


def test_the_same_question_about_other_data_is_fine_and_another_limit_is_not() -> None:
    first, later = (table(version=name).count().release(epsilon=EXACTLY) for name in ("1", "2"))
    assert (later - first).values == (0,)
    other = table(rows=2, version="3").count().release(epsilon=EXACTLY)
    with pytest.raises(Refused, match="at most 2 rows per person, in all"):
        other - first
    assert (other + first).values == (5000,)
    assert (other + first).limit_words() == "at most 2 rows per person; at most 3 rows per person"


def test_a_limit_that_differs_where_it_cannot_cut_does_not_matter() -> None:
    """Three groups are as good as two where there are two."""
    two, three = (table(groups=groups, version=f"{groups}").group_by("region").count() for groups in (2, 3))
    assert (two.release(epsilon=EXACTLY) - three.release(epsilon=EXACTLY)).values == (0, 0)


def test_single_rows_are_never_cut() -> None:
    visits = table(unit=sf.record(relation="add/remove"))
    by, everyone = (each.release(epsilon=EXACTLY) for each in (visits.group_by("region").count(), visits.count()))
    assert (by / everyone).values == (0.5, 0.5)
    assert consistent([everyone, by])[0].values == (6000,)


def test_whoever_knows_more_can_vouch_for_it(world: dict[str, Any]) -> None:
    whole, parts = consistent([world["everyone"], world["by"]], cut_alike=True)
    assert whole.values == parts.total().values


def test_what_passes_is_never_off_by_what_a_limit_cut() -> None:
    """All pairs of questions on a small table, with and without noise to speak of: a ratio that is given is the true
    ratio of what both say they count, computed by hand from the rows."""
    rows = SIX_EACH.slice(0, 60)
    for groups, most in product((1, 2), (1, 2, 9)):
        visits = table(groups=groups, rows=most, data=rows)
        by, everyone = (each.release(epsilon=EXACTLY) for each in (visits.group_by("region").count(), visits.count()))
        try:
            share = (by.figure.at(region="north") / everyone).values[0]
        except Refused:
            continue
        assert share == 1.0, (groups, most)  # of 10 persons, all were in the north
        assert not by.limit_cuts()
    assert isinstance(by.figure, Figure)
