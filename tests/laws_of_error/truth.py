"""What the laws are compared with: their definitions in mpmath at 80 digits, summed or integrated by hand.

Nothing here asks the laws for anything but their parameters.
"""

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import lcm

import mpmath

from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, RoundedGaussian
from tests.core.truth import exactly, mp, number

WholeLaw = DiscreteGaussian | DiscreteLaplace | RoundedGaussian
RealLaw = Gaussian | Laplace
CUT = mp.mpf(10) ** -45  # masses below it are left out; what they sum up to is below TINY
TINY = mp.mpf(10) ** -40


def weight(law: WholeLaw) -> Callable[[int], mpmath.mpf]:
    """P(z = k), up to a constant for the discrete Gaussian."""
    match law:
        case DiscreteLaplace():
            q = mp.exp(-1 / number(law.scale))
            return lambda k: (1 - q) / (1 + q) * q ** abs(k)
        case RoundedGaussian():
            root = number(law.sigma) * mp.sqrt(2)
            half = mp.mpf(1) / 2
            return lambda k: (
                mp.erf(half / root)
                if k == 0
                else (mp.erfc((abs(k) - half) / root) - mp.erfc((abs(k) + half) / root)) / 2
            )
        case DiscreteGaussian():
            twice = 2 * number(law.sigma_squared)
            return lambda k: mp.exp(-(mp.mpf(k) ** 2) / twice)


@lru_cache(maxsize=64)
def masses(law: WholeLaw) -> dict[int, mpmath.mpf]:
    """P(z = k) for all k that count."""
    of, sides, k = weight(law), [weight(law)(0)], 1
    while (next_one := of(k)) > CUT:
        sides.append(next_one)
        k += 1
    total = sides[0] + 2 * mp.fsum(sides[1:]) if isinstance(law, DiscreteGaussian) else mp.mpf(1)
    return {side * k: mass / total for side in (1, -1) for k, mass in enumerate(sides)}


def outside(law: WholeLaw, size: int) -> mpmath.mpf:
    return mp.fsum(mass for k, mass in masses(law).items() if abs(k) > size)


def real_outside(law: RealLaw, size: Fraction) -> mpmath.mpf:
    if isinstance(law, Laplace):
        return mp.exp(-number(size / law.scale))
    return mp.erfc(number(size / law.sigma) / mp.sqrt(2))


def combined(terms: list[tuple[Fraction, WholeLaw]]) -> dict[Fraction, Fraction]:
    """The law of Σ c·z by going through all pairs, in rationals over 2^200; masses below 10^-45 are left out."""
    below, least = lcm(*(coefficient.denominator for coefficient, _ in terms)), int(CUT * 2**200)
    total = {0: 1 << 200}
    for coefficient, law in terms:
        found: dict[int, int] = defaultdict(int)
        move = int(coefficient * below)
        part = [(move * k, int(mp.nint(mass * 2**200))) for k, mass in masses(law).items()]
        for place, mass in total.items():
            for at, more in part:
                found[place + at] += mass * more
        total = {at: mass >> 200 for at, mass in found.items() if mass >> 200 > least}
    return {Fraction(at, below): Fraction(mass, 1 << 200) for at, mass in total.items()}


def encloses(low: Fraction, truth: mpmath.mpf | Fraction, high: Fraction, slack: float = 1e-38) -> bool:
    """Whether the truth lies between, up to what the truth itself left out."""
    exact, room = exactly(truth), Fraction(slack)
    return low <= exact + room and exact - room <= high
