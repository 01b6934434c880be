"""Listeners of torch that would hear private rows: modes, hooks for every module, hooks on what is kept for gradients.

What reaches a model or a loss is put back after a batch (:class:`~sfumato.learning.unchanged.Unchanged`). A listener
of the whole process is reached by neither, so a run does not read a row while there is one. That there is one follows
from the code around the run and is public: what code that sees data adds is taken away before anybody looks.
"""

from itertools import chain
from types import FunctionType

import torch
from torch import nn
from torch.nn.modules import module as modules
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack, _pop_mode

from sfumato.errors import Refused
from sfumato.learning.given import Thing
from sfumato.learning.unchanged import class_home, function_home

__all__ = ["Unheard", "check_no_hooks", "check_nobody_listens", "forget_memory", "shared_hooks"]

WHEN = ("forward_pre_hooks", "forward_hooks", "forward_hooks_always_called", "forward_hooks_with_kwargs")
EVERYWHERE = (*WHEN, "backward_pre_hooks", "backward_hooks")
OWN = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


def check_nobody_listens(*, strict: bool = False) -> None:
    """Refuse to read rows while something of this process would be told of them; with ``strict``, a profiler too.

    >>> check_nobody_listens()
    >>> with torch.autograd.graph.save_on_cpu():
    ...     check_nobody_listens()
    Traceback (most recent call last):
    sfumato.errors.Refused: hooks on tensors that are kept for gradients (saved_tensors_hooks) would see private rows...
    """
    found = ""
    if any(type(one) is not DeviceContext for one in _function_modes()):
        found = "a torch function mode (TorchFunctionMode)"
    elif _get_current_dispatch_mode_stack():
        found = "a torch dispatch mode (TorchDispatchMode)"
    elif any(shared_hooks()):
        found = "a hook for every module (register_module_forward_hook, register_module_full_backward_hook)"
    elif _tensors_are_heard():
        found = "hooks on tensors that are kept for gradients (saved_tensors_hooks)"
    elif strict and torch._C._autograd._profiler_enabled():
        found = "a profiler of torch"
    if found:
        raise Refused(f"{found} would see private rows; nothing was read in this step. Take it away, and go on.")


def check_no_hooks(model: nn.Module) -> None:
    """Refuse a model with hooks of the caller on its layers or parameters; those that torch itself adds may stay.

    >>> layer = nn.Linear(2, 1)
    >>> _ = layer.register_forward_hook(print)
    >>> check_no_hooks(layer)
    Traceback (most recent call last):
    sfumato.errors.Refused: the model has a hook of yours (''), which would see private rows; nothing was read ...
    """
    for name, layer in model.named_modules():
        hooks = chain.from_iterable(getattr(layer, kind).values() for kind in OWN)
        if not all(_of_torch(hook) for hook in hooks):
            raise _hooked(name)
    for name, value in model.named_parameters():
        if value._backward_hooks or value._post_accumulate_grad_hooks:
            raise _hooked(name)


def shared_hooks() -> list[object]:
    """The mappings in which torch keeps hooks for every module of the process."""
    return [getattr(modules, f"_global_{kind}") for kind in EVERYWHERE]


class Unheard:
    """Take away, after code that saw data, the modes and hooks that it left: they would hear what is done next."""

    def __init__(self) -> None:
        self._modes = 0

    def __enter__(self) -> None:
        self._modes = len(_function_modes())

    def __exit__(self, *_: object) -> None:
        while len(_function_modes()) > self._modes:
            torch._C._pop_torch_function_stack()
        while _get_current_dispatch_mode_stack():
            _pop_mode()
        while _tensors_are_heard():
            torch._C._autograd._pop_saved_tensors_default_hooks()


def forget_memory(device: torch.device) -> None:
    """Reset a device's counts of memory: how often it was asked for follows from how many units were drawn."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        torch.cuda.reset_accumulated_memory_stats(device)


def _function_modes() -> list[object]:
    found: list[object] = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]  # torch states no types
    return found


def _tensors_are_heard() -> bool:
    return torch._C._autograd._top_saved_tensors_default_hooks(True) is not None  # noqa: FBT003 - it has no name


def _hooked(name: str) -> Refused:
    return Refused(
        f"the model has a hook of yours ({name!r}), which would see private rows; nothing was read or spent. Remove "
        "it (handle.remove()), or write what it computes into forward."
    )


def _of_torch(hook: Thing) -> bool:
    kind: type = type(hook)
    home = function_home(hook) if isinstance(hook, FunctionType) else class_home(kind)
    return home.partition(".")[0] == "torch"
