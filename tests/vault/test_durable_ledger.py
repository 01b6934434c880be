"""A vault on a durable ledger: every release goes through it, on both stores, and outlives the process."""

from collections.abc import Callable
from pathlib import Path

import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.ledger import State
from sfumato.core.query import Dataset
from sfumato.governance.entries import Reserved
from sfumato.reports.verify import verify
from sfumato.tables import Table
from sfumato.vault import Vault
from tests.governance.conftest import home
from tests.governance.homes import ACCOUNT, PATIENT, Home, furnished

__all__ = ["home"]

Declare = Callable[..., Table]
ROOMY = sf.Budget(epsilon=100)


def opened(home: Home) -> Vault:
    return Vault(unit=PATIENT, ledger=home.url, account=ACCOUNT, key=home.key, anchor=home.anchor)


def test_a_release_is_charged_stored_and_found_by_the_next_vault(home: Home, declare: Declare) -> None:
    ledger = furnished(home, project=sf.Budget(epsilon=1))
    first = declare(opened(home)).group_by("region").count().release(epsilon="1/2")
    account = first.statement.account
    assert (account.name, account.ledger, account.releases) == (ACCOUNT, ledger.identifier, 1)
    assert verify(first.certificate.document, key=f"{home.key}.pub").authenticated
    vault = opened(home)  # as another process would
    again = declare(vault).group_by("region").count().release(epsilon="1/2")
    assert (again.values, again.charged, again.repeated) == (first.values, sf.Budget(epsilon=0), True)
    assert again.certificate == first.certificate
    assert again.explain().startswith(first.explain())
    assert again.explain().endswith("It cost nothing.")
    assert (vault.budget, vault.spent, vault.left) == (sf.Budget(epsilon=1), *[sf.Budget(epsilon="1/2")] * 2)
    assert {balance.spent for balance in ledger.balances()} == {sf.Budget(epsilon="1/2")}
    assert ledger.verify() == ()


def test_a_release_that_does_not_fit_or_is_not_declared_reads_nothing(home: Home, declare: Declare) -> None:
    ledger = furnished(home, project=ROOMY, population=sf.Budget(epsilon=1))
    vault = Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT)
    table = declare(vault)
    with pytest.raises(errors.BudgetExceeded, match="population patients"):
        table.count().release(epsilon="5/4")
    with pytest.raises(errors.NotDeclared, match="not declared in the ledger"):
        declare(vault, version="2027-01").count().release(epsilon="1/4")
    assert {balance.charges for balance in ledger.balances()} == {0}


def test_a_run_that_fails_keeps_its_charge_open_and_counted(
    home: Home, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = furnished(home, project=ROOMY)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("sfumato.tables.store.exact_numbers", broken)
    with pytest.raises(errors.EngineFailed, match="is kept"):
        declare(Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT)).count().release(epsilon="1/4")
    assert ledger.balance("hospital").spent == sf.Budget(epsilon="1/4")
    (charge,) = [row.number for row in ledger.rows() if isinstance(row.entry, Reserved)]
    assert ledger.charge(charge).state is State.RESERVED
    monkeypatch.undo()
    with pytest.raises(errors.Refused, match="was closed"):  # also for the next process
        declare(Vault(unit=PATIENT, ledger=home.open(), account=ACCOUNT)).count().release(epsilon="1/8")


def test_an_answer_that_cannot_be_stored_is_not_delivered(
    home: Home, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = furnished(home, project=ROOMY)
    question = declare(Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT)).count()

    def full(**_: object) -> None:
        raise errors.LedgerError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr("sfumato.governance.durable.Committed", full)
        with pytest.raises(errors.LedgerError, match="the disk is full"):
            question.release(epsilon="1/4")
    assert ledger.balance("hospital").spent == sf.Budget(epsilon="1/4")
    assert not question.release(epsilon="1/4").repeated
    assert ledger.verify() == ()


def test_two_vaults_of_two_departments_share_the_people(home: Home, declare: Declare) -> None:
    ledger = furnished(home, project=ROOMY, population=sf.Budget(epsilon=1))
    ledger.open_account("hospital/cardiology", unit=PATIENT, cap=sf.Budget(epsilon=1), reason="planned")
    register = Dataset(name="register", edition="1")
    ledger.declare_dataset(register, population="patients", cap=sf.Budget(epsilon=1))
    declare(Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT)).count().release(epsilon="3/4")
    other = declare(Vault(unit=PATIENT, ledger=ledger, account="hospital/cardiology"), name="register", version="1")
    with pytest.raises(errors.BudgetExceeded, match="population patients"):
        other.count().release(epsilon="1/2")
    assert other.count().release(epsilon="1/4").statement.account.name == "hospital/cardiology"


def test_what_a_vault_on_a_ledger_must_be_told(home: Home, tmp_path: Path) -> None:
    ledger = furnished(home, project=ROOMY)
    with pytest.raises(errors.NotDeclared, match="account="):
        Vault(unit=PATIENT, ledger=ledger)
    with pytest.raises(errors.NotDeclared, match=r"no settings file|which key and which anchor"):
        Vault(unit=PATIENT, ledger=home.url, account=ACCOUNT)
    with pytest.raises(errors.NotDeclared, match="belong to a ledger"):
        Vault(unit=PATIENT, account=ACCOUNT, budget=sf.Budget(epsilon=1), name="trial")
    with pytest.raises(errors.InvalidInput, match="Leave them out"):
        Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT, budget=sf.Budget(epsilon=1))
    with pytest.raises(errors.InvalidInput, match="Leave anchor out"):
        Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT, anchor=home.anchor)
    with pytest.raises(errors.Refused, match="does not cover"):
        Vault(unit=sf.record(relation="add/remove"), ledger=ledger, account=ACCOUNT, population=100)
