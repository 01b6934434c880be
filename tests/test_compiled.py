"""Compiling is shared out: every file is someone's, and what is written is what pytest reads."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.assertion import rewrite

from tests import compiled


def test_every_file_is_in_one_share(tmp_path: Path) -> None:
    for size in range(7):
        (tmp_path / f"{size}.py").write_text("#" * size)
    files = sorted(tmp_path.glob("*.py"))
    shares = compiled.shares(reversed(files), 2)
    assert sorted(file for share in shares for file in share) == files
    assert shares == compiled.shares(files, 2)
    assert [len(share) for share in shares] == [4, 3]


def test_a_file_that_is_named_by_itself_is_not_looked_for(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("a.py", "inner/b.py", "c.txt"):
        (tmp_path / name).touch()
    assert compiled.sources([str(tmp_path), str(tmp_path / "inner")]) == [tmp_path / "a.py", tmp_path / "inner/b.py"]
    assert compiled.sources([str(tmp_path / "a.py"), "nowhere", f"{tmp_path}/a.py::test_it"]) == []


def test_pytest_reads_what_a_worker_wrote(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    test, other = tmp_path / "test_it.py", tmp_path / "other.py"
    test.write_text("def test_it():\n    assert 1 == 2\n")
    other.write_text("one = 1\n")
    for file in (test, other):
        compiled.compiled(file, pytestconfig)
    rewritten, plain = sorted((tmp_path / "__pycache__").iterdir(), key=lambda file: "pytest" not in file.name)
    code = rewrite._read_pyc(test, rewritten)
    assert code is not None
    assert "@pytest_ar" in code.co_names
    assert plain.name.startswith("other.")
    before = rewritten.stat()
    compiled.compiled(test, pytestconfig)
    assert rewritten.stat() == before
    test.write_text("def test_it():\n    assert 1 == 1\n")
    compiled.compiled(test, pytestconfig)
    assert rewritten.stat() != before


def test_each_worker_compiles_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).touch()
    done: list[list[str]] = []
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(compiled, "compiled", lambda file, _: done[-1].append(file.name))
    for worker in ({"workerid": "gw0", "workercount": 2}, {"workerid": "gw1", "workercount": 2}, None):
        config = (
            SimpleNamespace(args=[str(tmp_path)])
            if worker is None
            else SimpleNamespace(args=[str(tmp_path)], workerinput=worker)
        )
        done.append([])
        session: Any = SimpleNamespace(config=config)
        compiled.pytest_collection(session)
    assert done == [["a.py", "c.py"], ["b.py"], []]
