"""Tensors kept as they are: their memory, what they point to, their gradients and flags."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from sfumato.errors import Unsupported
from sfumato.learning.given import Tree

__all__ = ["KeptTensors", "NoAssignedData"]


class KeptTensors:
    """Copies of some tensors, in memory that is used again for the next ones.

    Memory is always written back and never compared: a write past the version of a tensor (``.data``) is not told by
    it, and a comparison costs as much. Sensitive: what is overwritten.
    """

    def __init__(self) -> None:
        self._masters: dict[int, tuple[Tensor, Tensor]] = {}

    def keep(self, found: Sequence[Tensor]) -> None:
        """Copy these tensors, and forget all others."""
        tensors = [one for one in found if not _has_no_memory(one)]
        if any(one.layout is not torch.strided for one in tensors):
            raise Unsupported(
                "the model or the loss holds a tensor that is not dense, and what is written to it could not be put "
                "back; nothing was summed. Make it dense: tensor.to_dense()."
            )
        tensors += _whole(tensors)
        self._places = [(one, one.data) for one in tensors]
        self._sizes = [(place.untyped_storage(), place.untyped_storage().nbytes()) for _, place in self._places]
        self._flags = [(one, _flags(one)) for one in tensors]
        self._written = [_single(place) for _, place in self._places]
        known, self._masters = self._masters, {}
        self._copies = []
        stale: tuple[list[Tensor], list[Tensor]] = [], []
        for tensor, place in zip(tensors, self._written, strict=True):
            owner, master = known.get(id(tensor), (None, place))
            if owner is tensor and _alike(master, place):
                stale[0].append(master)
                stale[1].append(place)
            else:
                master = place.clone()
            self._copies.append(master)
            self._masters[id(tensor)] = tensor, master
        _copy(*stale)

    def restore(self) -> None:
        """Put all of them back, now."""
        for memory, size in self._sizes:
            if memory.nbytes() != size:
                memory.resize_(size)
        for tensor, place in self._places:
            if (
                tensor.dtype is not place.dtype
                or tensor.data_ptr() != place.data_ptr()
                or tensor.shape != place.shape
                or tensor.stride() != place.stride()
            ):
                tensor.data = place
        _copy(self._written, self._copies)
        for tensor, flags in self._flags:
            _put_flags(tensor, flags)

    def forget(self) -> None:
        """Let go of the tensors, but not of the memory of their copies."""
        self._places, self._sizes, self._flags, self._written, self._copies = [], [], [], [], []


class NoAssignedData(TorchFunctionMode):
    """Refuse to put a value of a transformed function (``torch.vmap``) behind a tensor's back.

    ``tensor.data = value`` with such a value leaves the tensor pointing to memory that is gone: the process dies.
    """

    def __torch_function__(
        self,
        function: Callable[..., Tree],
        types: object,
        arguments: tuple[Tree, ...] = (),
        named: dict[str, Tree] | None = None,
    ) -> Tree:
        if function == _ASSIGNED and torch._C._functorch.is_functorch_wrapped_tensor(arguments[1]):
            raise Unsupported("a forward pass or a loss assigns to .data of a tensor; nothing was summed. Leave it.")
        return function(*arguments, **(named or {}))


Hooks = Any  # mappings that torch keeps for itself
Flags = tuple[bool, bool, Tensor | None, tuple[Hooks, Hooks]]
_ASSIGNED = Tensor.data.__set__  # type: ignore[attr-defined]  # a descriptor, which torch states as a plain tensor


def _has_no_memory(tensor: Tensor) -> bool:
    """Whether there is nothing behind a tensor to keep: it is not made yet, or belongs to a transform (``vmap``)."""
    return bool(nn.parameter.is_lazy(tensor)) or torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def _flags(tensor: Tensor) -> Flags:
    leaf = tensor.is_leaf
    hooks = tensor._backward_hooks, tensor._post_accumulate_grad_hooks
    return leaf, tensor.requires_grad, tensor.grad if leaf else None, hooks


def _put_flags(tensor: Tensor, flags: Flags) -> None:
    leaf, trained, grad, hooks = flags
    if not leaf:
        return
    if not tensor.is_leaf:
        tensor.detach_()
    if tensor.requires_grad is not trained:
        tensor.requires_grad = trained
    if tensor.grad is not grad:
        tensor.grad = grad
    if tensor._backward_hooks is not hooks[0]:
        tensor._backward_hooks = hooks[0]
    added = tensor._post_accumulate_grad_hooks
    if added is not hooks[1]:
        added.clear()  # the engine of gradients keeps the mapping that it was given first
        tensor._post_accumulate_grad_hooks = hooks[1]


def _whole(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The whole memory behind tensors that show a part of theirs, as bytes: the rest can be written to as well."""
    parts = {}
    for one in tensors:
        if one.layout is torch.strided and not one.is_meta:
            memory = one.untyped_storage()
            if memory.nbytes() != one.numel() * one.element_size():
                parts[memory.data_ptr()] = memory
    return [torch.empty(0, dtype=torch.uint8, device=memory.device).set_(memory) for memory in parts.values()]


def _alike(one: Tensor, other: Tensor) -> bool:
    return (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)


def _single(place: Tensor) -> Tensor:
    """The memory of a tensor with each number once: an expanded axis has one place for all of it."""
    if place.layout is torch.strided:
        for axis, (size, stride) in enumerate(zip(place.shape, place.stride(), strict=True)):
            if stride == 0 and size > 1:
                place = place.narrow(axis, 0, 1)
    return place


def _copy(into: list[Tensor], values: list[Tensor]) -> None:
    if into:
        with torch.no_grad():
            torch._foreach_copy_(into, values)
