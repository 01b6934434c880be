"""Two parts of the units, by coins that nobody sees: those that models are trained on, and those that judge them."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import Refused
from sfumato.learning.course import SampledCourse
from sfumato.learning.given import RunState
from sfumato.learning.noisy_sums import NoisySums
from sfumato.learning.sampling import poisson_sample
from sfumato.noise import Words

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.learning.training import Training

__all__ = ["HiddenSplit", "PartSums"]


class HiddenSplit:
    """Who is held out: each unit by a coin of its own, tossed once, when it is first known how many units there are.

    Guarantee: exact for every rational share; the coins of others are the same with one unit more. Sensitive: all.
    """

    def __init__(self, share: Fraction, words: Words) -> None:
        self._share, self._words = share, words
        self._held: npt.NDArray[np.bool_] | None = None

    def held(self, number: int) -> npt.NDArray[np.int64]:
        """The places of the units that are held out."""
        return np.asarray(self._coins(number).nonzero()[0], dtype=np.int64)

    def others(self, number: int) -> npt.NDArray[np.int64]:
        """The places of all other units."""
        return np.asarray((~self._coins(number)).nonzero()[0], dtype=np.int64)

    def _coins(self, number: int) -> npt.NDArray[np.bool_]:
        if self._held is None:
            self._held = np.zeros(number, dtype=np.bool_)
            self._held[poisson_sample(number, self._share, self._words)] = True
        if len(self._held) != number:
            raise Refused("these are not the units that the search began with; nothing was released.")
        return self._held


@dataclass(frozen=True, slots=True)
class PartSums:
    """Noisy sums over the units that are not held out: how a run of a search is made."""

    sums: NoisySums
    split: HiddenSplit

    def course(self, run: "Training", moved: Sensitivity, words: Words) -> "PartCourse":
        """Start a run."""
        return PartCourse(SampledCourse(run, self.sums, moved, words), self.split)


class PartCourse:
    """A :class:`~sfumato.learning.course.SampledCourse` over the units that are not held out. Sensitive: its state."""

    def __init__(self, inner: SampledCourse, split: HiddenSplit) -> None:
        self._inner, self._split = inner, split

    @property
    def clip(self) -> Fraction:
        """The declared clip. Public."""
        return self._inner.clip

    def places(self, number: int, step: int) -> npt.NDArray[np.int64]:
        """A fresh Poisson sample of the units that are not held out, in random order. Sensitive."""
        others = self._split.others(number)
        return np.asarray(others[self._inner.places(len(others), step)])

    def observe(self, norms: "Tensor", present: "Tensor") -> None:
        """Nothing depends on the norms."""

    def release(self, total: "Tensor") -> "Tensor":
        """The sum on its lattice with fresh noise."""
        return self._inner.release(total)

    def state(self) -> RunState:
        """Nothing: a search has no checkpoint."""
        return {}

    def load(self, state: RunState) -> None:
        """Nothing is needed to go on."""
