"""The settings of a ledger: made once, found again, moved as a whole, and never telling a password."""

import stat
from pathlib import Path

import pytest

from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, LedgerError, NotDeclared
from sfumato.governance import settings
from sfumato.governance.settings import Settings, file_of, found, made, opened


def test_a_ledger_is_made_with_all_it_needs_and_found_by_folder_file_and_database(tmp_path):
    where = made(tmp_path)
    assert (tmp_path / "ledger.toml").read_text("utf-8") == (
        'url = "ledger.db"\nkey = "ledger.key"\nanchor = "ledger.anchor"\n'
    )
    assert stat.S_IMODE((tmp_path / "ledger.key").stat().st_mode) == 0o600
    for given in (tmp_path, tmp_path / "ledger.toml", tmp_path / "ledger.db", str(tmp_path / "ledger.db")):
        ledger = opened(given)
        assert ledger.verify() == ()
        ledger.close()
    assert where.same_disk is True


@pytest.mark.parametrize("named", ["budget.toml", "budget.db", "budget.sqlite"])
def test_files_are_named_after_the_one_that_is_given(tmp_path, named):
    made(tmp_path / named)
    database = named if not named.endswith(".toml") else "budget.db"
    assert {file.name for file in tmp_path.iterdir()} >= {"budget.toml", database, "budget.key", "budget.anchor"}
    opened(tmp_path / named).close()


def test_a_ledger_can_be_moved_as_a_whole(tmp_path):
    made(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    ledger = opened(tmp_path / "new")
    assert ledger.verify() == ()
    ledger.close()


def test_the_anchor_and_the_key_may_lie_elsewhere(tmp_path):
    (tmp_path / "disk").mkdir()
    SigningKey.new().save(tmp_path / "mine.key")
    where = made(tmp_path / "here", anchor=tmp_path / "disk" / "anchor", key=tmp_path / "mine.key")
    assert opened(tmp_path / "here").key.public_text == SigningKey.load(tmp_path / "mine.key").public_text
    assert found(tmp_path / "here").anchor == where.anchor == tmp_path / "disk" / "anchor"
    assert not (tmp_path / "here" / "ledger.key").exists()


def test_nothing_is_made_twice_and_nothing_is_overwritten(tmp_path):
    made(tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.suffix != ".db"}
    with pytest.raises(LedgerError, match="is there already"):
        made(tmp_path)
    (tmp_path / "ledger.toml").unlink()
    with pytest.raises(LedgerError, match=r"ledger\.anchor is there already"):
        made(tmp_path)
    with pytest.raises(LedgerError, match="holds a ledger already"):
        made(tmp_path / "other.toml", url=str(tmp_path / "ledger.db"))
    assert not (tmp_path / "other.toml").exists()
    assert not (tmp_path / "other.key").exists()
    del before["ledger.toml"]
    assert before.items() <= {file.name: file.read_bytes() for file in tmp_path.iterdir()}.items()


def test_a_folder_for_the_anchor_is_never_made_since_its_disk_may_be_missing(tmp_path):
    with pytest.raises(InvalidInput, match="its disk may be missing"):
        made(tmp_path / "here", anchor=tmp_path / "absent" / "anchor")
    assert not (tmp_path / "here").exists()
    assert not (tmp_path / "absent").exists()


def test_the_environment_names_a_ledger_where_nothing_else_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(settings.VARIABLE, raising=False)
    assert file_of() == Path("ledger.toml")
    monkeypatch.setenv(settings.VARIABLE, str(tmp_path / "a.toml"))
    assert file_of() == tmp_path / "a.toml"
    assert file_of("b.toml") == Path("b.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no settings file"),
        (b"url = ", "is not TOML"),
        (b"\xff\xfe", "is not TOML in UTF-8"),
        (b"url = " + b"9" * 5000, "is not TOML"),
        (b'url = "a\\u0000.db"\nkey = "b"\nanchor = "c"', "does not say url"),
        (b'url = "a.db"\nkey = "~nobody-of-that-name/b"\nanchor = "c"', "nobody knows the home folder"),
        (b'url = "a"\nkey = "b"', "does not say anchor"),
        (b'url = 3\nkey = "b"\nanchor = "c"', "does not say url"),
        (b'url = "a"\nkey = "b"\nanchor = "c"\nport = 1', "unknown fields: 'port'"),
        (b'url = "a.db"\nkey = "b"\nanchor = "c"', "the key .*b that .* names is not there"),
    ],
)
def test_what_is_wrong_with_settings_is_said_with_their_name(tmp_path, text, words):
    place = tmp_path / "ledger.toml"
    if text is not None:
        place.write_bytes(text)
    with pytest.raises((NotDeclared, InvalidInput, LedgerError), match=words) as refused:
        opened(place)
    assert "ledger.toml" in str(refused.value)
    assert list(tmp_path.glob("*.db")) == []


def test_another_key_does_not_open_a_ledger(tmp_path):
    made(tmp_path)
    SigningKey.new().save(tmp_path / "other.key")
    text = (tmp_path / "ledger.toml").read_text("utf-8").replace("ledger.key", "other.key")
    (tmp_path / "wrong.toml").write_text(text, "utf-8")
    with pytest.raises(LedgerError, match="signed with another key"):
        opened(tmp_path / "wrong.toml")


def test_an_address_alone_is_no_ledger():
    with pytest.raises(NotDeclared, match="which key and which anchor") as refused:
        opened("postgresql://ada:secret@db/ledger")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["postgresql://ada:s%40cret@db/l", "postgresql://db/l?user=ada&password=s%40cret"])
def test_a_password_is_written_for_its_owner_alone_and_never_shown(tmp_path, url):
    where = Settings(file=tmp_path / "ledger.toml", url=url, key=tmp_path / "k", anchor=tmp_path / "a")
    where.write()
    assert stat.S_IMODE(where.file.stat().st_mode) == 0o600
    assert Settings.load(where.file).url == url
    assert "cret" not in where.address + repr(where)
    with pytest.raises(LedgerError, match="was not overwritten"):
        where.write()


def test_a_ledger_on_a_server(tmp_path, postgres_url):
    from tests.governance.homes import dropped, postgres_home

    home = postgres_home(tmp_path, postgres_url)
    try:
        where = made(tmp_path, url=home.url)
        assert where.same_disk is None
        ledger = opened(tmp_path)
        assert ledger.verify() == ()
        ledger.close()
    finally:
        dropped(home, postgres_url)


def test_an_owner_process_is_named_by_itself_by_the_environment_or_by_settings(tmp_path, monkeypatch):
    address = "unix:/run/sfumato/ledger.sock"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(settings.VARIABLE, raising=False)
    assert settings.owner_of(None) is None  # there is nothing at all
    assert settings.owner_of("postgresql://db/ledger") is None
    assert settings.owner_of(address) == settings.owner_of(Path(address)) == address
    monkeypatch.setenv(settings.VARIABLE, address)
    assert settings.owner_of() == address
    (tmp_path / "other.toml").write_text(f'url = "{address}"\n')
    assert settings.owner_of("other.toml") == address
    made(tmp_path / "own")
    assert settings.owner_of(tmp_path / "own") is None
    for given in (None, address, "other.toml"):
        with pytest.raises(NotDeclared, match=r"is an owner process, which is for charging.*needs the ledger itself"):
            opened(given)
    (tmp_path / "other.toml").write_text(f'url = "{address}"\nkey = "k"\n')
    with pytest.raises(InvalidInput, match="keeps key and anchor itself"):
        settings.owner_of("other.toml")
