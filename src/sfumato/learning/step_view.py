"""What may be seen of a run between its steps: public numbers, and weights that were noised and written down."""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Protocol

from torch import Tensor

from sfumato.core.exact import decimal_up
from sfumato.errors import InvalidInput
from sfumato.learning.given import RunState
from sfumato.learning.progress import Spending

__all__ = ["StepCallback", "StepView", "Viewed", "checked_callbacks"]

StepCallback = Callable[["StepView"], object]


class Viewed(Protocol):
    """A run as a view sees it."""

    @property
    def step(self) -> int:
        """How many steps were made. Public."""
        ...

    @property
    def total(self) -> int:
        """How many steps were charged for. Public."""
        ...

    @property
    def rates(self) -> tuple[float, ...]:
        """The learning rates of the next step, one for each group of parameters. Public."""
        ...

    def shown_weights(self) -> dict[str, Tensor]:
        """Copies of the weights, after they were written down. Public."""
        ...

    def shown_optimizer(self) -> RunState:
        """A copy of the optimiser's state, after it was written down. Public."""
        ...


class StepView:
    """A step of a run as callbacks and loops see it; all of it is public, and nothing of it can be written to.

    ``index`` counts from 0. There is no loss, no norm and no number of units in it: these depend on private rows and
    are noised by nothing.

    Guarantee: weights and the optimiser's state follow from noisy sums that the run was charged for, and are shown
    after the run was written down, so that a run that is resumed goes on from what was seen.
    """

    __slots__ = ("_index", "_spending", "_viewed", "_whole")

    def __init__(self, viewed: Viewed, spending: Spending, whole: tuple[Fraction, Fraction], index: int) -> None:
        self._viewed, self._spending, self._whole, self._index = viewed, spending, whole, index

    def __repr__(self) -> str:
        return f"<step {self._index} of {self.steps}, ε {decimal_up(self.epsilon, 3)} so far>"

    @property
    def index(self) -> int:
        """Which step it is, from 0."""
        return self._index

    @property
    def steps(self) -> int:
        """How many steps were charged for."""
        return self._viewed.total

    @property
    def made(self) -> bool:
        """Whether the step was made."""
        return self._viewed.step > self._index

    @property
    def epsilon(self) -> Fraction:
        """At least the ε of all steps that were made, at the δ of the run; the charge is :attr:`epsilon_at_end`."""
        return self._spending.after(min(self._viewed.step, self._index + 1))

    @property
    def epsilon_at_end(self) -> Fraction:
        """The ε that was charged for the whole run."""
        return self._whole[0]

    @property
    def delta(self) -> Fraction:
        """The δ of the run."""
        return self._whole[1]

    @property
    def lr(self) -> float:
        """The learning rate that the next step has, in the first group of parameters."""
        return self._viewed.rates[0]

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """Copies of the noised weights, by name: ``model.load_state_dict(step.weights)``."""
        self._check_current()
        return self._viewed.shown_weights()

    @property
    def optimizer_state(self) -> RunState:
        """A copy of what the optimiser keeps, which follows from noisy sums alone."""
        self._check_current()
        return self._viewed.shown_optimizer()

    def _check_current(self) -> None:
        if not self._index <= self._viewed.step <= self._index + 1:
            raise InvalidInput(
                f"the run has gone on since step {self._index}; nothing was shown. Copy what you need in its turn."
            )


def checked_callbacks(given: Iterable[StepCallback] | None) -> tuple[StepCallback, ...]:
    """The callbacks of a run, in order; whatever else is refused before the charge."""
    found = () if given is None else tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(callable(one) for one in found):
        raise InvalidInput("callbacks are functions of a step (learning.StepView); nothing was read or spent.")
    return found
