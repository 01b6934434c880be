"""A strategy with its noise: the loss that an accountant reads, the covariance, and the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato.core.events import DiscreteGaussian, DiscreteLaplace
from sfumato.core.exact import positive
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput
from sfumato.mechanisms.matrix import gls
from sfumato.mechanisms.matrix.declaration import MatrixNoise, noise_event
from sfumato.mechanisms.matrix.optimal import lower_bound
from sfumato.mechanisms.matrix.workloads import Floats, Integers, given, named
from sfumato.mechanisms.norms import known

if TYPE_CHECKING:
    from sfumato.mechanisms.matrix.lattice import Matrix

__all__ = ["Draw", "Measurement", "system_draw"]

Draw = Callable[[Fraction, int], Integers]
"""Draws ``size`` independent whole numbers for a parameter: σ² of the discrete Gaussian, or the Laplace scale."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurement:
    """y = A·x + z in units of 2^−bits: z is discrete Gaussian with σ² = ``noise``, or discrete Laplace with that scale.

    Guarantee: x at l1 distance d become whole numbers at distance d·(largest column of A) in the strategy's norm; the
    event states that exactly, for the rounded A and the discrete law that run.
    Assumes: x is a vector of whole numbers. Public: strategy and noise. Sensitive: x. Proof: docs/proofs/matrix.md

    >>> from sfumato.mechanisms.matrix import Matrix, prefix
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
    def declared(cls, said: MatrixNoise) -> Measurement:
        """The run that a declaration describes."""
        from sfumato.mechanisms.matrix.lattice import Matrix

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
