"""Runs the killer tests against every mutant: ``python -m tests.mutation.run``.

A killer test lives in a file with the line ``pytestmark = pytest.mark.kills``. One warm process imports what
the killers need, except the package under test, and forks a child per mutant; the child imports the mutated
source in place of the file and runs, until one fails, the killers that reach the mutated function: first those that
killed its other mutants, then the quickest. Nothing is written to the package or to its bytecode caches. A killer
that starts a new Python process sees the original there, so it kills nothing.

A mutant that takes too long is killed. Too long means more CPU time in one test than ``FACTOR`` times what that test
took on the original, plus ``GRACE`` seconds; before any mutant is judged the killers run on the original again, under
these limits, and each must stay below half of its own.

Exit status: 0, all mutants are killed; 1, some survive; 2, the run went wrong, so nothing is known of them.
"""

import argparse
import ast
import contextlib
import functools
import gc
import importlib
import os
import re
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis

from tests.mutation import trial
from tests.mutation.forked import Job, Key, Outcome, Unusable, each
from tests.mutation.mutants import EQUIVALENT, Mutant, module_files, mutants_under
from tests.mutation.trial import COLLECTING, OK, Bounds

KILLER = re.compile(r"^pytestmark\s*=.*\bpytest\.mark\.kills\b", re.MULTILINE)
NOTHING_COLLECTED = 5
HINTS = 3  # how many tests that killed a function's earlier mutants are tried first
FACTOR, GRACE = 5, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a mutant; ``by`` is the test that failed or did not end, where known."""

    mutant: Mutant
    killed: bool
    by: str | None
    late: bool = False
    note: str = ""
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class Trials:
    """The killers of one test folder against the mutants of one source root."""

    source: Path
    tests: Path
    logs: Path
    jobs: int
    patience: float
    grace: float
    paths: dict[str, Path] = field(init=False)
    killers: dict[Path, str] = field(init=False)
    limits: dict[Path, dict[str, float]] = field(default_factory=dict)
    reaching: dict[str, dict[Path, list[str]]] = field(default_factory=lambda: defaultdict(dict))
    hints: dict[tuple[str, str], deque[str]] = field(default_factory=lambda: defaultdict(lambda: deque(maxlen=HINTS)))

    def __post_init__(self) -> None:
        self.paths = module_files(self.source)
        texts = {path: path.read_text("utf-8") for path in sorted(self.tests.rglob("*.py"))}
        self.killers = {path: text for path, text in texts.items() if KILLER.search(text)}
        if not self.killers:
            raise Unusable(f"no file under {self.tests} has a line `pytestmark = pytest.mark.kills`")

    def learn(self, modules: Sequence[str]) -> None:
        """Require that each killer file, by itself, passes on the original; note what its tests take and reach.

        The libraries that the killers import are imported here, so that the children find them warm.
        """
        sources = {it: trial.instrumented(self.paths[it].read_text("utf-8"), it) for it in modules}

        def job_of(file: Path) -> Job:
            return functools.partial(trial.learn, file, sources, self.paths)

        for file, outcome in self._each(list(self.killers), job_of):
            answer = _passed(outcome, file)
            self.limits[file] = {test: FACTOR * taken + self.grace for test, taken in answer["seconds"].items()}
            for test, names in answer["reached"].items():
                for name in names:
                    self.reaching[name].setdefault(file, []).append(test)
            for name in answer["libraries"]:
                # Whatever fails here was made by a test as it ran; the children will make it again.
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
        if early := sorted(self.paths.keys() & sys.modules.keys()):
            raise Unusable(f"imported before any mutant could take its place: {', '.join(early)}")
        gc.collect()
        gc.freeze()

    def control(self, modules: Sequence[str]) -> None:
        """Require that each killer file passes on the modules written back unchanged, well within the time limits."""
        sources = {it: ast.unparse(ast.parse(self.paths[it].read_text("utf-8"))) for it in modules}

        def job_of(file: Path) -> Job:
            bounds = Bounds(seconds=self.limits[file])
            return functools.partial(trial.try_out, [(file, bounds)], sources, self.paths)

        for file, outcome in self._each(list(self.killers), job_of):
            limits = self.limits[file]
            for test, taken in _passed(outcome, file)["seconds"].items():
                if taken > limits.get(test, limits[COLLECTING]) / 2:
                    raise Unusable(f"the original itself comes close to the time limit: {test} in {file}, {taken} s")

    def judge(self, mutants: Sequence[Mutant]) -> Iterator[Verdict]:
        """A verdict for each mutant, as they come."""
        reached = []
        for mutant in mutants:
            if f"{mutant.module}.{mutant.qualname}" in self.reaching:
                reached.append(mutant)
            else:
                yield Verdict(mutant=mutant, killed=False, by=None, note="no killer test runs this function")

        def job_of(mutant: Mutant) -> Job:
            sources = {mutant.module: mutant.source}
            return functools.partial(trial.try_out, self._likeliest_first(mutant), sources, self.paths)

        for mutant, outcome in self._each(reached, job_of):
            yield self._verdict(mutant, outcome)

    def _each(self, keys: Sequence[Key], job_of: Callable[[Key], Job]) -> Iterator[tuple[Key, Outcome]]:
        return each(keys, job_of, at_once=self.jobs, patience=self.patience, logs=self.logs)

    def _likeliest_first(self, mutant: Mutant) -> list[tuple[Path, Bounds]]:
        """The killer files that reach the function, first those with hints, then those that mention it most often."""
        hints = list(self.hints[mutant.module, mutant.qualname])
        names = {mutant.module.rpartition(".")[2], *mutant.qualname.split(".")}
        word = re.compile(r"\b(" + "|".join(map(re.escape, sorted(names))) + r")\b")

        def rank(file: Path, tests: Sequence[str]) -> tuple[int, int]:
            first = min((place for place, hint in enumerate(hints) if hint in tests), default=len(hints))
            return first, -len(word.findall(self.killers[file]))

        found = self.reaching[f"{mutant.module}.{mutant.qualname}"]
        return [
            (file, self._bounds(file, tests, hints))
            for file, tests in sorted(found.items(), key=lambda item: rank(*item))
        ]

    def _bounds(self, file: Path, tests: Sequence[str], hints: Sequence[str]) -> Bounds:
        limits = self.limits[file]
        quickest = sorted(tests, key=lambda test: (test not in hints, limits[test]))
        return Bounds(order=quickest, left_out=limits.keys() - set(tests), seconds=limits)

    def _verdict(self, mutant: Mutant, outcome: Outcome) -> Verdict:
        answer, seconds = outcome.answer, outcome.seconds
        if answer is None:
            by = f"{outcome.end} in {outcome.at}"
            late = outcome.end == "the time limit"
            return Verdict(mutant=mutant, killed=True, by=by, late=late, seconds=seconds)
        code, by, used = answer["code"], answer["by"], mutant.module in answer["used"]
        if code == NOTHING_COLLECTED:
            raise Unusable(f"{mutant.id}: no test was collected from {answer['file']}\n{outcome.said}")
        if not used:
            raise Unusable(f"{mutant.id}: its killers never imported it\n{outcome.said}")
        hints = self.hints[mutant.module, mutant.qualname]
        if by is not None and by not in hints:
            hints.appendleft(by)
        return Verdict(mutant=mutant, killed=code != OK, by=by, seconds=seconds)


def _passed(outcome: Outcome, file: Path) -> dict[str, Any]:
    """The answer of a run on the original, which must be green."""
    if outcome.answer is None or outcome.answer["code"] != OK:
        how = f"{outcome.end} in {outcome.at}" if outcome.answer is None else f"pytest's {outcome.answer['code']}"
        raise Unusable(f"the killers must pass on the original first: {file} ended with {how}\n{outcome.said}")
    return outcome.answer


def run(arguments: argparse.Namespace) -> int:
    """Judge every mutant, print one line per module and then each wrong one; return the exit status."""
    started = time.monotonic()
    found = {
        module: mutants
        for module, mutants in mutants_under(arguments.source).items()
        if f"{module}.".startswith(f"{arguments.module}." if arguments.module else "")
    }
    if not found:
        print("no mutants: no watched function has an operator or a constant")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as logs:
        trials = Trials(
            source=arguments.source,
            tests=arguments.tests,
            logs=Path(logs),
            jobs=arguments.jobs,
            patience=arguments.patience,
            grace=arguments.grace,
        )
        trials.learn(list(found))
        trials.control(list(found))
        seconds = time.monotonic() - started
        print(f"{len(trials.killers)} killer files pass on the original, {seconds:.1f} s", flush=True)
        verdicts: dict[str, list[Verdict]] = defaultdict(list)
        for verdict in trials.judge([mutant for mutants in found.values() for mutant in mutants]):
            done = verdicts[verdict.mutant.module]
            done.append(verdict)
            if len(done) == len(found[verdict.mutant.module]):
                print(_summary(verdict.mutant.module, done), flush=True)
    every = [verdict for done in verdicts.values() for verdict in done]
    spent = os.times()
    work = spent.user + spent.system + spent.children_user + spent.children_system
    print(f"{len(every)} mutants in {time.monotonic() - started:.0f} s, {work:.0f} s of work")
    if arguments.slowest:
        for verdict in sorted(every, key=lambda it: -it.seconds)[: arguments.slowest]:
            print(f"{verdict.seconds:6.1f} s {verdict.mutant.id} by {verdict.by}")
    wrong = [it for it in every if it.killed == (it.mutant.key in arguments.equivalent)]
    for verdict in sorted(wrong, key=lambda it: it.mutant.id):
        print("\n".join(_complaint(verdict)))
    return 1 if wrong else 0


def _summary(module: str, verdicts: Sequence[Verdict]) -> str:
    count = Counter("late" if it.late else "killed" if it.killed else "alive" for it in verdicts)
    late = f" ({count['late']} by the time limit)" if count["late"] else ""
    seconds = sum(it.seconds for it in verdicts)
    return f"{module}: {count['killed'] + count['late']} of {len(verdicts)} killed{late}, {seconds:.1f} s of work"


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
    parser.add_argument("--grace", type=float, default=GRACE, help="CPU seconds that every test may take")
    parser.add_argument(
        "--patience", type=float, default=120.0, help="seconds until a mutant that waits for something is killed"
    )
    parser.add_argument("--slowest", type=int, default=0, help="print this many of the mutants that took longest")
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
    """Forget an enclosing pytest or coverage run; keep libraries to one thread, since threads do not fork.

    The plugins of pytest stay out, so that Hypothesis is told here how to search.
    """
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    for name in [name for name in os.environ if name.startswith(("PYTEST_", "COV"))]:
        del os.environ[name]
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    hypothesis.settings.register_profile(
        "mutation",
        derandomize=True,  # a verdict does not depend on luck
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),  # one failure will do, however large
        suppress_health_check=list(hypothesis.HealthCheck),  # slowness is not a kill
    )
    hypothesis.settings.load_profile("mutation")


if __name__ == "__main__":
    sys.exit(main())
