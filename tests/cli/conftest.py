"""A small signed release on disk, and a way to run commands."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli.app import app
from sfumato.core.signature import SigningKey
from tests.cli.institution import furnished, governed, written

Run = Callable[..., Any]


def _run() -> Run:
    runner = CliRunner(env={"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"})
    return lambda *words: runner.invoke(app, [str(word) for word in words])


@pytest.fixture
def run() -> Run:
    """Run a command and return what became of it."""
    return _run()


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A release, signed once for all tests: ili.json, key, key.pub."""
    folder = tmp_path_factory.mktemp("made")
    SigningKey.new().save(folder / "key")
    vault = sf.Vault(
        unit=sf.user("id", relation="add/remove"),
        budget=sf.Budget(epsilon=1),
        name="clinic",
        key=folder / "key",
    )
    rows = pa.table({"id": [1, 1, 2, 3], "region": ["north", "south", "north", "south"]})
    visits = vault.table(
        rows,
        name="visits",
        version="1",
        limit=sf.Limit(groups=1, rows_per_group=1),
        keys={"region": ["north", "south"]},
    )
    visits.group_by("region").count().release(epsilon=0.5).certificate.save(folder / "ili.json")
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def place(tmp_path: Path, made: dict[str, bytes]) -> Path:
    """A folder of its own with these files."""
    for name, content in made.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "key").chmod(0o600)
    return tmp_path


@pytest.fixture(scope="session")
def institutions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two institutions, made once for all tests: plain, and seated with terms and a board."""
    folder = tmp_path_factory.mktemp("institutions")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SFUMATO_LEDGER", raising=False)
        for name in ("plain", "seated"):
            (folder / name).mkdir()
            patch.chdir(folder / name)
            written(folder / name)
            furnished(_run())
        governed(_run())
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, institutions: Path) -> Path:
    """The folder of a furnished institution, in which commands run."""
    return _moved_into(institutions / "plain", tmp_path, monkeypatch)


@pytest.fixture
def seated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, institutions: Path) -> Path:
    """The same with terms and a board."""
    return _moved_into(institutions / "seated", tmp_path, monkeypatch)


def _moved_into(source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(source, folder, dirs_exist_ok=True)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    return folder
