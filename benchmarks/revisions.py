"""Two revisions of the project beside each other: ``python -m benchmarks.revisions BEFORE [NAME …]``.

Each revision runs in a process of its own, from a checkout of its own, with the packages of this environment. Both
processes stay warm and take turns, one job each, in an order that changes from pair to pair; a ratio is time after /
time before, with the bootstrap interval of the harness. Jobs are those of the benchmarks, taken from the benchmarks of
each revision, and some calls of users as a whole. CPU seconds stand beside seconds, since machines are shared.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

if __name__ == "__main__":  # a process of the revision before runs this file with its own packages on the path
    sys.path.pop(0)

from benchmarks.harness import ratio

Job = Callable[[], object]
NAMES = ("noise", "accounting", "tables", "graphs", "streams", "training", "ledger")
SHORTEST = 0.25  # seconds of one turn: shorter jobs are repeated within it
PAIRS = 15
HERE = Path(__file__).parents[1]
# Large arrays would come from the system anew each time, or not, by what was imported before: 40% of some jobs.
KEPT = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "4000000000"}


# ------------------------------------------------------------------------------------------------------------- jobs


def _noise() -> Iterator[tuple[str, Job]]:
    from benchmarks.noise import _cases
    from sfumato import noise

    for name, (ours, *_) in _cases().items():
        yield name, lambda ours=ours: ours(1_000_000)
    noise.fine_gaussian(1 << 24)  # from so many on, loops are compiled
    yield "fine Gaussian, for training", lambda: noise.fine_gaussian(1_000_000)


def _accounting() -> Iterator[tuple[str, Job]]:
    from benchmarks.accounting import DELTA, RATE, STEPS, _releases, _sizes
    from sfumato import accounting
    from sfumato.accounting import pld

    plan, releases = accounting.plan(sigma=1, steps=STEPS, sampling=RATE), _releases(*_sizes(1000))
    yield "epsilon of 10,000 sampled steps", lambda: pld.epsilon(plan, delta=DELTA)
    yield (
        "calibrated sigma",
        lambda: accounting.calibrate_sigma(epsilon=1, delta=DELTA, steps=STEPS, sampling=RATE),
    )
    yield "1,000 different releases", lambda: pld.epsilon(releases, delta=1e-6)


def _tables() -> Iterator[tuple[str, Job]]:
    import pyarrow as pa

    import sfumato as sf
    from benchmarks.tables import _question_by_group, invent
    from sfumato.reports.verify import verify

    folder = Path(tempfile.mkdtemp())
    invent(folder / "rows.parquet", 1_000_000)
    yield "three measures by group, 1,000,000 rows", _question_by_group(str(folder / "rows.parquet"))
    vault = sf.Vault(unit=sf.user("person", relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="small")
    rows = pa.table({"person": list(range(1000)), "value": [place % 7 for place in range(1000)]})
    one = sf.Limit(groups=1, rows_per_group=1)
    table = vault.table(rows, name="rows", version="1", limit=one, bounds={"value": (0, 6)})
    count, median = table.count(), table.quantiles("value", ["1/2"])
    yield "a count, 1,000 rows", lambda: count.release(epsilon=1, fresh=True)
    yield "a median, 1,000 rows", lambda: median.release(epsilon=1, fresh=True)
    document = json.loads(count.release(epsilon=1, fresh=True).certificate.to_json())
    yield "a certificate verified", lambda: verify(document)


def _graphs() -> Iterator[tuple[str, Job]]:
    from benchmarks.graphs import _graph, invent
    from sfumato.core.query import Dataset
    from sfumato.graphs.kernels import triangles
    from sfumato.graphs.queries.by_ladder import SHARE
    from sfumato.graphs.queries.triangles import Triangles
    from sfumato.graphs.shape import Shape
    from sfumato.mechanisms.ladder import Ladder
    from sfumato.noise import SystemWords

    folder = Path(tempfile.mkdtemp())
    for edges in (10**5, 10**6):
        invent(str(folder / "graph.npz"), str(edges))
        graph = _graph(str(folder / "graph.npz"))

        def release(graph: object = graph, nodes: int = graph.n) -> object:
            query = Triangles(dataset=Dataset(name="invented", edition="1"), shape=Shape(nodes=nodes))
            ladder = Ladder.calibrated(nodes=nodes, epsilon=1, share=SHARE)
            return ladder.margin(ladder.add_noise(query.exact(graph), SystemWords()), Fraction(19, 20))

        yield f"triangles counted, {edges:,} edges", lambda graph=graph: triangles(graph)
        yield f"triangles released, {edges:,} edges", release


def _streams() -> Iterator[tuple[str, Job]]:
    from benchmarks.streams import _many, _one

    yield "1,000,000 events in chunks", lambda: _many(10**6)
    yield "1,000 events one by one", lambda: _one(1000)


def _training() -> Iterator[tuple[str, Job]]:
    import numpy as np

    import sfumato as sf
    from benchmarks.training import COMMON, OURS, UNITS
    from sfumato.learning import DPClassifier

    space: dict[str, object] = {"__name__": "steps"}
    exec(COMMON + OURS.rsplit("told(", 1)[0], space)  # noqa: S102 - programs of this project
    models, data, private = space["MODELS"], space["data"], space["make_private"]
    space["torch"].set_num_threads(1)  # type: ignore[attr-defined]
    for name, units in UNITS.items():
        make, shape, kind = models[name]  # type: ignore[index]
        yield f"a step, {name}", private(make(), *data(shape, kind, units), kind)  # type: ignore[operator]
    chance = np.random.default_rng(0)  # makes fictional rows, never noise
    values = chance.normal(size=(2000, 8))
    labels = (values[:, 0] > 0).astype(int)

    def fit() -> object:
        vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=10, delta=1e-6), name="fit")
        # the public count by its older name: the revision before may know no other
        model = DPClassifier(vault=vault, epsilon=1, delta=1e-7, bounds=(-4, 4), classes=[0, 1], number=2000, epochs=2)
        return model.fit(values, labels)

    yield "DPClassifier.fit, 2,000 records, 2 epochs", fit


def _ledger() -> Iterator[tuple[str, Job]]:
    from benchmarks import ledger

    folder = Path(tempfile.mkdtemp())
    home = ledger.sqlite_home(folder)
    account, answer = ledger._account(home), ledger._certificate()
    yield "a whole charge, SQLite", lambda: ledger._charge(account, answer)
    other = ledger.sqlite_home(Path(tempfile.mkdtemp(dir=folder)))
    unwaited = ledger._account(other)
    ledger._unsynced(unwaited)

    def quick() -> None:
        sync, os.fdatasync = os.fdatasync, lambda _: None
        try:
            ledger._charge(unwaited, answer)
        finally:
            os.fdatasync = sync

    yield "a whole charge that waits for no disk", quick
    ledger._fill(account.ledger, 3000, answer[: ledger.SHORT])
    yield "a balance", lambda: account.ledger.balance(ledger.ACCOUNT)
    yield "3,000 entries verified", account.ledger.verify


CASES: Mapping[str, Callable[[], Iterator[tuple[str, Job]]]] = {
    "noise": _noise,
    "accounting": _accounting,
    "tables": _tables,
    "graphs": _graphs,
    "streams": _streams,
    "training": _training,
    "ledger": _ledger,
}


# ---------------------------------------------------------------------------------------------------------- the turns


def serve(name: str) -> None:
    """The process of one revision: makes job after job, and runs it as often as it is asked to."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a job prints is no answer
    for title, job in CASES[name]():
        print(json.dumps(title), file=out, flush=True)
        job()
        while (times := json.loads(sys.stdin.readline())) > 0:
            start, spent = time.perf_counter(), time.process_time()
            for _ in range(times):
                job()
            print(json.dumps([time.perf_counter() - start, time.process_time() - spent]), file=out, flush=True)
    print("null", file=out, flush=True)


class Revision:
    """One revision at work on one benchmark."""

    def __init__(self, checkout: Path, name: str) -> None:
        path = os.pathsep.join(map(str, (checkout / "src", checkout)))
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", Path(__file__).resolve(), "--serve", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=checkout,
            env={**os.environ, **KEPT, "PYTHONPATH": path},
        )

    def tells(self) -> object:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a process ended with {self.process.wait()}")
        return json.loads(line)

    def asked(self, times: int) -> None:
        assert self.process.stdin is not None
        print(times, file=self.process.stdin, flush=True)

    def turn(self, times: int) -> tuple[float, float]:
        self.asked(times)
        seconds, spent = self.tells()  # type: ignore[misc]
        return seconds, spent


def compared(before: Path, after: Path, name: str, pairs: int) -> dict[str, object]:
    """Every job of one benchmark, both revisions in turn."""
    found: dict[str, object] = {}
    old, new = Revision(before, name), Revision(after, name)
    while (title := new.tells()) is not None:
        if old.tells() != title:
            raise SystemExit(f"the revisions have different jobs at {title!r}")
        once = max(old.turn(1)[0], new.turn(1)[0], 1e-6)
        times = max(1, math.ceil(SHORTEST / once))
        turns: dict[Revision, list[tuple[float, float]]] = {old: [], new: []}
        for pair in range(pairs):
            for each in (old, new) if pair % 2 else (new, old):
                turns[each].append(each.turn(times))
        old.asked(0)
        new.asked(0)
        rows = list(zip(turns[new], turns[old], strict=True))
        figures = {
            "ratio": ratio([mine[0] / theirs[0] for mine, theirs in rows]),
            "ratio_of_cpu": ratio([mine[1] / theirs[1] for mine, theirs in rows]),
            "seconds": sorted(mine[0] for mine, _ in rows)[pairs // 2] / times,
            "times": times,
        }
        found[str(title)] = figures
        _print(name, str(title), figures)
    for each in (old, new):
        each.process.wait()
    return found


def _print(name: str, title: str, figures: Mapping[str, object]) -> None:
    def cells(kind: str) -> str:
        parts: Mapping[str, float] = figures[kind]  # type: ignore[assignment]
        return f"{parts['median']:.3f} ({parts['low']:.3f} to {parts['high']:.3f})"

    seconds = figures["seconds"]
    print(f"| {name} | {title} | {seconds:.4g} s | {cells('ratio')} | {cells('ratio_of_cpu')} |", flush=True)


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """A checkout of a revision, for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", HERE, f"{folder}/sfumato"], check=True)
        subprocess.run(["git", "-C", f"{folder}/sfumato", "checkout", "--quiet", revision], check=True)
        yield Path(folder) / "sfumato"


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.revisions")
    options.add_argument("before", help="the revision to compare with, as git names it")
    options.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(NAMES)}")
    options.add_argument("--pairs", type=int, default=PAIRS)
    chosen = options.parse_args()
    print("| benchmark | job | now | seconds after / before (95%) | CPU seconds after / before (95%) |")
    print("|---|---|---|---|---|")
    with checked_out(chosen.before) as before:
        for name in chosen.names or NAMES:
            compared(before, HERE, name, chosen.pairs)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    else:
        main()
