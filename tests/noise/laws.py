"""The laws of noise by their definitions, in mpmath and not by the library, and the settings they are checked at."""

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import mpmath
import pytest

from sfumato.noise.columns import ColumnLaw, NoiseColumns
from sfumato.noise.proposals import CLOSE, ColumnCut, ColumnShares, NearExp, Proposals
from sfumato.noise.sampler import LookUp

ZERO = Fraction(0)
SCALES = [
    *("1/1000", "1/7", "1/2", "3/4", "1", "22/7", "10", "100/9", "12", "25", "1000/3"),
    *("10000", "123456789/1000", str(2**40), str((10 << 40) + 1), f"{3 << 44}/7", str(2**45), str(2**55)),
]
SIGMAS = ["1/1000", "1/7", "1/2", "3/4", "1", "50/7", "12", "25", "31", "32", "54321/10", "10000", str(2**40), "3e14"]


def laplace(scale: str) -> ColumnLaw:
    return ColumnLaw(linear=1 / Fraction(scale), quadratic=ZERO, two_sided=True)


def geometric(scale: str) -> ColumnLaw:
    return ColumnLaw(linear=1 / Fraction(scale), quadratic=ZERO, two_sided=False)


def gaussian(sigma: str) -> ColumnLaw:
    return ColumnLaw(linear=ZERO, quadratic=1 / (2 * Fraction(sigma) ** 2), two_sided=True)


def rounded(sigma: str) -> ColumnLaw:
    return replace(gaussian(sigma), rounded=True)


MADE = {"laplace": laplace, "geometric": geometric, "gaussian": gaussian, "rounded": rounded}
LAWS = [
    pytest.param(make(scale), id=f"{name} {scale}")
    for name, make in MADE.items()
    for scale in (SIGMAS if "ga" in name or name == "rounded" else SCALES)
]

Small = tuple[ColumnLaw, ColumnCut]
SMALL = {  # every part of the code is common here: short words leave much open, and the tail is no rarity
    "laplace 2": (laplace("2"), ColumnCut(place=0, columns=6, index=7, choice=6, width=10)),
    "laplace 9 by 2": (laplace("9"), ColumnCut(place=1, columns=9, index=7, choice=6, width=10)),
    "geometric 15 by 4": (geometric("15"), ColumnCut(place=2, columns=9, index=6, choice=6, width=10)),
    "gaussian 12 by 2": (gaussian("12"), ColumnCut(place=1, columns=11, index=8, choice=6, width=10)),
    "rounded 24 by 4": (rounded("24"), ColumnCut(place=2, columns=11, index=7, choice=6, width=10)),
    "rounded 6 by 1": (rounded("6"), ColumnCut(place=0, columns=11, index=8, choice=6, width=10)),
    "rounded 3/2 by 1/4": (rounded("3/2"), ColumnCut(place=-2, columns=11, index=7, choice=6, width=10)),
    "rounded 1/2 by 1/16": (rounded("1/2"), ColumnCut(place=-4, columns=28, index=8, choice=7, width=11)),
}


def look_up(law: ColumnLaw, cut: ColumnCut) -> LookUp:
    return LookUp.of(NoiseColumns(law=law, place=cut.place), cut)


def all_by_proposals(law: ColumnLaw, cut: ColumnCut, near_exp: NearExp = CLOSE) -> Proposals:
    """Proposals from the whole law, nothing given."""
    columns = NoiseColumns(law=law, place=cut.place)
    return Proposals.of(columns, cut, ColumnShares.of(columns, cut), None, near_exp)


def number(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def density(law: ColumnLaw, t: Fraction) -> mpmath.mpf:
    """P at the whole number t, or the density at the real number t of which the nearest whole number is kept."""
    weight = mpmath.exp(-number(law.exponent(t)))
    if law.rounded:
        return weight * mpmath.sqrt(number(law.quadratic) / mpmath.pi)
    if law.quadratic:
        return weight / _theta(number(law.quadratic))
    q = mpmath.exp(-number(law.linear))
    return weight * -mpmath.expm1(-number(law.linear)) / (1 + q if law.two_sided else 1)


@lru_cache(maxsize=64)
def _theta(rate: mpmath.mpf) -> mpmath.mpf:
    """Σ exp(−rate·k²) over all whole k; for small rates as its Fourier transform, for mpmath refuses them."""
    if rate < 0.01:
        return mpmath.sqrt(mpmath.pi / rate) * mpmath.jtheta(3, 0, mpmath.exp(-(mpmath.pi**2) / rate))
    return mpmath.jtheta(3, 0, mpmath.exp(-rate))


def probability(law: ColumnLaw, z: int) -> mpmath.mpf:
    """P(z)."""
    if z < 0 and not law.two_sided:
        return mpmath.mpf(0)
    if not law.rounded:
        return density(law, Fraction(abs(z)))
    sigma = 1 / mpmath.sqrt(2 * number(law.quadratic))
    near, far = (abs(z) - mpmath.mpf(1) / 2) / sigma, (abs(z) + mpmath.mpf(1) / 2) / sigma
    return (mpmath.erfc(near / mpmath.sqrt(2)) - mpmath.erfc(far / mpmath.sqrt(2))) / 2
