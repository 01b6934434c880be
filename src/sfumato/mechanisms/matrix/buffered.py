"""Buffered linear Toeplitz: prefix sums of a stream with correlated noise and a few numbers of memory.

The strategy is lower Toeplitz with c₀ = 1 and c_k = Σ_j ω_j·θ_j^(k−1). The stream adds w = C⁻¹·z to its input, and one
number per buffer is enough for it. All of it is whole numbers; rounding in the buffers enlarges the sensitivity by a
proven amount. Proof: docs/proofs/matrix.md
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.events import Stated
from sfumato.core.exact import Exact, natural, non_negative, positive
from sfumato.core.guarantees import ZCDP
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Edge, Event, Record, Relation, Unit, describe, event
from sfumato.errors import InvalidInput, Refused
from sfumato.laws.unstated import Unstated
from sfumato.mechanisms.norms import known

if TYPE_CHECKING:
    from sfumato.mechanisms.matrix.lattice import Draw
    from sfumato.mechanisms.matrix.workloads import Floats, Integers

__all__ = ["Buffered", "BufferedNoise", "BufferedStream"]

PRECISION = 24  # bits of the decays and weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffered:
    """The strategy c₀ = 1, c_k = Σ_j weights_j·decays_j^(k−1), for ``horizon`` inputs on the lattice 2^−bits.

    A strategy and no mechanism: :meth:`with_noise` makes it one.

    >>> two = Buffered.optimal(64, buffers=2)
    >>> round(two.rmse, 2)
    2.18
    """

    horizon: int
    decays: tuple[Fraction, ...]
    weights: tuple[Fraction, ...]
    bits: int

    def __post_init__(self) -> None:
        natural(self.horizon, "horizon")
        natural(self.bits, "bits", least=0)
        if not self.decays or len(self.decays) != len(self.weights):
            raise InvalidInput("each buffer needs a decay and a weight, and there must be one; nothing was done.")
        for decay, weight in zip(self.decays, self.weights, strict=True):
            non_negative(weight, "weight")
            if non_negative(decay, "decay") >= 1:
                raise InvalidInput(f"decay = {decay} must be below 1; nothing was done.")

    @classmethod
    def optimal(cls, horizon: int, *, buffers: int, bits: int = 32) -> "Buffered":
        """The decays and weights of least error that a quasi-Newton search finds; good, not proven optimal."""
        import numpy as np
        from scipy.optimize import minimize

        count, n = natural(buffers, "buffers"), natural(horizon, "horizon")

        def parts(point: "Floats") -> "tuple[Floats, Floats]":
            return np.exp(point[:count]), 1 / (1 + np.exp(-point[count:]))

        far = np.log(max(n, 4))
        start = np.concatenate([-np.linspace(1, 3, count), np.linspace(1, far, count)])
        found = minimize(
            lambda point: np.log(_error(*parts(point), n)),
            start,
            method="L-BFGS-B",
            bounds=[(-12, 0)] * count + [(-2, far + 4)] * count,
            options={"ftol": 1e-13, "maxiter": 1000, "maxfun": 20_000},
        )
        weights, decays = parts(found.x)
        unit = 2**PRECISION
        return cls(
            horizon=n,
            decays=tuple(Fraction(min(round(one * unit), unit - 1), unit) for one in decays),
            weights=tuple(Fraction(round(one * unit), unit) for one in weights),
            bits=bits,
        )

    @property
    def rmse(self) -> float:
        """The root mean squared error of the running totals per unit noise at unit l2 sensitivity."""
        import numpy as np

        return _error(np.array(self.weights, dtype=np.float64), np.array(self.decays, dtype=np.float64), self.horizon)

    def sensitivity(self, unit: Unit) -> Sensitivity:
        """How far one event moves what the noise hides, in lattice units; rounding of the buffers included.

        Guarantee: an upper bound from whole numbers, above C's own column norm by the rounding alone.
        Assumes: one event adds 1 to one input. Proof: docs/proofs/matrix.md

        >>> from sfumato.core.units import event
        >>> half = Buffered(horizon=3, decays=(Fraction(1, 2),), weights=(Fraction(1, 2),), bits=2)
        >>> half.sensitivity(event(relation="add/remove")).l2
        L2(squared=Fraction(21, 1))
        """
        if not isinstance(unit, Record | Event | Edge) or unit.relation is not Relation.ADD_REMOVE:
            raise Refused(
                f"{describe(unit)} may move several inputs: how far is not known here. Nothing was done. "
                "Pass the l1 bound of the inputs to loss()."
            )
        first = 2**self.bits
        moved, squared = [first for _ in self.decays], first**2
        for _ in range(1, self.horizon):
            squared += ceil(self.mixed(moved)) ** 2
            moved = [ceil(size) for size in self.decayed(moved)]
        return Sensitivity.of(l2_squared=squared)

    def mixed(self, buffers: Sequence[int]) -> Fraction:
        """Σ ω_j·s_j."""
        return Fraction(sum(weight * size for weight, size in zip(self.weights, buffers, strict=True)))

    def decayed(self, buffers: Sequence[int]) -> list[Fraction]:
        """θ_j·s_j for each buffer."""
        return [decay * size for decay, size in zip(self.decays, buffers, strict=True)]

    def with_noise(self, *, sigma_squared: Exact) -> "BufferedNoise":
        """The mechanism with this strategy whose noise has σ² in units of 1, at unit c₀."""
        return BufferedNoise(
            horizon=self.horizon,
            decays=self.decays,
            weights=self.weights,
            bits=self.bits,
            noise=positive(sigma_squared, "sigma squared") * 4**self.bits,
        )

    def open(self, *, sigma_squared: Exact, draw: "Draw | None" = None) -> "BufferedStream":
        """Start a stream whose noise has σ² in units of 1, at unit c₀."""
        return self.with_noise(sigma_squared=sigma_squared).open(draw=draw)


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferedNoise:
    """Tell the total of a stream of ``horizon`` whole numbers after each, with correlated noise, in units of 2^−bits.

    Each step draws a discrete Gaussian z with σ² = ``noise``, takes off what the buffers hold, and adds the rest.

    Guarantee: ρ-zCDP for the whole stream with ρ = l1²·L/(2σ²), where √L bounds how far one event moves all steps
    together; inputs may be chosen after seeing outputs. Assumes: whole-number inputs. Public: all of this. Sensitive:
    the inputs. Proof: docs/proofs/matrix.md

    >>> half = Buffered(horizon=3, decays=(Fraction(1, 2),), weights=(Fraction(1, 2),), bits=2)
    >>> half.with_noise(sigma_squared=2).loss(Sensitivity.of(l1=1)).guarantee
    ZCDP(rho=Fraction(21, 64))
    """

    KIND: ClassVar[str] = "mechanism.buffered"
    VERSION: ClassVar[int] = 1
    horizon: int
    decays: tuple[Fraction, ...]
    weights: tuple[Fraction, ...]
    bits: int
    noise: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", positive(self.noise, "noise"))
        _ = self.strategy

    @property
    def strategy(self) -> Buffered:
        """The strategy alone."""
        return Buffered(horizon=self.horizon, decays=self.decays, weights=self.weights, bits=self.bits)

    @property
    def law(self) -> Unstated:
        """The noise of the totals is correlated over time; no distribution of it is stated yet."""
        return Unstated()

    def loss(self, moved: Sensitivity) -> Stated:
        """The whole stream's event for a unit that moves the inputs by at most ``moved`` in l1, over all steps."""
        one = known(self.strategy.sensitivity(event(relation="add/remove")).l2, "l2")
        return Stated(guarantee=ZCDP(rho=known(moved.l1, "l1").value ** 2 * one.squared / (2 * self.noise)))

    def open(self, *, draw: "Draw | None" = None) -> "BufferedStream":
        """Start a stream."""
        return BufferedStream(mechanism=self, draw=draw)


@dataclass(slots=True, kw_only=True)
class BufferedStream:
    """A running total with correlated noise; its state is one whole number a buffer, and the total."""

    mechanism: BufferedNoise
    draw: "Draw | None" = None
    steps: int = 0
    _strategy: Buffered = field(init=False)
    _buffers: list[int] = field(init=False)
    _total: int = 0

    def __post_init__(self) -> None:
        self._strategy = self.mechanism.strategy
        self._buffers = [0] * len(self._strategy.decays)

    def add(self, count: int) -> Fraction:
        """Take the next input, a whole number; return the noisy total so far."""
        if isinstance(count, bool) or not isinstance(count, int):
            raise InvalidInput("the input of a stream must be a whole number; nothing was drawn.")
        if self.steps >= self._strategy.horizon:
            raise Refused(
                f"the stream was opened for {self._strategy.horizon} inputs and has had them; nothing was drawn."
            )
        drawn = int((self.draw or _system_draw)(self.mechanism.noise, 1)[0])
        self.steps += 1
        correlated = drawn - self.pulled()
        self.push(correlated)
        self._total += (count << self._strategy.bits) + correlated
        return Fraction(self._total, 2**self._strategy.bits)

    def pulled(self) -> int:
        """What the buffers take off the next noise: ⌊Σ ω_j·s_j⌋."""
        return floor(self._strategy.mixed(self._buffers))

    def push(self, correlated: int) -> None:
        """Remember a noise that was used: s_j ← ⌊θ_j·s_j⌋ + w."""
        self._buffers = [floor(size) + correlated for size in self._strategy.decayed(self._buffers)]


def _system_draw(sigma_squared: Fraction, size: int) -> "Integers":
    from sfumato.noise import discrete_gaussian

    return discrete_gaussian(sigma_squared=sigma_squared, size=size)


def _error(weights: "Floats", decays: "Floats", n: int) -> float:
    """√(mean variance) times the column norm: C(x) = P(x)/R(x) with R = Π(1 − θ_j·x), so B(x) = R(x)/(P(x)·(1 − x))."""
    import numpy as np
    from scipy.signal import lfilter

    from sfumato.mechanisms.matrix.toeplitz import rmse

    powers = decays[:, None] ** np.arange(n - 1)
    strategy = np.concatenate([[1.0], weights @ powers])
    bottom = np.poly(decays)
    top = bottom + sum(
        weight * np.concatenate([[0.0], np.atleast_1d(np.poly(np.delete(decays, j)))])
        for j, weight in enumerate(weights)
    )
    impulse = np.zeros(n)
    impulse[0] = 1.0
    return rmse(strategy, np.cumsum(lfilter(bottom, top, impulse)))
