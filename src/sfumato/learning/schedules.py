"""Learning rates that change from step to step: schedulers of torch, or a function of the step.

A scheduler is given an optimiser of the same settings that holds no weights: it changes rates, and sees nothing else.
"""

import copy
from collections.abc import Callable
from math import isfinite
from types import MethodType

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from sfumato.errors import InvalidInput, Refused
from sfumato.learning.given import Thing

__all__ = ["Rate", "RateSchedule", "first_rate", "made_schedule"]

Rate = Callable[[int], float]
REHEARSED = 100_000  # steps of a schedule that are tried before the charge
NEITHER = "nothing was read and nothing was spent."


class RateSchedule:
    """The rates of a run, step by step. Public: all of it, as it is made from the number of the step alone."""

    def __init__(self, follow: LRScheduler | Rate) -> None:
        self._follow, self._step = follow, 0

    def apply(self, optimizer: Optimizer) -> None:
        """Give the optimiser the rates of the next step."""
        if not isinstance(self._follow, LRScheduler):
            rate = checked_rate(self._follow(self._step))
            for group in optimizer.param_groups:
                group["lr"] = rate
            return
        for own, group in zip(self._follow.optimizer.param_groups, optimizer.param_groups, strict=True):
            group.update({name: value for name, value in own.items() if name != "params"})

    def reach(self, step: int) -> None:
        """Go on to a step; a run that is resumed goes through all steps before it."""
        while self._step < step:
            self._step += 1
            if isinstance(self._follow, LRScheduler):
                self._follow.step()

    def rehearse(self, optimizer: Optimizer, steps: int) -> None:
        """Go through a run with an optimiser of no weights: what fails, fails before the charge. It is used up then."""
        own = _shadow(optimizer)
        try:
            for step in range(min(steps, REHEARSED)):
                self.reach(step)
                self.apply(own)
        except InvalidInput:
            raise
        except Exception as wrong:  # noqa: BLE001 - code of the caller, before anything is charged
            raise InvalidInput(f"the schedule of the learning rate fails ({wrong}); {NEITHER}") from None


def made_schedule(given: object, rate: object, like: object, optimizer: Optimizer) -> RateSchedule | None:
    """The schedule of a run, for its own optimiser; ``like`` is the caller's, which a scheduler may have been made for.

    ``given`` is a scheduler of ``torch.optim.lr_scheduler``, or makes one from an optimiser; ``rate`` is a number, or a
    function of the step. The caller's scheduler is copied and stays where it is.

    >>> from torch.optim.lr_scheduler import StepLR
    >>> own = torch.optim.SGD([torch.zeros(1)], lr=0.8)
    >>> halved = made_schedule(lambda optimizer: StepLR(optimizer, 2, 0.5), None, None, own)
    >>> rates = []
    >>> for step in range(5):
    ...     halved.reach(step)
    ...     halved.apply(own)
    ...     rates.append(own.param_groups[0]["lr"])
    >>> rates
    [0.8, 0.8, 0.4, 0.4, 0.2]
    """
    if given is None:
        return RateSchedule(rate) if callable(rate) else None
    if callable(rate):
        raise InvalidInput(f"both a scheduler and a function of the step for lr; {NEITHER} Say one of them.")
    _check_blind(given)
    shadow = _shadow(optimizer)
    if isinstance(given, LRScheduler):
        if given.optimizer is not like:
            raise InvalidInput(
                f"this scheduler was made for another optimizer; {NEITHER} Give that one as well (optimizer=…), or a "
                "function that makes the scheduler: scheduler=lambda optimizer: StepLR(optimizer, 10)."
            )
        return RateSchedule(copy.deepcopy(given, {id(given.optimizer): shadow}))
    if not callable(given):
        raise InvalidInput(f"scheduler is one of torch.optim.lr_scheduler, or makes one from an optimizer; {NEITHER}")
    make: Callable[[Optimizer], object] = given
    try:
        made = make(shadow)
    except Exception as wrong:  # noqa: BLE001 - code of the caller, before anything is charged
        raise InvalidInput(
            f"no scheduler could be made ({wrong}); {NEITHER} Give a function of the optimizer: "
            "scheduler=lambda optimizer: StepLR(optimizer, 10). A function of the step goes to lr."
        ) from None
    _check_blind(made)
    if not isinstance(made, LRScheduler):
        raise InvalidInput(f"scheduler made no scheduler of torch.optim.lr_scheduler; {NEITHER}")
    return RateSchedule(made)


def first_rate(rate: float | Rate | None, suggested: float) -> float:
    """The learning rate to begin with."""
    return suggested if rate is None else checked_rate(rate(0) if callable(rate) else rate)


def checked_rate(rate: Thing) -> float:
    """A learning rate, or a refusal."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not (isfinite(rate) and rate >= 0):
        raise InvalidInput(
            "lr must be a finite number of at least 0, or a function of the step that returns one; nothing was done "
            "and nothing was spent."
        )
    return float(rate)


def _check_blind(given: Thing) -> None:
    """Refuse what chooses a rate by a loss, also within what holds several schedulers."""
    if isinstance(given, ReduceLROnPlateau) or given is ReduceLROnPlateau:
        raise Refused(
            f"ReduceLROnPlateau chooses the rate by a loss, and losses on private rows are not released; {NEITHER} "
            "Take a schedule of the step alone, or pay for looks: vault.evaluator(…) in a loop of your own, and run.lr."
        )
    for one in getattr(given, "_schedulers", ()):
        _check_blind(one)


def _shadow(optimizer: Optimizer) -> Optimizer:
    """An optimiser of the same settings whose weights are made up; its step does nothing."""
    own = copy.copy(optimizer)
    own.state = type(optimizer.state)(dict)
    own.param_groups = [{**group, "params": [torch.zeros(1)]} for group in optimizer.param_groups]
    own.step = MethodType(_no_step, own)  # type: ignore[method-assign]  # schedulers ask whether it was called
    own._opt_called = True  # type: ignore[attr-defined]  # torch's own mark of that
    return own


def _no_step(self: Optimizer) -> None:
    """What a scheduler takes for a step that was made."""


_no_step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]  # torch then leaves the method as it is
