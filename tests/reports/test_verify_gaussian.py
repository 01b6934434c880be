"""The certificate of a release with Gaussian noise and a δ: every change is caught, also by who signs anew."""

import copy
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.documents import encode
from sfumato.mechanisms import Gaussian
from sfumato.reports.verify import verify
from tests.reports.forgeries import Change, at, signed_anew

WARDS = [f"ward {number}" for number in range(40)]
DELTA = Fraction(1, 10**7)


@pytest.fixture(scope="module")
def vault() -> sf.Vault:
    budget = sf.Budget(epsilon=4, delta=DELTA)
    return sf.Vault(unit=sf.user("id", relation="add/remove"), budget=budget, name="trial")


@pytest.fixture(scope="module")
def release(vault: sf.Vault) -> Any:
    rows = pa.table({"id": [1, 2, 3], "ward": WARDS[:3]})
    table = vault.table(
        rows, name="stays", version="1", limit=sf.Limit(groups=30, rows_per_group=1), keys={"ward": WARDS}
    )
    return table.group_by("ward").count().release(epsilon=1, delta=DELTA)


@pytest.fixture
def document(release: Any) -> dict[str, Any]:
    return copy.deepcopy(release.certificate.document)


def test_it_is_gaussian_and_consistent(release: Any, vault: sf.Vault) -> None:
    assert isinstance(release.statement.mechanism, Gaussian)
    assert verify(release.certificate.document, key=vault.public_key).authenticated


PURE = {"kind": "guarantee.pure", "version": 1, "epsilon": "1/1"}
CHANGES = [
    at("statement.mechanism.sigma", "25/1"),  # the noise stated is a little too small for (1, 1e-7)
    at("statement.mechanism.l2_squared", "29/1"),
    at("statement.law.sigma", "25/1"),
    at("statement.event.sigma_squared", "650/1"),
    at("statement.event.l2_squared", "29/1"),
    at("statement.guarantee.epsilon", "1/2"),
    at("statement.guarantee.delta", "1/100000000"),
    at("statement.guarantee", PURE),
    at("statement.spend.epsilon", "1/2"),
    at("statement.spend.delta", "1/100000000"),
    at("statement.spend.delta", "0/1"),
    at("statement.limit.groups", 31),
    at("statement.limit.groups", 29),
    at("statement.unit.relation", "replace"),
    at("statement.account.spent", {"kind": "budget", "version": 1, "epsilon": "1/1", "delta": "0/1"}),
    at("statement.account.budget", {"kind": "budget", "version": 1, "epsilon": "4/1", "delta": "1/100000000"}),
]


@pytest.mark.parametrize(("field", "change"), CHANGES, ids=[f"{n}-{field}" for n, (field, _) in enumerate(CHANGES)])
def test_each_single_change_is_caught_and_named(field: str, change: Change, document: dict[str, Any]) -> None:
    change(document)
    named = [finding.field for finding in verify(document).findings]
    assert any(name == field or name.startswith(f"{field}.") for name in named), named
    signed_anew(document)
    assert not verify(document).consistent  # what the numbers say of each other does not depend on who signs


def test_a_forger_who_changes_all_that_follows_is_left_with_an_honest_price(document: dict[str, Any]) -> None:
    """Less noise, stated everywhere: then the price stated is too low, and that is named."""
    less = Gaussian(l2_squared=Fraction(30), sigma=Fraction(20))
    said = document["statement"]
    said["mechanism"], said["law"], said["event"] = encode(less), encode(less.law), encode(less.event)
    signed_anew(document)
    assert [finding.field for finding in verify(document).findings] == ["statement.spend"]


def test_more_noise_than_the_price_asks_for_is_no_fault(document: dict[str, Any]) -> None:
    more = Gaussian(l2_squared=Fraction(30), sigma=Fraction(30))
    said = document["statement"]
    said["mechanism"], said["law"], said["event"] = encode(more), encode(more.law), encode(more.event)
    signed_anew(document)
    assert verify(document).consistent


@pytest.mark.parametrize("sigma", ["1/1000000000000000000000000", "9" * 70 + "/1", "1/3"])
def test_absurd_noise_gives_findings_in_a_moment(sigma: str, document: dict[str, Any]) -> None:
    document["statement"]["mechanism"]["sigma"] = sigma
    signed_anew(document)
    assert not verify(document).consistent
