"""The hash of the coins of canaries, which a certificate has: computed without torch, by whoever checks it."""

import hashlib
import json
from fractions import Fraction

__all__ = ["commitment"]

DOMAIN = b"sfumato canaries 1\0"


def commitment(coins: str, *, salt: str, rows: str, score: str, confidence: Fraction) -> str:
    """The SHA-256 of the coins (1 is in, 0 is out) and of all that was fixed with them; the salt hides it all.

    >>> len(commitment("10", salt="00", rows="", score="loss", confidence=Fraction(1, 2)))
    64
    """
    said = {"coins": coins, "confidence": str(confidence), "rows": rows, "salt": salt, "score": score}
    return hashlib.sha256(DOMAIN + json.dumps(said, sort_keys=True).encode()).hexdigest()
