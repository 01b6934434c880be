"""Clipped sums: what a step of private training needs of a model and a batch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

__all__ = ["ClippedSum", "Engine", "Kind", "clipped_sum"]

Kind = Literal["record", "user", "group"]
Loss = Callable[..., Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedSum:
    """The sum of clipped gradients, by the name of their parameter, and what it was made of. Sensitive: all of it."""

    sums: dict[str, Tensor]
    norms: Tensor
    losses: Tensor


class Engine:
    """Sums one clipped gradient a unit, for batches of one model and one loss."""

    def __init__(
        self, model: nn.Module, loss: Loss, *, clip: float = 1.0, unit: Kind = "record", way: str = "auto"
    ) -> None:
        self.model, self.loss, self.clip, self.unit, self.way = model, loss, clip, unit, way

    def sum(self, inputs: Any, targets: Any, present: Tensor | None = None) -> ClippedSum:
        """Sum the clipped gradients of a batch."""
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        parameters = {name: value.detach() for name, value in self.model.named_parameters() if value.requires_grad}
        if present is None:
            present = torch.ones(inputs[0].shape[: 2 if self.unit == "user" else 1], dtype=torch.bool)

        def one(parameters: dict[str, Tensor], x: tuple[Tensor, ...], y: Any, here: Tensor) -> Tensor:
            if self.unit == "group":
                return self.loss(functional_call(self.model, parameters, x), y).sum() * here
            if self.unit == "record":
                x, y, here = tuple(part[None] for part in x), y[None], here[None]
            outputs = functional_call(self.model, parameters, x)
            losses = vmap(lambda o, t: self.loss(o[None], t[None]).sum())(outputs, y)
            return torch.where(here, losses, 0).sum() / here.sum().clamp(min=1)

        gradients, losses = vmap(grad_and_value(one), in_dims=(None, 0, 0, 0), randomness="different")(
            parameters, inputs, targets, present
        )
        norms = torch.sqrt(sum(g.flatten(1).double().square().sum(1) for g in gradients.values()))
        scale = (self.clip / norms.clamp(min=self.clip)).to(losses.dtype)
        sums = {name: torch.einsum("u,u...->...", scale, g) for name, g in gradients.items()}
        return ClippedSum(sums=sums, norms=norms, losses=losses)


def clipped_sum(
    model: nn.Module,
    loss: Loss,
    batch: tuple[Any, Any],
    *,
    clip: float = 1.0,
    unit: Kind = "record",
    present: Tensor | None = None,
) -> ClippedSum:
    """Sum one clipped gradient a unit."""
    return Engine(model, loss, clip=clip, unit=unit).sum(*batch, present)
