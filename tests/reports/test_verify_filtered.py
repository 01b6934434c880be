"""The certificate of a release whose account a filter keeps: every change is caught, also by who signs anew."""

import copy
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.accounting.filter_cost import filter_cost, reading
from sfumato.core.documents import encode
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.governance.ledger import Ledger
from sfumato.reports.verify import verify
from tests.reports.forgeries import Change, at, gone, signed_anew
from tests.reports.test_verify import BLOCKED

CAP = sf.Budget(epsilon=1, delta="1/1000000")
UNIT = sf.user("id", relation="add/remove")
METHODS: dict[str, dict[str, Any]] = {"zcdp": {"method": "zcdp"}, "rdp": {"method": "rdp", "order": 20}}
PLACE = "statement.account"


@pytest.fixture(scope="module", params=METHODS)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The second release of an account, so that more is spent than it lost itself."""
    folder = tmp_path_factory.mktemp("filtered")
    SigningKey.new().save(folder / "ledger.key")
    ledger = Ledger.create(folder / "ledger.db", key=folder / "ledger.key", anchor=folder / "anchor")
    ledger.open_account("research", unit=UNIT, cap=CAP, reason="small questions", **METHODS[request.param])
    ledger.declare_population("patients", unit=UNIT, cap=sf.Budget(epsilon=9), reason="all of it")
    ledger.declare_dataset(Dataset(name="visits", edition="1"), population="patients", cap=sf.Budget(epsilon=9))
    vault = sf.Vault(unit=UNIT, ledger=ledger, account="research")
    rows = pa.table({"id": [1, 2, 3], "region": ["north", "south", "south"]})
    table = vault.table(rows, name="visits", version="1", limit=sf.Limit(groups=1, rows_per_group=1))
    table.count().release(epsilon="1/50")
    made = table.count().release(epsilon="1/20")
    yield made
    ledger.close()


@pytest.fixture
def document(release: Any) -> dict[str, Any]:
    return copy.deepcopy(release.certificate.document)


def test_it_states_the_filter_and_is_consistent(release: Any) -> None:
    account = release.statement.account
    assert verify(release.certificate.document).consistent
    assert account.filter_spent < account.filter_cap
    assert account.spent == reading(account.filter_spent, account.order, CAP.delta)
    assert not account.spent.covers(sf.Budget(epsilon=0, delta="1/100000"))


BUDGET = {"kind": "budget", "version": 1, "delta": "1/1000000"}
CHANGES = [
    at(f"{PLACE}.version", 1),
    at(f"{PLACE}.method", "basic"),
    at(f"{PLACE}.method", "pld"),
    at(f"{PLACE}.order", "19/1"),
    at(f"{PLACE}.order", "1/1"),
    at(f"{PLACE}.filter_cap", None),
    at(f"{PLACE}.filter_cap", "4/5"),  # above what the budget allows
    at(f"{PLACE}.filter_cap", "1/100000"),  # below what was spent
    at(f"{PLACE}.filter_spent", None),
    at(f"{PLACE}.filter_spent", "1/100000"),  # below what this release lost
    at(f"{PLACE}.filter_spent", "1/60"),
    at(f"{PLACE}.filter_spent", "4/5"),
    at(f"{PLACE}.spent.epsilon", "1/10"),
    at(f"{PLACE}.spent.epsilon", "99/100"),
    at(f"{PLACE}.spent.delta", "1/10000000"),
    at(f"{PLACE}.spent.delta", "0/1"),
    at(f"{PLACE}.budget", BUDGET | {"epsilon": "1/10"}),
    at(f"{PLACE}.budget", BUDGET | {"epsilon": "1/1", "delta": "0/1"}),
    at(f"{PLACE}.budget", BUDGET | {"epsilon": "1/1", "delta": "1/1"}),
    at(f"{PLACE}.budget", BUDGET | {"epsilon": "1/1", "delta": "1/100000"}),
    at(f"{PLACE}.releases", 0),
    at("statement.event.scale", "2/1"),
    *(gone(f"{PLACE}.{name}") for name in ("method", "order", "filter_cap", "filter_spent")),
]
changed = pytest.mark.parametrize(
    ("field", "change"), CHANGES, ids=[f"{n}-{field}" for n, (field, _) in enumerate(CHANGES)]
)


@changed
def test_each_single_change_is_caught_and_named(field: str, change: Change, document: dict[str, Any]) -> None:
    change(document)
    outcome = verify(document)
    assert any(finding.field.startswith(field) for finding in outcome.findings), str(outcome)


@changed
def test_a_forger_who_seals_and_signs_anew_is_caught(field: str, change: Change, document: dict[str, Any]) -> None:
    change(document)
    signed_anew(document)
    named = {finding.field for finding in verify(document).findings}
    assert bool(named) is (field != f"{PLACE}.version"), named  # all fields are there, so that the version is free


def test_the_other_filter_is_not_believed(document: dict[str, Any]) -> None:
    account = document["statement"]["account"]
    account["method"] = {"zcdp": "rdp", "rdp": "zcdp"}[account["method"]]
    signed_anew(document)
    assert "statement.account.order" in {finding.field for finding in verify(document).findings}


def test_a_filter_on_an_account_of_sums_is_not_believed(document: dict[str, Any]) -> None:
    account = document["statement"]["account"]
    account |= {"method": "basic", "order": None, "filter_cap": None, "filter_spent": None}
    account["spent"] = encode(sf.Budget(epsilon="1/20"))
    signed_anew(document)
    assert verify(document).consistent  # as sums alone it would be possible
    for name in ("order", "filter_cap", "filter_spent"):
        forged = copy.deepcopy(document)
        forged["statement"]["account"][name] = "20/1"
        signed_anew(forged)
        assert f"{PLACE}.{name}" in {finding.field for finding in verify(forged).findings}


def test_a_release_with_a_delta_of_its_own_is_not_believed(document: dict[str, Any]) -> None:
    """What no filter would have admitted: an event that brings a δ."""
    vault = sf.Vault(unit=UNIT, budget=sf.Budget(epsilon=1, delta=1e-6), name="trial")
    rows = pa.table({"id": range(500), "code": ["K"] * 500})
    table = vault.table(rows, name="codes", version="1", limit=sf.Limit(groups=1, rows_per_group=1))
    forged = copy.deepcopy(table.find_keys("code").release(epsilon="1/50", delta=1e-7).certificate.document)
    assert isinstance(forged["statement"], dict)
    forged["statement"]["account"] = document["statement"]["account"]
    signed_anew(forged)
    assert f"{PLACE}.method" in {finding.field for finding in verify(forged).findings}


def test_the_least_loss_that_counts_is_that_of_the_release(release: Any, document: dict[str, Any]) -> None:
    """Equality is believed, and the least bit less is not."""
    account = document["statement"]["account"]
    order = release.statement.account.order
    lost = filter_cost(release.statement.event, order)
    for spent, fine in ((lost, True), (lost - Fraction(1, 10**12), False)):
        account["filter_spent"] = encode(spent)
        account["spent"] = encode(reading(spent, order, CAP.delta))
        signed_anew(document)
        assert verify(document).consistent is fine


@pytest.mark.few(1)
def test_it_verifies_without_numpy(release: Any, tmp_path: Path) -> None:
    path = release.certificate.save(tmp_path / "release.json")
    key = release.certificate.document["signature"]["key"]
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCKED, str(path), key], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert "ρ = " in answer.stdout or "ε(α = 20) = " in answer.stdout
