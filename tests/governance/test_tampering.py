"""Whoever can write to the database can do harm; verification finds it and names the place."""

# ruff: noqa: S608 - the statements of a test, on tables of its own

from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.errors import LedgerError
from sfumato.governance.anchor import SignedHead
from sfumato.governance.entries import Reserved, Row
from sfumato.governance.ledger import Ledger
from sfumato.governance.verify import check, check_record
from tests.governance.homes import ACCOUNT, PATIENT, STORES, VISITS, Home, furnished, sqlite_home

HALF = Budget(epsilon="1/2")


@pytest.fixture
def ledger(home: Home) -> Ledger:
    """Six entries of a hospital, and four charges: 7 and 8, 9 and 10, 11 and 12, 13 and 14."""
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    for number in range(4):
        account.commit_text(account.reserve(HALF, datasets=[VISITS]), f"question {number}", f'{{"answer":{number}}}')
    assert ledger.verify() == ()
    return ledger


def rechained(home: Home, after: int) -> None:
    """What a careful forger does: new digests for all rows from a number on."""
    rows = home.execute("SELECT number, kind, body, previous, digest, nonce FROM record ORDER BY number")
    previous, statements = "0" * 64, []
    for row in (Row(*row) for row in rows):
        forged = Row(row.number, row.kind, row.body, previous, "", row.nonce)
        previous = forged.expected
        if row.number >= after:
            changed = f"previous = '{forged.previous}', digest = '{previous}'"
            statements.append(f"UPDATE record SET {changed} WHERE number = {row.number}")
    statements.append(f"UPDATE head SET digest = '{previous}'")
    home.unlocked(*statements)


EDITS: dict[str, tuple[str, int]] = {
    "a smaller charge": ("UPDATE record SET body = replace(body, '1/2', '1/9') WHERE number = 9", 9),
    "another answer": ("UPDATE record SET body = replace(body, 'answer', 'bother') WHERE number = 10", 10),
    "another kind": ("UPDATE record SET kind = 'ledger.released' WHERE number = 10", 10),
    "another digest": ("UPDATE record SET digest = previous WHERE number = 12", 12),
    "no JSON": ("UPDATE record SET body = 'gone' WHERE number = 12", 12),
    "removed": ("DELETE FROM record WHERE number = 9", 10),
    "first removed": ("DELETE FROM record WHERE number = 1", 2),
}


@pytest.mark.few(8)
@pytest.mark.parametrize("home", STORES, indirect=True)
@pytest.mark.claim("S1-03")
@pytest.mark.claim("S1-21")
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_or_removed_row_is_found_and_named(home: Home, ledger: Ledger, edit: str) -> None:
    statement, number = EDITS[edit]
    home.unlocked(statement)
    assert number in {finding.entry for finding in ledger.verify()}


def test_reordered_rows_are_found(home: Home, ledger: Ledger) -> None:
    moves = [(9, 99), (11, 9), (99, 11)]
    home.unlocked(*(f"UPDATE record SET number = {new} WHERE number = {old}" for old, new in moves))
    assert {9, 10, 11, 12} <= {finding.entry for finding in ledger.verify()}


def test_a_truncated_record_is_found_even_with_its_books_put_right(home: Home, ledger: Ledger) -> None:
    home.unlocked(
        "DELETE FROM record WHERE number > 12",
        "UPDATE head SET number = 12, digest = (SELECT digest FROM record WHERE number = 12)",
    )
    assert any(finding.entry == 14 and "missing" in finding.problem for finding in ledger.verify())
    with pytest.raises(LedgerError, match="cut short"):
        home.open()


@pytest.mark.parametrize(
    ("number", "before", "after"),
    [(3, "decided", "invented"), (9, '"recipient":null', '"recipient":"x"'), (14, "answer", "bother")],
)
def test_a_rewritten_chain_is_found_from_the_anchor_and_from_a_published_head(
    home: Home, ledger: Ledger, number: int, before: str, after: str
) -> None:
    """What a replay cannot find wrong by itself: words that somebody put in the place of others."""
    published = ledger.head()
    home.unlocked(f"UPDATE record SET body = replace(body, '{before}', '{after}') WHERE number = {number}")
    rechained(home, number)
    with ledger.record.store.reading() as transaction:
        bare = [replace(row, head="") for row in transaction.rows()]
        signed = {finding.entry for finding in check(transaction, heads=()) if finding.entry}
    alone = list(check_record(bare, heads=(), unsigned=True))
    held = [finding.entry for finding in check_record(bare, heads=(published,), unsigned=True)]
    assert alone == []  # the broken twin: a chain without signatures and without a head outside proves nothing
    assert held == [14]
    assert signed == set(range(number, 15))  # each row that was chained anew
    assert 14 in {finding.entry for finding in ledger.verify()}
    with pytest.raises(LedgerError, match="not the one that was anchored"):
        home.open()


def test_a_forged_head_does_not_hold(ledger: Ledger) -> None:
    forged = SignedHead.sign(ledger.head().head, SigningKey.new())
    assert any("signature" in finding.problem for finding in ledger.verify(forged))
    assert ledger.verify(ledger.head()) == ()


BOOKS = {
    "balance": "UPDATE balance SET epsilon_spent = '1/2' WHERE name = 'account hospital'",
    "a cap": "UPDATE balance SET cap_epsilon = '1000/1' WHERE name = 'population patients'",
    "no number": "UPDATE balance SET epsilon_spent = 'nothing' WHERE name = 'dataset visits'",
    "charge": "UPDATE charge SET state = 'released' WHERE number = 7",
    "lost charge": "DELETE FROM charge WHERE number = 9",
    "answer": "DELETE FROM answer",
    "dataset": "UPDATE edition SET population = 'nobody'",
    "head": "UPDATE head SET epsilon = '0/1'",
}


@pytest.mark.parametrize("edit", BOOKS)
def test_books_that_do_not_follow_from_the_record_are_found(home: Home, ledger: Ledger, edit: str) -> None:
    home.execute(BOOKS[edit])
    assert "state" in " ".join(map(str, ledger.verify()))


ODD = {
    "a loss that is none": "UPDATE charge SET losses = '[1]'",
    "losses that are no list": "UPDATE charge SET losses = '1'",
    "lines that are no list": "UPDATE charge SET lines = '1'",
    "a state that is none": "UPDATE charge SET state = 'gone'",
    "a unit that is none": "UPDATE balance SET unit = '[]'",
}
BYTES = {
    "a body": "UPDATE record SET body = x'ff' WHERE number = 2",
    "the same body": "UPDATE record SET body = CAST(body AS BLOB) WHERE number = 2",
    "the same kind": "UPDATE record SET kind = CAST(kind AS BLOB) WHERE number = 2",
    "a digest": "UPDATE record SET digest = x'00' WHERE number = 2",
    "a unit": "UPDATE balance SET unit = CAST(unit AS BLOB)",
    "a number": "UPDATE balance SET epsilon_spent = x'ff'",
    "a loss": "UPDATE charge SET losses = x'ff'",
    "the head": "UPDATE head SET digest = CAST(digest AS BLOB)",
}


@pytest.mark.parametrize("edit", ODD)
def test_books_that_hold_something_else_are_a_finding_and_no_crash(home: Home, ledger: Ledger, edit: str) -> None:
    home.execute(ODD[edit])
    assert "state" in " ".join(map(str, ledger.verify()))


@pytest.mark.few(3)
@pytest.mark.parametrize("edit", BYTES)
def test_bytes_in_the_place_of_a_text_are_found(tmp_path: Path, edit: str) -> None:
    home = sqlite_home(tmp_path)
    ledger = furnished(home)
    ledger.account(ACCOUNT, unit=PATIENT).reserve(HALF, datasets=[VISITS])
    assert ledger.verify() == ()
    home.unlocked(BYTES[edit])
    assert ledger.verify() != ()
    ledger.close()


def test_a_number_that_is_none_stops_the_charge(home: Home, ledger: Ledger) -> None:
    home.execute(BOOKS["no number"])
    with pytest.raises(LedgerError, match="not a number"):
        ledger.account(ACCOUNT, unit=PATIENT).reserve(HALF, datasets=[VISITS])


def test_an_entry_above_its_cap_is_found(home: Home, ledger: Ledger) -> None:
    """A record that was written by a broken ledger, chained and anchored as it should be."""
    with ledger.record.writing() as writing:
        row = writing.transaction.row(13)
        assert row is not None
        assert isinstance(row.entry, Reserved)
        writing.append(replace(row.entry, cost=Budget(epsilon=1000)))
    findings = ledger.verify()
    assert [finding.entry for finding in findings] == [15]
    assert "asks for ε = 1000" in str(findings[0])


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_the_database_itself_refuses_to_change_the_record(home: Home, ledger: Ledger) -> None:
    import sqlalchemy.exc

    for statement in ("UPDATE record SET body = ''", "DELETE FROM record"):
        with pytest.raises(sqlalchemy.exc.DBAPIError, match="never changed"):
            home.execute(statement)
    assert ledger.verify() == ()
