"""Whoever can write anything to the database can stop a ledger, and cannot have it give what it would have refused."""

import copy
import random
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import LedgerError
from sfumato.governance import receipts
from sfumato.governance.entry_tree import inclusion_holds
from sfumato.governance.signed_record import SignedRecord
from sfumato.governance.transaction import Transaction
from tests.governance.adversary import (
    REFUSED,
    Change,
    Scene,
    aimed,
    anything,
    copied,
    fooled,
    outcomes,
    scene,
    written,
)
from tests.governance.homes import dropped, postgres_home, sqlite_home


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def hostile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A ledger with something of everything; each test forges a copy of it."""
    folder = tmp_path_factory.mktemp("hostile")
    if request.param == "sqlite":
        yield scene(sqlite_home(folder))
        return
    from dataclasses import replace

    server = request.getfixturevalue("postgres_url")
    home = postgres_home(folder, server)
    yield replace(scene(home), server=server)
    dropped(home, server)


@pytest.fixture(scope="module")
def untouched(hostile: Scene, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    home = copied(hostile, tmp_path_factory.mktemp("untouched") / "home")
    found = outcomes(hostile, home.open)
    if hostile.server:
        dropped(home, hostile.server)
    return found


def after(hostile: Scene, change: Change, place: Path, chance: random.Random, *, running: bool) -> dict[str, object]:
    """What a ledger gives after a change; of one that is ``running``, which was opened before it."""
    tables = copy.deepcopy(hostile.now)
    change(tables, chance)
    home = copied(hostile, place)
    ledger = home.open() if running else None
    if ledger is not None:
        ledger.decision_state()  # and keeps in memory what it keeps there
    held = written(home, hostile.now, tables)
    try:
        return outcomes(hostile, home.open if ledger is None else lambda: ledger) if held else {}
    finally:
        if hostile.server:
            dropped(home, hostile.server)


def test_the_untouched_ledger_gives_and_refuses_what_it_should(untouched: dict[str, Any]) -> None:
    refused = {name for name, outcome in untouched.items() if outcome == REFUSED}
    assert refused == {
        *("over the cap of the account", "over the cap of the population", "under a veto", "of a closed version"),
        *("of a version that nobody declared", "by an account that nobody opened", "another request under a key"),
        *("under a key that was given back", "a second draw for a charge", "a started charge given back"),
        *("a charge of something else", "a place of a stream again", "an answer without a start"),
        *("a second opening", "a dataset of other people", "a veto lifted by somebody", "a raise without a decision"),
    }
    assert untouched["the answer of a retry"] == untouched["a stored answer"] == ("given", '{"answer":7}')
    receipt = untouched["a receipt"][1]
    assert inclusion_holds(
        receipt.leaf('{"answer":7}'),
        *(receipt.number - 1, receipt.head.head.number),
        *([bytes.fromhex(each) for each in receipt.path], bytes.fromhex(receipt.head.head.tree)),
    )
    assert untouched["a proposal about people"] == ("given", ("scans",))


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_aimed_forgeries_get_nothing(
    hostile: Scene, untouched: dict[str, object], tmp_path: Path, *, every: bool
) -> None:
    """Without ``every`` a map that fits is made for the first five alone: what is refused then is its root."""
    changes = aimed(hostile)
    fitting = [name for name in changes if name.endswith("a map that fits")]
    chosen = {name: change for name, change in changes.items() if every or name not in fitting[5:]}
    wrong = {}
    for number, (name, change) in enumerate(chosen.items()):
        found = after(hostile, change, tmp_path / str(number), random.Random(number), running=number % 2 == 0)
        if fooled(untouched, found):
            wrong[name] = fooled(untouched, found)
    assert wrong == {}
    assert len(chosen) > 75


def tried(hostile: Scene, untouched: dict[str, object], place: Path, times: int) -> dict[int, list[str]]:
    """The seeds of changes by chance that got something."""
    wrong = {}
    for turn in range(times):
        seed = secrets.randbits(64)
        found = after(hostile, anything(hostile), place / str(turn), random.Random(seed), running=turn % 2 == 0)
        if fooled(untouched, found):
            wrong[seed] = fooled(untouched, found)
    return wrong


@pytest.mark.parametrize("times", [10, pytest.param(1000, marks=pytest.mark.long)])
def test_changes_by_chance_get_nothing(
    hostile: Scene, untouched: dict[str, object], tmp_path: Path, times: int
) -> None:
    """A property without a limit to set: no change may ever get anything, so that chance cannot make this fail."""
    assert tried(hostile, untouched, tmp_path, times) == {}


VERSIONS = {
    "an older version": ("UPDATE alembic_version SET version_num = '0004'",),
    "a newer version": ("UPDATE alembic_version SET version_num = '9999'",),
    "two versions": (
        "CREATE TABLE bare AS SELECT * FROM alembic_version",
        "DROP TABLE alembic_version",
        "ALTER TABLE bare RENAME TO alembic_version",
        "INSERT INTO alembic_version VALUES ('0004')",
    ),
    "no version": ("DELETE FROM alembic_version",),
    "a trigger that undoes what is charged": (
        "CREATE TRIGGER undone AFTER UPDATE ON balance BEGIN "
        "UPDATE balance SET epsilon_spent = '0/1' WHERE name = NEW.name; END",
    ),
    "a trigger that forgets the record": (
        "CREATE TRIGGER forgotten AFTER INSERT ON record BEGIN DELETE FROM record WHERE number = NEW.number; END",
    ),
}


@pytest.mark.parametrize("what", VERSIONS)
def test_other_tables_and_triggers_get_nothing(
    hostile: Scene, untouched: dict[str, object], tmp_path: Path, what: str
) -> None:
    if hostile.server and "trigger" in what:
        pytest.skip("a trigger in the words of SQLite")
    home = copied(hostile, tmp_path / "home")
    home.unlocked(*VERSIONS[what])
    assert fooled(untouched, outcomes(hostile, home.open)) == []
    if "trigger" in what:  # a charge was made and counts: the next one is refused, or knows of it
        with pytest.raises(LedgerError):
            assert home.account().spent
    if hostile.server:
        dropped(home, hostile.server)


@pytest.mark.parametrize("times", [10, pytest.param(300, marks=pytest.mark.long)])
def test_a_damaged_file_gives_nothing_and_is_refused_in_words(
    hostile: Scene, untouched: dict[str, object], tmp_path: Path, times: int
) -> None:
    """A few bytes by chance, anywhere in the file: whatever the driver raises is an error of the ledger's."""
    if hostile.server:
        pytest.skip("a server has files of its own")
    for turn in range(times):
        home, seed = copied(hostile, tmp_path / str(turn)), secrets.randbits(64)
        chance, place = random.Random(seed), Path(home.url)
        body = bytearray(place.read_bytes())
        for _ in range(chance.randint(1, 40)):
            body[chance.randrange(100, len(body))] = chance.randrange(256)
        place.write_bytes(bytes(body))
        assert fooled(untouched, outcomes(hostile, home.open)) == [], seed


def unproven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transaction, "prove", lambda self: self._met.clear())


def unsigned(monkeypatch: pytest.MonkeyPatch) -> None:
    def believed(self: SignedRecord, transaction: Transaction, last: Any) -> Any:
        return self._head(transaction.end())

    monkeypatch.setattr(SignedRecord, "proven", believed)


def unheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts, "_wrong", lambda *_: False)


BROKEN = {
    "any proof is handed out": (unheld, ["other subtrees"]),
    "nothing is proven": (unproven, ["nothing spent by the account", "a settled charge open", "an answer removed"]),
    "any head is believed": (unsigned, ["appended: an account", "a raised cap, and a map that fits"]),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_deliberately_broken_ledger_is_caught(
    hostile: Scene, untouched: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    broken, names = BROKEN[fault]
    broken(monkeypatch)
    for number, name in enumerate(names):
        found = after(hostile, aimed(hostile)[name], tmp_path / str(number), random.Random(0), running=False)
        assert fooled(untouched, found), name
