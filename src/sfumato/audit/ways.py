"""Every way in which something leaves, attacked as users call it: the ε of its certificate beside the ε proven.

A *way out* puts two neighbours, which differ in one unit, through a vault (or a client), and scores what comes out. How
the scores tell the neighbours apart proves a lower bound on ε (:mod:`sfumato.audit.bounds`), whatever law the noise
has. The ε and δ that are claimed are those that were charged: calibration is part of what is attacked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sfumato.audit.bounds import epsilon_lower_bound, exact_epsilon, gaussian_lower_bound
from sfumato.audit.verdict import missing
from sfumato.core.foreign import Array

__all__ = ["KINDS", "SAMPLES", "Heard", "WayAudited", "WayOut"]

KINDS = ("release", "stream", "graph", "local", "synthetic", "training")
CHOSEN_ON = 0.2
FITTED_ON = 0.1  # where noise is stated as Gaussian, two means and a width choose the event
TWIN_SAMPLES = 30_000
SAMPLES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Heard:
    """What came out for one of two neighbours, and what was charged for it.

    ``scores`` has one number a draw; or, with ``exact``, the probabilities of all outcomes. ``epsilon`` and ``delta``
    are those of the certificate; ``releases`` is how many went through the vault.
    """

    scores: Array
    epsilon: Fraction
    delta: Fraction
    releases: int
    exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """One way out, with its neighbours and a broken copy that must be refuted.

    ``play`` takes a number of draws and how often the unit counts: 0 is without it, 1 with it. The copy that is broken
    on purpose, as ``flaw`` says, has a unit that counts twice where once is charged; or is played by ``broken``.
    ``curve`` says that the noise is stated as Gaussian, so that the least Gaussian curve is bounded too. ``most``
    bounds slow draws, and ``needs`` names an optional part.
    """

    name: str
    kind: str
    how: str
    play: Callable[[int, int], Heard]
    curve: bool = False
    most: int | None = None
    flaw: str = "a unit counts twice"
    broken: Callable[[int, int], Heard] | None = None
    needs: str | None = None

    def run(self, *, samples: int, alpha: float, twin: bool = False) -> "WayAudited":
        """Attack, or attack the broken copy; each of the two bounds errs with probability α/2 at most."""
        if (skipped := missing(self.needs)) is not None:
            return WayAudited(way=self, twin=twin, skipped=skipped)
        size = min(samples, self.most or samples, TWIN_SAMPLES if twin else samples)
        play = self.broken if twin and self.broken is not None else self.play
        here, there = play(size, 0), play(size, 2 if twin and self.broken is None else 1)
        epsilon, delta = min(here.epsilon, there.epsilon), min(here.delta, there.delta)
        releases = here.releases + there.releases
        if here.exact:
            point = exact_epsilon(here.scores, there.scores, delta=float(delta))
            return WayAudited(
                way=self, twin=twin, epsilon=epsilon, delta=delta, point=point, confidence=1.0, releases=releases
            )
        given = {"delta": float(delta), "alpha": alpha / 2}
        first = FITTED_ON if self.curve else CHOSEN_ON
        return WayAudited(
            way=self,
            twin=twin,
            epsilon=epsilon,
            delta=delta,
            point=epsilon_lower_bound(here.scores, there.scores, chosen_on=first, normal=self.curve, **given),
            by_curve=gaussian_lower_bound(here.scores, there.scores, chosen_on=CHOSEN_ON, **given)
            if self.curve
            else None,
            confidence=1 - alpha,
            draws=len(here.scores),
            releases=releases,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WayAudited:
    """What one way out claimed, and what was proven about it.

    ``point`` bounds ε at the δ of the certificate and assumes no law. ``by_curve`` is the ε, at that δ, of the least
    Gaussian curve that is not refuted: it refutes the noise scale that a certificate states. A claim that is not
    refuted is not thereby proven. ``confidence`` is that of this row.
    """

    way: WayOut
    twin: bool = False
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    point: float | None = None
    by_curve: float | None = None
    confidence: float = 0.0
    draws: int = 0
    releases: int = 0
    skipped: str | None = None

    @property
    def proven(self) -> float | None:
        """The larger of the two lower bounds."""
        found = [bound for bound in (self.point, self.by_curve) if bound is not None]
        return max(found) if found else None

    @property
    def ratio(self) -> float | None:
        """How much of the claimed ε was proven to be lost; above 1 refutes the claim."""
        return None if self.proven is None or not self.epsilon else self.proven / float(self.epsilon)

    @property
    def refuted(self) -> bool:
        """Whether the claim is wrong, with the stated confidence; a hair of float rounding is allowed for."""
        return self.proven is not None and self.proven > float(self.epsilon) * (1 + 1e-9) + 1e-12
