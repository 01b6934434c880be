"""The least number at which a function has come down to 0: a whole number, or a decimal with a given number of digits.

The sign of the function decides, so it must be exact; its size only says where to look next. :func:`over` makes such a
function of two rationals, and a plain yes or no can be written ``0.5 - holds(n)``.
"""

import math
from collections.abc import Callable
from fractions import Fraction

__all__ = ["around_decimal", "least_decimal", "least_whole", "over"]


def over(value: Fraction, limit: Fraction) -> float:
    """About ln(value/limit), and above 0 exactly if the value is above the limit.

    >>> over(Fraction(1, 10), Fraction(1, 20)) > 0, over(Fraction(1, 20), Fraction(1, 20)) > 0
    (True, False)
    """
    if value <= 0:
        return -math.inf
    ratio = value / limit
    size = abs(math.log(ratio.numerator) - math.log(ratio.denominator))
    return max(size, math.ulp(0.0)) if value > limit else -size


def least_whole(excess: Callable[[int], float], *, near: int = 1) -> int:
    """The least whole number from 0 on at which ``excess``, which falls, is not above 0; the search begins ``near``.

    >>> least_whole(lambda n: 1000 - n * n, near=20)
    32
    """
    low, high = -1, max(1, near)
    above, below = math.inf, excess(high)
    while below > 0:
        low, above, high = high, below, 2 * high
        below = excess(high)
    while low < 0 < high:
        middle = high // 2
        found = excess(middle)
        low, above, high, below = (middle, found, high, below) if found > 0 else (low, above, middle, found)
    return _narrowed(excess, low, high, above, below)


def around_decimal(
    excess: Callable[[Fraction], float], *, digits: int, near: Fraction = Fraction(1)
) -> tuple[Fraction, Fraction]:
    """The last decimal with this many digits at which the falling ``excess`` is above 0, and the first where it is not.

    Assumes: it is above 0 for some number above 0, and not above 0 for some larger one. The search begins ``near``.

    >>> [float(x) for x in around_decimal(lambda x: 2 - x * x, digits=4)]
    [1.414, 1.415]
    """
    power = math.floor(math.log10(near.numerator) - math.log10(near.denominator))
    above, below = math.inf, excess(Fraction(10) ** power)
    if below > 0:
        while below > 0:
            above, power = below, power + 1
            below = excess(Fraction(10) ** power)
    else:
        while (above := excess(Fraction(10) ** (power - 1))) <= 0:
            below, power = above, power - 1
    step = Fraction(10) ** (power - digits)
    high = _narrowed(lambda n: excess(n * step), 10 ** (digits - 1), 10**digits, above, below)
    return (high - 1) * step, high * step


def least_decimal(excess: Callable[[Fraction], float], *, digits: int, near: Fraction = Fraction(1)) -> Fraction:
    """The least decimal with this many digits at which ``excess`` is not above 0; as :func:`around_decimal`.

    >>> float(least_decimal(lambda x: Fraction(2, 3) - x, digits=4))
    0.6667
    """
    return around_decimal(excess, digits=digits, near=near)[1]


def _narrowed(excess: Callable[[int], float], low: int, high: int, above: float, below: float) -> int:
    """The least number with no excess, when there is some at ``low`` (``above``) and none at ``high`` (``below``)."""
    width = high - low
    spare = 4 << (width - 1).bit_length()  # twice what halving leaves open: at most one step more than halving takes
    while high - low > 1:
        spare //= 2
        middle = _between(low, high, above, below, width, spare)
        found = excess(middle)
        low, above, high, below = (middle, found, high, below) if found > 0 else (low, above, middle, found)
    return high


def _between(low: int, high: int, above: float, below: float, width: int, spare: int) -> int:
    """Where a line through both ends meets 0, moved a little towards the middle so that both ends close in.

    This is the method "interpolate, truncate, project": no further from the middle than leaves time to halve.
    """
    share = above / (above - below) if math.isfinite(above) and math.isfinite(below) else 0.5
    aside = (high - low) * (Fraction(share) - Fraction(1, 2))  # from the middle
    shorter = max(abs(aside) - Fraction((high - low) ** 2, 5 * width), Fraction(0))
    most = Fraction(spare - (high - low), 2)
    aside = min(shorter, most) if aside > 0 else -min(shorter, most)
    return min(max(round(Fraction(low + high, 2) + aside), low + 1), high - 1)
