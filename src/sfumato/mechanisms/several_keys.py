"""What mechanisms for undeclared keys share: the δ of several keys, and an order that only the keys decide."""

from collections.abc import Iterable
from datetime import date
from fractions import Fraction
from typing import TypeVar

from sfumato.core import enclosures
from sfumato.core.enclosures import Enclosure

__all__ = ["each_of", "in_order", "of_any"]

Key = TypeVar("Key")

SHORT, SHORTER = 256, 64  # bits, of a δ that is written down, and of one that is chosen


def of_any(one: Fraction, keys: int) -> Fraction:
    """1 − (1 − one)^keys: the δ of several keys that are treated independently, each with the δ ``one``; rounded up.

    It is exact where it is short; else its digits beyond 256 bits are dropped, against us, so that it can be written
    down. Proof: docs/proofs/optimal_selection.md

    >>> of_any(Fraction(1, 10), 2)
    Fraction(19, 100)
    """
    if keys <= 1 or keys * one.denominator.bit_length() <= SHORT:
        return 1 - (1 - one) ** keys
    bits = SHORT + _size(1 / one)
    hidden, kept = (one.denominator - one.numerator << bits) // one.denominator, 1 << bits
    for digit in f"{keys:b}":
        kept = kept * kept >> bits
        kept = kept * hidden >> bits if digit == "1" else kept
    return 1 - Fraction(kept, 1 << bits)


def each_of(delta: Fraction, keys: int) -> Fraction:
    """A δ for each of several keys with which :func:`of_any` is at most ``delta``; the largest, to 64 bits.

    >>> 3 * each_of(Fraction(1, 100), 3) > Fraction(1, 100)  # a little more than a third
    True
    """
    if keys == 1:
        return delta
    bits = 2 * SHORTER + _size(keys / delta)
    root = enclosures.exp(enclosures.log(1 - delta, bits=bits).high / keys, bits=bits).high
    return Enclosure(1 - root, 1 - root).outward(bits=SHORTER).low


def _size(value: Fraction) -> int:
    """How many bits the whole part has, or one more."""
    return int(value + 1).bit_length()


def in_order(keys: Iterable[Key]) -> list[Key]:
    """Keys in an order of their own: numbers and days by size, text by its signs, tuples part by part.

    Guarantee: the same keys always come in the same order, whatever order the data had.

    >>> in_order([("b", 10), ("a", 10), ("a", 9)])
    [('a', 9), ('a', 10), ('b', 10)]
    """
    return sorted(keys, key=_place)


def _place(key: object) -> tuple[object, ...]:
    if isinstance(key, tuple):
        return ("tuple", *(_place(part) for part in key))
    if isinstance(key, str | int) or type(key) is date:
        return (type(key).__name__, key)
    return (type(key).__name__, repr(key))
