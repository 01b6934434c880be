"""Packages that count triangles, each in an environment of its own, which is built on first use.

Each program reads the file named on its command line, a graph in compressed rows with each edge both ways, and counts
its triangles once: the graph lies in memory as the package keeps it when the clock starts, and what the package does
first on a tiny graph (compiling, starting threads) is over. Ordering the nodes by degree is included.
"""

import json
import subprocess
from pathlib import Path

from benchmarks.table_peers import CLOCK, Peer, built

__all__ = ["GRAPH_PEERS", "built", "count"]

HELD = """
import numpy as np

def held(path):
    with np.load(path) as file:
        return file["indptr"], file["indices"]
"""

GRAPHBLAS = """
import graphblas as gb

def graph(indptr, indices):
    n = len(indptr) - 1
    return gb.Matrix.from_csr(indptr, indices, np.ones(len(indices), dtype=bool), ncols=n)

def triangles(matrix):
    degrees = matrix.reduce_rowwise(gb.monoid.plus[int]).new()
    index, size = degrees.to_coo()
    order = np.zeros(matrix.nrows, dtype=np.int64)
    order[index] = size
    order = np.argsort(order, kind="stable")
    ranked = matrix[order, order].new()
    lower, upper = gb.select.tril(ranked, -1).new(), gb.select.triu(ranked, 1).new()
    found = gb.semiring.plus_pair[int](lower @ upper.T).new(mask=lower.S)
    return found.reduce_scalar(gb.monoid.plus).new().value or 0

triangles(graph(np.array([0, 2, 4, 6]), np.array([1, 2, 0, 2, 0, 1])))
whole = graph(*held(path))
timed(lambda: triangles(whole), "triangles", int)
"""

NETWORKIT = """
import networkit as nk

indptr, indices = held(path)
n = len(indptr) - 1
head = np.repeat(np.arange(n), np.diff(indptr))
once = head < indices
whole = nk.GraphFromCoo((head[once].astype(np.uint64), indices[once].astype(np.uint64)), n=n)
whole.indexEdges()

def triangles():
    score = nk.sparsification.TriangleEdgeScore(whole)
    score.run()
    return round(sum(score.scores()) / 3)

timed(triangles, "triangles", int)
"""

GRAPH_PEERS = {
    "GraphBLAS": Peer(
        package="suitesparse-graphblas==10.5.1.1", also=("python-graphblas==2025.2.0",), program=GRAPHBLAS
    ),
    "networkit": Peer(package="networkit==11.2", program=NETWORKIT),
}


def count(peer: Peer, python: Path, path: Path) -> dict[str, float]:
    """Run the program once in a process of its own."""
    answer = subprocess.run(
        [python, "-c", CLOCK + HELD + peer.program, path], capture_output=True, text=True, check=False
    )
    if answer.returncode != 0:
        raise SystemExit(f"{peer.package} failed:\n{answer.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(answer.stdout.strip().splitlines()[-1])
    return figures
