"""One rule for each type of layer: how much of a unit's norm is its own, and the weighted sum of its gradients."""

from collections.abc import Callable
from types import ModuleType
from typing import cast

import torch
from torch import Tensor, nn

from sfumato.learning.engine.layers import attention, conv, embedding, linear, norm, recurrent
from sfumato.learning.engine.layers.part import BatchShape, Direct, LayerPart
from sfumato.learning.engine.record import ForwardRecord, Site
from sfumato.learning.given import Tree

__all__ = ["BatchShape", "Direct", "LayerPart", "forward_of", "part_of", "rule_of", "unfit", "with_views"]

RULES: tuple[ModuleType, ...] = (linear, conv, embedding, norm, recurrent, attention)
_RULE: dict[type[nn.Module], ModuleType] = {kind: rule for rule in RULES for kind in rule.TYPES}


def rule_of(layer: nn.Module) -> ModuleType | None:
    """The rule of a layer; a subclass may do something else, and has none."""
    return _RULE.get(type(layer))


def unfit(layer: nn.Module) -> str | None:
    """Why there is no fast way for a layer with parameters of its own, or None."""
    rule = rule_of(layer)
    if rule is None:
        return f"no rule for {type(layer).__name__}"
    if layer._forward_hooks or layer._forward_pre_hooks or "forward" in layer.__dict__:
        return "its forward pass is changed by hooks"
    reason: str | None = rule.unfit(layer)
    return reason


def forward_of(layer: nn.Module, name: str, record: ForwardRecord) -> Callable[..., Tree] | None:
    """A forward pass to use in place of the layer's own, for layers with several matrices."""
    rule = rule_of(layer)
    return rule.forward(layer, name, record) if rule is not None and hasattr(rule, "forward") else None


def part_of(
    layer: nn.Module, site: Site, inputs: list[Tensor], gradients: list[Tensor], shape: BatchShape, trained: set[str]
) -> LayerPart:
    """The share of one site from all its calls; ``trained`` are the names of the model's trained parameters."""
    rule = rule_of(layer)
    names = {name: f"{site.layer}.{name}".lstrip(".") for name, _ in layer.named_parameters(recurse=False)}
    names = {name: whole for name, whole in names.items() if whole in trained}
    if rule is linear or rule is recurrent:
        ending = f"_{site.matrix}" if site.matrix else ""
        a, g = (_together([shape.split(value) for value in values]) for values in (inputs, gradients))
        return linear.matrix_part(a, g, names.get(f"weight{ending}"), names.get(f"bias{ending}"), shape.batches)
    if rule is attention:
        a, g = (_together([shape.split(value) for value in values]) for values in (inputs, gradients))
        third = {name: attention.third(whole, int(site.matrix)) for name, whole in names.items()}
        return linear.matrix_part(a, g, third.get("in_proj_weight"), third.get("in_proj_bias"), shape.batches)
    if rule is embedding:
        a = _together([value.reshape(shape.units, -1) for value in inputs])
        g = _together([shape.split(value) for value in gradients])
        return embedding.part(cast("nn.Embedding", layer), a, g, shape, names)
    if rule is None:
        raise TypeError(f"no rule for {type(layer).__name__}")
    parts = [rule.part(layer, a, g, shape, names) for a, g in zip(inputs, gradients, strict=True)]
    return parts[0] if len(parts) == 1 else _sum(parts)


def with_views(into: dict[str, Tensor], layers: dict[str, nn.Module]) -> dict[str, Tensor]:
    """Sums by the names that parts use: beside those of parameters, those of matrices within one parameter."""
    found = dict(into)
    for name, layer in layers.items():
        if rule_of(layer) is attention:
            for own in ("in_proj_weight", "in_proj_bias"):
                whole = f"{name}.{own}".lstrip(".")
                if whole in into:
                    found |= {attention.third(whole, at): part for at, part in enumerate(into[whole].chunk(3))}
    return found


def _together(values: list[Tensor]) -> Tensor:
    return values[0] if len(values) == 1 else torch.cat(values, 1)


def _sum(parts: list[Direct]) -> Direct:
    """The share of several calls whose gradients are written out."""

    def make(at: slice) -> dict[str, Tensor]:
        made = parts[0].make(at)
        for part in parts[1:]:
            for name, value in part.make(at).items():
                made[name] += value
        return made

    return Direct(units=parts[0].units, size=parts[0].size, make=make, layout=parts[0].layout)
