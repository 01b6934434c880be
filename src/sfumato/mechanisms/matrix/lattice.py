"""The matrix mechanism on a lattice: the strategy is rounded to whole numbers first, and everything follows from those.

What runs is y = A·x + z with A and x whole and z discrete Gaussian (or discrete Laplace). The sensitivity is that of
the rounded A, computed with whole numbers; least squares uses the same A. With its noise it is a ``Measurement``, and
the declaration of that is what a certificate holds. Proof: docs/proofs/matrix.md
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr

from sfumato.core.events import DiscreteGaussian, DiscreteLaplace
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Edge, Event, Record, Relation, Unit, describe
from sfumato.errors import InvalidInput, Refused, WrongNorm
from sfumato.mechanisms.matrix import gls, toeplitz
from sfumato.mechanisms.matrix.declaration import MatrixNoise, Norm, noise_event
from sfumato.mechanisms.matrix.optimal import OptimalityGap, lower_bound, optimum
from sfumato.mechanisms.matrix.p_identity import p_identity
from sfumato.mechanisms.matrix.workloads import Floats, Integers, Workload, given, named, prefix, whole
from sfumato.mechanisms.norms import known

__all__ = ["Draw", "Matrix", "Measurement", "system_draw"]

BITS = 20
Draw = Callable[[Fraction, int], Integers]
"""Draws ``size`` independent whole numbers for a parameter: σ² of the discrete Gaussian, or the Laplace scale."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix:
    """A workload W answered by least squares from y = A·x + z; ``strategy`` is A in units of 2^−bits, whole numbers.

    ``norm`` says which noise it is for: "l2" Gaussian, "l1" Laplace. ``bound`` is a total variance, at unit sensitivity
    and unit noise, that no strategy goes below. Public: everything here; no data is opened.

    >>> from sfumato.mechanisms.matrix import prefix
    >>> best = Matrix.optimal(prefix(64))
    >>> round(best.rmse, 3), best.certificate.gap < 1e-4
    (2.1, True)
    """

    workload: Workload
    strategy: Integers
    bits: int
    norm: Norm
    bound: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "strategy", whole(self.strategy, "strategy"))
        natural(self.bits, "bits", least=0)
        if self.strategy.shape[1] != self.workload.columns:
            raise InvalidInput(
                f"the strategy is about {self.strategy.shape[1]} counts and the workload about "
                f"{self.workload.columns}; nothing was done."
            )
        if not self.strategy.any():
            raise InvalidInput("the strategy measures nothing: all of it is 0 on this lattice. Use more bits.")
        self.strategy.setflags(write=False)

    @classmethod
    def optimal(cls, workload: Workload, *, bits: int = BITS, tolerance: float = 1e-6) -> "Matrix":
        """The strategy of least error under Gaussian noise; never worse than measuring the counts or the questions."""
        found = optimum(workload.gram, tolerance=tolerance)
        whole_numbers = _within(workload, found.strategy, natural(bits, "bits", least=0))
        rounded = cls(workload=workload, strategy=whole_numbers, bits=bits, norm="l2", bound=found.bound)
        return _best(rounded)

    @classmethod
    def pure(cls, workload: Workload, *, bits: int = BITS, rows: int | None = None) -> "Matrix":
        """A good strategy under Laplace noise (p-Identity); never worse than measuring the counts or the questions."""
        found, bound = p_identity(workload.gram, rows=rows), lower_bound(workload.gram)
        return _best(cls.of(workload, found, norm="l1", bits=bits, bound=bound))

    @classmethod
    def square_root(cls, n: int, *, bits: int = BITS) -> "Matrix":
        """Prefix sums by the square root of their matrix: Gaussian noise, no optimisation."""
        asked = prefix(n)
        first = np.array([round(one * 2**bits) for one in toeplitz.coefficients(n)], dtype=np.float64)
        rounded = toeplitz.lower(first).astype(np.int64)
        return cls(workload=asked, strategy=rounded, bits=bits, norm="l2", bound=lower_bound(asked.gram))

    @classmethod
    def of(
        cls,
        workload: Workload,
        strategy: Floats,
        *,
        norm: Norm,
        bits: int = BITS,
        bound: float | None = None,
    ) -> "Matrix":
        """A strategy of the caller's own, rounded to multiples of 2^−bits."""
        rounded = np.rint(np.ldexp(np.asarray(strategy, dtype=np.float64), natural(bits, "bits", least=0)))
        if not (np.abs(rounded) < 2.0**53).all():
            raise InvalidInput(f"the strategy is not finite, or too large for {bits} bits; nothing was done.")
        known = lower_bound(workload.gram) if bound is None else bound
        return cls(workload=workload, strategy=rounded.astype(np.int64), bits=bits, norm=norm, bound=known)

    @cached_property
    def largest(self) -> int:
        """The largest column of A in its norm, exactly: Σ|a| for l1, Σa² for l2; in units of 2^−bits or 4^−bits."""
        sizes = np.abs(self.strategy) if self.norm == "l1" else self.strategy**2
        return int(sizes.sum(axis=0).max())

    @cached_property
    def total(self) -> float:
        """The summed variance of all answers at noise of variance 1 and sensitivity 1, for the rounded strategy."""
        size = float(self.largest) ** 2 if self.norm == "l1" else float(self.largest)
        return size * gls.total_variance(self.workload.gram, self.strategy)

    @property
    def rmse(self) -> float:
        """The root mean squared error of the answers per unit noise, at unit sensitivity in this strategy's norm."""
        return float(np.sqrt(self.total / self.workload.rows))

    @property
    def certificate(self) -> OptimalityGap:
        """The error of this strategy beside one that none goes below; for l1 the bound is that of l2, hence loose."""
        return OptimalityGap(primal=self.rmse, dual=float(np.sqrt(self.bound / self.workload.rows)))

    def sensitivity(self, unit: Unit) -> Sensitivity:
        """How far one unit moves A·x, in lattice units, where each unit counts once, in one cell of x.

        Guarantee: the exact maximum over neighbours, from whole numbers: the largest column under add/remove, the
        largest difference of two columns under replace. Assumes: x counts records, events or edges, each in one cell.

        >>> from sfumato.core.units import event
        >>> from sfumato.mechanisms.matrix import prefix
        >>> Matrix.square_root(3, bits=3).sensitivity(event(relation="add/remove")).l2
        L2(squared=Fraction(89, 1))
        """
        if not isinstance(unit, Record | Event | Edge):
            raise Refused(
                f"{describe(unit)} may count in several cells: how far it moves x is not known here. Nothing was "
                "done. Pass the l1 bound of x to loss()."
            )
        columns = self.strategy.T
        origins = [0] if unit.relation is Relation.ADD_REMOVE else columns
        moves = [
            (int(np.abs(move).sum(axis=1).max()), int((move**2).sum(axis=1).max()))
            for move in (columns - origin for origin in origins)
        ]
        return Sensitivity.of(l1=max(l1 for l1, _ in moves), l2_squared=max(squared for _, squared in moves))

    def measure(self, *, sigma_squared: Exact | None = None, scale: Exact | None = None) -> "Measurement":
        """Choose the noise on A·x, in units of 1: ``sigma_squared`` for an l2 strategy, ``scale`` for an l1 one."""
        noise, unit = (sigma_squared, 4**self.bits) if self.norm == "l2" else (scale, 2**self.bits)
        if noise is None or None not in (sigma_squared, scale):
            wanted = "sigma_squared" if self.norm == "l2" else "scale"
            raise InvalidInput(f"an {self.norm} strategy takes its noise as {wanted} alone; nothing was done.")
        return Measurement(matrix=self, noise=positive(noise, "noise") * unit)

    def for_rho(self, *, rho: Exact, unit: Unit) -> "Measurement":
        """The least Gaussian noise with ρ-zCDP for ``unit``: σ² = l2²/(2ρ), exactly."""
        if self.norm != "l2":
            raise WrongNorm("ρ calibrates Gaussian noise and this is an l1 strategy; nothing was done.")
        moved = known(self.sensitivity(unit).l2, "l2")
        return Measurement(matrix=self, noise=moved.squared / (2 * positive(rho, "rho")))

    def for_epsilon(self, *, epsilon: Exact, unit: Unit) -> "Measurement":
        """The least Laplace noise with pure ε for ``unit``: scale = l1/ε, exactly."""
        if self.norm != "l1":
            raise WrongNorm("a pure ε calibrates Laplace noise and this is an l2 strategy; nothing was done.")
        moved = known(self.sensitivity(unit).l1, "l1")
        return Measurement(matrix=self, noise=moved.value / positive(epsilon, "epsilon"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurement:
    """y = A·x + z in units of 2^−bits: z is discrete Gaussian with σ² = ``noise``, or discrete Laplace with that scale.

    Guarantee: x at l1 distance d become whole numbers at distance d·(largest column of A) in the strategy's norm; the
    event states that exactly, for the rounded A and the discrete law that run.
    Assumes: x is a vector of whole numbers. Public: strategy and noise. Sensitive: x. Proof: docs/proofs/matrix.md

    >>> Matrix.square_root(3, bits=3).measure(sigma_squared=4).loss(Sensitivity.of(l1=1))
    DiscreteGaussian(l2_squared=Fraction(89, 1), sigma_squared=Fraction(256, 1))
    """

    matrix: Matrix
    noise: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", positive(self.noise, "noise"))

    def loss(self, moved: Sensitivity) -> DiscreteGaussian | DiscreteLaplace:
        """The event for a unit that moves x, the vector of counts, by at most ``moved``; its l1 bound must be known."""
        far = known(moved.l1, "l1").value
        size = (far if self.matrix.norm == "l1" else far**2) * self.matrix.largest
        return noise_event(self.matrix.norm, size, self.noise)

    def event(self, unit: Unit) -> DiscreteGaussian | DiscreteLaplace:
        """The event for one ``unit`` that counts in one cell, by the exact sensitivity of A."""
        moved = self.matrix.sensitivity(unit)
        size = known(moved.l1, "l1").value if self.matrix.norm == "l1" else known(moved.l2, "l2").squared
        return noise_event(self.matrix.norm, size, self.noise)

    @property
    def declaration(self) -> MatrixNoise:
        """What runs, as a document: it can be written down, signed, and read again without NumPy."""
        asked = self.matrix.workload
        return MatrixNoise(
            strategy=_rows(self.matrix.strategy),
            bits=self.matrix.bits,
            norm=self.matrix.norm,
            noise=self.noise,
            workload=asked.form,
            questions=_rows(asked.matrix) if asked.form == "given" else (),
        )

    @classmethod
    def declared(cls, said: MatrixNoise) -> "Measurement":
        """The run that a declaration describes."""
        asked = given(said.questions) if said.workload == "given" else named(said.workload, said.columns)
        found = Matrix(
            workload=asked,
            strategy=np.array(said.strategy),
            bits=said.bits,
            norm="l1" if said.norm == "l1" else "l2",
            bound=lower_bound(asked.gram),
        )
        return cls(matrix=found, noise=said.noise)

    @property
    def variance(self) -> float:
        """The variance of each z, in units of 1."""
        size = float(self.noise)
        if self.matrix.norm == "l2":
            return size / 4.0**self.matrix.bits  # the discrete Gaussian's variance is never above σ²
        q = np.exp(-1 / size)
        return float(2 * q / (1 - q) ** 2 / 4.0**self.matrix.bits)

    @property
    def covariance(self) -> Floats:
        """The covariance of the answers."""
        return gls.covariance(self.matrix.workload.matrix, self._strategy) * self.variance

    def observe(self, x: npt.ArrayLike, *, draw: Draw | None = None) -> npt.NDArray[np.object_]:
        """A·x + z, whole numbers in lattice units: this is the release, what follows is post-processing.

        Python's whole numbers do not overflow, so no size of a count can make this fail or wrap.
        """
        exact = self.matrix.strategy.astype(object) @ _whole(x, self.matrix.workload.columns, "x")
        drawn = (draw or system_draw(self.matrix.norm))(self.noise, len(exact))
        return np.asarray(exact + _whole(drawn, len(exact), "the noise"))

    def estimate(self, observed: npt.ArrayLike) -> Floats:
        """The answers to the workload by least squares with the rounded strategy; sees nothing but the release."""
        y = np.asarray(observed, dtype=np.float64) / 2.0**self.matrix.bits
        gram = self.matrix.workload.gram.astype(np.float64)
        counts = gls.inverse(gls.information(self._strategy), gram) @ (self._strategy.T @ y)
        return self.matrix.workload.apply(np.asarray(counts))

    def answer(self, x: npt.ArrayLike, *, draw: Draw | None = None) -> Floats:
        """Observe, then estimate."""
        return self.estimate(self.observe(x, draw=draw))

    @property
    def _strategy(self) -> Floats:
        return self.matrix.strategy / 2.0**self.matrix.bits


def _within(workload: Workload, strategy: Floats, bits: int) -> Integers:
    """Round a strategy without leaving the row space of the workload.

    Where the workload has full rank that is all of space. Elsewhere rounding each entry would tilt the row space off
    the questions: so the strategy is written as a mix of independent questions, and the coefficients are rounded.
    """
    rank = _rank(workload)
    if rank == workload.columns:
        return np.rint(np.ldexp(strategy, bits)).astype(np.int64)
    questions = workload.matrix
    order = qr(questions.T.astype(np.float64), mode="r", pivoting=True)[1]
    basis = questions[order[:rank]]
    mixed = np.rint(np.ldexp(strategy @ np.linalg.pinv(basis.astype(np.float64)), bits)).astype(np.int64)
    return np.asarray(mixed @ basis)


def _best(rounded: Matrix) -> Matrix:
    """The best of a strategy and the two that need no thought: every count, and every question where it can win."""
    workload, norm, bound = rounded.workload, rounded.norm, rounded.bound
    counts = np.eye(workload.columns, dtype=np.int64)
    found = [Matrix(workload=workload, strategy=counts, bits=0, norm=norm, bound=bound)]
    least = float(workload.gram.diagonal().max()) * _rank(workload)  # in l2; a column's l1 norm is no smaller
    if least <= found[0].total:
        found.append(Matrix(workload=workload, strategy=workload.matrix, bits=0, norm=norm, bound=bound))
    with contextlib.suppress(Refused):  # too few bits: what rounding has made singular cannot answer
        found.append(min(rounded, found[-1], key=lambda one: one.rmse))
    return min(found, key=lambda one: one.rmse)


def _rank(workload: Workload) -> int:
    return int(np.linalg.matrix_rank(workload.gram.astype(np.float64), hermitian=True))


def _rows(matrix: Integers) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in matrix.tolist())


def _whole(values: npt.ArrayLike, size: int, name: str) -> npt.NDArray[np.object_]:
    array = np.asarray(values)
    numbers = array.astype(object)
    if array.shape != (size,) or any(isinstance(one, bool) or not isinstance(one, int) for one in numbers):
        raise InvalidInput(f"{name} must be {size} whole numbers; nothing was released.")
    return numbers


def system_draw(norm: str) -> Draw:
    """The exact samplers on the operating system's randomness.

    >>> len(system_draw("l1")(Fraction(3), 2))
    2
    """
    if norm == "l1":
        from sfumato.noise import discrete_laplace

        return lambda scale, size: discrete_laplace(scale=scale, size=size)
    from sfumato.noise import discrete_gaussian

    return lambda sigma_squared, size: discrete_gaussian(sigma_squared=sigma_squared, size=size)
