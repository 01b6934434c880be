"""Two spellings that look the same are never two accounts, datasets, people or communities."""

import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.governance.board import Board, Committee, Community
from sfumato.governance.entries import AccountOpened, DatasetDeclared, PopulationDeclared
from sfumato.governance.policies import Proportional
from tests.governance.homes import PATIENT, VISITS, Home, furnished
from tests.governance.test_governed import TERMS

HALF = Budget(epsilon="1/2")
RIGHT = "café"
WRONG = unicodedata.normalize("NFD", RIGHT)


def test_a_name_that_is_not_in_nfc_is_refused_with_the_right_spelling(home: Home) -> None:
    ledger = furnished(home)
    before = ledger.head()
    for declared in (
        lambda: ledger.open_account(f"hospital/{WRONG}", unit=PATIENT, cap=HALF, reason="x"),
        lambda: ledger.declare_population(WRONG, unit=PATIENT, cap=HALF, reason="x"),
        lambda: ledger.declare_dataset(Dataset(name=WRONG, edition="1"), population="patients", cap=HALF),
        lambda: ledger.declare_version(replace(VISITS, edition=WRONG)),
        lambda: ledger.declare_terms(replace(TERMS, recipients=(WRONG,))),
        lambda: ledger.allot("hospital", Proportional(planned=((WRONG, 1),)), reason="x"),
    ):
        with pytest.raises(InvalidInput, match=r"nothing was changed. Write it in Unicode form NFC: 'caf\\xe9'"):
            declared()
    assert ledger.head() == before
    ledger.open_account(f"hospital/{RIGHT}", unit=PATIENT, cap=HALF, reason="x")
    with pytest.raises(NotDeclared, match="is not open"):
        ledger.account(f"hospital/{WRONG}", unit=PATIENT)


def a_board(
    *, member: str = "ben", proposer: str = "gil", community: str = "c", spoken: str = "e", data: str = "v"
) -> Board:
    groups = (Community(name=community, representatives=(spoken,), datasets=(data,)),)
    return Board(members=("ada", member), quorum=2, proposers=(proposer,), communities=groups)


@pytest.mark.parametrize(
    "board",
    [
        a_board(member=WRONG),
        a_board(proposer=WRONG),
        a_board(community=WRONG),
        a_board(spoken=WRONG),
        a_board(data=WRONG),
        Board(
            members=("ada", "ben"),
            quorum=2,
            committees=(Committee(site=WRONG, members=("x", "y"), representatives=("x",), quorum=2),),
        ),
    ],
)
def test_a_board_is_seated_with_names_in_nfc(home: Home, board: Board) -> None:
    """A veto over a dataset must not miss it by an accent."""
    with pytest.raises(InvalidInput, match="a name of the board"):
        furnished(home).seat(board, by="director", reason="x")


def test_an_old_ledger_with_other_spellings_opens_and_keeps_one_of_each(home: Home) -> None:
    ledger = furnished(home)
    with ledger.record.writing() as writing:  # as they were written before names had one spelling
        at, cap = writing.time(), HALF
        given = {"at": at, "unit": PATIENT, "cap": cap, "rho": None, "reason": "x"}
        writing.append(AccountOpened(path=f"hospital/{WRONG}", **given))  # type: ignore[arg-type]
        writing.append(PopulationDeclared(name=WRONG, **given))  # type: ignore[arg-type]
        writing.append(DatasetDeclared(at=at, dataset=Dataset(name=WRONG, edition="1"), population=WRONG, cap=cap))
    ledger.close()
    ledger = home.open()
    assert ledger.verify() == ()
    assert ledger.balance(f"hospital/{WRONG}").cap == HALF
    ledger.declare_version(Dataset(name=WRONG, edition="2"))
    ledger.open_account(f"hospital/{WRONG}/trial", unit=PATIENT, cap=HALF, reason="x")
    for declared in (
        lambda: ledger.open_account(f"hospital/{RIGHT}", unit=PATIENT, cap=HALF, reason="x"),
        lambda: ledger.declare_population(RIGHT, unit=PATIENT, cap=HALF, reason="x"),
        lambda: ledger.declare_dataset(Dataset(name=RIGHT, edition="1"), population="patients", cap=HALF),
    ):
        with pytest.raises(Refused, match="there already in another spelling"):
            declared()


def test_names_that_are_plain_look_nothing_up(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.governance.transaction import Transaction

    ledger = furnished(home)
    monkeypatch.setattr(Transaction, "balances", lambda _: pytest.fail("all balances were read"))
    ledger.open_account("hospital/plain", unit=PATIENT, cap=HALF, reason="x")
    assert Path(home.folder).exists()
