"""What arithmetic on doubles is held to, so that no engine overflows, underflows or raises.

A number that enters arithmetic, and each product, quotient and total, is held: brought into ±2^480, and rounded to a
multiple of 2^-480 where it is nearer to 0 than about 2^-428. A total is a whole run of additions and subtractions.
Then nothing that is computed leaves the range of normal doubles, and IEEE arithmetic has one answer on every engine.
Rounding is done by adding a constant and taking it away again.
"""

__all__ = ["FAR", "NEAR", "SPECK", "held"]

FAR = 2.0**480
NEAR = 1.5 * 2.0**-428
SPECK = 2.0**-540  # lost when it is added to any held number but 0, and no held number divided by it overflows


def held(value: float) -> float:
    """A double as arithmetic meets it and leaves it.

    >>> held(0.1), held(1e-200), held(float("inf")) == 2.0**480
    (0.1, 0.0, True)
    """
    return (max(-FAR, min(FAR, value)) + NEAR) - NEAR
