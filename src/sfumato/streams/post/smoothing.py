"""Smoothing: the numbers of the steps, fitted to what was released under a penalty on how much they bend.

With Y = C·x + z the fit is x̂ = (CᵀC + κ·P)⁻¹CᵀY, P the squared differences of some order: a Whittaker smoother that
knows the covariance of the noise, and the same as the Kalman smoother of an integrated random walk. It has less noise
than the released steps and it has a bias; the two must not be mixed up, so there are two intervals.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato import laws
from sfumato.core.exact import Exact, natural
from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Label
from sfumato.laws.margins import level_of
from sfumato.streams.post.linear import Linear, LinearPart
from sfumato.streams.post.measurements import Measured

if TYPE_CHECKING:
    from sfumato.streams.strategy_encoder import Floats

__all__ = ["STRENGTHS", "Smoothed", "smoothed"]

STRENGTHS = tuple(4.0**power for power in range(-2, 14))  # κ in units of what one step is measured by


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Smoothed(Linear):
    """The smoothed number of each step.

    :meth:`interval` is about the noise: it covers what the same smoothing makes of the exact series, whatever that is,
    and says nothing of how far smoothing moved it (the bias). :meth:`model_interval` is about the exact numbers, and
    holds if they bend as little as the penalty supposes. ``strength`` is κ.
    """

    caveat: ClassVar[str | None] = "stream.smoothed"
    covers: ClassVar[str] = "stream_plot.smoothed_band"
    biased: ClassVar[bool] = True
    strength: float = 0.0
    deviations: tuple[float, ...] = ()

    def model_interval(self, confidence: Exact = Fraction(19, 20)) -> list[tuple[float, float]]:
        """Low and high of each exact number, if the differences of the exact series are independent and as large as κ
        says: the posterior of a Gaussian model, with the noise of the release in it."""
        quantile = float(laws.Gaussian(sigma=Fraction(1)).margin(level_of(confidence)))
        return [
            (value - quantile * deviation, value + quantile * deviation)
            for value, deviation in zip(self.numbers, self.deviations, strict=True)
        ]


def smoothed(release: Release, *, order: int = 2, strength: float | None = None) -> Smoothed:
    """Smooth the steps of a release of running totals, from the release alone.

    ``order`` is that of the differences that are penalised: 1 for a series that stays, 2 for one that goes on as it
    went. ``strength`` is κ; without it one of 16 is chosen, the one with the least unbiased estimate of the squared
    error (the noise is known, so that needs no data), and the intervals are widened so that they hold for the choice.

    Guarantee: post-processing; nothing is charged. Assumes nothing for :meth:`Smoothed.interval`.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=1), name="arrivals")
    >>> running = vault.stream(name="er", version="1", horizon=30).running_total().open(epsilon=1)
    >>> _ = running.add_many([5] * 30)
    >>> smooth = smoothed(running.close())
    >>> len(smooth.values), smooth.tries
    (30, 16)
    """
    natural(order, "order", most=3)
    if strength is not None and not strength > 0:
        raise InvalidInput(f"strength = {strength} must be above 0; nothing was computed.")
    measured = Measured.of(release)
    size = measured.query.told
    if size <= order:
        raise InvalidInput(f"{size} steps are too few for differences of order {order}; nothing was computed.")
    fit = _Fit.of(measured, order)
    strengths = STRENGTHS if strength is None else (float(strength),)
    return _figure(measured, fit, strengths)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fit:
    """CᵀC and P in a basis in which both are diagonal: CᵀC = TᵀT, P = Tᵀ·diag(bends)·T."""

    measured: Measured
    back: "Floats"  # T⁻¹
    bends: "Floats"
    straight: "Floats"  # T⁻ᵀCᵀ, so that the fit without a penalty is back @ straight @ Y

    @classmethod
    def of(cls, measured: Measured, order: int) -> "_Fit":
        import numpy as np
        from scipy.linalg import eigh

        size = measured.matrix.shape[1]
        bend = np.diff(np.eye(size), n=order, axis=0)
        bends, basis = eigh(bend.T @ bend, measured.matrix.T @ measured.matrix)
        return cls(measured=measured, back=basis, bends=np.maximum(bends, 0.0), straight=basis.T @ measured.matrix.T)

    def map(self, strength: float) -> "Floats":
        """H, with x̂ = H·Y."""
        return (self.back / (1 + strength * self.bends)) @ self.straight

    def risk(self, strength: float) -> float:
        """An unbiased estimate of ‖x̂ − x‖², less what does not depend on κ, for all groups together."""
        import numpy as np

        kept = 1 / (1 + strength * self.bends)
        raw = self.straight @ self.measured.y  # independent, of one variance
        gap = self.back @ ((1 - kept)[:, None] * raw)
        lengths = (self.back**2).sum(axis=0)
        return float((gap**2).sum() + 2 * self.measured.variance * raw.shape[1] * np.sum(kept * lengths))


def _figure(measured: Measured, fit: _Fit, strengths: tuple[float, ...]) -> Smoothed:
    import numpy as np

    best = min(strengths, key=fit.risk)
    taken, groups = fit.map(best), measured.query.groups
    many = max(1, len(groups))
    values = taken @ measured.y
    spread = measured.variance * ((fit.back**2) / (1 + best * fit.bends)).sum(axis=1)
    steps = range(1, measured.query.told + 1)
    labels: dict[str, tuple[Label, ...]] = {"step": tuple(step for step in steps for _ in range(many))}
    if groups:
        labels["group"] = tuple(group for _ in steps for group in groups)
    return Smoothed(
        numbers=tuple(values.ravel().tolist()),
        parts=(LinearPart(mechanism=measured.mechanism, weights=np.repeat(taken, many, axis=0)),),
        labels=labels,
        measure="number",
        sources=(measured.release,),
        tries=len(strengths),
        strength=best,
        deviations=tuple(np.repeat(np.sqrt(spread), many).tolist()),
    )
