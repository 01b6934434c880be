"""Cells of recurrent networks: two matrices each, used at every step."""

from collections.abc import Callable
from typing import Any  # layers of torch, by attributes that only some have

import torch
from torch import Tensor, nn

from sfumato.learning.engine.record import ForwardRecord, Site
from sfumato.learning.given import Tree

__all__ = ["TYPES", "forward", "unfit"]

TYPES: tuple[type[nn.Module], ...] = (nn.RNNCell, nn.LSTMCell, nn.GRUCell)


def unfit(layer: nn.Module) -> str | None:
    """Why a layer of these types has no rule after all."""
    return None


def forward(cell: Any, name: str, record: ForwardRecord) -> Callable[..., Tree]:
    """The cell's forward pass, with both products written down."""

    def products(inputs: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        return (
            record.linear(Site(layer=name, matrix="ih"), inputs, cell.weight_ih, cell.bias_ih),
            record.linear(Site(layer=name, matrix="hh"), hidden, cell.weight_hh, cell.bias_hh),
        )

    def simple(inputs: Tensor, hx: Tensor | None = None) -> Tensor:
        seen, kept = products(inputs, _start(cell, inputs) if hx is None else hx)
        return torch.relu(seen + kept) if cell.nonlinearity == "relu" else torch.tanh(seen + kept)

    def long(inputs: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        hidden, memory = (_start(cell, inputs), _start(cell, inputs)) if hx is None else hx
        seen, kept = products(inputs, hidden)
        enter, forget, new, leave = (seen + kept).chunk(4, -1)
        memory = torch.sigmoid(forget) * memory + torch.sigmoid(enter) * torch.tanh(new)
        return torch.sigmoid(leave) * torch.tanh(memory), memory

    def gated(inputs: Tensor, hx: Tensor | None = None) -> Tensor:
        hidden = _start(cell, inputs) if hx is None else hx
        seen, kept = (product.chunk(3, -1) for product in products(inputs, hidden))
        reset, update = torch.sigmoid(seen[0] + kept[0]), torch.sigmoid(seen[1] + kept[1])
        new = torch.tanh(seen[2] + reset * kept[2])
        return new + update * (hidden - new)

    forwards: dict[type, Callable[..., Tree]] = {nn.RNNCell: simple, nn.LSTMCell: long, nn.GRUCell: gated}
    return forwards[type(cell)]


def _start(cell: Any, inputs: Tensor) -> Tensor:
    return inputs.new_zeros(*inputs.shape[:-1], cell.hidden_size)
