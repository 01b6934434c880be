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
        # only the generators that a model can draw from here: torch's own functions go through all kinds of devices
        own = torch.random.default_generator  # type: ignore[attr-defined]  # torch does not list it
        generators = [own, *(torch.cuda.default_generators[_index(one)] for one in self._devices)]
        before = [one.get_state() for one in generators]
        try:
            for one in generators:
                one.manual_seed(int(drawn[0]) & SEED)  # all of a GPU's key; the lower half counts on the CPU
            generators[0].set_state(_filled(generators[0].get_state(), drawn[1:].view(np.uint32)))
            yield
        finally:
            for one, state in zip(generators, before, strict=True):
                one.set_state(state)


def _index(device: torch.device) -> int:
    return torch.cuda.current_device() if device.index is None else device.index


def _filled(state: torch.Tensor, words: npt.NDArray[np.uint32]) -> torch.Tensor:
    """A state of the CPU's generator, just seeded, with other words in it; refused where it is laid out otherwise."""
    parts = state.numpy().view(np.uint64)
    own = parts[FIRST : FIRST + WORDS]
    first = int(parts[0]) & 0xFFFFFFFF
    if int(own[0]) != first or int(own[1]) != (STEP * (first ^ (first >> 30)) + 1) & 0xFFFFFFFF:
        raise Unsupported(
            "this version of torch keeps its generator in a way that is not supported here; nothing was done."
        )
    own[:] = words
    return state
