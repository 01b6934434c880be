"""Where hunts begin: the same seeds for the same test in every run, or others each time if one goes hunting.

A hunt that began anywhere would stop whoever happens to run it, for what somebody else wrote. ``SFUMATO_FRESH=1`` draws
seeds that nobody has seen; what they find becomes a test of its own.
"""

import os
import random
import secrets
from collections.abc import Iterator

__all__ = ["SEEDS", "seeds"]


def seeds() -> Iterator[int]:
    """Without end."""
    chance = random.Random(os.environ.get("PYTEST_CURRENT_TEST", ""))
    while True:
        yield secrets.randbits(48) if os.environ.get("SFUMATO_FRESH") else chance.getrandbits(48)


class _Seeds:
    """Begins anew whenever one asks."""

    def __iter__(self) -> Iterator[int]:
        return seeds()


SEEDS = _Seeds()
