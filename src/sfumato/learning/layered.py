"""Networks that a few numbers describe: linear layers with tanh between them, and their weights as arrays."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

__all__ = ["arrays_of", "chances", "class_loss", "layered", "with_arrays"]

Numbers = npt.NDArray[np.float32]


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


def class_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """The cross-entropy of classes: the mean over the rows that are given."""
    return nn.functional.cross_entropy(outputs, targets)


def chances(model: nn.Module, inputs: Numbers) -> Numbers:
    """How likely a model says each class is, for each row.

    >>> chances(layered(2, (), 2), np.zeros((1, 2), dtype=np.float32)).tolist()
    [[0.5, 0.5]]
    """
    with torch.no_grad():
        found: Numbers = torch.softmax(model(torch.from_numpy(inputs)), dim=1).numpy()
    return found


def arrays_of(model: nn.Module) -> dict[str, Numbers]:
    """The weights of a model by name, in single precision."""
    return {name: value.detach().cpu().float().numpy() for name, value in model.state_dict().items()}


def with_arrays(model: nn.Sequential, arrays: Mapping[str, Numbers]) -> nn.Sequential:
    """A model with weights as :func:`arrays_of` gives them, for use and not for training."""
    model.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in arrays.items()})
    return model.eval()
