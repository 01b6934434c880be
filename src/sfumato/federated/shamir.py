"""Shamir's shares of a secret of 32 bytes: any ``threshold`` of them give it back, and fewer say nothing about it.

Whole numbers modulo a prime just above 2^256, so that every text of 32 bytes is one of them. All arithmetic is exact.
"""

import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache

from sfumato.errors import InvalidInput

__all__ = ["PRIME", "SECRET", "SHARE", "joined", "split"]

PRIME = (1 << 256) + 297
SECRET = 32  # bytes of a secret
SHARE = 33  # bytes of a share


def split(secret: bytes, places: Sequence[int], threshold: int) -> dict[int, bytes]:
    """One share for each place, a whole number from 1 on: the value there of a random polynomial that is secret at 0.

    Guarantee: any threshold − 1 shares are uniform and independent of the secret.

    >>> shares = split(bytes(32), [1, 2, 3], 2)
    >>> joined({1: shares[1], 3: shares[3]}, 2) == bytes(32)
    True
    """
    if len(secret) != SECRET:
        raise InvalidInput(f"a secret has {SECRET} bytes; nothing was shared.")
    if min(places) < 1 or len(set(places)) != len(places) or not 1 <= threshold <= len(places):
        raise InvalidInput("shares have places from 1 on, all different, and at least as many as open the secret.")
    polynomial = [int.from_bytes(secret, "big"), *(secrets.randbelow(PRIME) for _ in range(threshold - 1))]
    return {place: _value(polynomial, place).to_bytes(SHARE, "big") for place in places}


def joined(shares: Mapping[int, bytes], threshold: int) -> bytes:
    """The secret from ``threshold`` of the shares, those at the least places; too few are refused."""
    if len(shares) < threshold:
        raise InvalidInput(f"{len(shares)} shares are fewer than the {threshold} that open a secret; it stays closed.")
    places = tuple(sorted(shares)[:threshold])
    total = 0
    for place, weight in zip(places, _weights(places), strict=True):
        total += weight * int.from_bytes(shares[place], "big")
    total %= PRIME
    if total >> 256:
        raise InvalidInput("the shares do not belong together: what they give is no secret. Nothing was opened.")
    return total.to_bytes(SECRET, "big")


def _value(polynomial: Sequence[int], place: int) -> int:
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * place + coefficient) % PRIME
    return value


@lru_cache(maxsize=256)
def _weights(places: tuple[int, ...]) -> tuple[int, ...]:
    """Lagrange's weights at 0 for values at these places."""
    weights = []
    for own in places:
        top = bottom = 1
        for other in places:
            if other != own:
                top, bottom = top * other % PRIME, bottom * (other - own) % PRIME
        weights.append(top * pow(bottom, -1, PRIME) % PRIME)
    return tuple(weights)
