"""The models that training is measured on: a perceptron, a wide residual network, a transformer. None mixes units."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def perceptron(width: int = 1024, depth: int = 2) -> nn.Module:
    """784 → width → … → 10."""
    layers: list[nn.Module] = []
    size = 784
    for _ in range(depth):
        layers += [nn.Linear(size, width), nn.ReLU()]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, 10))


class ResidualBlock(nn.Module):
    """Two convolutions behind group normalisation, and a way around them."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first_norm, self.second_norm = nn.GroupNorm(16, inside), nn.GroupNorm(16, outside)
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.around = nn.Conv2d(inside, outside, 1, stride, bias=False) if inside != outside or stride != 1 else None

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.first_norm(x))
        y = self.second(F.relu(self.second_norm(self.first(h))))
        return y + (x if self.around is None else self.around(h))


class WideResNet(nn.Module):
    """WRN-16-k with group normalisation in place of batch normalisation."""

    def __init__(self, factor: int = 4) -> None:
        super().__init__()
        widths = [16, 16 * factor, 32 * factor, 64 * factor]
        blocks: list[nn.Module] = []
        size = widths[0]
        for stage, width in enumerate(widths[1:]):
            for place in range(2):
                blocks.append(ResidualBlock(size, width, 2 if stage and not place else 1))
                size = width
        self.first = nn.Conv2d(3, widths[0], 3, 1, 1, bias=False)
        self.blocks, self.norm, self.last = nn.Sequential(*blocks), nn.GroupNorm(16, size), nn.Linear(size, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.relu(self.norm(self.blocks(self.first(x)))).mean((2, 3)))


class Attention(nn.Module):
    """Self-attention over the tokens of one unit."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads, self.into, self.out = heads, nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, size = x.shape
        query, key, value = self.into(x).view(batch, tokens, 3, self.heads, size // self.heads).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value)
        return self.out(seen.transpose(1, 2).reshape(batch, tokens, size))


class TransformerBlock(nn.Module):
    """Attention and a small perceptron, each behind a layer normalisation."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.first_norm, self.second_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention = Attention(size, heads)
        self.within = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first_norm(x))
        return x + self.within(self.second_norm(x))


class Transformer(nn.Module):
    """A classifier of sequences of tokens."""

    def __init__(self, words: int = 1000, size: int = 256, layers: int = 4) -> None:
        super().__init__()
        self.words = nn.Embedding(words, size)
        self.blocks = nn.Sequential(*(TransformerBlock(size, 8) for _ in range(layers)))
        self.norm, self.last = nn.LayerNorm(size), nn.Linear(size, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.norm(self.blocks(self.words(x))).mean(1))


@dataclass(frozen=True, slots=True)
class Case:
    """A model, invented inputs for it, and how many."""

    model: Callable[[], nn.Module]
    inputs: Callable[[int], Tensor]
    batch: int


CASES = {
    "MLP 784-1024-1024-10": Case(perceptron, lambda batch: torch.randn(batch, 784), 4096),
    "WRN-16-4": Case(WideResNet, lambda batch: torch.randn(batch, 3, 32, 32), 512),
    "transformer": Case(Transformer, lambda batch: torch.randint(0, 1000, (batch, 64)), 256),
}
SMALL = {
    "MLP 784-1024-1024-10": Case(lambda: perceptron(16, 1), lambda batch: torch.randn(batch, 784), 4),
    "WRN-16-4": Case(lambda: WideResNet(1), lambda batch: torch.randn(batch, 3, 8, 8), 2),
    "transformer": Case(lambda: Transformer(10, 16, 1), lambda batch: torch.randint(0, 10, (batch, 5)), 2),
}
