"""Small models with invented batches, one for each layer that has a rule and some whole ones."""

from collections.abc import Callable
from typing import Any

import pytest

from tests import parts

parts.package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

torch.set_num_threads(1)

__all__ = ["LAYERS", "SOME", "WHOLE", "batch", "grouped", "users"]


def flat(layer: nn.Module, size: int) -> nn.Module:
    return nn.Sequential(layer, nn.Tanh(), nn.Flatten(), nn.Linear(size, 3))


class Attention(nn.Module):
    """Attention within a row, of linear layers."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.inside, self.outside = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        rows, places, width = x.shape
        q, k, v = self.inside(x).view(rows, places, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        found: Tensor = self.outside(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape))
        return found


class Block(nn.Module):
    """A transformer block."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.before, self.after, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width)
        self.wide = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.before(x))
        found: Tensor = x + self.wide(self.after(x))
        return found


class Pooled(nn.Module):
    """Tokens, a body, and the mean of the places."""

    def __init__(self, body: nn.Module, width: int = 8) -> None:
        super().__init__()
        self.tokens, self.body, self.last = nn.Embedding(5, width), body, nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(self.body(self.tokens(x)).mean(1))
        return found


class Stepped(nn.Module):
    """A cell over the places of a row."""

    def __init__(self, cell: Any, width: int) -> None:
        super().__init__()
        self.cell, self.last = cell(6, width), nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        state = None
        for place in x.unbind(1):
            state = self.cell(place, state)
        found: Tensor = self.last(state[0] if isinstance(state, tuple) else state)
        return found


class Multihead(nn.Module):
    """The attention of torch, with masks."""

    def __init__(self, *, first: bool, cross: bool = False) -> None:
        super().__init__()
        self.many, self.last, self.cross = nn.MultiheadAttention(6, 2, batch_first=first), nn.Linear(6, 3), cross

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.zeros(len(x), x.shape[1], dtype=torch.bool)
        hidden[:, -1] = True
        ahead = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        query = x.flip(1) if self.cross else x
        if self.many.batch_first:
            found = self.many(query, x, x, key_padding_mask=hidden, attn_mask=ahead)[0].sum(1)
        else:
            found = self.many(*(part.transpose(0, 1) for part in (query, x, x)), need_weights=False)[0].sum(0)
        last: Tensor = self.last(found)
        return last


class Twice(nn.Module):
    """One layer that is used twice."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.layer(torch.tanh(self.layer(x)))
        return found.flatten(1)[:, :3]


def noise(*shape: int) -> Callable[[int], Tensor]:
    return lambda units: torch.randn(units, *shape)


def tokens(places: int) -> Callable[[int], Tensor]:
    return lambda units: torch.randint(0, 5, (units, places))


LAYERS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], Tensor]]] = {
    "linear": (lambda: nn.Linear(6, 3), noise(6)),
    "linear without bias": (lambda: nn.Linear(6, 3, bias=False), noise(6)),
    "linear on places": (lambda: flat(nn.Linear(6, 5), 20), noise(4, 6)),
    "linear, wide, on places": (lambda: flat(nn.Linear(40, 50), 100), noise(2, 40)),
    "conv1d": (lambda: flat(nn.Conv1d(2, 4, 3, stride=2, padding=1, dilation=2), 12), noise(2, 8)),
    "conv1d same": (lambda: flat(nn.Conv1d(2, 4, 3, dilation=2, padding="same"), 32), noise(2, 8)),
    "conv2d": (lambda: flat(nn.Conv2d(2, 4, 3, stride=(2, 1), padding=(1, 2)), 4 * 3 * 8), noise(2, 6, 6)),
    "conv2d groups": (lambda: flat(nn.Conv2d(4, 6, (2, 3), groups=2, dilation=(2, 1)), 6 * 4 * 4), noise(4, 6, 6)),
    "conv2d depthwise": (lambda: flat(nn.Conv2d(4, 4, 3, groups=4, bias=False), 4 * 16), noise(4, 6, 6)),
    "conv2d reflect": (lambda: flat(nn.Conv2d(1, 2, 3, padding=1, padding_mode="reflect"), 2 * 36), noise(1, 6, 6)),
    "embedding": (lambda: flat(nn.Embedding(5, 4), 24), tokens(6)),
    "embedding padded": (lambda: flat(nn.Embedding(5, 4, padding_idx=1), 24), tokens(6)),
    "layer norm": (lambda: flat(nn.LayerNorm(6), 24), noise(4, 6)),
    "layer norm on two axes": (lambda: flat(nn.LayerNorm((4, 6)), 24), noise(4, 6)),
    "rms norm": (lambda: flat(nn.RMSNorm(6), 24), noise(4, 6)),
    "group norm": (lambda: flat(nn.GroupNorm(2, 4), 4 * 9), noise(4, 3, 3)),
    "instance norm": (lambda: flat(nn.InstanceNorm2d(4, affine=True), 4 * 9), noise(4, 3, 3)),
    "rnn cell": (lambda: Stepped(nn.RNNCell, 4), noise(3, 6)),
    "lstm cell": (lambda: Stepped(nn.LSTMCell, 4), noise(3, 6)),
    "gru cell": (lambda: Stepped(nn.GRUCell, 4), noise(3, 6)),
    "attention": (lambda: Multihead(first=True), noise(3, 6)),
    "attention, across": (lambda: Multihead(first=False, cross=True), noise(3, 6)),
    "encoder": (lambda: flat(nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True), 18), noise(3, 6)),
    "linear twice": (lambda: Twice(nn.Linear(6, 6)), noise(6)),
    "conv twice": (lambda: Twice(nn.Conv2d(2, 2, 3, padding=1)), noise(2, 4, 4)),
}

WHOLE: dict[str, tuple[Callable[[], nn.Module], Callable[[int], Tensor]]] = {
    "perceptron": (
        lambda: nn.Sequential(nn.Linear(20, 16), nn.ReLU(inplace=True), nn.Linear(16, 3)),
        noise(20),
    ),
    "convolutions": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.GroupNorm(2, 4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 8, 3, padding=1),
            nn.GroupNorm(4, 8),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(8 * 16, 3),
        ),
        noise(1, 8, 8),
    ),
    "transformer": (lambda: Pooled(nn.Sequential(Block(), Block())), tokens(6)),
    "lstm": (lambda: Stepped(nn.LSTMCell, 8), noise(5, 6)),
}

FEW = ("linear", "conv2d", "embedding", "layer norm", "rnn cell", "attention", "linear twice", "perceptron")
SOME = [pytest.param(name, marks=[] if name in FEW else pytest.mark.long) for name in LAYERS | WHOLE]
"""All of them where there is time, and one of each family of layers in every run."""


def batch(make: Callable[[int], Tensor], units: int = 7) -> tuple[Tensor, Tensor]:
    """Records with classes."""
    return make(units), torch.randint(0, 3, (units,))


def users(make: Callable[[int], Tensor], units: int = 4, records: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    """Users with some records each; one of them has none."""
    present, made = torch.rand(units, records) < 0.7, make(units * records)
    present[0], present[1] = True, False
    return made.reshape(units, records, *made.shape[1:]), torch.randint(0, 3, (units, records)), present


def grouped(outputs: Tensor, target: Tensor) -> Tensor:
    """One number for all members of a unit: what couples them is the unit's own."""
    return (F.log_softmax(outputs, 0)[:, 0] * target).sum() + (outputs[0] * outputs[1]).mean()
