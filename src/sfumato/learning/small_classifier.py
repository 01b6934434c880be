"""A linear classifier of invented rows, trained by a vault as users train theirs. Used by the audit alone."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from sfumato.core.exact import Exact
from sfumato.learning.trainer import Trainer
from sfumato.learning.units import Units

if TYPE_CHECKING:
    from sfumato.core.release import Release

__all__ = ["classified"]


def classified(
    trainer: Callable[..., Trainer],
    rows: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int64],
    *,
    classes: int,
    n_units: int,
    steps: int,
    batch: int,
    rate: float,
    epsilon: Exact,
    delta: Exact,
) -> "tuple[npt.NDArray[np.float32], Release]":
    """Train by ``vault.trainer`` with clip 1 from weights of 0, by plain steps; the weights and their release.

    Weights are (columns + 1) × classes, the last line for the constant.
    """
    model = nn.Linear(rows.shape[1], classes)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    data = Units(rows, labels, n_units=n_units, name="invented", version="1")
    made = trainer(model, nn.CrossEntropyLoss(), data=data, clip=1)
    trained = made.fit(
        epsilon=epsilon,
        delta=delta,
        steps=steps,
        batch=batch,
        lr=rate,
        optimizer=torch.optim.SGD,
        progress=False,
    )
    weights = torch.cat([model.weight.detach().T, model.bias.detach()[None, :]])
    return weights.numpy().astype(np.float32), trained.release
