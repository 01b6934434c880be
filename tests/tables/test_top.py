"""The largest groups: their names in order, never their counts."""

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.mechanisms import TopChoice
from sfumato.reports.verify import verify
from sfumato.tables import Table
from sfumato.vault import Vault

EXACTLY = 10_000  # an ε at which the larger count always wins
REGIONS = ["a", "b", "c", "d", "nobody"]
ROWS = ["a"] * 3 + ["b"] * 9 + ["c"] * 5 + ["d"] * 7 + ["elsewhere"] * 50


def world(unit: Any = None, limit: Any = None) -> tuple[Vault, Table]:
    vault = sf.Vault(unit=unit or sf.record(relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="trial")
    rows = pa.table({"id": range(74), "region": ROWS, "ill": [place % 2 == 0 for place in range(74)]})
    keys = {"region": REGIONS, "ill": [True, False]}
    return vault, vault.table(rows, name="visits", version="1", limit=limit, keys=keys)


def test_the_largest_come_first() -> None:
    _, table = world()
    release = table.group_by("region").top(3).release(epsilon=EXACTLY)
    assert release["region"].values == ("b", "d", "c")
    assert release.to_arrow().to_pydict() == {"place": [1, 2, 3], "region": ["b", "d", "c"]}
    rest = table.group_by("region", other="rest").top(2).release(epsilon=EXACTLY)
    assert rest["region"].values == ("rest", "b")


def test_products_of_keys_and_filters() -> None:
    _, table = world()
    release = table.group_by("region", "ill").top(10).release(epsilon=EXACTLY)
    assert (release["region"].values[0], release["ill"].values[0]) == ("b", False)
    assert len(set(zip(release["region"].values, release["ill"].values, strict=True))) == 10
    kept = table.where(sf.col("region") == "c").group_by("region").top(1).release(epsilon=EXACTLY)
    assert kept["region"].values == ("c",)


def test_no_count_leaves_the_vault() -> None:
    vault, table = world()
    release = table.group_by("region").top(2).release(epsilon=EXACTLY)
    assert release.statement.values == (1, 3)  # places in the public list, nothing else
    assert verify(release.certificate.document).consistent
    assert vault.spent == sf.Budget(epsilon=EXACTLY)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("unit", "limit", "scale"),
    [
        (sf.record(relation="add/remove"), None, 3),
        (sf.record(relation="replace"), None, 6),
        (sf.user("id", relation="add/remove"), sf.Limit(groups=2, rows_per_group=5), 15),
        (sf.user("id", relation="replace"), sf.Limit(groups=2, rows_per_group=5), 30),
        (sf.family(2, "id", relation="add/remove"), sf.Limit(groups=2, rows_per_group=5), 30),
    ],
    ids=str,
)
def test_the_scale_follows_from_one_count_and_one_direction(unit: Any, limit: Any, scale: int) -> None:
    """Three choices at ε = 1: 3·Δ where all counts move one way, 6·Δ where one falls while another rises."""
    _, table = world(unit, limit)
    release = table.group_by("region").top(3).release(epsilon=1)
    assert isinstance(release.statement.mechanism, TopChoice)
    assert release.statement.mechanism.scale == Fraction(scale)
    assert release.statement.mechanism.monotone is (unit.relation.value == "add/remove")
    assert release.charged == sf.Budget(epsilon=1)


def test_a_delta_that_is_allowed_is_not_charged_where_it_is_not_used() -> None:
    vault = sf.Vault(
        unit=sf.record(relation="add/remove"),
        budget=sf.Budget(epsilon=10, delta="1/1000"),
        name="trial",
        population=50,
    )
    table = vault.table(pa.table({"region": ROWS}), name="visits", version="1", keys={"region": REGIONS})
    assert table.group_by("region").top(1).release(epsilon=1, delta="1/1000000").charged == sf.Budget(epsilon=1)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda table: table.top(1), "Say group_by"),
        (lambda table: table.group_by("region").top(0), "choices = 0"),
        (lambda table: table.group_by("region").top(6), "at most 5"),
        (lambda table: table.group_by("region").top("3"), "choices"),
        (lambda table: table.group_by("region").top(1.0), "choices"),
        (lambda table: table.with_keys(place=["x"]).group_by("place").top(1), "must not be called place"),
    ],
)
def test_choices_that_make_no_sense_are_refused(ask: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        ask(world()[1])
