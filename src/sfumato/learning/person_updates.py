"""What each unit would do to a model by itself: for training where sums are made elsewhere, across sites."""

import copy
import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sfumato.errors import InvalidInput
from sfumato.learning.draws import Draws
from sfumato.learning.engine.semantics import MEMORY
from sfumato.learning.engine.updates import unit_updates
from sfumato.learning.laid import Laid
from sfumato.learning.refusals import check_uncoupled
from sfumato.learning.silence import silence
from sfumato.learning.units import Units
from sfumato.noise import SystemWords

if TYPE_CHECKING:
    from sfumato.learning.engine.losses import Kind

__all__ = ["Loss", "Model", "PersonUpdates", "flat_weights", "model_form", "put_weights"]

Model = nn.Module
Loss = Callable[..., Tensor]
Flat = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float64]
MOST_PLACES, SMALL = 4096, 2**18  # of a batch; numbers of gradients that cost little more than starting a batch does


def model_form(model: nn.Module) -> str:
    """The SHA-256 of what a model is made of: its layers as they name themselves, names, types and shapes of weights.

    Of two models with the same form one can take the weights of the other. It says nothing of what a layer computes.

    >>> model_form(nn.Linear(2, 1)) == model_form(nn.Linear(2, 1)), model_form(nn.Linear(2, 1)) == model_form(nn.ReLU())
    (True, False)
    """
    parts = [f"{name}\0{one.dtype}\0{tuple(one.shape)}\0{one.requires_grad}" for name, one in model.named_parameters()]
    return hashlib.sha256("\n".join([repr(model), *parts]).encode()).hexdigest()


def flat_weights(model: nn.Module) -> Flat:
    """The weights of a model that are trained, one after the other, in single precision."""
    parts = [one.detach().cpu().float().reshape(-1) for one in model.parameters() if one.requires_grad]
    if not parts:
        raise InvalidInput("the model has no parameter to train; nothing was done.")
    return torch.cat(parts).numpy().copy()


def put_weights(model: nn.Module, flat: Flat) -> None:
    """Put weights into a model, as :func:`flat_weights` gave them; refused where there are not as many."""
    trained = [one for one in model.parameters() if one.requires_grad]
    if flat.shape != (sum(one.numel() for one in trained),):
        raise InvalidInput("these are not as many weights as the model has; nothing was done.")
    given, at = torch.from_numpy(flat.astype(np.float32)), 0
    with torch.no_grad():
        for one in trained:
            one.copy_(given[at : at + one.numel()].reshape(one.shape))
            at += one.numel()


class PersonUpdates:
    """Updates of the units of some data, at weights that somebody else chose.

    Guarantee: what :meth:`parts` gives for a unit depends on that unit, on the weights and on the unit's place in its
    batch, which is drawn for each unit by itself: one unit more changes no number of another, whatever kernels do with
    a place. Nothing is read before :meth:`read`. Assumes: as of training, that the loss of a unit depends on that unit
    alone, and that kernels compute a row from itself. Sensitive: all that :meth:`parts` gives, and how many units there
    are.
    """

    def __init__(self, model: nn.Module, loss: Callable[..., Tensor], data: Units, *, form: str | None = None) -> None:
        if not isinstance(model, nn.Module) or not callable(loss):
            raise InvalidInput("training takes a torch module, and a loss of outputs and targets; nothing was done.")
        if data.kind not in ("record", "user") or data.times != 1:
            raise InvalidInput(
                "across sites units are records, or users with max_records_per_unit=…; nothing was done."
            )
        self._model, self._loss, self._units = copy.deepcopy(model).cpu(), loss, data
        self.form, self.parameters = form or model_form(model), len(flat_weights(model))
        self.units, self.records = data.kind, data.max_records_per_unit
        self._kind = cast("Kind", data.kind)
        self._draws = Draws(torch.device("cpu"), SystemWords())
        self._laid: Laid | None = None
        inputs, targets, present = data.example(2)
        check_uncoupled(self._model, loss, inputs, targets, unit=data.kind)
        with self._draws.used():
            unit_updates(self._model, loss, inputs, targets, present, kind=self._kind)

    def read(self, key: bytes) -> int:
        """Read the data and lay it out, after the charge; how many units there are. Sensitive."""
        if self._laid is None:
            self._laid = self._units.laid(key)
        return self._laid.number

    def parts(
        self,
        weights: Flat,
        places: npt.NDArray[np.int64],
        *,
        expected: int,
        local_steps: int = 0,
        local_rate: float = 1.0,
    ) -> Iterator[Rows]:
        """The updates of the units at some places of the data, some rows at a time; zeros fill rows up.

        ``expected`` says how many units to reckon with; it is public, and so are the sizes of batches.
        """
        if self._laid is None:
            raise InvalidInput("nothing was read yet; there is no update of anybody.")
        put_weights(self._model, weights)
        for units in _batches(places, self._batch(expected)):
            here = torch.from_numpy(units >= 0)
            rows, counted = self._laid.rows_of(torch.from_numpy(np.where(units >= 0, units, places[0])), here)
            with silence(), self._draws.used():
                found = unit_updates(
                    self._model,
                    self._loss,
                    *self._laid.gathered(rows, counted),
                    kind=self._kind,
                    local_steps=local_steps,
                    local_rate=local_rate,
                )
            yield found.numpy()

    def _batch(self, expected: int) -> int:
        """The places of a batch: many where gradients are small, so that few batches are made. Public."""
        small = max(SMALL // self.parameters, expected // 4, 4)
        room = min(MOST_PLACES, 4 * expected, small, MEMORY // self.parameters)
        return max(1, 1 << max(2, room.bit_length() - 1))

    def of_all(self, weights: Flat, *, local_steps: int, local_rate: float) -> Rows:
        """One row: where ``local_steps`` of descent on the mean loss of all units lead, as (w − w′)/local_rate.

        It depends on everybody at once: whoever adds or takes one unit may turn it into any other update.
        """
        if self._laid is None:
            raise InvalidInput("nothing was read yet; there is no update of anybody.")
        everyone, now = np.arange(self._laid.number), weights.astype(np.float64)
        for _ in range(local_steps if len(everyone) else 0):
            parts = self.parts(now.astype(np.float32), everyone, expected=MOST_PLACES)
            total = sum((part.sum(axis=0) for part in parts), np.zeros(self.parameters))
            now = now - local_rate * total / len(everyone)
        found: Rows = ((weights - now) / local_rate)[None, :]
        return found


def _batches(places: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """Units in batches of one size, −1 where nobody is: each unit has a place in a batch that is drawn by itself.

    >>> found = _batches(np.array([7, 8, 9]), 4)
    >>> found.shape[1], sorted(found[found >= 0].tolist())
    (4, [7, 8, 9])
    """
    words = np.empty(len(places), dtype=np.uint64)
    SystemWords().fill(words)
    slots = (words % np.uint64(size)).astype(np.int64)
    order = np.argsort(slots, kind="stable")
    sorted_slots = slots[order]
    turns = np.arange(len(places)) - np.searchsorted(sorted_slots, sorted_slots)
    found = np.full((int(turns.max(initial=-1)) + 1, size), -1, dtype=np.int64)
    found[turns, sorted_slots] = places[order]
    return found
