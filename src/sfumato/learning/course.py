"""The course of a run: who counts in a step, with which clip, and how the sum of a step becomes noisy."""

from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sfumato.core.query import Mechanism
from sfumato.core.sensitivity import Sensitivity
from sfumato.learning.device_ahead import MOST, DeviceAhead
from sfumato.learning.given import RunState
from sfumato.learning.lattice import NoisyLattice
from sfumato.learning.noisy_sums import NoisySums
from sfumato.learning.sampling import shuffled_sample
from sfumato.learning.training import Training
from sfumato.noise import SystemWords, Words

__all__ = ["Course", "SampledCourse", "course_of"]


class Course(Protocol):
    """One run of a mechanism, step by step. Sensitive: its state."""

    @property
    def clip(self) -> Fraction:
        """The clip of the next step. Public."""
        ...

    def places(self, number: int, step: int) -> npt.NDArray[np.int64]:
        """Which of the units count in a step, from 0, in the order of a :func:`shuffled_sample`. Sensitive."""
        ...

    def observe(self, norms: Tensor, present: Tensor) -> None:
        """Take in the norms of a part of the step's units. Sensitive."""
        ...

    def release(self, total: Tensor) -> Tensor:
        """The noisy sum of a step for its flat sum, which may be written over: what may be learned from."""
        ...

    def state(self) -> RunState:
        """What is needed to go on: numbers and tensors. Sensitive."""
        ...

    def load(self, state: RunState) -> None:
        """Go on from that."""
        ...


class SampledCourse:
    """Independent noise on sums over fresh Poisson samples."""

    def __init__(
        self, run: Training, mechanism: NoisySums, moved: Sensitivity, words: Words, *, ahead: bool = False
    ) -> None:
        self._run, self._words = run, words
        own = None if isinstance(words, SystemWords) else words
        self._lattice = NoisyLattice(
            pitch=mechanism.pitch(moved), size=mechanism.parameters, words=own, ahead=ahead and own is None
        )

    @property
    def clip(self) -> Fraction:
        """The declared clip. Public."""
        return self._run.clip

    @property
    def size(self) -> int:
        """How many numbers a sum has. Public."""
        return self._lattice.size

    @property
    def fresh(self) -> bool:
        """Whether each sample comes from the system by itself, so that one can be drawn before its step."""
        return isinstance(self._words, SystemWords)

    def places(self, number: int, step: int) -> npt.NDArray[np.int64]:
        """A fresh Poisson sample in random order. Sensitive."""
        return shuffled_sample(number, self._run.rate, self._words)

    def on_device(self, device: torch.device, number: int) -> DeviceAhead | None:
        """Samples and noise drawn on a device for a run that is not a test's; None where that cannot be."""
        if not isinstance(self._words, SystemWords) or self._run.rate == 1 or not 1 <= number <= MOST:
            return None
        return DeviceAhead(device, number=number, rate=self._run.rate, size=self._lattice.size)

    def observe(self, norms: Tensor, present: Tensor) -> None:
        """Nothing depends on the norms."""

    def release(self, total: Tensor, *, noise: Tensor | None = None) -> Tensor:
        """The sum on its lattice with fresh noise, be it drawn now or beforehand for this step."""
        over = total.device.type == "cpu" and total.dtype == torch.float32  # written over: fresh memory is slow
        return self._lattice.release(total, out=total if over else None, noise=noise)

    def close(self) -> None:
        """End the thread that draws ahead, if there is one; what it has drawn is forgotten."""
        self._lattice.close()

    def state(self) -> RunState:
        """Nothing: samples and noise are fresh in each step."""
        return {}

    def load(self, state: RunState) -> None:
        """Nothing is needed to go on."""


class _HasCourse(Protocol):
    """A mechanism with a course of its own."""

    def course(self, run: Training, moved: Sensitivity, words: Words) -> Course:
        """One run of it."""
        ...


def course_of(run: Training, mechanism: Mechanism, moved: Sensitivity, words: Words, *, ahead: bool = False) -> Course:
    """The course of a mechanism; one that has a course of its own makes it.

    With ``ahead`` the noise of a step is drawn by another thread while the step before it is computed.
    """
    if isinstance(mechanism, NoisySums):
        return SampledCourse(run, mechanism, moved, words, ahead=ahead)
    own: _HasCourse = mechanism  # type: ignore[assignment]  # those that train have one of the two
    return own.course(run, moved, words)
