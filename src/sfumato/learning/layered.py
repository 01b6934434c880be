"""Networks that a few numbers describe: linear layers with tanh between them."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

__all__ = ["class_loss", "class_probabilities", "layered", "with_weights"]

class_loss = nn.functional.cross_entropy
"""The loss of a row whose target is a class."""


def layered(width: int, hidden: Sequence[int], outputs: int) -> nn.Sequential:
    """Layers with tanh between them; the last starts at zero, and no data decides where the others start.

    >>> [tuple(one.shape) for one in layered(3, (4,), 2).parameters()]
    [(4, 3), (4,), (2, 4), (2,)]
    """
    sizes = [width, *hidden]
    layers: list[nn.Module] = []
    for into, out in pairwise(sizes):
        layers += [nn.Linear(into, out), nn.Tanh()]
    last = nn.Linear(sizes[-1], outputs)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(*layers, last)


def class_probabilities(model: nn.Module, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """How likely a model says each class is, for each row. Sensitive as the rows are.

    >>> class_probabilities(layered(1, (), 2), np.zeros((1, 1), dtype=np.float32)).tolist()
    [[0.5, 0.5]]
    """
    with torch.no_grad():
        found: npt.NDArray[np.float32] = torch.softmax(model(torch.from_numpy(rows)), dim=1).numpy()
    return found


def with_weights(model: nn.Sequential, weights: Mapping[str, npt.NDArray[np.float32]]) -> nn.Sequential:
    """The model with these numbers as its weights, ready to be asked."""
    model.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    return model.eval()
