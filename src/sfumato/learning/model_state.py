"""A model made comparable: what is random in it switched off, and other weights for a while."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from sfumato.learning.given import Tree

__all__ = ["other_weights", "without_dropout"]

_DROPOUT = {F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout}


@contextmanager
def without_dropout(model: nn.Module) -> Iterator[None]:
    """Switch dropout off, as layers and as functions; everything else stays in the mode that it is in."""
    layers = [layer for layer in model.modules() if isinstance(layer, nn.modules.dropout._DropoutNd) and layer.training]
    try:
        for layer in layers:
            layer.training = False
        with _Sober():
            yield
    finally:
        for layer in layers:
            layer.training = True


class _Sober(TorchFunctionMode):
    """Functions that drop values give them back as they are."""

    def __torch_function__(
        self,
        function: Callable[..., Tree],
        types: object,
        arguments: tuple[Tree, ...] = (),
        named: dict[str, Tree] | None = None,
    ) -> Tree:
        named = dict(named or {})
        if function in _DROPOUT:
            return arguments[0] if arguments else named["input"]
        if function is F.multi_head_attention_forward:
            named["training"] = False
        if function is F.scaled_dot_product_attention and "dropout_p" in named:
            named["dropout_p"] = 0.0
        return function(*arguments, **named)


@contextmanager
def other_weights(model: nn.Module) -> Iterator[None]:
    """Give a model other weights for a while, none of them 0: a last layer of zeros hides all that is before it."""
    kept = [(value, value.detach().clone()) for value in model.parameters()]
    try:
        with torch.no_grad():
            for value, _ in kept:
                if value.is_floating_point():
                    value.copy_(_waves(value))
        yield
    finally:
        with torch.no_grad():
            for value, before in kept:
                value.copy_(before)


def _waves(value: Tensor) -> Tensor:
    places = torch.arange(value.numel(), dtype=torch.float64, device=value.device)
    width = max(1, value[0].numel() if value.dim() > 1 else 1)
    found: Tensor = ((1 + torch.sin(2 + places * 2.3 + (places * 0.61).square()) / 2) * (2 / width) ** 0.5 / 2).view_as(
        value
    )
    return found
