"""One conformance test for every kind of anchor, and ledgers that are anchored in a second database."""

import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, LedgerError
from sfumato.governance import settings
from sfumato.governance.anchor import Anchor, Head, SignedHead
from sfumato.governance.anchor_database import TABLE, DatabaseAnchor, anchor_at
from sfumato.governance.ledger import Ledger
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, dropped, furnished, postgres_home, sqlite_home

KEY = SigningKey.new()
HALF = Budget(epsilon="1/2")


def head_at(number: int, *, ledger: str = "a", digest: str = "0" * 64) -> SignedHead:
    head = Head(ledger=ledger, number=number, digest=digest, at="2026", epsilon=Fraction(0), delta=Fraction(0))
    return SignedHead.sign(head, KEY)


@pytest.fixture(params=["file", "sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The text that names an anchor which does not exist yet, of each kind."""
    if request.param != "postgresql":
        yield str(tmp_path / "anchor") if request.param == "file" else f"sqlite:///{tmp_path}/anchors.db#hospital"
        return
    server = request.getfixturevalue("postgres_url")
    home = postgres_home(tmp_path, server)
    yield f"{home.url}#hospital"
    dropped(home, server)


def spoilt(place: str) -> None:
    """Write something else over the head, as whoever can write to the anchor could."""
    if "://" not in place:
        Path(place).write_bytes(b"x" * 20_000)
        return
    url = place.rpartition("#")[0]
    Home(url=url.removeprefix("sqlite:///"), folder="").execute(f"UPDATE {TABLE} SET head = 'x'")  # noqa: S608 - ours


def test_an_anchor_of_every_kind_only_moves_forward(place: str) -> None:
    anchor: Anchor = anchor_at(place)
    assert anchor.last() is None
    assert anchor.readable() is None
    assert anchor.witnessed() is None
    anchor.set_aside()  # nothing is there
    anchor.create(head_at(1))
    for number, newest in ((2, 2), (7, 7), (5, 7), (3, 7), (6, 7)):
        assert anchor.advance(head_at(number), durable=number % 2 == 0) == head_at(newest)
    assert anchor_at(place).last() == anchor.readable() == head_at(7)
    with pytest.raises(LedgerError, match="another ledger"):
        anchor.advance(head_at(9, ledger="b"), durable=True)
    with pytest.raises(LedgerError, match="two copies"):
        anchor.advance(head_at(7, digest="1" * 64), durable=True)
    with pytest.raises(LedgerError, match="exist"):
        anchor.create(head_at(1))
    assert anchor.last() == head_at(7)
    for text in ("one", "two"):
        anchor.keep_witnessed(text)
    assert anchor_at(place).witnessed() == "two"
    anchor.close()
    assert anchor.last() == head_at(7)  # it can be used again
    anchor.close()


def test_what_an_anchor_of_any_kind_cannot_read_is_set_aside(place: str) -> None:
    anchor = anchor_at(place)
    anchor.create(head_at(3))
    spoilt(place)
    assert anchor.readable() is None
    for use in (anchor.last, lambda: anchor.advance(head_at(4), durable=True)):
        with pytest.raises(LedgerError, match="no head that can be read"):
            use()
    anchor.set_aside()
    assert anchor.last() is None
    anchor.create(head_at(4))
    assert anchor.last() == head_at(4)
    anchor.close()


def test_several_who_move_an_anchor_at_once_never_move_it_back(place: str) -> None:
    anchor_at(place).create(head_at(1))
    seen: list[int] = []

    def move(start: int) -> None:
        anchor = anchor_at(place)
        for number in range(start, 40, 4):
            newest = anchor.advance(head_at(number), durable=False).head.number
            assert newest >= number
            seen.append(newest)
        anchor.close()

    threads = [threading.Thread(target=move, args=(start,)) for start in (2, 3, 4, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 38
    last = anchor_at(place).last()
    assert last is not None
    assert last.head.number == 39


def charge(ledger: Ledger) -> None:
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.commit_text(account.reserve(HALF, datasets=[VISITS]), "question", "{}")


def test_a_ledger_lives_with_an_anchor_of_any_kind(tmp_path: Path, place: str) -> None:
    """Made, charged, opened, restored from an old backup, refused, recovered: by the text that names its anchor."""
    (tmp_path / "ours").mkdir()
    plain = sqlite_home(tmp_path / "ours")

    class There(Home):
        anchor = place  # type: ignore[assignment]

    home = There(plain.url, plain.folder)
    ledger = furnished(home)
    charge(ledger)
    ledger.close()
    files: dict[Path, bytes] = {file: file.read_bytes() for file in Path(home.url).parent.glob("ledger.db*")}
    ledger = home.open()
    charge(ledger)
    ledger.close()
    for file in Path(home.url).parent.glob("ledger.db*"):
        file.unlink()
    for file, held in files.items():
        file.write_bytes(held)
    with pytest.raises(LedgerError, match="old backup"):
        home.open()
    recovered = Ledger.recover(home.url, key=home.key, anchor=place, reason="the disk failed")
    assert recovered.balance(ACCOUNT).spent == Budget(epsilon=1)
    assert recovered.verify() == ()
    recovered.close()
    spoilt(place)
    with pytest.raises(LedgerError, match="no head that can be read"):
        home.open()
    recovered = Ledger.recover(home.url, key=home.key, anchor=place, reason="the anchor is gone")
    assert recovered.balance(ACCOUNT).left == Budget.none()
    recovered.close()


def test_an_anchor_in_the_ledgers_own_database_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    with pytest.raises(InvalidInput, match="own database"):
        Ledger.create(place, key=SigningKey.new(), anchor=f"sqlite:///{place}#anchor")
    assert not place.exists()


def test_a_database_that_is_down_does_not_pass_for_a_lost_anchor(tmp_path: Path) -> None:
    """Else a recovery would charge everything because of a cable."""
    anchor = anchor_at(f"sqlite:///{tmp_path}/anchors.db")
    anchor.create(head_at(1))
    anchor.close()
    (tmp_path / "anchors.db").write_bytes(b"not a database at all" * 100)
    readers: list[Callable[[], Any]] = [anchor.last, anchor.readable]
    for read in readers:
        with pytest.raises(LedgerError, match="cannot be used: file is not a database"):
            read()


def test_names_behind_the_mark_are_rows_and_passwords_stay_hidden(tmp_path: Path) -> None:
    one, two = (DatabaseAnchor(f"sqlite:///{tmp_path}/anchors.db#{name}") for name in ("one", "two"))
    one.create(head_at(1))
    two.create(head_at(2, ledger="b"))
    assert [anchor.last() for anchor in (one, two)] == [head_at(1), head_at(2, ledger="b")]
    pytest.importorskip("psycopg")
    there = anchor_at("postgresql://ada:se#cret@db/anchors#oncology")
    assert there.name == "postgresql+psycopg://ada:***@db/anchors#oncology"


def test_settings_name_an_anchor_of_either_kind(tmp_path: Path) -> None:
    made = settings.made(tmp_path / "here", anchor=f"sqlite:///{tmp_path}/anchors.db#x", witness="http://10.0.0.7:8470")
    assert made.same_disk is None
    found = settings.found(tmp_path / "here")
    assert (found.anchor, found.witness) == (made.anchor, "http://10.0.0.7:8470")
    ledger = settings.opened(tmp_path / "here")
    assert ledger.record.anchor.name == f"{tmp_path}/anchors.db#x"
    ledger.close()
    with pytest.raises(LedgerError, match="exists already"):
        settings.made(tmp_path / "there", anchor=f"sqlite:///{tmp_path}/anchors.db#x")
    found.file.write_text(found.file.read_text() + "more = 1\n")
    with pytest.raises(InvalidInput, match="unknown fields"):
        settings.found(tmp_path / "here")
