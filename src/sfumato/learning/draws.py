"""Draws of the model itself, such as dropout: from torch's generator, but secret, and apart from everybody else's.

They are no noise and protect nobody. They must be secret all the same: a mask that everybody knows goes with a place in
the batch, and who comes to lie there would show. Proof: docs/proofs/training.md
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from sfumato.noise import Words

__all__ = ["Draws"]


class Draws:
    """The state of torch's generator for one run, begun from secret words. Sensitive."""

    def __init__(self, device: torch.device, words: Words) -> None:
        self._devices = [device] if device.type == "cuda" else []
        seed = np.empty(1, dtype=np.uint64)
        words.fill(seed)
        with torch.random.fork_rng(devices=self._devices):
            torch.manual_seed(int(seed[0]))
            self._keep()

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let torch draw from here; afterwards its generator is where it was."""
        with torch.random.fork_rng(devices=self._devices):
            torch.set_rng_state(self._state["cpu"])
            for device in self._devices:
                torch.cuda.set_rng_state(self._state["cuda"], device)
            yield
            self._keep()

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        return dict(self._state)

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._state = dict(state)

    def _keep(self) -> None:
        self._state = {"cpu": torch.get_rng_state()}
        for device in self._devices:
            self._state["cuda"] = torch.cuda.get_rng_state(device)
