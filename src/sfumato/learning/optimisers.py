"""Optimisers for the private copy of a model: made by a class, a function, or after one that was made already."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from sfumato.errors import InvalidInput

__all__ = ["made_optimiser"]


def made_optimiser(given: Any, model: nn.Module, copy: nn.Module, rate: float) -> torch.optim.Optimizer:
    """An optimiser of the copy: of a class with its rate, made by a function of parameters, or like another one."""
    made = _made(given, model, copy, rate)
    if isinstance(made, torch.optim.LBFGS):
        raise InvalidInput(
            "L-BFGS asks for the loss several times a step, and a step has one noisy sum; nothing was done."
        )
    return made


def _made(given: Any, model: nn.Module, copy: nn.Module, rate: float) -> torch.optim.Optimizer:
    trained = [value for value in copy.parameters() if value.requires_grad]
    if given is None:
        return torch.optim.SGD(trained, lr=rate, momentum=0.9)
    if isinstance(given, torch.optim.Optimizer):
        return _alike(given, model, copy)
    if isinstance(given, type) and issubclass(given, torch.optim.Optimizer):
        make: Callable[..., torch.optim.Optimizer] = given
        return make(trained, lr=rate)
    made = given(trained)
    if not isinstance(made, torch.optim.Optimizer):
        raise InvalidInput("optimiser is a class of torch.optim, or makes one from parameters; nothing was done.")
    return made


def _alike(given: torch.optim.Optimizer, model: nn.Module, copy: nn.Module) -> torch.optim.Optimizer:
    """The same optimiser with the same settings, group by group, for the parameters of the copy."""
    twins = {id(one): other for one, other in zip(model.parameters(), copy.parameters(), strict=True)}
    if any(id(one) not in twins for group in given.param_groups for one in group["params"]):
        raise InvalidInput("this optimiser has parameters of another model; nothing was done.")
    groups = [{**group, "params": [twins[id(one)] for one in group["params"]]} for group in given.param_groups]
    make: Callable[..., torch.optim.Optimizer] = type(given)
    known = inspect.signature(type(given)).parameters
    return make(groups, **{name: value for name, value in given.defaults.items() if name in known})
