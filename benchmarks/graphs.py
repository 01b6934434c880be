"""Triangles of power-law graphs: the exact count beside other packages, the whole private release, scaling, errors.

Each run is a process of its own, so that its peak memory is its own; the clock starts when the graph lies in memory as
each package keeps it, and what is compiled has been compiled. Graphs are invented from a fixed seed: the ends of edges
are drawn in proportion to (rank + 10)^(−1/1.3), an exponent of 2.3. Under other load the CPU seconds say more than the
seconds; the load is written down. Packages that cannot be installed are named as absent, with the reason.
"""

import gzip
import importlib.util
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.graph_peers import GRAPH_PEERS, built, count
from benchmarks.harness import PAIRS, ratio, write

FIGURES = ("seconds", "cpu_seconds", "peak_mb")
PEERS = {"igraph": "igraph", "SciPy, rows by degree": "scipy", "NetworkX": "networkx"}
SLOW = ("NetworkX",)  # left out above 10^5 edges: minutes a run
DATA = Path(__file__).parents[2] / "shared" / "data"
NETWORKS = {
    "ego-Facebook": "snap-ego-facebook/facebook_combined.txt.gz",
    "wiki-Vote": "snap-wiki-vote/wiki-Vote.txt.gz",
}
DRAWS = 20_000
DELTA = Fraction(1, 10**6)

Figures = Mapping[str, float]


def run(*, smoke: bool) -> Path:
    """Measure and write the result, after each part anew: a run that is cut off leaves what it has measured."""
    sizes, pairs = ((3_000, 10_000), 2) if smoke else ((10**5, 10**6, 5 * 10**6), PAIRS)
    scaling = (3_000, 10_000) if smoke else (10**5, 10**6, 10**7)
    measured: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = {edges: Path(folder) / f"{edges}.npz" for edges in sorted({*sizes, *scaling})}
        for edges, path in paths.items():
            _child("invent", path, str(edges))  # elsewhere: a child starts with the peak memory of its parent
        for edges in sizes:
            measured[f"{edges} edges, triangles"] = _beside(paths[edges], pairs, slow=edges <= 10**5, smoke=smoke)
            written = write("graphs", measured, smoke=smoke)
            measured[f"{edges} edges, the whole private release beside the plain count"] = _interleaved(
                partial(_child, "count", paths[edges]),
                {
                    "private release": partial(_child, "release", paths[edges]),
                    "local sensitivities alone": partial(_child, "rungs", paths[edges]),
                },
                pairs,
            )
            written = write("graphs", measured, smoke=smoke)
        measured["scaling of the private release"] = _scaling({edges: paths[edges] for edges in scaling}, pairs)
        measured["mean error of the triangle count"] = accuracy(200 if smoke else DRAWS)
        return write("graphs", measured, smoke=smoke) or written


def invent(path: str, size: str) -> Figures:
    """A fictional power-law graph with one node for every five edges, its nodes in random order."""
    from sfumato.graphs.adjacency import Adjacency

    edges = int(size)
    chance = np.random.default_rng(0)  # makes a fictional graph, never noise
    nodes, more = max(10, edges // 5), int(1.15 * edges)
    ends = np.cumsum((np.arange(nodes) + 11.0) ** (-1 / 1.3))
    drawn = np.minimum(np.searchsorted(ends / ends[-1], chance.random((2, more))), nodes - 1)
    head, tail = chance.permutation(nodes)[drawn]
    graph = Adjacency.of_pairs(nodes, head, tail)
    np.savez(path, indptr=graph.indptr, indices=graph.indices)
    return {"edges": graph.edges}


def _beside(path: Path, pairs: int, *, slow: bool, smoke: bool) -> dict[str, object]:
    there = {name: module for name, module in PEERS.items() if importlib.util.find_spec(module) is not None}
    absent = {
        name: "is not installed here" for name, module in PEERS.items() if importlib.util.find_spec(module) is None
    }
    absent |= {name: "takes minutes" for name in SLOW if name in there and not slow}
    jobs: dict[str, Callable[[], Figures]] = {name: partial(_child, name, path) for name in there if name not in absent}
    for name, peer in () if smoke else GRAPH_PEERS.items():
        python = built(peer)
        if isinstance(python, Path):
            jobs[name] = partial(count, peer, python, path)
        else:
            absent[name] = python
    return _interleaved(partial(_child, "count", path), jobs, pairs) | {"absent": absent}


def _interleaved(
    ours: Callable[[], Figures], peers: Mapping[str, Callable[[], Figures]], pairs: int
) -> dict[str, object]:
    """Run ours and each peer alternately; ratios are peer / ours, as everywhere. All must count the same."""
    load, own = os.getloadavg()[0], []
    others: dict[str, list[Figures]] = {name: [] for name in peers}
    for _ in range(pairs):
        own.append(ours())
        for name, peer in peers.items():
            others[name].append(peer())
    counts = {run["triangles"] for runs in (own, *others.values()) for run in runs if "triangles" in run}
    if len(counts) != 1:
        raise SystemExit(f"the packages count different triangles: {counts}")

    def middle(runs: list[Figures]) -> dict[str, float]:
        return {figure: statistics.median(run[figure] for run in runs) for figure in FIGURES}

    def ratios(runs: list[Figures], figure: str) -> dict[str, float]:
        return ratio([theirs[figure] / mine[figure] for mine, theirs in zip(own, runs, strict=True)])

    return {
        "pairs": pairs,
        "load_before": load,
        "triangles": counts.pop(),
        **{f"ours_{figure}": value for figure, value in middle(own).items()},
        "peers": {
            name: middle(runs)
            | {"ratio": ratios(runs, "seconds")}
            | {f"ratio_of_{figure}": ratios(runs, figure) for figure in FIGURES[1:]}
            for name, runs in others.items()
        },
    }


def _scaling(paths: Mapping[int, Path], pairs: int) -> dict[str, object]:
    """The whole private release at each size: time and memory."""
    found: dict[str, object] = {"pairs": pairs, "peers": {}, "load_before": os.getloadavg()[0]}
    for edges, path in paths.items():
        runs = [_child("release", path) for _ in range(max(2, pairs // 2))]
        found[f"{edges} edges"] = {figure: statistics.median(run[figure] for run in runs) for figure in FIGURES}
    return found


def accuracy(draws: int) -> dict[str, object]:
    """The mean size of the error on public networks: ladder and noisy scale as drawn, the others by formula.

    Margins are those of 95% that a release states, at the guide in the middle of those drawn.
    """
    from sfumato.graphs.kernels import ranked, triangles
    from sfumato.graphs.local_sensitivity import triangle_rungs
    from sfumato.mechanisms.ladder import Ladder
    from sfumato.mechanisms.noisy_local_sensitivity import NoisyLocalSensitivity
    from sfumato.noise import SystemWords
    from sfumato.noise.ladder import sample_ladder

    found: dict[str, object] = {"pairs": max(draws, 2), "peers": {}, "draws": draws}
    for name, file in NETWORKS.items():
        if not (DATA / file).is_file():
            found[name] = "the public dataset does not lie beside the project"
            continue
        graph = _network(DATA / file)
        known = ranked(graph)
        guide, rungs = triangle_rungs(known)
        for text in ("4", "1", "1/2", "1/10"):
            epsilon = Fraction(text)
            errors = {
                title: np.abs(np.array(sample_ladder(rungs, given, draws, SystemWords()), dtype=np.float64))
                for title, given in (("ladder", epsilon), ("ladder with a bound of its error", epsilon * 24 / 25))
            }
            ladder = Ladder.calibrated(nodes=graph.n, epsilon=epsilon, share="1/25")
            noise = NoisyLocalSensitivity.calibrated(nodes=graph.n, epsilon=epsilon, delta=DELTA)
            words = SystemWords()
            drawn = np.array([noise.add_noise((0, guide), words) for _ in range(draws)])
            errors["noisy scale"] = np.abs(drawn[:, 0]).astype(np.float64)
            found[f"{name}, epsilon = {text}"] = {
                "triangles": triangles(known),
                **{title: float(sizes.mean()) for title, sizes in errors.items()},
                "standard_error": float(errors["ladder"].std() / math.sqrt(draws)),
                "delta of the noisy scale": float(DELTA),
                "margin of the ladder": ladder.margin([0, guide], Fraction(19, 20)),
                "margin of the noisy scale": noise.law_at(int(np.median(drawn[:, 1]))).margin(Fraction(19, 20)),
                "smooth sensitivity, noise 1/(1 + z^4)": _smooth(rungs, float(epsilon)),
                "global sensitivity": (graph.n - 2) / float(epsilon),
            }
    return found


def _smooth(rungs: Any, epsilon: float) -> float:
    """E|error| of smooth sensitivity: max e^(−βt)·LS(t), β = ε/10, times 10/ε and E|z| = 1/√2."""
    beta, last = epsilon / 10, rungs.runs[-1].last
    smooth = max(math.exp(-beta * t) * rungs.width(t) for t in range(last + 1))
    return smooth / beta / math.sqrt(2)


def _network(path: Path) -> Any:
    from sfumato.graphs.adjacency import Adjacency

    with gzip.open(path, "rt") as lines:
        rows = np.loadtxt(lines, dtype=np.int64, comments="#")
    names, place = np.unique(rows, return_inverse=True)
    return Adjacency.of_pairs(len(names), *place.reshape(rows.shape).T)


def _child(job: str, path: Path, *rest: str) -> dict[str, Any]:
    """Run one job of this file in a process of its own."""
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.graphs", job, path, *rest],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    if answer.returncode != 0:
        raise SystemExit(f"the job {job!r} failed:\n{answer.stderr[-2000:]}")
    figures: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return figures


def _measured(job: Callable[[], object], *, counts: bool) -> Figures:
    start, spent = time.perf_counter(), time.process_time()
    answer = job()
    figures: dict[str, float] = {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - spent,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    return figures | ({"triangles": int(answer)} if counts else {})  # type: ignore[call-overload]


def _graph(path: str) -> Any:
    from sfumato.graphs.adjacency import Adjacency

    held = np.load(path)
    return Adjacency(n=len(held["indptr"]) - 1, indptr=held["indptr"], indices=held["indices"])


def _warm() -> Any:
    """A graph of three nodes, on which everything is compiled, or read from what was compiled before."""
    from sfumato.graphs.adjacency import Adjacency

    return Adjacency.of_pairs(4, [0, 0, 1, 0], [1, 2, 2, 3])


def _count(path: str) -> Figures:
    from sfumato.graphs.kernels import triangles

    triangles(_warm())
    graph = _graph(path)
    return _measured(lambda: triangles(graph), counts=True)


def _rungs(path: str) -> Figures:
    from sfumato.graphs.kernels import ranked
    from sfumato.graphs.local_sensitivity import triangle_rungs

    triangle_rungs(ranked(_warm()))
    known = ranked(_graph(path))
    return _measured(lambda: triangle_rungs(known), counts=False)


def _release(path: str) -> Figures:
    """All that a release does with the graph: count, local sensitivities, draw and the bound of the error."""
    from sfumato.core.query import Dataset
    from sfumato.graphs.queries.by_ladder import SHARE
    from sfumato.graphs.queries.triangles import Triangles
    from sfumato.graphs.shape import Shape
    from sfumato.mechanisms.ladder import Ladder
    from sfumato.noise import SystemWords

    def job(graph: Any) -> None:
        query = Triangles(dataset=Dataset(name="invented", edition="1"), shape=Shape(nodes=graph.n))
        ladder = Ladder.calibrated(nodes=graph.n, epsilon=1, share=SHARE)
        ladder.margin(ladder.add_noise(query.exact(graph), SystemWords()), Fraction(19, 20))

    job(_warm())
    graph = _graph(path)
    return _measured(lambda: job(graph), counts=False)


def _igraph(path: str) -> Figures:
    import igraph

    graph = _graph(path)
    theirs = igraph.Graph(n=graph.n, edges=np.column_stack(graph.pairs()))
    return _measured(lambda: len(theirs.list_triangles()), counts=True)


def _scipy(path: str) -> Figures:
    """The product L·L at the places of L, rows by degree; ordering them is included, other orders take far longer."""
    import scipy.sparse as sparse

    graph = _graph(path)
    shape = (graph.n, graph.n)
    matrix = sparse.csr_array((np.ones(len(graph.indices), dtype=np.int64), graph.indices, graph.indptr), shape=shape)

    def job() -> int:
        order = np.argsort(-graph.degrees, kind="stable")
        lower = sparse.tril(matrix[order][:, order], -1, format="csr")
        return int((lower @ lower).multiply(lower).sum())

    return _measured(job, counts=True)


def _networkx(path: str) -> Figures:
    import networkx

    graph = _graph(path)
    theirs = networkx.Graph(list(zip(*(ends.tolist() for ends in graph.pairs()), strict=True)))
    return _measured(lambda: sum(networkx.triangles(theirs).values()) // 3, counts=True)


JOBS: dict[str, Callable[..., Figures]] = {
    "invent": invent,
    "count": _count,
    "rungs": _rungs,
    "release": _release,
    "igraph": _igraph,
    "SciPy, rows by degree": _scipy,
    "NetworkX": _networkx,
}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](*sys.argv[2:])))
