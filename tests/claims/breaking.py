"""Breaks the product on purpose and sees whether the tests of a claim notice.

A claim that still passes on a broken product claims nothing. Each break (``tests/claims/breaks.py``) replaces a
function of the package; in a forked child the tests that are marked with a claim run on the broken package until one
fails. The test that failed runs once more, on the package as it is, and has to pass there.

Only this process and its forks are broken: a test that starts another Python tests the original.
"""

import ast
import contextlib
import functools
import gc
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.claims.plugin import numbers
from tests.mutation.forked import Job, Outcome, Tell, Unusable, each

__all__ = ["Break", "Verdict", "apply", "files_of", "found", "judged"]

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PATIENCE = 300.0  # seconds without a finished test, after which a child is stopped
SELECTED = "claim and not long"
OPTIONS = f"-o addopts= -x -q --tb=short --assert=plain --import-mode=importlib --strict-markers --rootdir={ROOT}"
LEFT_OUT = ("cacheprovider", "xdist")
CRASHES = (
    "TypeError",
    "AttributeError",
    "NameError",
    "UnboundLocalError",
    "KeyError",
    "IndexError",
    "ImportError",
    "ModuleNotFoundError",
    "ZeroDivisionError",
    "RecursionError",
    "EngineFailed",
)

Replacement = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A deliberate fault: ``replace`` takes what stands at each of ``at`` and gives what takes its place.

    A place is written ``module:name`` or ``module:Class.name``. ``first`` are words in the names of tests that are
    likely to notice, which run first; the fault may be noticed by others.
    """

    name: str
    claims: tuple[str, ...]
    at: tuple[str, ...]
    replace: Replacement
    first: tuple[str, ...] = ()
    fast: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Which test of a claim noticed a break, or None; ``note`` says what went otherwise."""

    broken: str
    claim: str
    by: str | None
    note: str = ""
    seconds: float = 0.0

    @property
    def caught(self) -> bool:
        """Whether a test noticed, for the reason of the break alone."""
        return self.by is not None and not self.note


def found(place: str) -> tuple[Any, str, Any]:
    """What a place means: the module or class that holds it, its name in there, and what stands there now."""
    module_name, _, path = place.partition(":")
    *owners, name = path.split(".")
    try:
        holder: Any = importlib.import_module(module_name)
        for owner in owners:
            holder = getattr(holder, owner)
        return holder, name, vars(holder)[name]
    except (ImportError, AttributeError, KeyError):
        raise Unusable(f"there is nothing at {place}: a break that stands in tests/claims/breaks.py is void") from None


def apply(broken: Break) -> None:
    """Break the package in this process."""
    for place in broken.at:
        holder, name, original = found(place)
        new = _replaced(original, broken.replace)
        if isinstance(holder, type):
            setattr(holder, name, new)
            if isinstance(new, functools.cached_property):
                new.__set_name__(holder, name)
        else:
            _everywhere(original, new)


def _replaced(original: Any, replace: Replacement) -> Any:
    if isinstance(original, classmethod | staticmethod):
        return type(original)(replace(original.__func__))
    if isinstance(original, functools.cached_property):
        return functools.cached_property(replace(original.func))
    return property(replace(original.fget)) if isinstance(original, property) else replace(original)


def _everywhere(original: Any, new: Any) -> None:
    """Take the place of a function also where another module has imported it by name."""
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] in ("sfumato", "examples", "tests") and module is not None:
            for name in [name for name, value in vars(module).items() if value is original]:
                setattr(module, name, new)


def files_of(number: str) -> list[Path]:
    """The files that hold a test marked with this claim, found by their text."""
    return [file for file in _files() if number in _marked(file)]


@functools.cache
def _files() -> list[Path]:
    return sorted(file for file in TESTS.rglob("test_*.py") if file.parent != TESTS / "claims")


@functools.cache
def _marked(file: Path) -> frozenset[str]:
    """The numbers that stand in the marks of a file; a mark may go over several lines, and hold several."""
    return frozenset(re.findall(r'"([^"]*)"', " ".join(re.findall(r"mark\.claim\(([^)]*)\)", _text(file)))))


@functools.cache
def _text(file: Path) -> str:
    return file.read_text("utf-8")


def warm(files: Iterable[Path]) -> None:
    """Import what these files import, once for all children."""
    names: set[str] = set()
    for file in files:
        for node in ast.walk(ast.parse(_text(file))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    for name in sorted(name for name in names if name.partition(".")[0] not in ("tests", "pytest", "__future__")):
        # What is not a module, or not installed, is imported or missed by the child itself.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def judged(
    pairs: Sequence[tuple[Break, str]], *, jobs: int, logs: Path, seen: Callable[[Verdict], None]
) -> Iterator[Verdict]:
    """A verdict for each break and claim; those that seem caught come last, once their tests passed on the original.

    ``seen`` is told of these as they come.
    """
    files = {number: files_of(number) for _, number in pairs}
    if missing := sorted(number for number, some in files.items() if not some):
        raise Unusable(f"no test is marked with {', '.join(missing)}")
    for broken, _ in pairs:
        for place in broken.at:
            found(place)
    warm({file for some in files.values() for file in some})

    def job_of(pair: tuple[Break, str]) -> Job:
        broken, number = pair
        return functools.partial(_on_broken, broken, number, files[number])

    caught: list[Verdict] = []
    for (broken, number), outcome in each(pairs, job_of, at_once=jobs, patience=PATIENCE, logs=logs):
        verdict = _verdict(broken, number, outcome)
        if verdict.caught:
            seen(verdict)
            caught.append(verdict)
        else:
            yield verdict
    unsound = _failing_on_the_original({verdict.by for verdict in caught if verdict.by}, jobs=jobs, logs=logs)
    for verdict in caught:
        yield replace(verdict, note=unsound.get(verdict.by or "", ""))


def _failing_on_the_original(tests: Iterable[str], *, jobs: int, logs: Path) -> dict[str, str]:
    """Those of these tests that do not pass on the package as it is, and what they said; one child for each file."""
    by_file: dict[str, list[str]] = {}
    for test in sorted(tests):
        by_file.setdefault(test.partition("::")[0], []).append(test)

    def again(file: str) -> Job:
        return functools.partial(_on_original, by_file[file])

    unsound = {}
    for file, outcome in each(by_file, again, at_once=jobs, patience=PATIENCE, logs=logs):
        passed = set() if outcome.answer is None else set(outcome.answer["passed"])
        for test in by_file[file]:
            if test not in passed:
                why = f"{outcome.end} at {outcome.at}" if outcome.answer is None else "does not pass"
                unsound[test] = f"{why} on the original: {outcome.said[-1500:]}"
    return unsound


def _verdict(broken: Break, number: str, outcome: Outcome) -> Verdict:
    answer = outcome.answer
    verdict = functools.partial(Verdict, broken=broken.name, claim=number, seconds=outcome.seconds)
    if answer is None:
        return verdict(by=None, note=f"{outcome.end} at {outcome.at}: {outcome.said[-1500:]}")
    if answer["kind"] in CRASHES:
        return verdict(by=None, note=f"only crashes ({answer['kind']}) in {answer['failed']}: {outcome.said[-2500:]}")
    if answer["code"] not in (0, 1):
        return verdict(by=None, note=f"pytest ended with {answer['code']}: {outcome.said[-1500:]}")
    return verdict(by=answer["failed"])


class _Session:
    """A pytest plugin that runs the tests of one claim, the likely ones first, and remembers which failed."""

    def __init__(self, number: str | None, first: Sequence[str], tell: Tell) -> None:
        self.number = number
        self.first = first
        self.tell = tell
        self.failed: str | None = None
        self.passed: set[str] = set()
        self.kind = ""

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if self.number is None:
            return
        of_claim = [item for item in items if self.number in numbers(item)]
        config.hook.pytest_deselected(items=[item for item in items if self.number not in numbers(item)])
        items[:] = sorted(of_claim, key=lambda item: not any(word in item.nodeid for word in self.first))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.tell(nodeid)

    def pytest_exception_interact(self, call: pytest.CallInfo[Any]) -> None:
        # A break that cannot even run shows nothing about the test that met it.
        self.kind = self.kind or ("" if call.excinfo is None else call.excinfo.type.__name__)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)


def _on_broken(broken: Break, number: str, files: Sequence[Path], tell: Tell) -> dict[str, Any]:
    apply(broken)
    session = _Session(number, broken.first, tell)
    code = _pytest(list(map(str, files)), session)
    return {"code": code, "failed": session.failed, "kind": session.kind}


def _on_original(tests: Sequence[str], tell: Tell) -> dict[str, Any]:
    session = _Session(None, (), tell)
    _pytest([str(ROOT / test) for test in tests], session, "--maxfail=0")
    return {"passed": sorted(session.passed)}


def _pytest(what: Sequence[str], session: _Session, *more: str) -> int:
    from hypothesis import Phase, settings

    # A failing example is neither made smaller nor kept for the next run of the original.
    settings.register_profile("broken", phases=(Phase.explicit, Phase.generate), database=None, print_blob=False)
    settings.load_profile("broken")
    left_out = [word for name in LEFT_OUT for word in ("-p", f"no:{name}")]
    return int(pytest.main([*OPTIONS.split(), *more, *left_out, "-m", SELECTED, *what], plugins=[session]))
