"""Functions of tensors that the compiler makes one kernel of, on devices that it has a compiler for."""

import importlib.util
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import torch

__all__ = ["fused"]

Result = TypeVar("Result")

SHAPES = 512
"""How many shapes of one function are compiled before the compiler gives up on it."""


def fused(function: Callable[..., Result], device: torch.device) -> Callable[..., Result]:
    """The function itself on processors and where there is no compiler, else one that computes the same in one kernel.

    Assumes: the function is defined once, at the top of its module, and takes no decision by the value of a tensor.

    >>> fused(torch.square, torch.device("cpu")) is torch.square
    True
    """
    if device.type != "cuda" or importlib.util.find_spec("triton") is None:
        return function
    return _compiled(function)


@lru_cache
def _compiled(function: Callable[..., Result]) -> Callable[..., Result]:
    import torch._dynamo

    torch._dynamo.config.recompile_limit = max(SHAPES, torch._dynamo.config.recompile_limit)
    made: Callable[..., Result] = torch.compile(function, dynamic=False)
    return made
