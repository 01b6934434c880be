"""Invented units put through the whole of training, so that what is released of them can be read off the weights.

Used by the audit on invented data alone. Every model here has one weight a unit, and is learned with a rate of 1 in
float64, so that the change of the weights, times the expected batch, is the noisy sum that was released.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any  # arguments by name, each of a type of its own

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.learning.evaluation import Evaluator
from sfumato.learning.trainer import Trained, Trainer
from sfumato.learning.units import Units

if TYPE_CHECKING:
    from sfumato.core.release import Release

__all__ = ["Counted", "Summed", "evaluated", "looked_up", "summed", "zero_layer"]

Floats = npt.NDArray[np.float64]
MakesTrainer = Callable[..., Trainer]
Counted = tuple[list[int], "Release"]
Summed = tuple[Floats, "Release"]


class _Weighing(nn.Module):
    """One weight for each unit, in float64: a unit is the row of the identity that its weight is read off by."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(number, dtype=torch.float64))

    def forward(self, rows: Tensor) -> Tensor:
        """The weight of each unit."""
        return rows.double() @ self.weight


class _Looking(nn.Module):
    """A model that writes to its own weights while it computes: rows that are looked up are cut to a norm.

    It stands for a model of a user, not of this library: those are trusted not to write.
    """

    __module__ = "canaries"

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.full((rows, 1), 2.0, dtype=torch.float64))

    def forward(self, place: Tensor) -> Tensor:
        """Look up, and cut."""
        return F.embedding(place.long().squeeze(-1), self.table, max_norm=1.0)


def summed(trainer: MakesTrainer, gradients: Floats, *, batch: int, steps: int, clip: int = 1, **asked: Any) -> Summed:
    """The noisy sum of each step, where unit i has the gradient ``gradients[i]`` in weight i, and 0 in all others."""
    number = len(gradients)
    model = _Weighing(number)
    data = Units(
        torch.eye(number), torch.from_numpy(gradients.astype(np.float32)), n_units=number, name="canaries", version="1"
    )
    made = trainer(model, lambda outputs, targets: (outputs * targets).sum(), data=data, clip=clip)
    return _told(made, model, steps=steps, batch=batch, **asked)


def zero_layer(inputs: int, outputs: int) -> nn.Module:
    """A layer whose weights are all 0: what a step adds to them is what the step said."""
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.zeros_(layer.weight)
    return layer


def looked_up(trainer: MakesTrainer, rows: int, **asked: Any) -> Summed:
    """The noisy sum of one step, where no unit has a gradient and the model cuts the rows that units look up."""
    model = _Looking(rows)
    data = Units(torch.arange(rows)[:, None], torch.zeros(rows), n_units=rows, name="canaries", version="1")
    made = trainer(model, lambda outputs, targets: 0 * (outputs.sum() + targets.sum()), data=data, clip=1)
    return _told(made, model, steps=1, batch=rows, **asked)


def evaluated(evaluator: Callable[..., Evaluator], evaluations: int, **asked: Any) -> Counted:
    """Noisy counts of how many of eight units a model gets right that is wrong on all of them."""
    held = Units(torch.zeros(8, 1), torch.ones(8).long(), n_units=8, name="held out", version="1")
    asking = evaluator(data=held, evaluations=evaluations, **asked)
    wrong = nn.Linear(1, 1)
    nn.init.constant_(wrong.weight, 0.0)
    nn.init.constant_(wrong.bias, -1.0)
    return [asking.ask(wrong).count for _ in range(evaluations)], asking.close()


def _told(trainer: Trainer, model: nn.Module, *, steps: int, batch: int, **asked: Any) -> Summed:
    """Train, and compute the noisy sums from the weights that were released after each step."""
    seen = [_flat(model.state_dict())]

    def watch(_step: int, weights: Mapping[str, Tensor]) -> bool:
        seen.append(_flat(weights))
        return False

    trained: Trained = trainer.fit(
        steps=steps, batch=batch, lr=1.0, optimizer=torch.optim.SGD, every=1, callback=watch, progress=False, **asked
    )
    return -np.diff(np.array(seen), axis=0) * batch, trained.release


def _flat(weights: Mapping[str, Tensor]) -> Floats:
    return torch.cat([one.detach().flatten() for one in weights.values()]).numpy().copy()
