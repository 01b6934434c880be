"""The optimal strategy for Gaussian noise: a fixed point, reached by quasi-Newton steps, with its own certificate.

Among all strategies A with columns of Euclidean norm at most 1, the total variance of least squares is tr(G·X⁺) with
X = AᵀA and G = WᵀW. For every v > 0 it is at least (tr M)²/Σv with M = (V^½·G·V^½)^½, and X = V^−½·M·V^−½ attains
that if v = diag M. Proof: docs/proofs/matrix.md
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize

from sfumato.errors import InvalidInput
from sfumato.mechanisms.matrix.workloads import Floats, Integers

__all__ = ["OptimalityGap", "Optimum", "lower_bound", "optimum"]

LEAST = 1e-6  # of √v, beside a largest near 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalityGap:
    """How good a strategy is and how good any can be: root mean squared errors per unit noise at unit sensitivity.

    ``dual`` is below the error of every strategy, up to the eigenvalue solver's error, which is allowed for.

    >>> round(OptimalityGap(primal=2.02, dual=2.0).gap, 6)
    0.01
    """

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """By which share the error may still be above the optimum."""
        return self.primal / self.dual - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Optimum:
    """A strategy with columns of norm at most 1, its total variance, and a total that no strategy goes below."""

    strategy: Floats
    total: float
    bound: float
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Point:
    """One √v, with M by its eigenvalues, diag X, and the two totals that follow."""

    half: Floats
    roots: Floats
    vectors: Floats
    diagonal: Floats
    total: float
    bound: float


def optimum(gram: Integers, *, tolerance: float = 1e-6, most: int = 200) -> Optimum:
    """Find the strategy of least total variance, to a relative gap of ``tolerance`` between total and bound.

    A step costs one symmetric eigenvalue problem; some twenty are needed. Where ``most`` steps do not reach the
    tolerance, the bound says how far off the strategy may be. Public: everything; no data is opened.

    >>> found = optimum(np.array([[2, 1], [1, 2]]))
    >>> round(found.total, 4), found.total / found.bound - 1 < 1e-6
    (3.7321, True)
    """
    if gram.ndim != 2 or not np.array_equal(gram, gram.T) or not gram.diagonal().any():
        raise InvalidInput("a Gram matrix WᵀW must be symmetric and not zero; nothing was done.")
    asked = np.flatnonzero(gram.diagonal())  # a count that no question touches is not measured
    part = gram[np.ix_(asked, asked)].astype(np.float64)
    search = _Search(part, tolerance)
    search.run(most)
    factor = _factor(search.best)
    strategy = np.zeros((len(factor), len(gram)))
    strategy[:, asked] = factor
    return Optimum(strategy=strategy, total=search.best.total, bound=search.bound, steps=search.steps)


def lower_bound(gram: Integers) -> float:
    """A total variance that no strategy with columns of norm 1 goes below (in l2, hence also in l1): the SVD bound.

    >>> round(lower_bound(np.array([[2, 1], [1, 2]])), 4)
    3.7321
    """
    asked = np.flatnonzero(gram.diagonal())
    return _point(gram[np.ix_(asked, asked)].astype(np.float64), np.ones(len(asked))).bound


class _Search:
    """Quasi-Newton steps for the bound in √v, after one plain step of the fixed point.

    The gradient of log bound in v is diag X/tr M − 1/Σv, zero exactly where v ← v·diag X stays. In √v the search also
    reaches v_i = 0, where column i needs less than norm 1.
    """

    def __init__(self, gram: Floats, tolerance: float) -> None:
        self.gram, self.tolerance, self.steps = gram, tolerance, 1
        self.best = _point(gram, np.ones(len(gram)))
        self.bound = self.best.bound

    @property
    def done(self) -> bool:
        return self.best.total <= (1 + self.tolerance) * self.bound

    def run(self, most: int) -> None:
        if self.done:
            return
        first = np.sqrt(self.best.diagonal / self.best.diagonal.max())
        minimize(
            self._downhill,
            np.maximum(first, LEAST),
            jac=True,
            method="L-BFGS-B",
            bounds=[(LEAST, 1 / LEAST)] * len(first),
            callback=self._look,
            options={"maxiter": most, "maxfun": most, "maxcor": 20, "ftol": 0.0, "gtol": 0.0},
        )

    def _downhill(self, half: Floats) -> tuple[float, Floats]:
        here = _point(self.gram, half)
        self.steps += 1
        self.best = here if here.total < self.best.total else self.best
        self.bound = max(self.bound, here.bound)
        trace, weight = here.roots.sum(), (half**2).sum()
        slope = 2 * half * (1 / weight - here.diagonal / trace)
        return float(np.log(weight) - 2 * np.log(trace)), np.asarray(slope)

    def _look(self, intermediate_result: object) -> None:
        if self.done:
            raise StopIteration


def _point(gram: Floats, half: Floats) -> _Point:
    values, vectors = eigh(half[:, None] * gram * half, driver="evd", check_finite=False)
    slack = len(gram) * np.finfo(np.float64).eps * values[-1]  # the solver's backward error, eigenvalue by eigenvalue
    roots = np.sqrt(np.where(values > slack, values, 0.0))
    diagonal = vectors**2 @ roots / half**2
    safe = np.sqrt(np.maximum(values - slack, 0.0)).sum()
    return _Point(
        half=half.copy(),
        roots=roots,
        vectors=vectors,
        diagonal=diagonal,
        total=float(roots.sum() * diagonal.max()),
        bound=float(safe**2 / (half**2).sum()),
    )


def _factor(point: _Point) -> Floats:
    """A with AᵀA = X/max diag X: lower triangular where X has full rank, so that prefix sums can be streamed."""
    kept = point.roots > 0
    half = np.sqrt(point.roots[kept])[:, None] * point.vectors[:, kept].T / point.half
    half /= np.sqrt((half**2).sum(axis=0).max())
    if not kept.all():
        return np.asarray(half)
    backward = np.linalg.cholesky((half.T @ half)[::-1, ::-1])
    return np.asarray(backward.T[::-1, ::-1])
