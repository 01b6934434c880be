"""Draws of the model itself, such as dropout: from torch's generator, but secret, and apart from everybody else's.

They are no noise and protect nobody. They must be secret all the same: a mask that everybody knows goes with a place in
the batch, and who comes to lie there would show. Proof: docs/proofs/training.md
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch

from sfumato.errors import Unsupported
from sfumato.noise import Words

__all__ = ["Draws"]

WORDS = 624  # of 32 bits in the generator of the CPU (MT19937), each in 64 bits of its state
FIRST = 3  # of the 64-bit parts of that state: after the seed, two counts, and the place of the next word
STEP = 1812433253  # of the seeding that everybody knows
SEED = 2**64 - 1


class Draws:
    """States of torch's generator, all of them from secret words: a new one for each part of a step. Sensitive.

    What code leaves in the generator is never gone on from: it would carry something of one unit to the next ones.

    Assumes: masks that are never told, from a generator that is linear and whose 19,937 bits of state are secret, or
    whose key of 64 bits is (on a GPU), cannot be distinguished from fresh ones by what is released.
    """

    def __init__(self, device: torch.device, words: Words) -> None:
        self._devices = [device] if device.type == "cuda" else []
        self._words = words

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let torch draw from a new state; afterwards its generator is where it was."""
        drawn = np.empty(1 + WORDS // 2, dtype=np.uint64)
        self._words.fill(drawn)
        with torch.random.fork_rng(devices=self._devices):
            # only the generators that a model can draw from here: torch.manual_seed goes through all kinds of devices
            torch.default_generator.manual_seed(int(drawn[0]) & SEED)  # the lower half counts on the CPU
            for device in self._devices:
                torch.cuda.default_generators[_index(device)].manual_seed(int(drawn[0]) & SEED)  # all of a GPU's key
            torch.set_rng_state(_filled(torch.get_rng_state(), drawn[1:].view(np.uint32)))
            yield


def _index(device: torch.device) -> int:
    return torch.cuda.current_device() if device.index is None else device.index


def _filled(state: torch.Tensor, words: npt.NDArray[np.uint32]) -> torch.Tensor:
    """A state of the CPU's generator, just seeded, with other words in it; refused where it is laid out otherwise."""
    parts = np.frombuffer(state.numpy().tobytes(), dtype=np.uint64).copy()
    own = parts[FIRST : FIRST + WORDS]
    first = int(parts[0]) & 0xFFFFFFFF
    if int(own[0]) != first or int(own[1]) != (STEP * (first ^ (first >> 30)) + 1) & 0xFFFFFFFF:
        raise Unsupported(
            "this version of torch keeps its generator in a way that is not supported here; nothing was done."
        )
    own[:] = words
    return torch.from_numpy(parts.view(np.uint8))
