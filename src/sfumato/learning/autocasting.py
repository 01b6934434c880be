"""Products of shorter floats in a run: the same for each of its steps, whatever is set around them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import torch

from sfumato.errors import InvalidInput, Refused

__all__ = ["cast_of", "checked_cast"]


def checked_cast(dtype: torch.dtype | None) -> torch.dtype | None:
    """A type for automatic casts, or a refusal: float16 needs a loss that is scaled by what overflowed.

    >>> checked_cast(torch.bfloat16)
    torch.bfloat16
    """
    if dtype is torch.float16:
        raise Refused(
            "float16 needs torch.amp.GradScaler, which skips steps by infinities in gradients that are not noised; "
            "nothing was read or spent. Say autocast=torch.bfloat16, whose range is that of float32."
        )
    if dtype not in (None, torch.bfloat16):
        raise InvalidInput("autocast is torch.bfloat16 or None; nothing was read or spent.")
    return dtype


def cast_of(device: torch.device, dtype: torch.dtype | None) -> Callable[[], AbstractContextManager[object]]:
    """What makes the context in which a run computes its sums: casts to a type, or as it is around the caller now."""
    enabled = dtype is not None or torch.is_autocast_enabled(device.type)
    return partial(
        torch.autocast,
        device.type,
        dtype=torch.get_autocast_dtype(device.type) if dtype is None else dtype,
        enabled=enabled,
        cache_enabled=device.type == "cpu",  # a recording holds no weights that were cast before it
    )
