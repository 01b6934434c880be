"""What a graph network is: a model of a node's own features, and what each name of the roster was sent, with noise."""

import math

import torch
from torch import Tensor, nn

__all__ = ["OWN", "GraphNetwork", "direction", "with_labels"]

OWN = 1.5
"""How much a node's own direction counts beside what it was sent: chosen beforehand, and public."""


def direction(scores: Tensor) -> Tensor:
    """Where the scores of classes point: softmax less its mean, of length 1. Rows of zeros where all classes are equal.

    >>> direction(torch.tensor([[2.0, 2.0], [9.0, 9.0]])).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    chances = torch.softmax(scores.double(), dim=-1)
    away = chances - chances.mean(dim=-1, keepdim=True)
    length = away.norm(dim=-1, keepdim=True)
    return torch.where(length > 1e-12, away / length.clamp_min(1e-12), torch.zeros_like(away))


def with_labels(said: Tensor, labels: Tensor) -> Tensor:
    """What nodes say of their class: the label where one is known, and else the direction that is given.

    >>> with_labels(torch.zeros(2, 2, dtype=torch.float64), torch.tensor([1, -1])).abs().sum(1) > 0
    tensor([ True, False])
    """
    classes = said.shape[1]
    known = (labels >= 0) & (labels < classes)
    sure = direction(torch.eye(classes, dtype=torch.float64) * 99)
    return torch.where(known[:, None], sure[labels.clamp(0, classes - 1)], said.double())


class GraphNetwork(nn.Module):
    """A model of own features, and the noisy sums of what neighbours sent; training is of the model alone.

    ``gathered`` has a row for each hop and each name of the roster, in lengths of a message, and ``spread`` is the
    standard deviation of its noise, infinite while nothing was gathered. Public: all of it, once a run has released it.
    """

    gathered: Tensor
    spread: Tensor

    def __init__(self, encoder: nn.Module, *, hops: int, names: int, classes: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.register_buffer("gathered", torch.zeros(hops, names, classes))
        self.register_buffer("spread", torch.tensor(math.inf, dtype=torch.float64))

    def forward(self, features: Tensor) -> Tensor:
        """The scores of classes by own features alone, which is what is trained."""
        return self.encoder(features)  # type: ignore[no-any-return]  # a module of torch gives what it gives

    def combined(self, own: Tensor, heard: Tensor) -> Tensor:
        """Scores from own directions (n, classes) and what these nodes heard (hops, n, classes).

        The noisier the sums are, the less they count: by 1/(1 + spread²), the share of a sum that is not noise if what
        is sent varies by one length.
        """
        return OWN * own + heard.to(own).sum(0) / (1 + float(self.spread) ** 2)
