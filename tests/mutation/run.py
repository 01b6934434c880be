"""Runs the killer tests against every mutant: ``python -m tests.mutation.run``.

A killer test lives in a file with the line ``pytestmark = pytest.mark.kills``. One warm process imports what
the killers need, except the package under test, and forks a child per mutant; the child imports the mutated
source in place of the file and runs the killers until one fails. Nothing is written to the package or to its
bytecode caches. A killer that starts a new Python process sees the original there, so it kills nothing.

Exit status: 0, all mutants are killed; 1, some survive; 2, the run went wrong, so nothing is known of them.
"""

import argparse
import ast
import contextlib
import functools
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import json
import os
import re
import selectors
import signal
import sys
import tempfile
import time
import traceback
import types
import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.mutation.mutants import EQUIVALENT, Mutant, module_files, mutants_under

KILLER = re.compile(r"^pytestmark\s*=.*\bpytest\.mark\.kills\b", re.MULTILINE)
OK, FAILED, NOTHING_COLLECTED = 0, 1, 5
HINTS = 3  # how many tests that killed a function's earlier mutants are tried before whole files


class Unusable(Exception):
    """The run cannot say anything about the mutants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a mutant; ``by`` is the test that failed, where known."""

    mutant: Mutant
    killed: bool
    by: str | None
    note: str = ""


# --------------------------------------------------------------------------------------------- inside a child


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles the source given; unlike the inherited way, this neither reads nor writes a bytecode cache."""

    def __init__(self, module: str, path: Path, source: str) -> None:
        super().__init__(module, str(path))
        self.given = source

    def get_code(self, fullname: str) -> types.CodeType:
        code: types.CodeType = compile(self.given, self.path, "exec", dont_inherit=True)
        return code


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


class _Recorder:
    """A pytest plugin that knows the marker and remembers the first test that failed."""

    def __init__(self) -> None:
        self.root = Path()
        self.failed: str | None = None

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "kills: kills mutants of privacy functions")
        self.root = config.rootpath

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.failed = f"{self.root}/{report.nodeid}"


def _pytest(target: str, recorder: _Recorder) -> int:
    # Plain asserts: rewriting would warn about modules that are warm already, and explains what nobody reads.
    options = "-x -q -m kills --tb=short --assert=plain --import-mode=importlib --hypothesis-profile=mutation"
    without = ("no:cacheprovider", "no:xdist", "no:cov")
    arguments = ["-o", "addopts=", *options.split(), *(part for name in without for part in ("-p", name))]
    return int(pytest.main([*arguments, target], plugins=[recorder]))


def _try_original(files: Sequence[Path], roots: Sequence[Path]) -> dict[str, Any]:
    """Run the killers on the unmutated package; also tell which modules from elsewhere they imported."""
    for file in files:
        code = _pytest(str(file), _Recorder())
        if code != OK:
            return {"code": code, "file": str(file)}
    return {"code": OK, "modules": list(_modules_from_elsewhere(roots))}


def _modules_from_elsewhere(roots: Sequence[Path]) -> Iterator[str]:
    for name, module in list(sys.modules.items()):
        origin = getattr(getattr(module, "__spec__", None), "origin", None)
        if origin is not None and not any(Path(origin).is_relative_to(root) for root in roots):
            yield name


def _try(finder: _Finder, hints: Sequence[str], files: Sequence[Path]) -> dict[str, Any]:
    """Run killers on the package as the finder gives it, until one fails."""
    sys.meta_path.insert(0, finder)
    recorder = _Recorder()
    # A hint may name a test that the mutant keeps from being collected: only a plain failure counts.
    if any(_pytest(hint, recorder) == FAILED for hint in hints):
        return {"code": FAILED, "by": recorder.failed, "used": sorted(finder.used)}
    for file in files:
        code = _pytest(str(file), recorder)
        if code != OK:
            return {"code": code, "by": recorder.failed, "file": str(file), "used": sorted(finder.used)}
    return {"code": OK, "by": None, "used": sorted(finder.used)}


# ------------------------------------------------------------------------------------------- the warm process


@dataclass(slots=True, kw_only=True)
class _Child:
    """A forked process that answers once, in JSON, through a pipe."""

    pid: int
    pipe: int
    log: Path
    started: float
    received: bytearray = field(default_factory=bytearray)

    @classmethod
    def start(cls, job: Callable[[], dict[str, Any]], log: Path) -> "_Child":
        read, write = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            _answer(job, write, log)
        os.close(write)
        return cls(pid=pid, pipe=read, log=log, started=time.monotonic())

    def read(self) -> bool:
        """Take what has arrived; false when the child is done."""
        part = os.read(self.pipe, 1 << 16)
        self.received += part
        return bool(part)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def finish(self) -> dict[str, Any]:
        """The answer, or nothing where the process went down before it could give one."""
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        if status == 0 and self.received:
            answer: dict[str, Any] = json.loads(self.received)
            return answer
        if os.waitstatus_to_exitcode(status) == os.EX_SOFTWARE:
            raise Unusable(f"a child failed before its verdict:\n{_tail(self.log)}")
        return {}


def _answer(job: Callable[[], dict[str, Any]], pipe: int, log: Path) -> None:
    """The whole life of a child."""
    status = os.EX_SOFTWARE
    try:
        os.setpgid(0, 0)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, descriptor in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, descriptor)
        answer = json.dumps(job()).encode()
        with os.fdopen(pipe, "wb") as out:
            out.write(answer)
        status = 0
    except BaseException:  # noqa: BLE001 - the child must never return into its parent's code
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _tail(log: Path) -> str:
    return log.read_text("utf-8", errors="replace")[-4000:] if log.exists() else ""


@dataclass(slots=True, kw_only=True)
class Trials:
    """The killers of one test folder against the mutants of one source root."""

    source: Path
    tests: Path
    logs: Path
    jobs: int
    timeout: float
    paths: dict[str, Path] = field(init=False)
    killers: dict[Path, str] = field(init=False)
    hints: dict[tuple[str, str], deque[str]] = field(default_factory=lambda: defaultdict(lambda: deque(maxlen=HINTS)))
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.paths = module_files(self.source)
        texts = {path: path.read_text("utf-8") for path in sorted(self.tests.rglob("*.py"))}
        self.killers = {path: text for path, text in texts.items() if KILLER.search(text)}
        if not self.killers:
            raise Unusable(f"no file under {self.tests} has a line `pytestmark = pytest.mark.kills`")

    def warm_up(self) -> None:
        """Require that the killers pass on the original; import here what they imported from elsewhere."""
        files, roots = list(self.killers), [self.source, self.tests]
        answer = self._one(lambda: _try_original(files, roots))
        for name in answer["modules"]:
            # Whatever fails here was made by a test as it ran; the children will make it again.
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        if early := sorted(self.paths.keys() & sys.modules.keys()):
            raise Unusable(f"imported before any mutant could take its place: {', '.join(early)}")
        gc.collect()
        gc.freeze()

    def control(self, modules: Collection[str]) -> None:
        """Require that each killer file, by itself, passes on the modules written back unchanged."""
        sources = {it: ast.unparse(ast.parse(self.paths[it].read_text("utf-8"))) for it in modules}
        for file in self.killers:
            self._one(functools.partial(_try, _Finder(self.paths, sources), [], [file]))

    def judge(self, mutants: Sequence[Mutant]) -> Iterator[Verdict]:
        """A verdict for each mutant, as they come."""
        waiting = deque(mutants)
        with selectors.DefaultSelector() as running:
            try:
                while waiting or running.get_map():
                    while waiting and len(running.get_map()) < self.jobs:
                        mutant = waiting.popleft()
                        child = self._start(mutant)
                        running.register(child.pipe, selectors.EVENT_READ, (mutant, child))
                    for key, _ in running.select(timeout=1.0):
                        mutant, child = key.data
                        if not child.read():
                            running.unregister(child.pipe)
                            yield self._verdict(mutant, child)
                    for _, child in [key.data for key in running.get_map().values()]:
                        if time.monotonic() - child.started > self.timeout:
                            child.kill()  # its pipe closes, so the next turn finds that it did not answer
            finally:
                for _, child in [key.data for key in running.get_map().values()]:
                    child.kill()
                    os.waitpid(child.pid, 0)

    def _log(self) -> Path:
        return self.logs / str(next(self.numbers))

    def _one(self, job: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The answer of a run on the original, which must be green."""
        child = _Child.start(job, self._log())
        while child.read():
            pass
        answer = child.finish()
        if answer.get("code") != OK:
            raise Unusable(f"the killers must pass on the original first: {answer}\n{_tail(child.log)}")
        return answer

    def _start(self, mutant: Mutant) -> _Child:
        finder = _Finder(self.paths, {mutant.module: mutant.source})
        hints = list(self.hints[mutant.module, mutant.qualname])
        return _Child.start(lambda: _try(finder, hints, self._nearest_first(mutant)), self._log())

    def _nearest_first(self, mutant: Mutant) -> list[Path]:
        """The killer files, first those that mention the class or the module most often."""
        names = {mutant.module.rpartition(".")[2], mutant.qualname.partition(".")[0]}
        word = re.compile(r"\b(" + "|".join(map(re.escape, sorted(names))) + r")\b")
        return sorted(self.killers, key=lambda path: -len(word.findall(self.killers[path])))

    def _verdict(self, mutant: Mutant, child: _Child) -> Verdict:
        answer = child.finish()
        if not answer:
            return Verdict(mutant=mutant, killed=True, by="a crash or the time limit")
        code, by, used = answer["code"], answer["by"], mutant.module in answer["used"]
        if code == NOTHING_COLLECTED:
            raise Unusable(f"{mutant.id}: no test was collected from {answer['file']}\n{_tail(child.log)}")
        if code != OK and not used:
            raise Unusable(f"{mutant.id}: a test failed that never imported it\n{_tail(child.log)}")
        child.log.unlink()
        hints = self.hints[mutant.module, mutant.qualname]
        if by is not None and by not in hints:
            hints.appendleft(by)
        note = "" if used else "no killer test imports this module"
        return Verdict(mutant=mutant, killed=code != OK, by=by, note=note)


def run(arguments: argparse.Namespace) -> int:
    """Judge every mutant, print one line per module and then each wrong one; return the exit status."""
    found = {
        module: mutants
        for module, mutants in mutants_under(arguments.source).items()
        if f"{module}.".startswith(f"{arguments.module}." if arguments.module else "")
    }
    if not found:
        print("no mutants: no watched function has an operator or a constant")
        return 0
    wrong = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as logs:
        trials = Trials(
            source=arguments.source,
            tests=arguments.tests,
            logs=Path(logs),
            jobs=arguments.jobs,
            timeout=arguments.timeout,
        )
        started = time.monotonic()
        trials.warm_up()
        trials.control(found)
        seconds = time.monotonic() - started
        print(f"{len(trials.killers)} killer files pass on the original, {seconds:.1f} s", flush=True)
        for module, mutants in found.items():
            started = time.monotonic()
            verdicts = list(trials.judge(mutants))
            seconds = time.monotonic() - started
            killed = sum(verdict.killed for verdict in verdicts)
            print(f"{module}: {killed} of {len(mutants)} killed, {seconds:.1f} s", flush=True)
            wrong += [it for it in verdicts if it.killed == (it.mutant.key in arguments.equivalent)]
    for verdict in sorted(wrong, key=lambda it: it.mutant.id):
        print("\n".join(_complaint(verdict)))
    return 1 if wrong else 0


def _complaint(verdict: Verdict) -> Iterator[str]:
    mutant = verdict.mutant
    if verdict.killed:
        yield f"NOT EQUIVALENT {mutant.id}: killed by {verdict.by}, so remove its entry in EQUIVALENT"
    else:
        yield f"SURVIVED {mutant.id}{f' ({verdict.note})' if verdict.note else ''}"
    yield f"    {mutant.before}"
    yield f"  → {mutant.after}"


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.run", description=__doc__)
    parser.add_argument("--source", type=Path, default=Path("src"), help="the folder that holds the package")
    parser.add_argument("--tests", type=Path, default=Path("tests"), help="the folder that holds the killers")
    parser.add_argument("--module", default="", help="only this module, or this package and all inside it")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds until a mutant counts as killed")
    parser.add_argument(
        "--equivalent", action="append", help="a key that must survive, in place of those in EQUIVALENT"
    )
    arguments = parser.parse_args()
    arguments.source, arguments.tests = arguments.source.resolve(), arguments.tests.resolve()
    arguments.equivalent = frozenset(EQUIVALENT if arguments.equivalent is None else arguments.equivalent)
    _leave_the_surroundings()
    sys.path.insert(0, str(arguments.source))
    try:
        return run(arguments)
    except Unusable as why:
        print(f"UNUSABLE: {why}")
        return 2


def _leave_the_surroundings() -> None:
    """Forget an enclosing pytest or coverage run; keep libraries to one thread, since threads do not fork."""
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    for name in [name for name in os.environ if name.startswith(("PYTEST_", "COV"))]:
        del os.environ[name]
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    hypothesis.settings.register_profile(
        "mutation",
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),  # one failure will do, however large
        suppress_health_check=list(hypothesis.HealthCheck),  # slowness is not a kill
    )


if __name__ == "__main__":
    sys.exit(main())
