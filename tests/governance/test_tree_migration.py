"""A ledger of signed rows, from before heads stated a tree of entries, gets one; anything wrong with it stops that."""

# ruff: noqa: S608 - the statements of a test, on tables of its own

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from sfumato.errors import LedgerError
from sfumato.governance.anchor import FileAnchor, SignedHead
from sfumato.governance.entries import Migrated, Recovered
from sfumato.governance.entry_tree import Frontier, leaf_hash
from sfumato.governance.ledger import Ledger
from sfumato.governance.migrations import migrate
from sfumato.governance.store import Store
from tests.governance.homes import STORES, Home
from tests.governance.test_store_faults import older

TABLES = ("record", "head", "balance", "edition", "charge", "answer", "node")


def moved_to(home: Home, old: Home) -> Home:
    """The same older ledger on another store, by its rows."""
    if home.lite:
        return old
    store, source = Store(home.url), sqlite3.connect(old.url)
    with store.migrating() as connection:
        migrate(connection, to="0005")
        for name in TABLES:
            rows = source.execute(f"SELECT * FROM {name}")
            names = [column[0] for column in rows.description]
            kinds = {each["name"]: each["type"] for each in sa.inspect(connection).get_columns(name)}
            table = sa.table(name, *map(sa.column, names))
            for row in rows:
                given = {
                    key: bool(value) if isinstance(kinds[key], sa.Boolean) else value
                    for key, value in zip(names, row, strict=True)
                }
                connection.execute(sa.insert(table), given)
    source.close()
    store.close()
    return Home(url=home.url, folder=old.folder)


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_a_ledger_of_signed_rows_gets_its_tree(home: Home, tmp_path: Path) -> None:
    home = moved_to(home, older(tmp_path, "0005"))
    said = "SELECT number, kind, body, previous, digest, nonce, head FROM record ORDER BY number"
    before = home.execute(said)
    ledger = home.open()
    assert ledger.verify() == ()
    assert home.execute(said)[:-1] == before  # old entries are untouched
    *_, last = ledger.rows()
    entry = last.entry
    assert isinstance(entry, Migrated)
    assert (entry.tables, entry.digest, last.number) == ("0005", before[-1][4], 21)
    frontier = Frontier()
    for row in ledger.rows():  # entries 9 to 11 were lost
        frontier = frontier.without(row.number - 1 - frontier.size).after(leaf_hash(row.digest))
        assert row.subtrees == frontier.subtrees
    assert ledger.head().head.tree == frontier.root().hex()
    assert ledger.record.anchored() == ledger.head()
    assert home.open().head() == ledger.head()  # once
    with pytest.raises(sa.exc.DBAPIError, match="the record of a ledger is never changed"):  # as before
        home.execute("UPDATE record SET subtrees = ''")
    ledger.close()


FORGERIES = {
    "an edited entry": ("UPDATE record SET body = replace(body, '1/2', '1/9') WHERE number = 7", "was edited"),
    "an entry without a signature": ("UPDATE record SET head = '' WHERE number = 20", "is not signed"),
    "an old signature": (
        "UPDATE record SET head = (SELECT head FROM record WHERE number = 8) WHERE number = 20",
        "carries a signature that does not hold",
    ),
    "cut short": ("DELETE FROM record WHERE number > 15", "is missing: a signed head states it"),
    "a digest that is none": ("UPDATE record SET digest = 'x' WHERE number = 20", "not one of hexadecimal digits"),
    "an entry from far away": (
        "UPDATE record SET number = 1000000000000 WHERE number = 20",
        "does not follow entry 19: 20 to 999999999999 are missing",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_it_is_verified_before_its_tree_is_signed(tmp_path: Path, forgery: str) -> None:
    home = older(tmp_path, "0005")
    statement, words = FORGERIES[forgery]
    home.unlocked(statement)
    with pytest.raises(LedgerError, match=words):
        home.open()
    assert home.execute("SELECT version_num FROM alembic_version") == [("0005",)]
    assert "frontier" not in {row[1] for row in home.execute("PRAGMA table_info(head)")}


def test_signed_entries_after_the_anchor_are_brought_along(tmp_path: Path) -> None:
    """A process was killed between the record and the anchor, before the tables were changed."""
    home = older(tmp_path, "0005")
    (text,) = home.execute("SELECT head FROM record WHERE number = 19")[0]
    home.anchor.unlink()
    FileAnchor(home.anchor).create(SignedHead.read(text))
    ledger = home.open()
    assert ledger.verify() == ()
    assert ledger.head().head.number == 21


def test_a_killed_migration_leaves_no_way_back(tmp_path: Path) -> None:
    """The anchor still holds a head without a tree: a database that is put back to it, with no tree, is refused."""
    home = older(tmp_path, "0005")
    number, digest, state, decisions = home.execute("SELECT number, digest, state, decisions FROM head")[0]
    Ledger.unchecked(home.url, key=home.key, anchor=home.anchor).close()
    last = FileAnchor(home.anchor).last()
    assert last is not None
    assert last.head.tree == ""
    home.unlocked(
        f"DELETE FROM record WHERE number > {number}",
        f"UPDATE head SET number = {number}, digest = '{digest}', state = '{state}', decisions = '{decisions}', "
        "frontier = '0:'",
    )
    with pytest.raises(LedgerError, match="not the signed end of the record"):
        home.open()


def test_tables_older_than_their_anchor_are_a_backup_that_can_be_recovered(tmp_path: Path) -> None:
    home = older(tmp_path, "0005")
    kept = Path(home.url).read_bytes()
    ledger = home.open()
    ledger.confirm_clock("it lay in a drawer")
    ledger.close()
    for left in Path(home.folder).glob("ledger.db*"):
        left.unlink()
    Path(home.url).write_bytes(kept)
    with pytest.raises(LedgerError, match="are older than its anchor"):
        home.open()
    ledger = Ledger.recover(home.url, key=home.key, anchor=home.anchor, reason="a backup")
    *_, last = ledger.rows()
    entry = last.entry
    assert isinstance(entry, Recovered)
    assert (entry.lost, entry.whole, last.number) == (2, False, 24)  # its rows are signed: they are the ledger's own
    assert ledger.verify() == ()
