"""Errors under node privacy on public networks: edges and degree histograms, the cap chosen privately and charged.

Beside the private choice stand the naive cap n − 1, a fixed cap, and the best cap of the same ladder, which nobody
knows without looking at the data. The error of the number of edges is computed from the exact law of the choice and of
the noise; that of the histogram is the mean l1 distance of draws. The declared cap is 8,192 for every network.
"""

import gzip
import secrets
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import write

DATA = Path(__file__).parents[2] / "shared" / "data"
NETWORKS = {
    "ego-Facebook": "snap-ego-facebook/facebook_combined.txt.gz",
    "wiki-Vote": "snap-wiki-vote/wiki-Vote.txt.gz",
    "ca-GrQc": "snap-ca-grqc/ca-GrQc.txt.gz",
    "ca-HepTh": "snap-ca-hepth/ca-HepTh.txt.gz",
    "email-Eu-core": "snap-email-eu-core/email-Eu-core.txt.gz",
    "CollegeMsg": "snap-collegemsg/CollegeMsg.txt.gz",
}
DECLARED, FIXED, EPSILON = 8192, 1024, Fraction(1)


def run(*, smoke: bool) -> Path:
    """Measure each network and write the result; a smoke run invents a small one."""
    if smoke:
        return write("node_level", {"invented": measure(_invented(), draws=3)}, smoke=True)
    measured: dict[str, object] = {}
    for name, path in NETWORKS.items():
        measured[name] = measure(read(DATA / path), draws=25)
        written = write("node_level", measured, smoke=False)
    return written


def measure(graph: Any, *, draws: int) -> dict[str, object]:
    """The errors on one network at ε = 1."""
    from sfumato.core.query import Dataset
    from sfumato.core.units import node
    from sfumato.graphs.node_level.by_chosen_cap import ChosenEdges, ChosenHistogram
    from sfumato.graphs.projection import mixed, projected
    from sfumato.graphs.shape import Shape

    unit, data, shape = (
        node(max_degree=DECLARED, relation="add/remove"),
        Dataset(name="n", edition="1"),
        Shape(nodes=None),
    )
    keys = mixed(np.arange(graph.n, dtype=np.uint64) + np.uint64(secrets.randbits(60)))
    held: dict[int, Any] = {}

    def at(cap: int) -> Any:
        if cap not in held:
            held[cap] = projected(graph, keys, cap)
        return held[cap]

    top = int(graph.degrees.max())
    edges = ChosenEdges(dataset=data, shape=shape, most=DECLARED)
    chosen = edges.noise(unit, EPSILON * edges.share, EPSILON * (1 - edges.share))
    nodes = edges.in_the_way(graph)
    law = chances(chosen.scores(nodes), float(chosen.choice))
    by_cap = [off(graph.edges - at(cap).edges, float(chosen.scale(cap))) for cap in edges.caps]
    mean = sum(chance * error for chance, error in zip(law, by_cap, strict=True))
    alone = {cap: off(graph.edges - at(cap).edges, cap / float(EPSILON)) for cap in edges.caps}
    best = min(alone, key=lambda cap: alone[cap])

    counts = ChosenHistogram(dataset=data, shape=shape, most=DECLARED)
    noisy = counts.noise(unit, EPSILON * counts.share, EPSILON * (1 - counts.share))
    truth = _histogram(graph.degrees, DECLARED)

    def histogram_error(draw: Callable[[], Sequence[int]]) -> float:
        return float(np.mean([np.abs(fitted(draw()) - truth).sum() for _ in range(draws)]))

    def fixed(cap: int) -> float:
        return histogram_error(lambda: _at_cap(counts, at(cap), cap, 2 * cap / EPSILON))

    def choose() -> Sequence[int]:
        cap, *drawn = noisy.add_noise((counts.in_the_way(graph), lambda cap: counts.exact_at(at(cap), cap)), _words())
        return drawn[:cap]

    ladder = {cap: fixed(cap) for cap in counts.caps}
    small = min(ladder, key=lambda cap: ladder[cap])
    scale = 2 * (graph.n - 1) / float(EPSILON)
    return {
        "pairs": draws,  # of histograms
        "peers": {},
        "nodes": graph.n,
        "edges": graph.edges,
        "largest degree": top,
        "edges, mean |error|": {
            "chosen": round(mean),
            "chosen over the largest degree": round(mean / top, 2),
            "naive, n - 1": graph.n - 1,
            f"fixed, {FIXED}": round(alone[FIXED]),
            "best cap": best,
            "best": round(alone[best]),
            "chances of the caps": {str(cap): round(chance, 3) for cap, chance in zip(edges.caps, law, strict=True)},
        },
        "histogram, mean l1 error": {
            "chosen": round(histogram_error(choose)),
            "naive, n - 1, as drawn": round((scale + 1) * graph.n),
            "naive, n - 1, made to fall": round(fixed(graph.n - 1)),
            f"fixed, {FIXED}": round(ladder[FIXED]),
            "best cap": small,
            "best": round(ladder[small]),
        },
    }


def chances(scores: Sequence[int], epsilon: float) -> list[float]:
    """The law of permute-and-flip: each candidate comes at a uniform time u, and those before it did not stop."""
    coins = [exp(epsilon * (score - max(scores))) for score in scores]
    found = []
    for place, coin in enumerate(coins):
        rest = np.polynomial.Polynomial([1.0])
        for other, else_ in enumerate(coins):
            rest = rest if other == place else rest * np.polynomial.Polynomial([1.0, -else_])
        found.append(coin * float(rest.integ()(1.0)))
    return found


def off(lost: int, scale: float) -> float:
    """E|z − lost| for Laplace noise z."""
    return lost + scale * exp(-lost / scale)


def fitted(at_least: Sequence[int]) -> "np.ndarray[Any, Any]":
    """Counts by degree, from 1, out of noisy numbers of nodes of each degree or more."""
    from sfumato.graphs.node_level.by_chosen_cap import counts_from

    counts = [float(count) for count in counts_from([Fraction(value) for value in at_least])]
    return np.array(counts[:DECLARED] + [0.0] * (DECLARED - len(counts)))


def read(path: Path) -> Any:
    """A network as an undirected graph, without loops."""
    from sfumato.graphs.adjacency import Adjacency

    with gzip.open(path, "rt") as lines:
        rows = [line.split()[:2] for line in lines if not line.startswith("#")]
    ends = np.array(rows, dtype=np.int64)
    names, places = np.unique(ends[ends[:, 0] != ends[:, 1]], return_inverse=True)
    pairs = np.unique(np.sort(places.reshape(-1, 2), axis=1), axis=0)
    return Adjacency.of_pairs(len(names), pairs[:, 0], pairs[:, 1])


def _at_cap(query: Any, graph: Any, cap: int, scale: Fraction) -> list[int]:
    from sfumato.noise import sample_discrete_laplace

    exact = query.exact_at(graph, cap)
    return [one + int(z) for one, z in zip(exact, sample_discrete_laplace(scale, len(exact), _words()), strict=True)]


def _histogram(degrees: Any, most: int) -> "np.ndarray[Any, Any]":
    return np.bincount(np.minimum(degrees, most), minlength=most + 1)[1:]


def _words() -> Any:
    from sfumato.noise.words import SystemWords

    return SystemWords()


def _invented() -> Any:
    from sfumato.graphs.adjacency import Adjacency

    ring = [(node, (node + step) % 60) for node in range(60) for step in (1, 2, 5)]
    return Adjacency.of_pairs(60, [a for a, _ in ring], [b for _, b in ring])
