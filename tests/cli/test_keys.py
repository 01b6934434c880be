"""``key new`` and ``key show``."""

import json
import stat

import pytest

from sfumato.core.signature import SigningKey, read_public_key, signature_holds


def test_a_new_key_is_its_owners_alone_and_signs(run, tmp_path):
    file = tmp_path / "board.key"
    outcome = run("key", "new", file)
    assert outcome.exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    public = read_public_key(tmp_path / "board.key.pub")
    assert public in outcome.stdout
    assert signature_holds(public, SigningKey.load(file).sign(b"text"), b"text")


@pytest.mark.parametrize("taken", ["board.key", "board.key.pub"])
def test_nothing_is_overwritten(run, tmp_path, taken):
    (tmp_path / taken).write_text("mine")
    outcome = run("key", "new", tmp_path / "board.key")
    assert outcome.exit_code == 1
    assert "not overwritten" in outcome.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {taken: "mine"}


def test_a_key_where_none_can_be_written(run, tmp_path):
    outcome = run("key", "new", tmp_path / "no" / "board.key")
    assert outcome.exit_code == 1
    assert "No such file or directory" in outcome.stderr


def test_both_halves_show_the_public_one_and_nothing_else(run, tmp_path):
    key = SigningKey.new()
    key.save(tmp_path / "k")
    for file in ("k", "k.pub"):
        outcome = run("key", "show", tmp_path / file)
        assert (outcome.exit_code, outcome.stdout) == (0, key.public_text + "\n")


@pytest.mark.parametrize("content", [None, b"", b"a letter", b"\xff\x00", b"0" * 63])
def test_what_is_no_key_is_not_shown(run, tmp_path, content):
    if content is not None:
        (tmp_path / "k").write_bytes(content)
    outcome = run("key", "show", tmp_path / "k")
    assert outcome.exit_code == 1
    assert outcome.stdout == ""
    assert ("sfumato key new" if content is None else "is not an Ed25519 signing key") in outcome.stderr


def test_keys_for_programs(run, tmp_path):
    file = tmp_path / "k"
    made = json.loads(run("key", "new", file, "--json").stdout)
    assert made == {"key": str(file), "public_key_file": f"{file}.pub", "public_key": read_public_key(f"{file}.pub")}
    assert json.loads(run("key", "show", file, "--json").stdout) == {"public_key": made["public_key"]}
