"""What devices compute otherwise: written-out gradients are read once for a norm and once for a sum.

All sums here are in double precision, which costs a device next to nothing where it waits for memory anyway.
"""

from torch import Tensor, stack, where
from torch.nn import functional as F

from sfumato.learning import device_kernels

__all__ = ["cut_patches", "row_squares", "weighted_rows"]


def row_squares(values: Tensor) -> Tensor:
    """The sum of squares of each row."""
    if device_kernels.at_hand(values.device):
        return device_kernels.row_squares(values)
    return values.double().square().sum(1)


def weighted_rows(factors: Tensor, values: Tensor) -> Tensor:
    """The sum of rows times their factors; a row with the factor 0 counts nothing, whatever it holds."""
    if device_kernels.at_hand(values.device):
        return device_kernels.weighted_rows(factors, values)
    factors = factors.double()[:, None]
    return where(factors == 0, 0.0, factors * values.double()).sum(0)


def cut_patches(
    values: Tensor, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...], around: tuple[int, ...]
) -> Tensor:
    """What each place of a convolution sees: (rows, kernel height · kernel width · channels, places)."""
    if device_kernels.at_hand(values.device):
        return device_kernels.cut_patches(values, kernel, stride, dilation, around)
    values = F.pad(values, around)
    high, wide = (
        (size - pace * (length - 1) - 1) // step + 1
        for size, length, step, pace in zip(values.shape[2:], kernel, stride, dilation, strict=True)
    )
    each = [
        values[:, :, y * dilation[0] :: stride[0], x * dilation[1] :: stride[1]][:, :, :high, :wide]
        for y in range(kernel[0])
        for x in range(kernel[1])
    ]
    return stack(each, 1).flatten(3).flatten(1, 2)
