"""The discrete Gaussian error distribution: what the matrix mechanism adds.

Its normalising constant comes from Poisson summation. Its tail is summed term by term where few terms count, and
comes from the Euler-Maclaurin formula with a proven remainder where many do. Proof: docs/proofs/laws.md
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, factorial, floor, isqrt
from typing import ClassVar

from sfumato.core import enclosures
from sfumato.core.enclosures import Enclosure
from sfumato.core.exact import natural, positive
from sfumato.laws.margins import WholeNumberLaw
from sfumato.laws.tails import REACH, exponential

__all__ = ["DiscreteGaussian"]

BITS = 128
HALF = Fraction(1, 2)
FEW = 256  # up to this σ² the terms of a tail are summed one by one
VANISHED = 400  # e^-400 is taken for what a series in e^(−x) is at most from x = 400 on
LEFT_OUT = Fraction(1, 2**300)  # more than the share of a series Σ k²·e^(−xk²) that lies beyond xk² = 300, for x ≥ 3
CROSSING = Fraction(1, 6)  # from this σ² on the dual series converges faster: 2π²/6 > 3, and below it 1/(2σ²) > 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian(WholeNumberLaw):
    """P(z) ∝ exp(−z²/(2·sigma_squared)) on the whole numbers.

    >>> law = DiscreteGaussian(sigma_squared=Fraction(100))
    >>> law.margin(0.95), law.variance, round(float(law.mean_absolute_error), 3)
    (20, Fraction(100, 1), 7.972)
    """

    KIND: ClassVar[str] = "law.discrete_gaussian"
    VERSION: ClassVar[int] = 1
    sigma_squared: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma_squared", positive(self.sigma_squared, "sigma_squared"))

    @property
    def variance(self) -> Fraction:
        """At most σ², and σ² itself up to 10^-12 from σ² = 2 on; rounded up."""
        square = self.sigma_squared
        if square < CROSSING:
            direct = Enclosure(1 / (2 * square), 1 / (2 * square))
            return (_series(direct, 2) / (1 + _series(direct, 0))).high
        dual = _dual(square)
        lost = 2 * square * dual * _series(dual, 2) / (1 + _series(dual, 0))
        return square - max(Fraction(0), lost.outward().low)

    @property
    def mean_absolute_error(self) -> Fraction:
        """A direct sum up to σ = 16; beyond, 2σ²/Σ exp(−k²/(2σ²)), which is too large by a share of 1/(12σ²)."""
        square, total = self.sigma_squared, _total(self.sigma_squared).low
        if square > FEW:
            return 2 * square / total
        last = isqrt(int(256 * square)) + 2
        terms = (k * exponential(k * k / (2 * square)).high for k in range(1, last + 1))
        rest = square * exponential(last * last / (2 * square)).high  # the integral from the last term on
        return Enclosure(Fraction(0), 2 * sum(terms, rest) / total).outward().high

    def tail(self, size: int) -> Enclosure:
        """P(|z| > size), to about 30 digits; beyond 200σ an upper bound."""
        square, within = self.sigma_squared, natural(size, "size", least=0)
        reach = isqrt(int(REACH**2 * square)) + 1
        if within > reach:
            return Enclosure(Fraction(0), self.tail(reach).high)
        few = square <= FEW or 2 * (within + 1) >= square
        beyond, total = _summed(square, within + 1) if few else _integrated(square, within), _total(square)
        return Enclosure(2 * beyond.low / total.high, 2 * beyond.high / total.low).outward(bits=BITS)


@lru_cache(maxsize=64)
def _total(square: Fraction) -> Enclosure:
    """Σ exp(−k²/(2σ²)) over all whole k, which is √(2πσ²)·Σ exp(−2π²σ²k²)."""
    if square < CROSSING:
        return 1 + _series(Enclosure(1 / (2 * square), 1 / (2 * square)), 0)
    root = enclosures.monotone(enclosures.sqrt, 2 * square * enclosures.pi(bits=BITS), bits=BITS)
    return (root * (1 + _series(_dual(square), 0))).outward(bits=BITS)


def _dual(square: Fraction) -> Enclosure:
    """2π²σ²: the exponent of the dual series."""
    pi = enclosures.pi(bits=BITS)
    return (2 * square * pi * pi).outward(bits=BITS)


def _series(x: Enclosure, power: int) -> Enclosure:
    """2·Σ_(k ≥ 1) k^power·exp(−x·k²) for x ≥ 3 and power ≤ 2; beyond x = 400 an upper bound and 0."""
    if x.low > VANISHED:
        return Enclosure(Fraction(0), 2 * (1 + LEFT_OUT) * enclosures.exp(-VANISHED, bits=BITS).high)
    last = isqrt(int(300 / x.low)) + 1
    low = sum((k**power * enclosures.exp(-x.high * k * k, bits=BITS).low for k in range(1, last + 1)), Fraction(0))
    high = sum((k**power * enclosures.exp(-x.low * k * k, bits=BITS).high for k in range(1, last + 1)), Fraction(0))
    return Enclosure(2 * low, 2 * high * (1 + LEFT_OUT)).outward(bits=BITS)


def _summed(square: Fraction, first: int) -> Enclosure:
    """Σ_(k ≥ first) exp(−k²/(2σ²)): the first term times 1 + ρq + ρ²q⁴ + …, q = e^(−1/(2σ²)), ρ = e^(−first/σ²).

    The factors ρq, ρq³, … fall, so what is left out is a geometric series at most.
    """
    start, width = exponential(first * first / (2 * square), bits=BITS), BITS + 16
    q, step = exponential(1 / (2 * square), bits=BITS), exponential((first + HALF) / square, bits=BITS)
    one = 1 << width
    squeeze = [floor(q.low**2 * one), ceil(q.high**2 * one)]
    factor = [floor(step.low * one), ceil(step.high * one)]
    term, total = [one, one], [one, one]
    while term[1] >> 16:
        term = [term[0] * factor[0] >> width, -(-term[1] * factor[1] >> width)]
        factor = [factor[0] * squeeze[0] >> width, -(-factor[1] * squeeze[1] >> width)]
        total = [total[0] + term[0], total[1] + term[1]]
    rest = -(-term[1] * factor[1] // (one - factor[1]))
    return start * Enclosure(Fraction(total[0], one), Fraction(total[1] + rest, one))


def _integrated(square: Fraction, within: int) -> Enclosure:
    """Σ_(k > within) f(k) for f(x) = exp(−x²/(2σ²)): the integral from a = within + ½ on and its corrections.

    By Euler and Maclaurin the sum is ∫ f + f(a)·Σ_(even k ≤ n) c_k·h_(k−1) up to max|b_n|·∫|f^(n)|, where c_k is the
    coefficient of t^k in (t/2)/sinh(t/2), h_k = σ^(−k)·He_k(a/σ) and max|b_n| ≤ 4/6^n.
    """
    order, sigma, whole, flat = _shape(square)
    edge = within + HALF
    height = exponential(edge**2 / (2 * square), bits=BITS)
    reach = Enclosure(edge / sigma.high, edge / sigma.low).outward(bits=BITS)
    deep = enclosures.normal_cdf(-reach.high, bits=BITS)
    spare = reach.width * height.high  # the normal density between the ends of the reach is below the height
    hermite = _hermite(square, edge, order)
    bends = sum((_coefficients(order)[k // 2] * hermite[k - 1] for k in range(2, order + 1, 2)), Fraction(0))
    if edge**2 >= 4 * order * square:  # f^(n) has one sign from a on, and its integral is f^(n−1)(a)
        slack = 4 * height.high * hermite[order - 1] / 6**order
    else:
        slack = 4 * flat * exponential(edge**2 / (4 * square), bits=BITS).high / 6**order
    least, most = sorted((height.low * bends, height.high * bends))
    return Enclosure(whole.low * deep.low + least - slack, whole.high * (deep.high + spare) + most + slack)


@lru_cache(maxsize=64)
def _shape(square: Fraction) -> tuple[int, Enclosure, Enclosure, Fraction]:
    """The order n, σ, √(2πσ²), and what exp(−a²/(4σ²)) is multiplied by in a bound of ∫|f^(n)| from a on.

    |f^(n)(x)| ≤ n!·(e/n)^(n/2)·σ^(−n)·exp(−x²/(4σ²)), and the integral of the last is at most 2σ·exp(−a²/(4σ²)).
    """
    order, sigma = 2 * -(-64 // (int(square).bit_length() // 2)), enclosures.sqrt(square, bits=BITS)
    whole = enclosures.monotone(enclosures.sqrt, 2 * square * enclosures.pi(bits=BITS), bits=BITS)
    steep = factorial(order) * (Fraction(68, 25) / order) ** (order // 2) / square ** (order // 2)
    return order, sigma, whole, Enclosure(Fraction(0), 2 * sigma.high * steep).outward(bits=BITS).high


def _hermite(square: Fraction, edge: Fraction, order: int) -> list[Fraction]:
    """h_k = σ^(−k)·He_k(a/σ) for k < order, by h_(k+1) = (a·h_k − k·h_(k−1))/σ², in whole numbers over (2p)^k."""
    top, bottom = square.numerator, square.denominator
    move, drop = int(2 * edge) * bottom, 4 * top * bottom
    whole = [1, move]
    for k in range(1, order - 1):
        whole.append(move * whole[k] - k * drop * whole[k - 1])
    return [Fraction(value, (2 * top) ** k) for k, value in enumerate(whole)]


@lru_cache(maxsize=32)
def _coefficients(order: int) -> tuple[Fraction, ...]:
    """Those of 1, t², …, t^order in (t/2)/sinh(t/2): times Σ t^(2j)/(4^j·(2j + 1)!), the series of them is 1."""
    known = [Fraction(1)]
    for k in range(1, order // 2 + 1):
        known.append(-sum(known[k - j] / (4**j * factorial(2 * j + 1)) for j in range(1, k + 1)))
    return tuple(known)
