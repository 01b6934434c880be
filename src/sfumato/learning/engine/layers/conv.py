"""Convolutions in one and two dimensions: the gradient of each unit from its unfolded input."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.learning.engine.device import cut_patches
from sfumato.learning.engine.layers.part import BatchShape, Direct, LayerPart

__all__ = ["TYPES", "part", "patches", "unfit"]

TYPES: tuple[type[nn.Module], ...] = (nn.Conv1d, nn.Conv2d)


def unfit(layer: nn.Module) -> str | None:
    """Why a layer of these types has no rule after all."""
    return None


def part(layer: nn.Conv1d | nn.Conv2d, a: Tensor, g: Tensor, shape: BatchShape, names: dict[str, str]) -> LayerPart:
    """The share of one call."""
    groups, height, records = layer.groups, layer.out_channels, shape.rows // shape.units
    kernel = (1, *layer.kernel_size)[-2:]
    width = layer.in_channels // groups * kernel[0] * kernel[1]

    def make(at: slice) -> dict[str, Tensor]:
        where = slice(at.start * records, at.stop * records)
        gradient, units = g[where].flatten(2), at.stop - at.start
        if records > 1:
            gradient = gradient.reshape(units, records, height, -1).transpose(1, 2).flatten(2)
        made = {}
        if "weight" in names:
            cut = patches(layer, a[where]).reshape(units, -1, kernel[0] * kernel[1] * layer.in_channels)
            if groups > 1:
                cut = cut.reshape(*cut.shape[:2], -1, groups, layer.in_channels // groups).permute(0, 3, 1, 2, 4)
                cut = cut.reshape(units * groups, -1, width)
            product = torch.bmm(gradient.reshape(units * groups, height // groups, -1), cut)
            made[names["weight"]] = product.view(units, height * width)
        if "bias" in names:
            made[names["bias"]] = gradient.sum(2)
        return made

    def layout(values: Tensor) -> Tensor:
        return values.permute(0, 2, 3, 1) if values.dim() == 4 else values.permute(0, 2, 1)

    return Direct(units=shape.units, size=height * (width + 1), make=make, layout=layout)


def patches(layer: nn.Conv1d | nn.Conv2d, values: Tensor) -> Tensor:
    """What each place of the output sees: (rows, places, kernel height · kernel width · channels).

    Channels come last, so that a line of the kernel is one run of memory.
    """
    around = tuple(layer._reversed_padding_repeated_twice)
    if layer.padding_mode != "zeros":
        values, around = F.pad(values, around, mode=layer.padding_mode), (0,) * len(around)
    if values.dim() == 3:
        values, around = values[:, :, None], (*around, 0, 0)
    kernel, stride, dilation = ((1, *part)[-2:] for part in (layer.kernel_size, layer.stride, layer.dilation))
    if values.device.type != "cpu":
        return cut_patches(values, kernel, stride, dilation, around).transpose(1, 2)
    values = values.permute(0, 2, 3, 1)
    values = F.pad(values, (0, 0, *around)).contiguous() if any(around) else values.contiguous()
    rows, high, wide, channels = values.shape
    places = [
        (size - step * (length - 1) - 1) // pace + 1
        for size, step, length, pace in zip((high, wide), dilation, kernel, stride, strict=True)
    ]
    line = wide * channels
    return values.as_strided(
        (rows, *places, *kernel, channels),
        (
            high * line,
            stride[0] * line,
            stride[1] * channels,
            dilation[0] * line,
            dilation[1] * channels,
            1,
        ),
    ).reshape(rows, places[0] * places[1], kernel[0] * kernel[1] * channels)
