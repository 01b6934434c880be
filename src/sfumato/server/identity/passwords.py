"""Passwords: argon2id, a few at once, and as slow for a name that does not exist as for one that does."""

import threading
from functools import cache
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from argon2 import PasswordHasher

__all__ = ["LEAST", "checked", "hashed", "product_hasher"]

LEAST, MOST = 12, 200
_turns = threading.BoundedSemaphore(2)
"""Each check takes tens of MiB and of milliseconds: those who wait do so in threads of their own."""


def hashed(password: str) -> str:
    """The hash of a password that is long enough."""
    if not LEAST <= len(password) <= MOST:
        raise InvalidInput(f"a password has {LEAST} to {MOST} characters; nothing was changed. Choose a longer one.")
    with _turns:
        return str(_hasher().hash(password))


def checked(kept: str | None, password: str) -> bool:
    """Whether a password is the one that was kept; where none was kept, the same work is done in vain."""
    from argon2.exceptions import InvalidHashError, VerificationError

    with _turns:
        try:
            _hasher().verify(kept or _nobody(), password[:MOST])
        except (VerificationError, InvalidHashError):
            return False
    return kept is not None


def product_hasher() -> "PasswordHasher":
    """The hasher of the product: argon2id with 64 MiB, three times over, as RFC 9106 has it for little memory."""
    from argon2 import PasswordHasher
    from argon2.low_level import Type

    return PasswordHasher(time_cost=3, memory_cost=2**16, parallelism=1, type=Type.ID)


_hasher = cache(product_hasher)


@cache
def _nobody() -> str:
    from sfumato.server.identity.secrets import new_secret

    return str(_hasher().hash(new_secret()))
