"""Figures that are linear in released measurements, with the margins that the known noise distribution gives them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato import laws
from sfumato.core.exact import Exact
from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Derived, Label
from sfumato.laws.margins import level_of
from sfumato.mechanisms.matrix.steps.buffers import Buffers
from sfumato.streams.noise import SeriesNoise

if TYPE_CHECKING:
    from sfumato.streams.strategy_encoder import Floats

__all__ = ["Linear", "LinearPart", "reach"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearPart:
    """By what the noise of one release counts in each figure: a row for each figure, in units of 1."""

    mechanism: SeriesNoise
    weights: "Floats"

    def picked(self, matrix: "Floats") -> "LinearPart":
        """The same for linear combinations of the figures."""
        return LinearPart(mechanism=self.mechanism, weights=matrix @ self.weights)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Linear(Derived):
    """Numbers that are linear in what streams released.

    Guarantee: costs nothing. :meth:`interval` covers the noise exactly where all of it is Gaussian (rounding to the
    lattice added), and by Chernoff's bound where some is Laplace. ``tries`` is among how many fits this one was chosen
    by looking at the released numbers: the interval then holds for all of them at once, and so for the one that was
    chosen. ``floor`` is what the exact numbers are known not to be below; the numbers were then moved to respect it,
    and ``centres`` are what they were before, which is what the noise is known of.
    """

    caveat: ClassVar[str | None] = None
    covers: ClassVar[str] = "stream_plot.exact_band"
    numbers: tuple[float, ...]
    parts: tuple[LinearPart, ...]
    labels: Mapping[str, tuple[Label, ...]]
    measure: str
    sources: tuple[Release, ...]
    tries: int = 1
    floor: float | None = None
    centres: tuple[float, ...] | None = None

    @property
    def values(self) -> tuple[float, ...]:
        """The numbers."""
        return self.numbers

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[float, float]]:
        """Low and high for each number; with ``joint`` all of them hold at once, by the union bound."""
        doubt = (1 - level_of(confidence)) / self.tries
        level = 1 - (doubt / len(self.numbers) if joint and self.numbers else doubt)
        middles = self.numbers if self.centres is None else self.centres
        pairs = zip(middles, reach(self.parts, level).tolist(), strict=True)
        ends = [(value - margin, value + margin) for value, margin in pairs]
        if self.floor is None:
            return ends
        held = [(max(low, self.floor), max(high, self.floor)) for low, high in ends]
        return [(min(low, value), max(high, value)) for value, (low, high) in zip(self.numbers, held, strict=True)]


def reach(parts: tuple[LinearPart, ...], level: Fraction) -> "Floats":
    """By how much Σ b·z errs at most with a confidence, for each row of b, over all parts; rounded up.

    All Gaussian: the quantile of σ²Σb², and |b|/2 for each rounding. Else m with 2·exp(K(λ) − λ·m) ≤ 1 − level at the
    best λ, where K adds up −ln(1 − λ²b²s²) for Laplace and λ²b²σ²/2 for Gaussian noise.
    """
    import numpy as np

    if not parts:
        raise InvalidInput("figures of no release have no noise; nothing was computed.")
    rounding = np.zeros(len(parts[0].weights))
    for part in parts:
        unit = 2.0**part.mechanism.strategy.bits
        slack = part.mechanism.strategy.slack / 2 if isinstance(part.mechanism.strategy, Buffers) else 0.0
        half = 0.5 if part.mechanism.norm == "l2" else 0.0
        rounding += (half + slack) * np.abs(part.weights).sum(axis=1) / unit
    sizes = [float(part.mechanism.noise) / 2.0**part.mechanism.strategy.bits for part in parts]
    if all(part.mechanism.norm == "l2" for part in parts):
        squares = sum(size**2 * (part.weights**2).sum(axis=1) for size, part in zip(sizes, parts, strict=True))
        quantile = float(laws.Gaussian(sigma=Fraction(1)).margin(level))
        return np.asarray((quantile * np.sqrt(squares) + rounding) * (1 + 1e-9))
    return np.asarray((_chernoff(parts, sizes, level) + rounding) * (1 + 1e-9))


def _chernoff(parts: tuple[LinearPart, ...], sizes: list[float], level: Fraction) -> "Floats":
    import numpy as np

    room = math.log(2 / float(1 - level))
    largest = np.zeros(len(parts[0].weights))
    for part, size in zip(parts, sizes, strict=True):
        if part.mechanism.norm == "l1":
            largest = np.maximum(largest, size * np.abs(part.weights).max(axis=1))
    largest = np.where(largest > 0, largest, 1.0)
    best = np.full(len(largest), np.inf)
    for share in np.geomspace(1e-3, 0.99, 60):
        rate, cumulant = share / largest, np.zeros(len(largest))
        for part, size in zip(parts, sizes, strict=True):
            scaled = (rate[:, None] * size * part.weights) ** 2
            cumulant += (-np.log1p(-scaled) if part.mechanism.norm == "l1" else scaled / 2).sum(axis=1)
        best = np.minimum(best, (cumulant + room) / rate)
    return best
