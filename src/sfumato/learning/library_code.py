"""Whether a forward pass and a loss are torch's own code alone, so that weights and buffers are all they write to.

What a user's code can write to is found by a walk through all that it reaches (:class:`~sfumato.learning.unchanged.
Unchanged`), in each step anew. Where no code of the user runs, there is nothing to walk through.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, FunctionType

import torch
from torch import Tensor, nn

from sfumato.learning.given import Thing
from sfumato.learning.kept_tensors import KeptTensors
from sfumato.learning.unchanged import ATOMS, class_home, function_home

__all__ = ["LibraryCode"]

LAYERS = "torch.nn.modules."
FUNCTIONS = "torch.nn.functional"
VALUES = ATOMS | {torch.dtype, torch.device, torch.Size, tuple}
HELD: dict[str, Thing] = {
    "_parameters": nn.Parameter,
    "_buffers": Tensor,
}  # and no class made from them


QUIET = frozenset(
    getattr(nn, name)
    for name in (
        *("Sequential", "Linear", "Conv1d", "Conv2d", "Conv3d", "LayerNorm", "GroupNorm", "Identity", "Flatten"),
        *("ReLU", "ReLU6", "LeakyReLU", "ELU", "CELU", "SELU", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid", "Softplus"),
        *("MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "AdaptiveAvgPool1d"),
        *("AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d"),
    )
)
"""Layers that write to no weight of theirs and have no buffer; none hands a weight on as if it were data."""
SHIPPED = {kind: (kind.__call__, kind.forward) for kind in QUIET}
"""What they run, as torch came with it: a class can be given other code."""
CALLED = {
    name: getattr(nn.functional, name)
    for name in (
        *("linear", "conv1d", "conv2d", "conv3d", "layer_norm", "group_norm", "relu", "relu6", "leaky_relu", "elu"),
        *("celu", "selu", "gelu", "silu", "mish", "softplus", "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d"),
        *("avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"),
        *("dropout", "dropout1d", "dropout2d", "dropout3d"),
    )
}


class LibraryCode:
    """A model and a loss, to be asked before each step: hooks and attributes can have come since the last.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    >>> code = LibraryCode(model, nn.functional.mse_loss)
    >>> bool(code)
    True
    >>> model[0].register_forward_hook(lambda *seen: None) and bool(code)
    False
    """

    def __init__(self, model: nn.Module, loss: object) -> None:
        self._model, self._loss = model, loss
        self._tensors = KeptTensors()

    def __bool__(self) -> bool:
        if nn.modules.module._has_any_global_hook() or not _of_library(self._loss):  # type: ignore[no-untyped-call]  # torch's
            return False
        return _all_plain(self._model)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Put weights and buffers back when the block is left: some layers write to theirs (``max_norm``).

        Where each layer is of a kind that never does, there is nothing to put back. To be asked where this is true.
        """
        if self._quiet():
            yield
            return
        self._tensors.keep([*self._model.parameters(), *self._model.buffers()])
        try:
            yield
        finally:
            self._tensors.restore()
            self._tensors.forget()

    def _quiet(self) -> bool:
        """Whether each layer is of such a kind and runs what torch came with."""
        kinds = {type(layer) for layer in self._model.modules()}
        return (
            kinds <= QUIET
            and all(kind.__call__ is SHIPPED[kind][0] and kind.forward is SHIPPED[kind][1] for kind in kinds)
            and all(getattr(nn.functional, name) is function for name, function in CALLED.items())
        )


def _of_library(loss: object) -> bool:
    if isinstance(loss, nn.Module):
        return _all_plain(loss)
    named = getattr(sys.modules[FUNCTIONS], getattr(loss, "__name__", ""), None) is loss
    if isinstance(loss, FunctionType):
        return named and function_home(loss) == FUNCTIONS and not vars(loss)
    return named and isinstance(loss, BuiltinFunctionType)  # one that was compiled with torch, or with Python


def _all_plain(model: nn.Module) -> bool:
    """Whether all layers are torch's; each is asked for its parts by nobody's code but this."""
    todo, seen = [model], set[int]()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if not _plain(one):
            return False
        todo.extend(each for each in vars(one)["_modules"].values() if each is not None)
    return True


def _plain(layer: nn.Module) -> bool:
    """Whether a layer is one of torch's, with nothing of a user's about it."""
    return class_home(type(layer)).startswith(LAYERS) and all(  # type: ignore[arg-type]  # a class is hashable
        _harmless(type(layer), name, value) for name, value in vars(layer).items()
    )


def _harmless(kind: type, name: str, value: Thing) -> bool:
    if name in HELD:
        return type(value) is dict and all(
            one is None or (type(one) is HELD.get(name) and not _hooked(one)) for one in value.values()
        )
    if name == "_modules":
        return type(value) is dict  # each of them is looked at for itself
    if isinstance(value, dict | set | list):
        return not value  # such as hooks: there are none
    return type(value) in VALUES and not callable(getattr(kind, name, None)) and _atoms(value)


def _atoms(value: Thing) -> bool:
    return type(value) is not tuple or all(type(each) in VALUES and _atoms(each) for each in value)


def _hooked(one: Tensor) -> bool:
    return bool(one._backward_hooks) or bool(one._post_accumulate_grad_hooks) or one.grad is not None
