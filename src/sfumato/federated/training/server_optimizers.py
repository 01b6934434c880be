"""What a coordinator learns from the mean update of a round: post-processing of a release, in double precision."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput

__all__ = ["FedAdam", "FedSGD", "ServerOptimizer"]

Vector = npt.NDArray[np.float64]


class ServerOptimizer(Protocol):
    """Takes weights, a mean update and what it kept of earlier rounds; gives new weights and what to keep."""

    def step(
        self, weights: Vector, update: Vector, kept: tuple[Vector, ...], number: int
    ) -> tuple[Vector, tuple[Vector, ...]]:
        """One round; ``number`` counts from 1."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FedSGD:
    """Descend along the mean update, with ``momentum`` if that is said.

    >>> FedSGD(lr=0.5).step(np.zeros(1), np.ones(1), (), 1)
    (array([-0.5]), ())
    """

    lr: float
    momentum: float = 0.0

    def __post_init__(self) -> None:
        _check(self.lr > 0 and 0 <= self.momentum < 1)

    def step(
        self, weights: Vector, update: Vector, kept: tuple[Vector, ...], number: int
    ) -> tuple[Vector, tuple[Vector, ...]]:
        """w − lr·v, v = momentum·v + update."""
        if not self.momentum:
            return weights - self.lr * update, ()
        speed = update if not kept else self.momentum * kept[0] + update
        return weights - self.lr * speed, (speed,)


@dataclass(frozen=True, slots=True, kw_only=True)
class FedAdam:
    """Adam on the mean update, with its corrections for the first rounds.

    >>> weights, kept = FedAdam(lr=0.1).step(np.zeros(1), np.ones(1), (), 1)
    >>> weights.round(3), len(kept)
    (array([-0.1]), 2)
    """

    lr: float
    beta1: float = 0.9
    beta2: float = 0.999
    floor: float = 1e-8

    def __post_init__(self) -> None:
        _check(self.lr > 0 and 0 <= self.beta1 < 1 and 0 <= self.beta2 < 1 and self.floor > 0)

    def step(
        self, weights: Vector, update: Vector, kept: tuple[Vector, ...], number: int
    ) -> tuple[Vector, tuple[Vector, ...]]:
        """w − lr·m̂/(√v̂ + floor)."""
        first, second = kept or (np.zeros_like(update), np.zeros_like(update))
        first = self.beta1 * first + (1 - self.beta1) * update
        second = self.beta2 * second + (1 - self.beta2) * update**2
        mean, square = first / (1 - self.beta1**number), second / (1 - self.beta2**number)
        return weights - self.lr * mean / (np.sqrt(square) + self.floor), (first, second)


def _check(sound: bool) -> None:  # noqa: FBT001 - one truth is all that it takes
    if not sound:
        raise InvalidInput("lr lies above 0, and momentum and betas from 0 to below 1; nothing was done.")
