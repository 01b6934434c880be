"""Networks that a few numbers describe: linear layers with tanh between them."""

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

__all__ = ["layered"]


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
