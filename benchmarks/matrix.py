"""The matrix mechanism: time to the certified optimum beside the plain fixed point, and errors beside the peers'."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy.linalg import eigh

from benchmarks.harness import PAIRS, compare, write
from sfumato.mechanisms.matrix import Buffered, Matrix, Workload, all_range, prefix, tree
from sfumato.mechanisms.matrix.binary_tree import plain_rmse
from sfumato.mechanisms.matrix.optimal import optimum
from sfumato.mechanisms.matrix.toeplitz import coefficients, rmse

TOLERANCE = 2e-5  # between total variance and bound: a gap of 1e-5 in the error


def plain_fixed_point(workload: Workload, most: int = 2_000) -> float:
    """v ← diag M until the same tolerance: what the optimiser is measured against."""
    gram, v = workload.gram.astype(float), np.ones(workload.columns)
    for _ in range(most):
        half = np.sqrt(v)
        values, vectors = eigh(half[:, None] * gram * half)
        roots = np.sqrt(np.maximum(values, 0))
        after = vectors**2 @ roots
        if (after / v).max() * v.sum() <= (1 + TOLERANCE) * roots.sum():
            break
        v = after
    return float(np.sqrt(roots.sum() * (after / v).max() / workload.rows))


def _entry(workload: Workload, pairs: int) -> dict[str, object]:
    found = optimum(workload.gram, tolerance=TOLERANCE)
    entry = compare(
        lambda: optimum(workload.gram, tolerance=TOLERANCE),
        {"plain fixed point": lambda: plain_fixed_point(workload)},
        pairs=pairs,
    )
    chosen = Matrix.optimal(workload, tolerance=TOLERANCE)
    entry["figures"] = {
        "rmse": chosen.rmse,
        "lower_bound": chosen.certificate.dual,
        "gap": chosen.certificate.gap,
        "steps": found.steps,
    }
    return entry


def _both(n: int) -> tuple[Workload, Workload]:
    return prefix(n), all_range(n)


def _once(make: Callable[[], Matrix]) -> dict[str, float]:
    start = time.perf_counter()
    found = make()
    return {"rmse": found.rmse, "gap": found.certificate.gap, "seconds": time.perf_counter() - start}


def run(*, smoke: bool) -> Path:
    """Measure and write the result."""
    sizes, pairs = ((16,), 2) if smoke else ((64, 256), PAIRS)
    measured: dict[str, object] = {workload.name: _entry(workload, pairs) for n in sizes for workload in _both(n)}
    largest = 32 if smoke else 1024
    root = np.array([float(one) for one in coefficients(largest)])
    measured[f"buffered, 2 buffers, {largest} inputs"] = compare(
        lambda: Buffered.optimal(largest, buffers=2),
        {"square root by matrix": lambda: Matrix.square_root(largest).rmse},
        pairs=pairs,
    ) | {
        "figures": {
            "rmse": Buffered.optimal(largest, buffers=2).rmse,
            "square_root_rmse": rmse(root, root),
            f"optimum of prefix-{largest}, once": _once(lambda: Matrix.optimal(prefix(largest), tolerance=TOLERANCE)),
            **{f"pure {one.name}, once": _once(partial(Matrix.pure, one)) for n in sizes for one in _both(n)},
            **{f"tree-{n}": plain_rmse(n) for n in sizes},
            **{f"honaker-{n}": Matrix.of(prefix(n), tree(n).astype(float), norm="l2", bits=0).rmse for n in sizes},
        }
    }
    return write("matrix", measured, smoke=smoke)
