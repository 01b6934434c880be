"""Optimisers for the private copy of a model: made by a class, a function, or after one that was made already."""

import inspect
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy

import torch
from torch import nn

from sfumato.errors import InvalidInput
from sfumato.learning.averaging import Average
from sfumato.learning.given import Thing

__all__ = ["heard", "made_optimiser", "rehearse"]


def made_optimiser(given: object, model: nn.Module, copy: nn.Module, rate: float) -> torch.optim.Optimizer:
    """An optimiser of the copy: of a class with its rate, made by a function of parameters, or like another one."""
    made = _made(given, model, copy, rate)
    if isinstance(made, torch.optim.LBFGS):
        raise InvalidInput(
            "L-BFGS asks for the loss several times a step, and a step has one noisy sum; nothing was done."
        )
    return made


def heard(optimiser: torch.optim.Optimizer, average: Average | None) -> bool:
    """Whether somebody may hear what an optimiser or an average is given: it is not a plain one, or has hooks.

    >>> heard(torch.optim.SGD([torch.zeros(1)]), None)
    False
    """
    plain = getattr(torch.optim, type(optimiser).__name__, None) is type(optimiser) and "step" not in vars(optimiser)
    own = (value for name, value in vars(optimiser).items() if name.endswith("_hooks") or callable(value))
    home = sys.modules[torch.optim.Optimizer.__module__]
    everywhere = (getattr(home, f"_global_optimizer_{when}_hooks", None) for when in ("pre", "post"))
    return not plain or any((*own, *everywhere)) or type(average) not in (type(None), Average)


def rehearse(
    make: Callable[[nn.Module], torch.optim.Optimizer], model: nn.Module, average: Average | None
) -> torch.optim.Optimizer:
    """Copy a model and make one step without a gradient, on a copy that is thrown away: what fails, fails uncharged.

    The optimiser of that copy is returned.
    """
    if average is not None and not isinstance(average, Average):
        raise InvalidInput("average is learning.Average(decay=…); nothing was done and nothing was spent.")
    try:
        trial, _ = deepcopy(model), deepcopy(average)
    except Exception as wrong:  # noqa: BLE001 - code of the caller, before anything is charged
        raise InvalidInput(
            f"a run trains a copy, and this model or average cannot be copied ({wrong}); nothing was done and nothing "
            "was spent. Keep locks, open files and results of computations out of it."
        ) from None
    optimiser = make(trial)
    known, given = {id(one): one for one in trial.parameters()}, list(_parameters(optimiser))
    if any(id(one) not in known for one in given) or not any(one.requires_grad for one in given):
        raise InvalidInput(
            "the optimiser must change parameters of the copy that is trained, and no others; nothing was done and "
            "nothing was spent. Make it from the parameters that it is given."
        )
    for one in trial.parameters():
        one.grad = torch.zeros_like(one) if one.requires_grad else None
    try:
        optimiser.step()
        optimiser.zero_grad()
    except Exception as wrong:  # noqa: BLE001 - code of the caller, before anything is charged
        raise InvalidInput(f"the optimiser cannot make a step ({wrong}); nothing was done and nothing spent.") from None
    return optimiser


def _parameters(optimiser: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimiser.param_groups:
        yield from group["params"]


def _made(given: Thing, model: nn.Module, copy: nn.Module, rate: float) -> torch.optim.Optimizer:
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
