"""Random words: few from the operating system itself, many by AES-256 under a key that it gave; none with a seed.

Noise from a cipher is private against every adversary who cannot break AES-256: computational privacy.
"""

import os
import threading
from typing import TYPE_CHECKING, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

WordArray = np.ndarray[tuple[int], np.dtype[np.uint64]]

__all__ = ["SystemWords", "WordArray", "WordBits", "Words"]

_ZEROS = memoryview(bytes(1 << 18))  # what is encrypted, so that the keystream itself comes out
_REKEY = 1 << 26  # bytes of keystream under one key
_FEW = 512  # this many bytes are had sooner from the operating system itself than by its key


class Words(Protocol):
    """A source of independent uniform words of ``width`` bits, at most 64; an argument of every bulk sampler."""

    @property
    def width(self) -> int:
        """How many bits a word has: 64, or fewer in tests that enumerate them."""
        ...

    def fill(self, out: WordArray) -> None:
        """Overwrite ``out``, a contiguous array, with fresh words."""
        ...


class SystemWords:
    """Up to 64 words at a time from the operating system; more by AES-256 in counter mode, a key of it for each thread.

    A thread's key is replaced after 64 MiB, and after a fork: parent and child never share a stream.
    Assumes: AES-256 is a pseudorandom permutation, and the operating system's generator is sound. A copy of the whole
    machine's memory (a snapshot that is resumed twice) repeats a stream: the samplers make a new source for each call.

    >>> import numpy as np
    >>> words = np.zeros(3, dtype=np.uint64)
    >>> SystemWords().fill(words)
    >>> bool(words.all())  # a zero word has probability 2^-64
    True
    """

    __slots__ = ("_own",)

    def __init__(self) -> None:
        self._own: _Keystream | None = None

    @property
    def width(self) -> int:
        """A word has 64 bits."""
        return 64

    def fill(self, out: WordArray) -> None:
        """Overwrite ``out``, a contiguous array, with fresh words."""
        if not out.size:
            return
        room = out.data.cast("B")
        if len(room) <= _FEW:
            room[:] = os.urandom(len(room))
            return
        own = self._own
        if own is None:  # two threads may both make one: neither has a key of the other's
            own = self._own = _Keystream()
        for start in range(0, len(room), len(_ZEROS)):
            part = room[start : start + len(_ZEROS)]
            if own.left < len(part) or own.process != (os.getpid(), _forks):
                own.key()
            own.stream.update_into(_ZEROS[: len(part)], part)
            own.left -= len(part)


class _Keystream(threading.local):
    """What one thread holds of one source."""

    stream: "CipherContext"

    def __init__(self) -> None:
        self.left = 0
        self.process = (0, 0)

    def key(self) -> None:
        """Take a new key; the counter may start at 0, since no key is used twice."""
        self.stream = Cipher(AES256(os.urandom(32)), CTR(bytes(16))).encryptor()
        self.left, self.process = _REKEY, (os.getpid(), _forks)


class WordBits:
    """Uniform whole numbers below any bound from a source of words: the words that make too large a number are dropped.

    >>> WordBits(SystemWords()).below(1)
    0
    """

    __slots__ = ("_words",)

    def __init__(self, words: Words) -> None:
        self._words = words

    def below(self, bound: int) -> int:
        """Draw uniformly from 0, 1, …, bound − 1, without bias."""
        bits = (bound - 1).bit_length()
        while True:
            number = self.number(bits)
            if number < bound:
                return number

    def number(self, bits: int) -> int:
        """Draw ``bits`` uniform bits, the top ones of as few words as hold them."""
        width = self._words.width
        some = np.empty(-(-bits // width), dtype=np.uint64)
        self._words.fill(some)
        number = 0
        for word in some.tolist():
            number = number << width | word
        return number >> (len(some) * width - bits)


_forks = 0


def _forked() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
