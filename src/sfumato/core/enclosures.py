"""Rational enclosures of exp, log, sqrt, π and the normal distribution: the truth lies between two dyadics.

Everything is integer arithmetic at scale 2**w: what may lower a result is rounded down, what may raise it up.
"Unit" below means 2**-w. The remainder arguments in full: docs/proofs/enclosures.md
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import isqrt
from typing import Protocol

from sfumato.errors import InvalidInput

__all__ = ["Enclosure", "exp", "log", "monotone", "normal_cdf", "pi", "sqrt"]

_EXP_LIMIT = 1 << 24  # so that the multiple of ln 2 taken off stays below 2**25
_CDF_LIMIT = 1 << 12  # so that x²/2 stays within _EXP_LIMIT
_BITS_LIMIT = 1 << 16
_SPARE = 64  # bits of ln 2 beyond w: they absorb its multiple, which has fewer than 62 bits


@dataclass(frozen=True, slots=True)
class Enclosure:
    """Two rationals with the true value between them; arithmetic is exact on the ends, so it encloses too.

    >>> Enclosure(Fraction(1), Fraction(2)) * -3 + 1
    Enclosure(about -5 to -2, width < 2**2)
    """

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        ends: tuple[object, object] = (self.low, self.high)
        if not all(isinstance(end, Fraction) for end in ends):
            raise InvalidInput("The ends of an Enclosure are Fractions: pass Fraction(end).")
        if self.low > self.high:
            raise InvalidInput("An Enclosure with low > high holds nothing. Pass the smaller end first.")

    @property
    def width(self) -> Fraction:
        """The distance between the ends: how much is not known."""
        return self.high - self.low

    def outward(self, *, bits: int = 128) -> "Enclosure":
        """Round each end outward to a dyadic of ``bits`` significant bits, so that long chains stay small.

        >>> Enclosure(Fraction(1, 3), Fraction(1, 3)).outward(bits=2)
        Enclosure(about 0.25 to 0.5, width < 2**-1)
        """
        _checked(bits)
        down, up = bits - _exponent(self.low), bits - _exponent(self.high)
        return Enclosure(_dyadic(_floor(self.low, down), -down), _dyadic(-_floor(-self.high, up), -up))

    def __neg__(self) -> "Enclosure":
        return Enclosure(-self.high, -self.low)

    def __add__(self, other: "Enclosure | Fraction | int") -> "Enclosure":
        that = _enclosed(other)
        return Enclosure(self.low + that.low, self.high + that.high)

    def __sub__(self, other: "Enclosure | Fraction | int") -> "Enclosure":
        return self + -_enclosed(other)

    def __mul__(self, other: "Enclosure | Fraction | int") -> "Enclosure":
        that = _enclosed(other)
        if self.low >= 0 and that.low >= 0:
            return Enclosure(self.low * that.low, self.high * that.high)
        corners = [mine * yours for mine in (self.low, self.high) for yours in (that.low, that.high)]
        return Enclosure(min(corners), max(corners))

    def __truediv__(self, other: "Enclosure | Fraction | int") -> "Enclosure":
        that = _enclosed(other)
        if that.low <= 0 <= that.high:
            raise InvalidInput("The divisor's enclosure holds 0; nothing was divided. Enclose it with more bits.")
        return self * Enclosure(1 / that.high, 1 / that.low)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Fraction | int) -> "Enclosure":
        return _enclosed(other) - self

    def __rtruediv__(self, other: Fraction | int) -> "Enclosure":
        return _enclosed(other) / self

    def __repr__(self) -> str:
        low, high = _shown(self.low), _shown(self.high)
        where = low if low == high else f"{low} to {high}"
        return f"Enclosure(about {where}, width {f'< 2**{_exponent(self.width)}' if self.width else '0'})"


class _Increasing(Protocol):
    def __call__(self, x: Fraction, *, bits: int = ...) -> Enclosure: ...


def monotone(f: _Increasing, enclosure: Enclosure, *, bits: int = 128) -> Enclosure:
    """Enclose what the increasing function ``f`` (exp, log, sqrt, normal_cdf) takes over a whole enclosure.

    >>> monotone(sqrt, Enclosure(Fraction(4), Fraction(9)))
    Enclosure(about 2 to 3, width < 2**1)
    """
    return Enclosure(f(enclosure.low, bits=bits).low, f(enclosure.high, bits=bits).high)


def exp(x: Fraction | int, *, bits: int = 128) -> Enclosure:
    """Enclose e**x for abs(x) <= 2**24 with width at most 2**-bits times the value.

    >>> exp(Fraction(1))
    Enclosure(about 2.71828182845905, width < 2**-136)
    """
    x, w = _exact(x, "exp", _EXP_LIMIT), _working(_checked(bits))
    if not x:
        return _enclosed(1)
    low, high, k = _exp(x, w)
    return _between(low, high, k - w)


def log(x: Fraction | int, *, bits: int = 128) -> Enclosure:
    """Enclose the natural logarithm of x > 0 with width at most 2**-bits (absolute, also near x = 1).

    Why: x = m·2**k exactly, m in [2/3, 4/3], and log m = 2·artanh((m-1)/(m+1)) with an argument within 1/5.

    >>> log(Fraction(2))
    Enclosure(about 0.693147180559945, width < 2**-140)
    """
    x, w = _exact(x, "log"), _working(_checked(bits))
    if x <= 0:
        raise InvalidInput("log needs x > 0; nothing was computed. Pass a positive Fraction.")
    if x == 1:
        return _enclosed(0)
    p, q = x.numerator, x.denominator
    k = p.bit_length() - q.bit_length()
    p, q = p << max(-k, 0), q << max(k, 0)
    if 3 * p > 4 * q:
        q, k = 2 * q, k + 1
    elif 3 * p < 2 * q:
        p, k = 2 * p, k - 1
    low, high = _arc(abs(p - q), p + q, w, sign=1)
    if p < q:
        low, high = -high, -low
    least, most = sorted(k * end for end in _ln2(w + _SPARE))
    return _between(2 * low + (least >> _SPARE), 2 * high - (-most >> _SPARE), -w)


def sqrt(x: Fraction | int, *, bits: int = 128) -> Enclosure:
    """Enclose the square root of x >= 0 with width at most 2**-bits times the value; exact for exact squares.

    Why: for real y, isqrt(floor(y)) <= sqrt(y) < isqrt(floor(y)) + 1; here y = x·4**s >= 4**bits.

    >>> sqrt(Fraction(4, 9)).low, sqrt(2)
    (Fraction(2, 3), Enclosure(about 1.4142135623731, width < 2**-127))
    """
    x = _exact(x, "sqrt")
    _checked(bits)
    if x < 0:
        raise InvalidInput("sqrt needs x >= 0; nothing was computed. Pass a non-negative Fraction.")
    p, q = isqrt(x.numerator), isqrt(x.denominator)
    if p * p == x.numerator and q * q == x.denominator:
        return _enclosed(Fraction(p, q))
    s = bits + 1 - _exponent(x) // 2
    root = isqrt(_floor(x, 2 * s))
    return _between(root, root + 1, -s)


def pi(*, bits: int = 128) -> Enclosure:
    """Enclose π with width at most 2**-bits.

    >>> pi()
    Enclosure(about 3.14159265358979, width < 2**-143)
    """
    w = _working(_checked(bits))
    return _between(*_pi(w), -w)


def normal_cdf(x: Fraction | int, *, bits: int = 128) -> Enclosure:
    """Enclose Φ(x) for abs(x) <= 2**12 with width at most 2**-bits times the value, however deep in the tail.

    Why: both ways to the tail carry two-sided bounds, and the width is checked before a result is returned.

    >>> normal_cdf(-40)
    Enclosure(about 1.145034 * 2**-1161, width < 2**-1307)
    """
    x = _exact(x, "normal_cdf", _CDF_LIMIT)
    _checked(bits)
    if not x:
        return _enclosed(Fraction(1, 2))
    tails = _tail_by_series(abs(x), bits + 2) if 4 * x * x < bits else _tail_by_fraction(abs(x), bits + 2)
    low, high, e = next(tail for tail in tails if (tail[1] - tail[0]) << (bits + 2) <= tail[0])
    if x < 0:
        return _between(low, high, e)
    grid = bits + 4
    low, high = _floor(1 - _dyadic(high, e), grid), -_floor(_dyadic(low, e) - 1, grid)
    return _between(low, high, -grid)


def _exp(x: Fraction, w: int) -> tuple[int, int, int]:
    """Give low, high, k with low·2**(k-w) <= e**x <= high·2**(k-w) and low >= 2**w.

    Why: x = k·ln 2 + r with 0 <= r < 1 known to 2 units, which moves e**r by fewer than 6. Each of the n
    Taylor terms is rounded down by less than 2 units, and from the first that reads 0 the rest is below 4.
    """
    scaled = _floor(x, w + _SPARE)
    k, r = divmod(scaled, _ln2(w + _SPARE)[scaled >= 0])
    r >>= _SPARE
    total, term, n = 0, 1 << w, 0
    while term:
        total += term
        n += 1
        term = (term * r >> w) // n
    return total, total + 2 * n + 10, k


def _arc(p: int, q: int, w: int, *, sign: int) -> tuple[int, int]:
    """Enclose artanh(p/q) (sign 1) or arctan(p/q) (sign -1) in units, for 0 <= p/q <= 1/3.

    Why: each rounded power is below the true one by less than 2 units, so each of the n terms by less than 3,
    and from the first power that reads 0 the rest is below 2·9/8 units.
    """
    power = (p << w) // q
    square = power * power >> w
    total = n = 0
    while power:
        total += sign**n * (power // (2 * n + 1))
        power = power * square >> w
        n += 1
    return total - 3 * n - 3, total + 3 * n + 3


@lru_cache(maxsize=64)
def _ln2(w: int) -> tuple[int, int]:
    """Enclose ln 2 = 2·artanh(1/3) within 2 units."""
    more = 8 + w.bit_length()
    low, high = _arc(1, 3, w + more, sign=1)
    return 2 * low >> more, -(-2 * high >> more)


@lru_cache(maxsize=64)
def _pi(w: int) -> tuple[int, int]:
    """Enclose π = 16·arctan(1/5) - 4·arctan(1/239) (Machin) within 2 units."""
    more = 10 + w.bit_length()
    (a, b), (c, d) = _arc(1, 5, w + more, sign=-1), _arc(1, 239, w + more, sign=-1)
    return 16 * a - 4 * d >> more, -(4 * c - 16 * b >> more)


@lru_cache(maxsize=64)
def _peak(w: int) -> tuple[int, int]:
    """Enclose 1/sqrt(2π), the normal density at 0, within 3 units."""
    low, high = _pi(w)
    return isqrt((1 << 3 * w) // (2 * high)), isqrt((1 << 3 * w) // (2 * low)) + 1


def _tail_by_series(a: Fraction, bits: int) -> Iterator[tuple[int, int, int]]:
    """Yield ever narrower low, high, e around Φ(-a) = 1/2 - φ(a)·Σ a**(2n+1)/(2n+1)!!, in units of 2**e.

    Why: all terms are positive and run twice, rounded down and up; once their ratio is at most 1/2, the rest
    is at most the last term. The subtraction costs about 3a²/4 bits, below bits/5 where a² < bits/4.
    """
    for step in count(1):
        w = _working(bits + step * (bits // 5 + 8))
        down, up = _floor(a, w), _floor(a, w) + 1
        square = _floor(a * a, w)
        low, high, n = down, up, 1
        while down or 2 * (square + 1) > n + 2 << w:
            n += 2
            down, up = (down * square >> w) // n, -(-up * (square + 1) >> w) // n + 1
            low, high = low + down, high + up
        (f, g), (c, d, k) = _peak(w), _exp(-a * a / 2, w)
        half, drop = 1 << (w - 1), 2 * w - k
        yield half + (-(high + up) * g * d >> drop), half - (low * f * c >> drop), -w


def _tail_by_fraction(a: Fraction, bits: int) -> Iterator[tuple[int, int, int]]:
    """Yield ever narrower low, high, e around Φ(-a), in units of 2**e, from Laplace's continued fraction.

    Why: φ(a)/Φ(-a) = t(0), where t(k-1) = a + k/t(k) and every t is positive. So a < t(n) < a + (n+1)/a
    encloses the innermost, and each step outward keeps the enclosure; no theorem of convergence is needed.
    """
    for step in count(1):
        w = _working(bits + 8 * step)
        n = step * (bits * bits // int(6 * a * a + 1) + bits // 8 + 8)
        down = _floor(a, w)
        low, high = down, down + 1 + -(-(n + 1 << 2 * w) // down)
        for k in range(n, 0, -1):
            low, high = down + (k << 2 * w) // high, down + 1 - (-k << 2 * w) // low
        (f, g), (c, d, e) = _peak(w), _exp(-a * a / 2, w)
        yield f * c // high, -(-g * d // low), e - w


def _exact(x: object, name: str, limit: int | None = None) -> Fraction:
    if not isinstance(x, (Fraction, int)):
        raise InvalidInput(
            f"{name} takes a Fraction or an int, not a {type(x).__name__}; nothing was computed. "
            "Pass Fraction('0.1') for a decimal, or Fraction(x) for what a float holds to the last bit."
        )
    exact = x if isinstance(x, Fraction) else Fraction(x)
    if limit is not None and abs(exact) > limit:
        size = int(abs(exact)).bit_length() - 1
        raise InvalidInput(f"{name} takes |x| <= {limit}, and |x| is at least 2**{size}; nothing was computed.")
    return exact


def _checked(bits: object) -> int:
    if not isinstance(bits, int) or not 1 <= bits <= _BITS_LIMIT:
        raise InvalidInput(f"bits must be an int from 1 to {_BITS_LIMIT}; nothing was computed. 128 is usual.")
    return bits


def _working(bits: int) -> int:
    """Give w at which the slack of every series here, below 3w + 40 units, stays below 2**-bits."""
    return bits + 8 + bits.bit_length()


def _enclosed(x: object) -> Enclosure:
    if isinstance(x, Enclosure):
        return x
    exact = _exact(x, "Arithmetic with an Enclosure")
    return Enclosure(exact, exact)


def _floor(x: Fraction, w: int) -> int:
    """Give floor(x·2**w)."""
    return (x.numerator << w) // x.denominator if w >= 0 else x.numerator // (x.denominator << -w)


def _between(low: int, high: int, e: int) -> Enclosure:
    return Enclosure(_dyadic(low, e), _dyadic(high, e))


def _dyadic(n: int, e: int) -> Fraction:
    return Fraction(n << e) if e >= 0 else Fraction(n, 1 << -e)


def _exponent(x: Fraction) -> int:
    """Give e with abs(x) < 2**e, at most 2 too large."""
    return abs(x.numerator).bit_length() - x.denominator.bit_length() + 1


def _shown(x: Fraction) -> str:
    e = _exponent(x) - 1
    return f"{float(x):.15g}" if abs(e) < 1000 else f"{float(x / _dyadic(1, e)):.6f} * 2**{e}"
