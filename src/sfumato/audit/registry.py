"""The attacks on every shipped mechanism, and the broken twins that the same attacks must refute.

A mechanism without an attack fails the suite. Twins are wrong on purpose, in ways that have happened to others.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from secrets import SystemRandom
from typing import Any

from sfumato import noise
from sfumato.audit import laws
from sfumato.audit.verdict import Attack, Verdict
from sfumato.mechanisms import (
    Exponential,
    Gaussian,
    Laplace,
    NoisyMax,
    NoisyThreshold,
    PermuteAndFlip,
    RandomizedResponse,
    SparseVector,
)

__all__ = ["ATTACKS", "TWINS", "audit"]

Law = Callable[[int], Any]


def _laplace(name: str, scale: Fraction) -> Attack:
    """One number that a unit moves by 1; the half-line below 0 shows the whole loss."""

    def drawn(shift: int) -> Law:
        return lambda size: noise.discrete_laplace(scale=scale, size=size) + shift

    return Attack(name=name, kind=Laplace.KIND, epsilon=1.0, delta=0.0, here=drawn(0), there=drawn(1))


def _gaussian(name: str, moved: int, sigma: float, epsilon: float, delta: float) -> Attack:
    def law(shift: int) -> Law:
        return lambda _: laws.gaussian(shift, sigma, reach=moved + int(40 * sigma) + 2)

    return Attack(
        name=name, kind=Gaussian.KIND, epsilon=epsilon, delta=delta, here=law(0), there=law(moved), exact=True
    )


def _drawn_gaussian(name: str, mechanism: Gaussian, epsilon: float, delta: float) -> Attack:
    def drawn(shift: int) -> Law:
        return lambda size: noise.rounded_gaussian(sigma=mechanism.sigma, size=size) + shift

    return Attack(name=name, kind=Gaussian.KIND, epsilon=epsilon, delta=delta, here=drawn(0), there=drawn(1))


def _mean_of_gradients(name: str, *, claimed: int, moved: int) -> Attack:
    """A noised sum of clipped gradients whose sensitivity was claimed as ``claimed`` clips and is ``moved`` clips."""
    noise_of_claim = Gaussian.calibrated(l2=claimed, epsilon=1, delta=1e-5)
    return _gaussian(name, moved, float(noise_of_claim.sigma), 1.0, 1e-5)


def _touched(batch: int, negatives: int) -> int:
    """How many anchors one sample touches when each draws its negatives at random: its own, its pair, and more."""
    chance = SystemRandom()
    drawn = Counter(
        other for anchor in range(batch) for other in chance.sample([x for x in range(batch) if x != anchor], negatives)
    )
    return 2 + max(drawn.values())


def _choice(name: str, kind: str, epsilon: float, law: Callable[[tuple[int, ...]], Any]) -> Attack:
    """Three candidates whose scores a unit moves apart as far as it can."""
    return Attack(
        name=name,
        kind=kind,
        epsilon=epsilon,
        delta=0.0,
        here=lambda _: law((40, 1, 40)),
        there=lambda _: law((41, 0, 41)),
        exact=True,
    )


def _sparse(name: str, run: SparseVector, *, query_scale: Fraction | None = None, alarms: int | None = None) -> Attack:
    """Silent queries that the unit makes louder, loud ones that it makes quieter."""

    def law(silent: int, loud: int) -> Law:
        return lambda _: laws.pattern(
            silent=silent,
            loud=loud,
            threshold=0,
            alarms=run.alarms if alarms is None else alarms,
            threshold_scale=run.threshold_scale,
            query_scale=run.query_scale if query_scale is None else query_scale,
        )

    epsilon = float(run.event.guarantee.epsilon)  # type: ignore[union-attr]
    return Attack(
        name=name, kind=SparseVector.KIND, epsilon=epsilon, delta=0.0, here=law(0, 1), there=law(1, 0), exact=True
    )


def _threshold(name: str, rule: NoisyThreshold, keys: int, delta: float) -> Attack:
    """A person with keys that nobody else has, against the same data without that person, where they cannot appear."""

    def law(*, present: bool) -> Law:
        event = rule.loss(keys).events[1]
        shown = float(event.guarantee.delta) if present else 0.0  # type: ignore[union-attr]
        return lambda _: [shown, 1 - shown]

    return Attack(
        name=name,
        kind=NoisyThreshold.KIND,
        epsilon=float(rule.keys * rule.most / rule.scale),
        delta=delta,
        here=law(present=True),
        there=law(present=False),
        exact=True,
    )


def _float_laplace(size: int, shift: int) -> Any:
    """A textbook Laplace sampler in doubles: 0 where the output near 0 has a bit that 1 + noise could never have."""
    import numpy as np

    words = np.frombuffer(os.urandom(16 * size), dtype=np.uint64)
    sign = np.where(words[:size] & np.uint64(1), 1.0, -1.0)
    unit = ((words[size:] >> np.uint64(11)).astype(np.float64) + 1) * 2.0**-53
    outputs = shift - sign * np.log(unit)
    near = np.abs(outputs) < 1 / 8
    whole = np.ldexp(outputs, 53) == np.rint(np.ldexp(outputs, 53))
    return np.where(near, np.where(whole, 1, 0), 2)


_GAUSSIAN = Gaussian.calibrated(l2=1, epsilon=1, delta=1e-5)
_VECTOR = SparseVector.calibrated(sensitivity=1, alarms=2, epsilon=1)
_MONOTONE = SparseVector.calibrated(sensitivity=1, alarms=2, epsilon=1, monotone=True)
_RULE = NoisyThreshold.calibrated(keys=3, most=1, epsilon=1, delta=1e-4)
_MAX = NoisyMax.calibrated(sensitivity=1, epsilon=1)
_SOFT = Exponential.calibrated(sensitivity=1, epsilon=1)
_FLIP = PermuteAndFlip.calibrated(sensitivity=1, epsilon=1)
_RESPONSE = RandomizedResponse.calibrated(epsilon=1, categories=4)

ATTACKS = (
    _laplace("Laplace", Laplace.calibrated(l1=1, epsilon=1).scale),
    _gaussian("Gaussian", 1, float(_GAUSSIAN.sigma), 1.0, 1e-5),
    _drawn_gaussian("Gaussian, as drawn", _GAUSSIAN, 1.0, 1e-5),
    _choice("exponential", Exponential.KIND, 1.0, lambda scores: laws.softmax(_SOFT.exponents(scores))),
    _choice("permute and flip", PermuteAndFlip.KIND, 1.0, lambda scores: laws.flipped(_FLIP.exponents(scores))),
    _choice("noisy max", NoisyMax.KIND, 1.0, lambda scores: laws.largest(scores, _MAX.scale)),
    _sparse("sparse vector", _VECTOR),
    _threshold("noisy threshold", _RULE, 3, 1e-4),
    Attack(
        name="randomised response",
        kind=RandomizedResponse.KIND,
        epsilon=1.0,
        delta=0.0,
        here=lambda _: laws.softmax(_RESPONSE.exponents(0)),
        there=lambda _: laws.softmax(_RESPONSE.exponents(1)),
        exact=True,
    ),
)

TWINS = (
    _laplace("Laplace, scale 5% too small", Fraction(95, 100)),
    Attack(
        name="Laplace in floating point",
        kind=Laplace.KIND,
        epsilon=1.0,
        delta=0.0,
        here=lambda size: _float_laplace(size, 0),
        there=lambda size: _float_laplace(size, 1),
    ),
    _gaussian("classical Gaussian at ε = 20", 100, 100 * 4.844805262605389 / 20, 20.0, 1e-5),
    _sparse("sparse vector, monotone noise on general queries", _VECTOR, query_scale=_VECTOR.query_scale / 2),
    _sparse("sparse vector that does not halt", _VECTOR, alarms=16),
    _mean_of_gradients("policy gradient, replaced trajectory counted once", claimed=1, moved=2),
    _mean_of_gradients("contrastive loss, random negatives counted as k + 2", claimed=4 + 2, moved=_touched(64, 4)),
    Attack(
        name="noisy max that reports its value with one-sided noise",
        kind=NoisyMax.KIND,
        epsilon=1.0,
        delta=0.0,
        here=lambda _: laws.one_sided(0, _MAX.scale),
        there=lambda _: laws.one_sided(1, _MAX.scale),
        exact=True,
    ),
    _threshold(
        "threshold with the δ of one key, for three",
        NoisyThreshold.calibrated(keys=1, most=1, epsilon="1/3", delta="1/200"),
        3,
        0.005,
    ),
)


def audit(attacks: tuple[Attack, ...] = ATTACKS, *, samples: int = 400_000, alpha: float = 0.01) -> Iterator[Verdict]:
    """Run attacks one by one; each sampling attack errs with probability at most α."""
    for attack in attacks:
        yield attack.run(samples=samples, alpha=alpha)
