"""The average of the weights of many steps: post-processing, which costs nothing and takes noise away."""

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.exact import Exact, positive, probability
from sfumato.errors import InvalidInput
from sfumato.learning.given import RunState

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Average"]


class Average:
    """An exponential moving average of released weights: a ← a + (1 − decay)·(w − a).

    In its first steps it is the plain mean, so that the start is not dragged along: the weight of step t is
    max(1 − decay, 1/t). Guarantee: released weights may be averaged in any way, at no cost. Public: all of it.

    >>> import torch
    >>> average = Average(decay=0.9)
    >>> for value in (0.0, 1.0, 2.0):
    ...     average.update({"weight": torch.tensor([value])})
    >>> average.weights["weight"]
    tensor([1.])
    """

    def __init__(self, decay: Exact = Fraction(99, 100)) -> None:
        self.decay = positive(probability(decay, "decay"), "decay")
        if self.decay == 1:
            raise InvalidInput("a decay of 1 would never let go of the first weights; nothing was done. Say 0.99.")
        self.weights: dict[str, Tensor] = {}
        self.steps = 0

    def update(self, weights: "Mapping[str, Tensor]") -> None:
        """Take in the weights of one more step, tensors by their names."""
        if self.steps and weights.keys() != self.weights.keys():
            raise InvalidInput("these are the weights of another model; nothing was averaged.")
        self.steps += 1
        share = max(1 - self.decay, Fraction(1, self.steps))
        for name, value in weights.items():
            now = value.detach()
            if self.steps == 1 or not now.is_floating_point():
                self.weights[name] = now.clone()
            else:
                self.weights[name].lerp_(now, float(share))

    def state(self) -> RunState:
        """What a checkpoint keeps of it."""
        return {"steps": self.steps, "weights": {name: value.clone() for name, value in self.weights.items()}}

    def load(self, state: RunState) -> None:
        """Go on from a checkpoint."""
        self.steps, self.weights = int(state["steps"]), dict(state["weights"])
