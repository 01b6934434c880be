"""Layers that normalise each row by itself: layer, group, instance and root-mean-square norms."""

from typing import Any  # layers of torch, by attributes that only some have

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.learning import device_norms
from sfumato.learning.engine.layers.part import BatchShape, Direct, LayerPart

__all__ = ["TYPES", "part", "unfit"]

INSTANCE: tuple[type[nn.Module], ...] = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
TYPES: tuple[type[nn.Module], ...] = (nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, *INSTANCE)


def unfit(layer: nn.Module) -> str | None:
    """Why a layer of these types has no rule after all."""
    return None


def part(layer: Any, a: Tensor, g: Tensor, shape: BatchShape, names: dict[str, str]) -> LayerPart:
    """The share of one call: inputs and output gradients as they were."""
    records = shape.rows // shape.units
    size = sum(getattr(layer, name).numel() for name in names)

    def make(at: slice) -> dict[str, Tensor]:
        where = slice(at.start * records, at.stop * records)
        gradient, made = g[where], {}
        if isinstance(layer, nn.LayerNorm) and device_norms.fits(a, g, layer.weight.numel()):
            return _both(layer, a[where], gradient, at.stop - at.start, names)
        if "weight" in names:
            made[names["weight"]] = _by_unit(layer, gradient * normal(layer, a[where]), at.stop - at.start)
        if "bias" in names:
            made[names["bias"]] = _by_unit(layer, gradient, at.stop - at.start)
        return made

    return Direct(units=shape.units, size=size, make=make)


def _both(layer: nn.LayerNorm, a: Tensor, g: Tensor, units: int, names: dict[str, str]) -> dict[str, Tensor]:
    """The gradients of weight and bias of a layer normalisation on a device."""
    size = layer.weight.numel()
    found = device_norms.norm_gradients(a, g, units=units, size=size, eps=layer.eps)
    split = zip(("weight", "bias"), torch.split(found, size, 1), strict=True)
    return {names[name]: part.reshape(-1, *layer.normalized_shape) for name, part in split if name in names}


def normal(layer: Any, values: Tensor) -> Tensor:
    """The values before the layer's weight and bias."""
    if isinstance(layer, nn.LayerNorm):
        return F.layer_norm(values, layer.normalized_shape, eps=layer.eps)
    if isinstance(layer, nn.RMSNorm):
        return F.rms_norm(values, layer.normalized_shape, eps=layer.eps)
    groups = layer.num_groups if isinstance(layer, nn.GroupNorm) else layer.num_features
    return F.group_norm(values, groups, eps=layer.eps)


def _by_unit(layer: Any, values: Tensor, units: int) -> Tensor:
    if isinstance(layer, nn.LayerNorm | nn.RMSNorm):
        return values.reshape(units, -1, *layer.normalized_shape).sum(1)
    return values.reshape(units, -1, values.shape[1], values[0, 0].numel()).sum((1, 3))
