"""A loop of one's own: ``for step in trainer.run(…): step.loss()``, charged and noised as ``fit`` is."""

import weakref
from collections.abc import Callable, Iterator
from fractions import Fraction
from types import TracebackType
from typing import NoReturn, Protocol, Self

import torch
from torch import Tensor

from sfumato.core.budget import Budget
from sfumato.core.interrupts import check_outside
from sfumato.errors import InvalidInput, Refused
from sfumato.learning.progress import Spending
from sfumato.learning.run import Run
from sfumato.learning.schedules import checked_rate
from sfumato.learning.step_view import StepView
from sfumato.learning.trained import Trained

__all__ = ["OpenRun", "OpenStep"]


class OpenStep(StepView):
    """One step of a loop: made by :meth:`loss`, and looked at afterwards. Public: all that it shows."""

    __slots__ = ("_making",)

    def __init__(self, viewed: Run, spending: Spending, spend: Budget, index: int, making: "OpenRun") -> None:
        super().__init__(viewed, spending, (spend.epsilon, spend.delta), index)
        self._making = making

    def loss(self, loss: Callable[..., Tensor] | None = None) -> None:
        """Make the step: draw a sample, clip, sum, noise, and let the optimiser learn. Returns nothing.

        ``loss`` is a function of outputs and targets, as the trainer was given; by default it is that one. It is called
        on private rows by the run alone. A new one is tried on made-up units first, and what it cannot compute there
        says so; on private rows, a unit that it cannot compute adds nothing.
        """
        self._making.make(self._index, loss)


class RunEnding(Protocol):
    """What becomes of a run that has ended."""

    def __call__(self, run: Run, spending: Spending) -> Trained:
        """Sign its release and hand the weights over."""
        ...


class OpenRun:
    """A charged run whose loop is the caller's; made by ``trainer.run``. Iterating goes on where the run is.

    Between steps the caller has the noised weights, the optimiser's state, ε and the index, all public. A loop that is
    left early is ended by :meth:`close`, or by leaving a ``with`` block: the charge stays what it was, and the
    certificate says how many steps were made. What an exception ends is not signed; with a checkpoint it can be
    resumed.

    Guarantee: that of ``trainer.fit`` with the same settings, whatever the caller does between steps. Assumes: the
    caller's code does not hold the private rows itself, and reads nothing but what is documented here; a debugger, or
    code that reaches into private attributes, sees what the process sees. How long a step takes depends on how many
    units were drawn.

    >>> import torch, sfumato as sf
    >>> from sfumato.learning import Units
    >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=2, delta=1e-6), name="ward")
    >>> rows = torch.eye(40)
    >>> data = Units(rows, rows.argmax(1) % 2, n_units=40, name="visits", version="1")
    >>> model = torch.nn.Linear(40, 2)
    >>> run = vault.trainer(model, torch.nn.functional.cross_entropy, data=data).run(steps=3, epsilon=1, delta=1e-7)
    >>> for step in run:
    ...     step.loss()
    >>> run.trained.release.statement.query.done, vault.left.epsilon
    (3, Fraction(1, 1))
    """

    def __init__(
        self, run: Run, spending: Spending, spend: Budget, loss: Callable[..., Tensor], end: RunEnding
    ) -> None:
        self._run, self._spending, self._spend, self._loss, self._end = run, spending, spend, loss, end
        self._steps = run.left
        self._trained: Trained | None = None
        self._making = False
        weakref.finalize(self, run.leave)  # one that nobody closed is left: its charge stays, and nothing is signed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        """Close the run; after an exception leave it unsigned, to be resumed from its file if it has one."""
        if kind is None:
            self.close()
        else:
            self._run.leave()

    def __len__(self) -> int:
        """How many steps the loop has; of a run that was resumed, those that were left."""
        return self._steps

    def __reduce__(self) -> NoReturn:
        raise InvalidInput("a run is made once: it cannot be copied. Nothing was done.")

    def __repr__(self) -> str:
        return f"<open run, {self._run.step} of {self._run.total} steps made>"

    def __iter__(self) -> Iterator[OpenStep]:
        """The steps that are left, one by one; after the last one the run is closed."""
        while self._trained is None and self._run.left:
            index = self._run.step
            yield OpenStep(self._run, self._spending, self._spend, index, self)
            if self._trained is None and self._run.step == index:
                raise InvalidInput(f"step {index} was not made; nothing was read in it. Call step.loss() in the loop.")
        if self._trained is None:
            self.close()

    def make(self, index: int, loss: Callable[..., Tensor] | None) -> None:
        """Make a step of the loop, if it is its turn; ``step.loss`` calls this."""
        check_outside()
        if self._trained is not None or self._run.step != index or not self._run.left:
            raise InvalidInput(f"it is not the turn of step {index}; nothing was read. Each step is made once.")
        if self._making:
            raise InvalidInput("a step is being made; nothing was read. Steps are made one after another.")
        if torch.is_inference_mode_enabled():
            raise Refused("gradients are switched off (torch.inference_mode); nothing was read. Leave that block.")
        self._making = True
        try:
            self._run.use_loss(self._loss if loss is None else loss)
            self._run.advance(1)
        finally:
            self._making = False

    @property
    def step(self) -> int:
        """How many steps were made."""
        return self._run.step

    @property
    def epsilon(self) -> Fraction:
        """At least the ε of the steps that were made, at the δ of the run; all of it was charged when it was opened."""
        return self._spending.after(self._run.step)

    @property
    def charged(self) -> Budget:
        """What the whole run was charged."""
        return self._spend

    @property
    def lr(self) -> float:
        """The learning rate of the next step; it may be set anew by what is public, such as noised weights."""
        return self._run.rates[0]

    @lr.setter
    def lr(self, rate: float) -> None:
        self._run.set_rate(checked_rate(rate))

    def close(self) -> Trained:
        """End the run: sign its release, put the noised weights into the caller's model, and return what was trained.

        After fewer steps than were charged for, the charge stays what it was.
        """
        check_outside()
        if self._trained is None:
            self._trained = self._end(self._run, self._spending)
        return self._trained

    @property
    def trained(self) -> Trained:
        """What came of it once it was closed."""
        if self._trained is None:
            raise InvalidInput("the run has not ended; nothing was released. Make all steps, or say run.close().")
        return self._trained
