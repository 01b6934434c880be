"""Shares out the compiling among the workers of pytest-xdist: on a fresh clone each would compile every file itself.

Each worker collects all tests, and so imports all of them and the package. Before it begins, it compiles its share of
the files into the caches, those of tests with pytest's rewritten asserts; the shares of the others it then finds there.
Nobody waits for anybody: a file that another worker has not come to yet is compiled once more. Where the folders may
not be written, where nothing is to be compiled, or without workers, tests run as they would without this.
"""

import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def shares(files: Iterable[Path], workers: int) -> list[list[Path]]:
    """Divide files by their sizes: every file is in one share, and the same in each process."""
    ordered = sorted(files, key=lambda file: (-file.stat().st_size, file))
    return [ordered[place::workers] for place in range(workers)]


def sources(places: Sequence[str]) -> list[Path]:
    """All Python files in those of some places that are folders: one file alone is soon compiled."""
    return sorted({file.resolve() for place in places if Path(place).is_dir() for file in Path(place).rglob("*.py")})


def compiled(file: Path, config: pytest.Config) -> None:
    """Put one file into the cache from which it will be imported, unless it is there."""
    if not any(file.match(pattern) for pattern in config.getini("python_files")):
        SourceFileLoader(file.stem, str(file)).get_code(file.stem)
        return
    cache = rewrite.get_cache_dir(file)
    cached = cache / f"{file.stem}{rewrite.PYC_TAIL}"
    if rewrite._read_pyc(file, cached) is None and rewrite.try_makedirs(cache):
        source_hash, code = rewrite._rewrite_test(file, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, cached)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    workerinput: dict[str, object] | None = getattr(session.config, "workerinput", None)
    if workerinput is None or sys.dont_write_bytecode:
        return
    number, workers = int(str(workerinput["workerid"]).removeprefix("gw")), int(str(workerinput["workercount"]))
    for file in shares(sources(session.config.args), workers)[number]:
        compiled(file, session.config)
