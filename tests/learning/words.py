"""A source of words for tests alone: it can be put back to where it was, as no source of a real run can."""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

from sfumato.noise.words import WordArray


class TestWords:
    """The words of AES-256 in counter mode under a known key, from a ``position`` on."""

    __test__ = False
    width = 64

    def __init__(self, key: int = 0) -> None:
        self.position, self._key = 0, key.to_bytes(32, "big")

    def fill(self, out: WordArray) -> None:
        first, odd = divmod(self.position, 2)
        stream = Cipher(AES256(self._key), CTR(first.to_bytes(16, "big"))).encryptor()
        made = np.frombuffer(stream.update(bytes(8 * (len(out) + odd))), dtype=np.uint64)
        out[:] = made[odd:]
        self.position += len(out)
