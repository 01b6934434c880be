"""Attention logits with Gaussian noise, or only the key with the largest one: which ε keeps the top key.

Figures for planning, which hold no logits and draw no noise. Logits of private records are released by a vault:
:meth:`sfumato.learning.Examples.attention_logits`. The noise is on a lattice of whole steps, so that its guarantee is
exact; logits are rounded to it first, and what that moves is paid for.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core import enclosures
from sfumato.core.exact import Exact, natural, positive, probability
from sfumato.core.guarantees import GDP
from sfumato.core.noise_multiplier import classical_multiplier, exact_multiplier
from sfumato.core.search import around_decimal, least_decimal, over
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused
from sfumato.mechanisms.calibration import least_epsilon_where
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.noisy_max import NoisyMax

__all__ = [
    "LogitRelease",
    "TopKey",
    "classical_epsilon",
    "least_epsilon",
    "lost_by_gaussian",
    "lost_by_laplace",
    "widest_noise",
]

DIGITS = 9
FINE = 2**20  # steps of the lattice in a margin
DEEPEST = Fraction(40)  # standard deviations: less likely things are stated as if they were that likely
FARTHEST = 2**61  # steps: with noise below 2^50 steps, sums stay within 64 bits


def widest_noise(*, margin: Exact, error: Exact, keys: int = 2) -> Fraction:
    """The largest σ, to nine digits and rounded down, that keeps the top key with chance 1 − error.

    σ = m/(√2·Φ⁻¹(1 − a/(K − 1))) for a top key that leads each of K − 1 others by at least the margin m: the noise of
    two logits differs by more than m with chance Φ(−m/(√2σ)), and there are K − 1 such chances.

    >>> float(widest_noise(margin=2, error=0.05))
    0.85978...
    """
    lead, chance = positive(margin, "margin"), _for_each(error, keys)
    root = enclosures.sqrt(Fraction(2)).high

    def kept(sigma: Fraction) -> bool:
        return enclosures.normal_cdf(-lead / (root * sigma)).high <= chance

    start = 10 * lead  # the search is for 1/σ, so that more noise is the smaller number
    found = around_decimal(lambda inverse: 0.5 - kept(1 / inverse), digits=DIGITS, near=1 / start)[1]
    return 1 / found


def classical_epsilon(*, margin: Exact, error: Exact, l2: Exact, delta: Exact, keys: int = 2) -> Fraction:
    """ε* = 2Δ·Φ⁻¹(1 − a/(K − 1))·√(ln(1.25/δ))/m, to nine digits and rounded up: for teaching, and below 1 alone.

    Guarantee: classical Gaussian noise for this ε keeps the top key with chance 1 − a. Assumes: one query, Δ the l2
    sensitivity of the whole vector of logits. From ε = 1 on it is refused, for there the formula is no theorem.

    >>> float(classical_epsilon(margin=2, error=0.05, l2=0.1, delta=1e-5))
    0.563...
    """
    sigma, moved = widest_noise(margin=margin, error=error, keys=keys), positive(l2, "l2")

    def excess(epsilon: Fraction) -> float:
        # The formula is linear in 1/ε, so it is read at 1/2 where it is a theorem.
        return over(moved * classical_multiplier(epsilon=Fraction(1, 2), delta=delta) / (2 * epsilon), sigma)

    needed = least_decimal(excess, digits=DIGITS)
    if needed >= 1:
        raise Refused(
            f"this margin needs ε = {float(needed):.3f} by the classical formula, which is proven for ε < 1 only; "
            "nothing was done. Use least_epsilon: it holds at every ε and asks for less."
        )
    return needed


def least_epsilon(*, margin: Exact, error: Exact, l2: Exact, delta: Exact, keys: int = 2) -> Fraction:
    """The least ε, rounded up, at which Gaussian noise keeps the top key with chance 1 − error; exact at every ε.

    >>> float(least_epsilon(margin=2, error=0.05, l2=0.1, delta=1e-5))
    0.4016...
    """
    sigma = widest_noise(margin=margin, error=error, keys=keys)
    return GDP(mu=positive(l2, "l2") / sigma).epsilon_at(delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogitRelease:
    """What it costs to release logits of ``keys`` keys, on a lattice of ``pitch``, with Gaussian noise of ``sigma``.

    For planning: it holds no logits and draws no noise. A vault releases them:
    :meth:`~sfumato.learning.Examples.attention_logits`, with ``l2`` = clip/n_units under add/remove.

    Guarantee: :meth:`epsilon`, exact on the lattice; :meth:`error` bounds the chance that the top key is lost. Assumes:
    one unit moves the whole vector of logits by at most ``l2``, under the relation that the caller means. Public:
    every field. Proof: docs/proofs/paradigms.md

    Logits are held within ±``bound`` first, as far as the lattice goes unless it is given; :meth:`error` is for logits
    within it.

    >>> release = LogitRelease.for_margin(margin=2, error=0.05, l2=0.1, keys=2)
    >>> float(release.epsilon(1e-5)), float(release.error(2)) <= 0.05
    (0.4016..., True)
    """

    keys: int
    l2: Fraction
    sigma: Fraction
    pitch: Fraction
    bound: Fraction | None = None

    def __post_init__(self) -> None:
        natural(self.keys, "keys", least=2)
        for name in ("l2", "sigma", "pitch"):
            object.__setattr__(self, name, positive(getattr(self, name), name))
        object.__setattr__(self, "bound", _bound(self.bound, self.pitch))

    @classmethod
    def for_margin(cls, *, margin: Exact, error: Exact, l2: Exact, keys: int = 2) -> "LogitRelease":
        """The most noise that keeps a key which leads by the margin; :meth:`epsilon` says what that costs."""
        lead = positive(margin, "margin")
        pitch = lead / FINE
        sigma = widest_noise(margin=lead - 2 * pitch, error=error, keys=keys)
        return cls(keys=keys, l2=positive(l2, "l2"), sigma=sigma, pitch=pitch)

    @classmethod
    def for_budget(cls, *, epsilon: Exact, delta: Exact, l2: Exact, keys: int = 2) -> "LogitRelease":
        """The least noise that an ε and a δ allow."""
        moved, times = positive(l2, "l2"), exact_multiplier(epsilon=epsilon, delta=delta)
        pitch = moved / FINE
        sigma = times * (moved + enclosures.sqrt(Fraction(natural(keys, "keys", least=2))).high * pitch)
        return cls(keys=keys, l2=moved, sigma=sigma, pitch=pitch)

    def sensitivity(self) -> Sensitivity:
        """How far one unit moves the rounded logits, in steps of the lattice: l2/pitch, and √K for the rounding."""
        rounding = enclosures.sqrt(Fraction(self.keys)).high
        return Sensitivity.of(l2_squared=(self.l2 / self.pitch + rounding) ** 2)

    @property
    def noise(self) -> Gaussian:
        """The mechanism, in steps of the lattice; ``noise.event`` is what an accountant reads."""
        moved = self.sensitivity().l2
        return Gaussian(l2_squared=moved.squared if moved else Fraction(0), sigma=self.sigma / self.pitch)

    def epsilon(self, delta: Exact) -> Fraction:
        """The ε of one release at a δ, rounded up."""
        noise = self.noise
        return GDP(mu=enclosures.sqrt(noise.l2_squared).high / noise.sigma).epsilon_at(delta)

    def error(self, margin: Exact) -> Fraction:
        """At least the chance that a key which leads all others by the margin does not have the largest noisy logit."""
        lead = positive(margin, "margin") - 2 * self.pitch
        if lead <= 0 or not _leads(margin, self.bound):
            return Fraction(1)
        return _lost(lead / self.sigma, self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKey:
    """What it costs to name the key with the largest noisy logit alone: pure ε, and less of it than for all logits.

    For planning: a vault names the key, :meth:`~sfumato.learning.Examples.attention_key`.

    Guarantee: ``noise.loss`` of report noisy max, ε = ``epsilon``. Assumes: one unit moves no logit by more than
    ``linf``. Public: every field.
    Proof: docs/proofs/noisy_max.md, docs/proofs/paradigms.md

    >>> top = TopKey.for_margin(margin=2, error=0.05, linf=0.1, keys=2)
    >>> float(top.epsilon)
    0.3276
    """

    keys: int
    linf: Fraction
    epsilon: Fraction
    pitch: Fraction
    bound: Fraction | None = None

    def __post_init__(self) -> None:
        natural(self.keys, "keys", least=2)
        for name in ("linf", "epsilon", "pitch"):
            object.__setattr__(self, name, positive(getattr(self, name), name))
        object.__setattr__(self, "bound", _bound(self.bound, self.pitch))

    @classmethod
    def for_margin(cls, *, margin: Exact, error: Exact, linf: Exact, keys: int = 2) -> "TopKey":
        """The least ε, to four digits and rounded up, that names a key which leads by the margin with chance 1 − a."""
        lead, moved, chance = positive(margin, "margin"), positive(linf, "linf"), probability(error, "error")
        _for_each(chance, keys)
        pitch = min(lead, moved) / 2**10

        def made(epsilon: Fraction) -> TopKey:
            return cls(keys=keys, linf=moved, epsilon=epsilon, pitch=pitch)

        goal = "keeps this margin with that chance"
        return made(least_epsilon_where(lambda epsilon: made(epsilon).error(lead) <= chance, goal))

    def sensitivity(self) -> Sensitivity:
        """How far one unit moves a rounded logit, in steps of the lattice: linf/pitch rounded up, and one step more."""
        return Sensitivity.of(linf=math.ceil(self.linf / self.pitch) + 1)

    @property
    def noise(self) -> NoisyMax:
        """The mechanism, in steps of the lattice."""
        moved = self.sensitivity().linf
        return NoisyMax.calibrated(sensitivity=int(moved.value) if moved else 1, epsilon=self.epsilon)

    def error(self, margin: Exact) -> Fraction:
        """At least the chance that a key which leads all others by the margin is not named."""
        # rounding brings two keys closer by less than a step
        lead = math.floor(positive(margin, "margin") / self.pitch)
        if not _leads(margin, self.bound):
            return Fraction(1)
        return lost_by_laplace(lead, scale=self.noise.scale, keys=self.keys)


def lost_by_gaussian(lead: int, *, sigma: Fraction, keys: int) -> Fraction:
    """At least the chance that a whole number ``lead`` steps above all others is not the largest with rounded noise.

    The noises of two keys are N(0, σ²), each rounded to whole steps, so their difference is rounded by less than one.

    >>> float(lost_by_gaussian(3, sigma=Fraction(1), keys=2))  # Φ(−2/√2)
    0.0786...
    """
    return Fraction(1) if lead <= 1 else _lost((lead - 1) / sigma, keys)


def lost_by_laplace(lead: int, *, scale: Fraction, keys: int) -> Fraction:
    """The same with discrete Laplace noise.

    The difference of two discrete Laplace noises has P(D ≥ k) = c·q^k·((k + r)/(1 − q) + q/(1 − q)²) with
    c = ((1 − q)/(1 + q))², r = (1 + q²)/(1 − q²), q = e^(−1/scale).

    >>> lost_by_laplace(10, scale=Fraction(1), keys=2) < lost_by_laplace(10, scale=Fraction(1), keys=3)
    True
    """
    if lead < 1:
        return Fraction(1)
    if lead / scale > FINE:
        return Fraction(keys, 2**1000)
    q, last = enclosures.exp(-1 / scale), enclosures.exp(-lead / scale)
    share = (1 - q) * (1 - q) / ((1 + q) * (1 + q))
    spread = (1 + q * q) / ((1 - q) * (1 + q))
    tail = share * last * ((lead + spread) / (1 - q) + q / ((1 - q) * (1 - q)))
    return min(Fraction(1), (keys - 1) * tail.high)


def _lost(lead: Fraction, keys: int) -> Fraction:
    """The chance that a normal number leads none of the others, all of them ``lead`` standard deviations behind it."""
    out = min(lead / enclosures.sqrt(Fraction(2)).high, DEEPEST)
    return min(Fraction(1), (keys - 1) * enclosures.normal_cdf(-out).high)


def _for_each(error: Exact, keys: int) -> Fraction:
    """The chance of a loss that each of the other keys may have."""
    chance = positive(probability(error, "error"), "error") / (natural(keys, "keys", least=2) - 1)
    if chance >= Fraction(1, 2):
        raise InvalidInput("an error of one half for two keys is a coin; nothing was done. Give a smaller error.")
    return chance


def _bound(bound: Fraction | None, pitch: Fraction) -> Fraction:
    """How far from 0 a logit may lie: as declared, or as far as the lattice goes."""
    most = FARTHEST * pitch
    if bound is None:
        return most
    if positive(bound, "bound") > most:
        raise InvalidInput("the bound lies beyond 2^61 steps of the lattice; nothing was done. Take a coarser pitch.")
    return positive(bound, "bound")


def _leads(margin: Exact, bound: Fraction | None) -> bool:
    """Whether two logits within the bound can be so far apart."""
    return bound is not None and positive(margin, "margin") <= 2 * bound
