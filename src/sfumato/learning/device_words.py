"""Random words on the device that uses them: ChaCha20 in counter mode under a key that the operating system gave.

Written in whole-number operations without a look at what they hold, so that it can be recorded in a graph. Noise from a
cipher is private against every adversary who cannot break it: computational privacy, as with
:class:`sfumato.noise.SystemWords`.
"""

import os

import torch
from torch import Tensor

from sfumato.learning import device_kernels

__all__ = ["DeviceWords", "chacha20"]

_CONSTANTS = tuple(int.from_bytes(b"expand 32-byte k"[i : i + 4], "little") for i in range(0, 16, 4))
_ROUNDS = 10  # pairs of a round on columns and one on diagonals
BLOCK = 16  # words of 32 bits that one block has


def _turned(x: Tensor, bits: int) -> Tensor:
    """Turn 32-bit words left; the shift to the right copies the sign, and the mask takes that off."""
    return (x << bits) | ((x >> (32 - bits)) & ((1 << bits) - 1))


def _quarter(s: list[Tensor], a: int, b: int, c: int, d: int) -> None:
    s[a] = s[a] + s[b]
    s[d] = _turned(s[d] ^ s[a], 16)
    s[c] = s[c] + s[d]
    s[b] = _turned(s[b] ^ s[c], 12)
    s[a] = s[a] + s[b]
    s[d] = _turned(s[d] ^ s[a], 8)
    s[c] = s[c] + s[d]
    s[b] = _turned(s[b] ^ s[c], 7)


def chacha20(key: Tensor, counter: Tensor, blocks: int) -> Tensor:
    """The keystream of ChaCha20 from a block on: 16·``blocks`` words in int32, which wraps around as it should.

    ``key`` is 8 words in int32, ``counter`` a number in int64: 64 bits of counter and a nonce of 0, for no key is used
    twice.

    >>> chacha20(torch.zeros(8, dtype=torch.int32), torch.tensor(0), 1)[0].item() & 0xFFFFFFFF  # RFC 8439, appendix A
    2917185654
    """
    place = counter + torch.arange(blocks, dtype=torch.int64, device=key.device)
    low, high = _low(place), _low(place >> 32)
    nothing = torch.zeros_like(low)
    start = [nothing + _signed(word) for word in _CONSTANTS]
    start += [nothing + key[i] for i in range(8)]
    start += [low, high, nothing, nothing]
    state = list(start)
    for _ in range(_ROUNDS):
        for i in range(4):
            _quarter(state, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            _quarter(state, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return torch.stack([now + then for now, then in zip(state, start, strict=True)], dim=1).reshape(-1)


def _low(x: Tensor) -> Tensor:
    """The low 32 bits of int64, as int32 with the same bits."""
    unsigned = x & 0xFFFFFFFF
    return (unsigned - ((unsigned >> 31) << 32)).to(torch.int32)


def _signed(word: int) -> int:
    return word - (word >> 31 << 32)


class DeviceWords:
    """Words of 32 bits on a device, from a key of the operating system that no other object has.

    The key and the counter are tensors there: a recorded graph that was given them draws new words each time it runs.
    Assumes: ChaCha20 is a pseudorandom function; the operating system's generator is sound; who can read the device's
    memory is trusted, as one who can read the machine's is; and no copy of either memory is resumed twice. A process
    that was forked off takes a new key.

    >>> first, second = (DeviceWords(torch.device("cpu")).draw(4) for _ in range(2))
    >>> first.dtype, bool((first == second).all())
    (torch.int32, False)
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.key = torch.zeros(8, dtype=torch.int32, device=device)
        self.counter = torch.zeros((), dtype=torch.int64, device=device)
        self._process = -1
        self.owned()

    def owned(self) -> None:
        """Take a new key if this process has none of its own."""
        if self._process != os.getpid():
            self.rekey()

    def rekey(self) -> None:
        """Take a new key of the operating system; a recorded graph goes on with it."""
        words = memoryview(bytearray(os.urandom(32))).cast("i")
        self.key.copy_(torch.tensor(words.tolist(), dtype=torch.int32))
        self.counter.zero_()
        self._process = os.getpid()

    def draw(self, size: int) -> Tensor:
        """``size`` fresh words; what a block has beyond them is never used."""
        self.owned()
        return self.step(size)

    def step(self, size: int) -> Tensor:
        """What ``draw`` gives, by tensor operations alone: for a graph or a compiler."""
        blocks = -(-size // BLOCK)
        stream = device_kernels.keystream if device_kernels.at_hand(self.device) else chacha20
        words = stream(self.key, self.counter, blocks)[:size]
        self.counter.add_(blocks)
        return words
