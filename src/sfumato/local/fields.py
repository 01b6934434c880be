"""Finite fields of prime order and of order 2^k, their vectors and their projective points; for numbers and for arrays.

Elements are whole numbers below the order. Addition in a field of order 2^k is exclusive or; multiplication is that of
polynomials over {0, 1} modulo the first irreducible one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sfumato.errors import InvalidInput

__all__ = ["MOST_ORDER", "Field", "coordinates", "field", "is_order", "place", "point", "points"]

MOST_ORDER = 4096
Element = Any  # a whole number, or an array of them: the operators are the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Arithmetic; each argument is an element or an integer array of them. ``modulus`` is 0 where the order is prime.

    >>> gf4 = field(4)
    >>> [gf4.times(2, element) for element in range(4)], gf4.plus(1, 3), field(7).inverse(3)
    ([0, 2, 3, 1], 2, 5)
    """

    order: int
    modulus: int

    def plus(self, a: Element, b: Element) -> Element:
        """a + b."""
        return a ^ b if self.modulus else (a + b) % self.order

    def minus(self, a: Element) -> Element:
        """−a."""
        return a if self.modulus else (-a) % self.order

    def times(self, a: Element, b: Element) -> Element:
        """a·b."""
        if not self.modulus:
            return (a * b) % self.order
        degree = self.modulus.bit_length() - 1
        product = a * (b & 1)
        for bit in range(1, degree):
            product = product ^ (a << bit) * (b >> bit & 1)
        for bit in range(2 * degree - 2, degree - 1, -1):
            product = product ^ (self.modulus << (bit - degree)) * (product >> bit & 1)
        return product

    def inverse(self, a: Element) -> Element:
        """1/a as a^(order − 2); that of 0 is 0, or 1 where the order is 2."""
        power, square, exponent = a * 0 + 1, a, self.order - 2
        while exponent:
            if exponent & 1:
                power = self.times(power, square)
            square, exponent = self.times(square, square), exponent >> 1
        return power

    def inner(self, a: Sequence[Element], b: Sequence[Element]) -> Element:
        """The sum of a_j·b_j."""
        total = self.times(a[0], b[0])
        for one, other in zip(a[1:], b[1:], strict=True):
            total = self.plus(total, self.times(one, other))
        return total


@lru_cache(maxsize=64)
def field(order: int) -> Field:
    """The field of this order, which is a prime or a power of two up to 4,096."""
    if not is_order(order):
        raise InvalidInput(
            f"{order} is neither a prime nor a power of two up to {MOST_ORDER}; there is no such field here."
        )
    if order == 2 or order % 2:
        return Field(order=order, modulus=0)
    return Field(order=order, modulus=next(p for p in range(order + 1, 2 * order, 2) if _irreducible(p)))


def is_order(order: int) -> bool:
    """Whether ``order`` is a prime or a power of two, from 2 to 4,096.

    >>> [order for order in range(20) if is_order(order)]
    [2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 19]
    """
    if not 2 <= order <= MOST_ORDER:
        return False
    return order & (order - 1) == 0 or all(order % divisor for divisor in range(2, int(order**0.5) + 1))


def coordinates(index: int, order: int, size: int) -> tuple[int, ...]:
    """The digits of ``index`` in base ``order``, the lowest first.

    >>> coordinates(11, 4, 3)
    (3, 2, 0)
    """
    digits = []
    for _ in range(size):
        index, digit = divmod(index, order)
        digits.append(digit)
    return tuple(digits)


def points(order: int, size: int) -> int:
    """How many points a projective space has: vectors other than 0, up to a factor.

    >>> points(2, 3), points(5, 0)
    (7, 0)
    """
    return int(order**size - 1) // (order - 1)


def point(index: int, order: int, size: int) -> tuple[int, ...]:
    """The vector of a point: its last coordinate that is not 0 is 1.

    >>> [point(index, 2, 2) for index in range(3)]
    [(1, 0), (0, 1), (1, 1)]
    """
    free = 0
    while index >= points(order, free + 1):
        free += 1
    tail = coordinates(index - points(order, free), order, free)
    return (*tail, 1, *(0,) * (size - free - 1))


def place(vector: Sequence[int], order: int) -> int:
    """The number of the point that a vector other than 0 stands for.

    >>> [place(point(index, 5, 3), 5) for index in (0, 7, 30)], place((2, 4, 0), 5)
    ([0, 7, 30], 4)
    """
    free = max(j for j, entry in enumerate(vector) if entry)
    numbers = field(order)
    factor = numbers.inverse(vector[free])
    tail = sum(numbers.times(vector[j], factor) * order**j for j in range(free))
    return int(points(order, free) + tail)


def _irreducible(polynomial: int) -> bool:
    """Whether no polynomial of at most half the degree divides this one."""
    degree = polynomial.bit_length() - 1
    return all(_remainder(polynomial, divisor) for divisor in range(2, 1 << (degree // 2 + 1)))


def _remainder(a: int, b: int) -> int:
    while a.bit_length() >= b.bit_length():
        a ^= b << (a.bit_length() - b.bit_length())
    return a
