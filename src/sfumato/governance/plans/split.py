"""How to divide a cap: the closed form, what to do where a least amount is asked for, and how to stay below the cap.

All amounts are exact rationals. The cube and square roots of the closed form are rounded, which costs a 10⁻¹⁵th of the
optimum and nothing of the cap: whatever the shares are, the amounts are scaled so that they fit, and then rounded down.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from sfumato.core.exact import decimal_down
from sfumato.errors import InvalidInput

__all__ = ["fill", "fit", "root_share", "shaved"]

DIGITS = 6


def root_share(value: Fraction, power: Fraction) -> Fraction:
    """About value^power, for a share of a split.

    >>> root_share(Fraction(27), Fraction(1, 3))
    Fraction(3, 1)
    """
    if value <= 0:
        raise InvalidInput("a share of a split must be above 0; nothing was planned.")
    logarithm = (math.log(value.numerator) - math.log(value.denominator)) * float(power)
    return Fraction(f"{math.exp(logarithm):.15g}")


def fill(
    shares: Sequence[Fraction], times: Sequence[int], floors: Sequence[Fraction], cap: Fraction
) -> tuple[Fraction, ...]:
    """Amounts max(floor, λ·share) with Σ times·amount equal to the cap.

    Guarantee: exact, and the optimum of every aim here, by the conditions of Karush, Kuhn and Tucker: an amount above
    its floor has the marginal gain of all others that are, an amount at its floor has less.
    Assumes: Σ times·floor is at most the cap, and every share is above 0.

    >>> fill([Fraction(1), Fraction(2)], [10, 5], [Fraction(0), Fraction(0)], Fraction(4))
    (Fraction(1, 5), Fraction(2, 5))
    >>> fill([Fraction(1), Fraction(2)], [10, 5], [Fraction(3, 10), Fraction(0)], Fraction(4))
    (Fraction(3, 10), Fraction(1, 5))
    """
    free = set(range(len(shares)))
    while free:
        held = sum((times[place] * floors[place] for place in range(len(shares)) if place not in free), Fraction(0))
        level = (cap - held) / sum((times[place] * shares[place] for place in free), Fraction(0))
        low = {place for place in free if level * shares[place] < floors[place]}
        if not low:
            return tuple(level * share if place in free else floors[place] for place, share in enumerate(shares))
        free -= low  # those that stay free get less than before, so nothing ever comes back
    return tuple(floors)


def fit(
    amounts: Sequence[Fraction], times: Sequence[int], floors: Sequence[Fraction], cap: Fraction
) -> tuple[Fraction, ...]:
    """Raise amounts to their floors, and scale down what lies above these until all fit the cap exactly.

    >>> fit([Fraction(1), Fraction(1)], [1, 1], [Fraction(1, 2), Fraction(0)], Fraction(1))
    (Fraction(2, 3), Fraction(1, 3))
    """
    above = [max(amount - floor, Fraction(0)) for amount, floor in zip(amounts, floors, strict=True)]
    least = sum((count * floor for count, floor in zip(times, floors, strict=True)), Fraction(0))
    extra = sum((count * more for count, more in zip(times, above, strict=True)), Fraction(0))
    if least > cap:
        raise InvalidInput("the least amounts of the plan exceed the cap; nothing was planned.")
    share = min(Fraction(1), (cap - least) / extra) if extra else Fraction(0)
    return tuple(floor + share * more for floor, more in zip(floors, above, strict=True))


def shaved(amounts: Sequence[Fraction], floors: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Round amounts down to six digits, but never below their floors: what is charged stays short and within the cap.

    >>> shaved([Fraction(1, 3), Fraction(1, 7)], [Fraction(0), Fraction(1, 7)])
    (Fraction(333333, 1000000), Fraction(1, 7))
    """
    return tuple(
        max(floor, Fraction(decimal_down(amount, DIGITS))) for amount, floor in zip(amounts, floors, strict=True)
    )
