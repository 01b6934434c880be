"""Training with in-batch negatives in a vault: the run is charged as a whole, and each step is one batch of pairs."""

from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

import torch
from torch import Tensor, nn

from sfumato.core.interrupts import FAILED
from sfumato.errors import InvalidInput
from sfumato.learning.correlated import Correlated
from sfumato.learning.engine import Engine
from sfumato.learning.listeners import Unheard
from sfumato.learning.paradigms.contrastive_training import ContrastiveTraining, most_pairs
from sfumato.learning.paradigms.logit_clipped_step import InBatchContrast
from sfumato.learning.paradigms.private_mean import contrasted
from sfumato.learning.run import Run
from sfumato.learning.sealed_canaries import Canaries
from sfumato.learning.shielded import shielded
from sfumato.learning.trainer import Trainer
from sfumato.learning.training import Training

__all__ = ["ContrastRun", "ContrastTrainer"]


class ContrastRun(Run):
    """One charged run with in-batch negatives. Sensitive: all of it until it is released.

    Guarantee: that of :class:`~sfumato.learning.run.Run`. A step is one batch: of a sample with more pairs than were
    declared a uniformly random part counts. A pair that the model cannot compute is absent.
    """

    RUNS: ClassVar[type[Training]] = ContrastiveTraining

    def _made_engine(self, loss: Callable[..., Tensor], kind: str, grad_mode: str) -> Engine:
        assert isinstance(self._run, ContrastiveTraining)  # noqa: S101 - for the reader of types
        self._most = self._run.most
        self._contrast = InBatchContrast(
            self._model,
            each=self._run.clip,
            temperature=self._run.temperature,
            both=self._run.both,
            chunk=getattr(loss, "chunk", 16),
        )
        return self._contrast  # type: ignore[return-value]  # used by this class alone, as what it is

    def use_loss(self, loss: Callable[..., Tensor]) -> None:
        """Only the contrast that was declared: what one pair moves was charged for it."""
        if self._way_of(loss) is None:
            raise InvalidInput(
                "a run with in-batch negatives keeps the contrast that it was opened with; nothing was read by this "
                "step. Call step.loss() without another loss."
            )
        super().use_loss(loss)

    def _prepare(self) -> None:
        """Sum made-up pairs, so that what cannot be summed says so before anything is read; nothing is recorded."""
        with self._draws.used():
            inputs, targets, _ = self._placed(*self._units.example(2))
            self._contrast.sum(inputs[0], targets)
        self._recorded, self._on_device = None, None

    def _clipped(self) -> Tensor:
        laid = self._read()
        places = self._course.places(laid.number, self._step)[: self._most]  # in a random order: a random part of them
        units = torch.from_numpy(places)
        here = torch.ones(len(units), dtype=torch.bool)
        found, targets, present = laid.gathered(*laid.rows_of(units, here), self._step)
        present = present.to(self._device)
        anchors, positives = (side.to(self._device)[present] for side in (found[0], targets))
        with self._draws.used():
            # modes go first: they would hear what is put back
            summed = shielded(lambda: contrasted(self._contrast, anchors, positives, None), self._kept, Unheard())
        if summed is FAILED:
            raise RuntimeError("the pairs of a step could not be put back")
        return summed


class ContrastTrainer(Trainer):
    """Trains an embedding with in-batch negatives; ``vault.trainer`` makes it where the loss is an InBatchContrast.

    Guarantee: as :class:`~sfumato.learning.Trainer`, with the sensitivity of :class:`ContrastiveTraining`.
    Public: everything but the pairs.
    """

    _runs: type[Run] = ContrastRun

    def _check_loss(self, model: nn.Module, loss: object) -> None:
        if not isinstance(model, nn.Module) or type(loss) is not InBatchContrast:
            raise InvalidInput("in-batch negatives take a torch module and a learning.InBatchContrast of it.")
        if loss.model is not model:
            raise InvalidInput(
                "the contrast is of another model than the one that is trained; nothing was done. Say "
                "vault.trainer(model, learning.InBatchContrast(model, …), …)."
            )
        said = loss.declared()
        self._each, self._temperature, self._both, self._chunk = (
            said.clip,
            said.temperature,
            loss.both is True,
            loss.chunk,
        )

    def _checked_canaries(self, canaries: Canaries | None) -> None:
        if canaries is not None:
            raise InvalidInput("canaries have a loss of their own, and a pair has none; nothing was read or spent.")

    def _check_noise(self, noise: Correlated | None) -> None:
        if noise is not None:
            raise InvalidInput(
                "in-batch negatives are trained with fresh noise in each step: there is no clip of one unit that could "
                "follow a count, and a bucket of a cycle has no bound yet. Nothing was read and nothing was spent. "
                "Leave noise out."
            )

    def _query(self, *, steps: int, batch: int) -> Training:
        number = self._units.n_units
        return ContrastiveTraining(
            dataset=self._units.dataset,
            units=self._units.kind,
            clip=self._each,
            times=self._units.times,
            records=self._units.max_records_per_unit,
            number=number,
            rate=Fraction(batch, number),
            steps=steps,
            parameters=self._parameters,
            temperature=self._temperature,
            both=self._both,
            most=most_pairs(batch, sampled=batch < number),
        )

    def _step_length(self, query: Training) -> Fraction:
        return query.reach if isinstance(query, ContrastiveTraining) else self._clip

    def _try_out(self, size: int, model: nn.Module | None = None) -> None:
        """Sum made-up pairs: what cannot be trained says so before anything is charged or read."""
        if self._grad_mode != "auto" or self._clips is not None or self._clip not in (1, self._each):
            raise InvalidInput(
                "in-batch negatives have one way to compute gradients, and clip similarities: nothing was done. Leave "
                "clip and grad_mode out, and say each=… of the contrast."
            )
        inputs, targets, present = self._units.example(2)
        if self._units.kind != "record" or present.ndim != 1 or len(inputs) != 1 or self._augmentations is not None:
            raise InvalidInput(
                "a pair is one row: its anchor in inputs and its positive in targets, augmented beforehand; nothing "
                "was read and nothing was spent. Say learning.Units(anchors, positives, …), with ids=… and times=1 "
                "where persons are protected."
            )
        if inputs[0].shape != targets.shape or inputs[0].dtype != targets.dtype:
            raise InvalidInput(
                "anchors and positives are inputs of one shape and type; nothing was read and nothing was spent."
            )
        device = next(self._model.parameters()).device
        contrast = InBatchContrast(
            self._model, each=self._each, temperature=self._temperature, both=self._both, chunk=self._chunk
        )
        contrast.sum(inputs[0].to(device), inputs[0].flip(0).to(device))
