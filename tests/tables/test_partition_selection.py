"""Keys that nobody declared: found with a δ, shown in an order of their own, and declared afterwards."""

from collections import Counter
from datetime import date
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, NotDeclared, Refused, Unsupported
from sfumato.mechanisms import NoisyThreshold, OptimalSelection
from sfumato.noise import SystemWords
from sfumato.reports.verify import verify
from sfumato.tables import Table
from sfumato.tables.queries.partition_selection import PartitionSelection
from sfumato.vault import Vault

DELTA = "1/1000000"
# 600 persons with a common code, 300 with another, and one each with a code of their own.
CODES = ["flu"] * 600 + ["cold"] * 300 + [f"only {person}" for person in range(100)]


def world(unit: Any = None, limit: Any = sf.Limit(groups=1, rows_per_group=1)) -> tuple[Vault, Table]:  # noqa: B008
    vault = sf.Vault(
        unit=unit or sf.user("id", relation="add/remove"),
        budget=sf.Budget(epsilon=1000, delta="1/100"),
        name="trial",
        population=50,
    )
    rows = pa.table(
        {
            "id": range(1000),
            "code": CODES,
            "day": pa.array([date(2026, 1, 1 + place % 2) for place in range(1000)]),
            "ill": [place % 2 == 0 for place in range(1000)],
            "ward": [place % 2 for place in range(1000)],
            "x": [float(place) for place in range(1000)],
        }
    )
    return vault, vault.table(rows, name="visits", version="1", limit=limit)


@pytest.mark.parametrize("counted", [True, False])
def test_what_many_share_is_found_and_what_one_has_is_not(counted: bool) -> None:
    vault, table = world()
    release = table.find_keys("code", counted=counted).release(epsilon=1, delta=DELTA)
    assert release["code"].values == ("cold", "flu")  # a code of one person is shown once in a million
    assert release.statement.found == (("cold",), ("flu",))
    assert isinstance(release.statement.mechanism, NoisyThreshold if counted else OptimalSelection)
    assert release.to_arrow().column_names == (
        ["code", "persons", "persons_data_low", "persons_data_high", "limit"] if counted else ["code", "limit"]
    )
    assert verify(release.certificate.document).consistent
    assert vault.spent == release.charged
    assert release.charged.epsilon == 1
    assert 0 < release.charged.delta <= Fraction(DELTA)


def test_the_persons_are_counted_with_an_interval() -> None:
    _, table = world()
    release = table.find_keys("code").release(epsilon=1, delta=DELTA)
    for found, truth in zip(release["persons"].values, (300, 600), strict=True):
        assert abs(found - truth) < 40  # e^-40
    (low, high), _ = release["persons"].interval()
    assert low <= release["persons"].values[0] <= high
    assert release["persons"].at(code="flu").values == release["persons"].values[1:]


def test_several_columns_make_keys_of_several_parts() -> None:
    _, table = world()
    release = table.find_keys("ward", "code", counted=False).release(epsilon=2, delta=DELTA)
    assert release.statement.found == ((0, "cold"), (0, "flu"), (1, "cold"), (1, "flu"))
    assert release["ward"].values == (0, 0, 1, 1)
    assert release["code"].values == ("cold", "flu", "cold", "flu")


def test_keys_of_every_type_that_compares_exactly() -> None:
    vault, table = world()
    assert table.find_keys("day").release(epsilon=1, delta=DELTA)["day"].values == ("2026-01-01", "2026-01-02")
    assert table.find_keys("ill").release(epsilon=1, delta=DELTA)["ill"].values == (False, True)
    assert table.find_keys("ward").release(epsilon=1, delta=DELTA)["ward"].values == (0, 1)
    spent = vault.spent
    with pytest.raises(Unsupported, match="column 'x' cannot identify groups"):
        table.find_keys("x").release(epsilon=1, delta=DELTA)
    assert vault.spent == spent


@pytest.mark.long
def test_what_was_found_is_declared_and_grouped_by() -> None:
    _, table = world()
    found = table.find_keys("code").release(epsilon=1, delta=DELTA)
    known = table.with_keys(code=found["code"].values)
    assert known.group_by("code").count().release(epsilon=500).values == (300, 600)
    assert known.group_by("code", other="rest").count().release(epsilon=400).values == (300, 600, 100)
    assert table.keys == {}


def test_filters_hold_before_keys_are_found() -> None:
    _, table = world()
    release = table.where(sf.col("x") < 600).find_keys("code").release(epsilon=1, delta=DELTA)
    assert release["code"].values == ("flu",)


@pytest.mark.parametrize("counted", [True, False])
def test_without_a_delta_no_key_is_found(counted: bool) -> None:
    vault, table = world()
    with pytest.raises(NotDeclared, match=r"needs a δ.*delta=1e-9"):
        table.find_keys("code", counted=counted).release(epsilon=1)
    assert vault.spent == sf.Budget(epsilon=0)


def test_a_family_is_counted_but_not_named_alone() -> None:
    """A family adds several persons to one key, and the rule without counts is made for one."""
    vault, table = world(sf.family(2, "id", relation="add/remove"))
    release = table.find_keys("code").release(epsilon=4, delta=DELTA)
    assert isinstance(release.statement.mechanism, NoisyThreshold)
    assert (release.statement.mechanism.keys, release.statement.mechanism.most) == (2, 2)
    with pytest.raises(Refused, match=r"a family adds more\. Nothing was done\. Say find_keys\(\.\.\., counted=True\)"):
        table.find_keys("code", counted=False).release(epsilon=4, delta=DELTA)
    assert vault.spent == release.charged


@pytest.mark.parametrize(
    ("unit", "limit", "l0", "linf"),
    [
        (sf.record(relation="add/remove"), None, 1, 1),
        (sf.record(relation="replace"), None, 2, 1),
        (sf.user("id", relation="add/remove"), sf.Limit(groups=3, rows_per_group=9), 3, 1),
        (sf.user("id", relation="replace"), sf.Limit(groups=3, rows_per_group=9), 6, 1),
        (sf.family(2, "id", relation="replace"), sf.Limit(groups=3, rows_per_group=9), 12, 2),
    ],
    ids=str,
)
def test_how_many_keys_a_unit_moves(unit: Any, limit: Any, l0: int, linf: int) -> None:
    _, table = world()
    claim = PartitionSelection(dataset=table.dataset, over=("code",)).sensitivity(unit, limit)
    assert claim.l0 is not None
    assert claim.linf is not None
    assert (claim.l0.count, claim.linf.value) == (l0, linf)


@pytest.mark.parametrize("over", [(), ("a", "a"), ("persons",), ("a", "persons")])
def test_columns_that_cannot_be_shown_are_refused(over: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match="one column or several different ones"):
        PartitionSelection(dataset=world()[1].dataset, over=over)


@pytest.mark.parametrize("counted", [True, False])
def test_nothing_found_is_an_answer_too(counted: bool) -> None:
    _, table = world()
    release = table.where(sf.col("x") < 0).find_keys("code", counted=counted).release(epsilon=1, delta=DELTA)
    assert release.statement.found == ()
    assert release.to_arrow().num_rows == 0
    assert verify(release.certificate.document).consistent


@pytest.mark.alpha(1e-10)
def test_a_key_of_one_person_is_shown_as_rarely_as_the_delta_says() -> None:
    """2,000 draws of 100 keys that one person has each, at δ = 1/1000 for a person: 200 are expected, and a tenth more
    would not be noticed; 300 or more have a chance below 1e-10. The twin with ten times the δ must be noticed."""
    shown = Counter[str]()
    for name, delta in (("as said", "1/1000"), ("broken", "1/100")):
        rule = OptimalSelection.calibrated(keys=1, epsilon="1/100", delta=delta)
        words = SystemWords()
        for _ in range(2_000):
            shown[name] += len(rule.show({f"only {person}": 1 for person in range(100)}, words))
    assert shown["as said"] < 300
    assert shown["broken"] > 300
