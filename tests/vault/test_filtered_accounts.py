"""A vault on an account that a filter keeps: releases state it, and what the filter cannot hold reads nothing."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import sfumato as sf
from sfumato import errors
from sfumato.accounting.filter_cost import filter_cost
from sfumato.mechanisms import Gaussian
from sfumato.reports.particulars import particulars
from sfumato.reports.verify import verify
from sfumato.reports.words import AUDIENCES, Facts
from sfumato.reports.words.facts import Margins
from sfumato.tables import Table
from sfumato.vault import Vault
from tests.governance.conftest import home
from tests.governance.homes import PATIENT, Home, furnished

__all__ = ["home"]

Declare = Callable[..., Table]
CAP = sf.Budget(epsilon=1, delta="1/1000000")
METHODS: dict[str, dict[str, Any]] = {"zcdp": {"method": "zcdp"}, "rdp": {"method": "rdp", "order": 20}}
MANY = {"limit": sf.Limit(groups=30, rows_per_group=1), "keys": {"region": [f"region {n}" for n in range(40)]}}
filtered = pytest.mark.parametrize("method", METHODS)


def kept(home: Home, method: str) -> Vault:
    """A vault on an account with a filter, below an institution that adds up ε and δ."""
    ledger = furnished(home)
    ledger.open_account("hospital/research", unit=PATIENT, cap=CAP, reason="small questions", **METHODS[method])
    return Vault(unit=PATIENT, ledger=ledger, account="hospital/research")


@pytest.mark.long
@filtered
def test_pure_and_gaussian_releases_state_what_the_filter_counted(home: Home, declare: Declare, method: str) -> None:
    vault = kept(home, method)
    table = declare(vault, **MANY)
    first = table.count().release(epsilon="1/20")
    account = first.statement.account
    assert (account.method, account.order, account.releases) == (method, METHODS[method].get("order"), 1)
    if method == "zcdp":
        assert account.filter_spent == Fraction(1, 800)  # ε²/2
    second = table.group_by("region").count().release(epsilon="1/5", delta=1e-9)
    assert isinstance(second.statement.mechanism, Gaussian)
    lost = [filter_cost(each.statement.event, account.order) for each in (first, second)]
    assert second.statement.account.filter_spent == sum(lost)
    assert vault.spent == second.statement.account.spent
    assert vault.spent.delta == CAP.delta
    again = declare(Vault(unit=PATIENT, ledger=home.open(), account="hospital/research"), **MANY).count()
    assert again.release(epsilon="1/20").repeated
    made = [first, second]
    for _ in range(40):
        try:
            made.append(table.count().release(epsilon="1/20", fresh=True))
        except errors.BudgetExceeded as refusal:
            assert "left; this release asks for" in str(refusal)  # noqa: PT017 - it may come or not
            break
    assert len(made) < 40
    for each in made:
        assert verify(each.certificate.document, key=f"{home.key}.pub").authenticated
        assert CAP.covers(each.statement.account.spent)
    assert Facts.derived(made, numbers=1, margins=Margins(each=Fraction(1), joint=Fraction(1))).lost is None


@filtered
def test_a_release_with_a_delta_of_its_own_reads_nothing(
    home: Home, declare: Declare, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = kept(home, method)
    question = declare(vault).find_keys("region")
    head = home.open().head()

    def read(*_: object, **__: object) -> None:
        pytest.fail("rows were read")

    monkeypatch.setattr("sfumato.tables.store.exact_numbers", read)
    with pytest.raises(errors.Refused, match=r"brings δ = .*Nothing was read and nothing was spent.*kept by sums"):
        question.release(epsilon="1/10", delta=1e-9)
    assert home.open().head() == head
    assert vault.spent == sf.Budget(epsilon=0)


@filtered
def test_every_reader_is_told_in_the_measure_of_the_account(home: Home, declare: Declare, method: str) -> None:
    release = declare(kept(home, method)).count().release(epsilon="1/20")
    account = release.statement.account
    assert account.filter_spent is not None
    assert account.filter_cap is not None
    fits = (account.filter_cap - account.filter_spent) // filter_cost(release.statement.event, account.order)
    sign = "ρ = " if method == "zcdp" else "ε(α = 20) = "
    for language in ("en", "zh"):
        told = {audience: release.explain(language, audience) for audience in AUDIENCES}
        for audience in set(AUDIENCES) - {"patient"}:
            assert told[audience].count(sign) >= 2, (audience, told[audience])
        assert f" {fits}" in told["manager"]
        state = dict(particulars(release, language))["account"]
        assert state.count(sign) == 2
        assert {"en": "ε = 1, δ = 1/1000000", "zh": "ε = 1、δ = 1/1000000"}[language] in state
    assert "1,000,000" in release.explain("en", "board")
    used = -(-100 * account.filter_spent // account.filter_cap)
    assert f"{used} of 100 parts" in release.explain("en", "board")  # and not 100, although all of δ is in use
    assert used < 20
