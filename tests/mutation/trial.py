"""What happens inside a child: some modules come from given sources, and killers run on them under time limits."""

import ast
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import signal
import sys
import time
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.forked import Tell
from tests.mutation.mutants import watched_functions

__all__ = ["COLLECTING", "OK", "Bounds", "instrumented", "learn", "try_out"]

OK = 0
COLLECTING = "collecting"
REACHED = "_reached_by_a_killer_"
REACHED_SO_FAR: set[str] = set()
_CACHED = type(functools.cache(lambda: None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Which tests of a file to run and in which order, and the CPU seconds that each may take; others run last."""

    order: Sequence[str] = ()
    left_out: Collection[str] = frozenset()
    seconds: Mapping[str, float] = field(default_factory=dict)  # under COLLECTING what importing and collecting may


def instrumented(source: str, module: str) -> str:
    """The module as it is, but each watched function first tells that it was reached."""
    tree = ast.parse(source)
    for function in watched_functions(tree, module):
        tells = ast.parse(f"{REACHED}({f'{module}.{function.qualname}'!r})").body[0]
        function.node.body.insert(1 if ast.get_docstring(function.node) else 0, tells)
    return ast.unparse(tree)


def learn(file: Path, sources: Mapping[str, str], paths: Mapping[str, Path], tell: Tell) -> dict[str, Any]:
    """Run a killer file on instrumented sources: what each test takes and reaches, which libraries are imported."""
    sys.meta_path.insert(0, _Finder(paths, sources))
    session = _Session(Bounds(), tell, forget=tuple(paths))
    code = _pytest(file, session)
    return {
        "code": code,
        "seconds": session.seconds,
        "reached": {test: sorted(names) for test, names in session.reached.items()},
        "libraries": sorted(_libraries()),
    }


def try_out(
    files: Sequence[tuple[Path, Bounds]], sources: Mapping[str, str], paths: Mapping[str, Path], tell: Tell
) -> dict[str, Any]:
    """Run killer files on the sources given, until a test fails."""
    finder = _Finder(paths, sources)
    sys.meta_path.insert(0, finder)
    seconds: dict[str, float] = {}
    for file, bounds in files:
        session = _Session(bounds, tell)
        code = _pytest(file, session)
        seconds |= session.seconds
        if code != OK:
            return {"code": code, "by": session.failed, "file": str(file), "used": sorted(finder.used)}
    return {"code": OK, "by": None, "seconds": seconds, "used": sorted(finder.used)}


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles the source given; unlike the inherited way, this neither reads nor writes a bytecode cache."""

    def __init__(self, module: str, path: Path, source: str) -> None:
        super().__init__(module, str(path))
        self.given = source

    def get_code(self, fullname: str) -> types.CodeType:
        code: types.CodeType = compile(self.given, self.path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module)[REACHED] = REACHED_SO_FAR.add
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Takes the place of some modules of the package, and knows which of them were asked for."""

    def __init__(self, paths: Mapping[str, Path], sources: Mapping[str, str]) -> None:
        self.paths = paths
        self.sources = sources
        self.used: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.sources:
            return None
        self.used.add(fullname)
        loader = _Loader(fullname, self.paths[fullname], self.sources[fullname])
        return importlib.util.spec_from_file_location(fullname, self.paths[fullname], loader=loader)


class _Session:
    """A pytest plugin that orders the tests, stops those that take too long, and remembers what happened.

    The limit is one of CPU time, so that a loaded machine kills no mutant; the signal ends the process also inside a
    loop of a compiled library.
    """

    def __init__(self, bounds: Bounds, tell: Tell, *, forget: Collection[str] = ()) -> None:
        self.bounds = bounds
        self.tell = tell
        self.forget = forget
        self.root = Path()
        self.failed: str | None = None
        self.seconds: dict[str, float] = {}
        self.reached: dict[str, set[str]] = {}
        self.at_import: set[str] = set()
        self.started = time.process_time()

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "kills: kills mutants of privacy functions")
        self.root = config.rootpath
        REACHED_SO_FAR.clear()
        self._limit(COLLECTING)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        self.at_import = set(REACHED_SO_FAR)
        self.seconds[COLLECTING] = time.process_time() - self.started
        left_out = [item for item in items if self._name(item) in self.bounds.left_out]
        places = {name: place for place, name in enumerate(self.bounds.order)}
        kept = [item for item in items if self._name(item) not in self.bounds.left_out]
        items[:] = sorted(kept, key=lambda item: places.get(self._name(item), len(places)))
        if left_out:
            config.hook.pytest_deselected(items=left_out)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        name = self._name(item)
        self.tell(name)
        _forget(self.forget)
        REACHED_SO_FAR.clear()
        self._limit(name)
        started = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[name] = time.process_time() - started
            self.reached[name] = REACHED_SO_FAR | self.at_import
            self._limit(COLLECTING)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.failed = f"{self.root}/{report.nodeid}"

    def _name(self, item: pytest.Item) -> str:
        return f"{self.root}/{item.nodeid}"

    def _limit(self, name: str) -> None:
        """A test with a name that the original does not have gets as much as collecting; 0 is no limit at all."""
        seconds = self.bounds.seconds.get(name, self.bounds.seconds.get(COLLECTING, 0.0))
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _forget(modules: Collection[str]) -> None:
    """Empty the caches of these modules, so that a test reaches also what an earlier one has already computed."""
    for module in modules:
        if module in sys.modules:
            for value in list(vars(sys.modules[module]).values()):
                if isinstance(value, _CACHED):
                    value.cache_clear()


def _pytest(file: Path, session: _Session) -> int:
    # Plain asserts: rewriting would warn about modules that are warm already, and explains what nobody reads.
    # No conftest and no plugins: what they bring for other tests would be loaded once for each mutant.
    options = "-o addopts= -x -q -m kills --noconftest --tb=short --assert=plain --import-mode=importlib"
    arguments = [*options.split(), "-p", "no:cacheprovider", str(file)]
    try:
        return int(pytest.main(arguments, plugins=[session]))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def _libraries() -> Iterator[str]:
    """The modules that were imported and belong to Python or to what is installed beside it."""
    for name, module in list(sys.modules.items()):
        origin = getattr(getattr(module, "__spec__", None), "origin", None)
        if origin is not None and any(Path(origin).is_relative_to(it) for it in (sys.prefix, sys.base_prefix)):
            yield name
