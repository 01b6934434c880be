"""Clipped sums: what a step of private training needs of a model and a batch."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from sfumato.core.deprecation import renamed
from sfumato.errors import InvalidInput, Unsupported
from sfumato.learning.engine.bounds import FEW, LARGEST, MANY, SMALLEST
from sfumato.learning.engine.fast import fast_sum
from sfumato.learning.engine.groups import ClipGroups
from sfumato.learning.engine.losses import Kind, Loss
from sfumato.learning.engine.plan import PassPlan, key, plan
from sfumato.learning.engine.semantics import semantic_sum
from sfumato.learning.given import Tree
from sfumato.learning.refusals import check_layers
from sfumato.learning.unchanged import Unchanged

__all__ = ["ClippedSum", "Engine", "Kind", "clipped_sum"]

GradMode = Literal["auto", "semantic", "fast"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedSum:
    """The sum of clipped gradients, by the name of their parameter, and what it was made of. Sensitive: all of it.

    ``flat`` is the whole sum as one vector, in the order of the names: in double precision or, for few units on a
    processor, in single; ``sums`` are views of it.
    ``norms`` are those before clipping and ``losses`` those of each unit, both 0 for units that count nothing.
    """

    sums: dict[str, Tensor]
    flat: Tensor
    norms: Tensor
    losses: Tensor


@renamed(way="grad_mode")
class Engine:
    """Sums one clipped gradient a unit, for batches of one model and one loss.

    A unit is a record, a user with all records of theirs that are in the batch (the loss is the mean over them), or a
    group whose members the model sees as one batch and the loss as one thing. The loss is asked for one unit at a time.
    With ``clips`` the gradients of groups of layers are clipped each by itself, by the beginning of the layers' names
    (``{"body": 1.0, "head": 0.5}``, all others by ``""``); the clip of the whole is then √Σ clip².

    Guarantee: one unit moves the sum of a step by at most clip · (1 + SLACK) in the l2 norm, however many others there
    are, if it changes who is in at most ``batches`` physical batches. A unit whose gradient is not finite counts
    nothing. Assumes: kernels compute a unit's numbers from that unit alone, for a fixed physical shape; so does the
    model where it is computed for all units at once, and so do operations with a rule of their own for that
    (``torch.autograd.Function.vmap``, ``torch.library``), for all values and not for made-up ones alone.
    Public / sensitive: the plan follows from shapes and is public; every number that ``sum`` returns is sensitive.
    Proof: docs/proofs/clipped_sums.md

    >>> engine = Engine(nn.Linear(2, 1), nn.functional.mse_loss, clip=1.0)
    >>> engine.sum(torch.eye(2), torch.full((2, 1), 100.0)).flat.norm() <= 2
    tensor(True)
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        *,
        clip: float = 1.0,
        unit: Kind = "record",
        grad_mode: GradMode = "auto",
        batches: int = 2,
        clips: Mapping[str, float] | None = None,
    ) -> None:
        if unit not in ("record", "user", "group"):
            raise InvalidInput(f"unit must be 'record', 'user' or 'group', not {unit!r}; nothing was done.")
        if grad_mode not in ("auto", "semantic", "fast"):
            raise InvalidInput(f"grad_mode must be 'auto', 'semantic' or 'fast', not {grad_mode!r}; nothing was done.")
        if batches < 1:
            raise InvalidInput(f"batches must be at least 1, not {batches}; nothing was done.")
        check_layers(model)
        self.model, self.loss, self.unit, self.grad_mode, self.batches = model, loss, unit, grad_mode, batches
        self._parameters = dict(model.named_parameters())
        self._groups = None if clips is None else ClipGroups.of(clips)
        for one in (clip,) if self._groups is None else (*self._groups.clips, self._groups.total):
            self.clip = one  # each lies within bounds, and the last one is that of the whole
        if self._groups is not None:
            self._groups.check(name for name, value in self._parameters.items() if value.requires_grad)
        self.unchanged: AbstractContextManager[object] = Unchanged(model, loss)
        self._plans: dict[tuple[object, ...], PassPlan] = {}
        self._last: PassPlan | None = None  # as it was before rows were seen: what they bring about is not remembered

    @property
    def clip(self) -> float:
        """The most that one unit's gradient may be long; it may be set anew before each sum, but not with groups."""
        return self._clip

    @clip.setter
    def clip(self, clip: float) -> None:
        if not SMALLEST <= clip <= LARGEST:
            raise InvalidInput(f"clip must lie between 2^-40 and 2^40, not {clip}; nothing was done. Scale the loss.")
        self._clip = float(clip)

    @property
    def plan(self) -> str:
        """The way of each layer for batches like the last, as a table. It follows from shapes and invented data."""
        if self._last is None:
            return "nothing is planned before the first batch" if self.grad_mode != "semantic" else "semantic: as asked"
        return self._last.table()

    def prepare(self, inputs: Tree, targets: Tree) -> None:
        """Plan for batches of such shapes; their values are not looked at."""
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        if self.grad_mode != "semantic":
            self._last = self._planned(inputs, targets)

    def sum(self, inputs: Tree, targets: Tree, present: Tensor | None = None) -> ClippedSum:
        """Sum the clipped gradients of a batch."""
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        if present is None:
            axes = inputs[0].shape[: 2 if self.unit == "user" else 1]
            present = torch.ones(axes, dtype=torch.bool, device=inputs[0].device)
        if present.shape[0] > MANY:
            raise InvalidInput(f"a physical batch has at most {MANY} units; nothing was summed. Use smaller ones.")
        planned = self._last = None if self.grad_mode == "semantic" else self._planned(inputs, targets)
        flat, into = self._empty(inputs[0].device, single=planned is not None and planned.fast and self._few(present))
        with self.unchanged:
            if planned is not None and planned.fast:
                norms, losses, _ = fast_sum(
                    self.model,
                    self.loss,
                    inputs,
                    targets,
                    present,
                    clip=self.clip,
                    kind=self.unit,
                    layers=planned.layers,
                    into=into,
                    batches=self.batches,
                    expected=planned.calls,
                    groups=self._groups,
                )
            else:
                norms, losses = semantic_sum(
                    self.model,
                    self.loss,
                    inputs,
                    targets,
                    present,
                    clip=self.clip,
                    kind=self.unit,
                    into=into,
                    groups=self._groups,
                )
        return ClippedSum(sums=into, flat=flat, norms=norms, losses=losses)

    def _planned(self, inputs: tuple[Tensor, ...], targets: Tree) -> PassPlan:
        at = key(self.model, self._parameters, inputs, targets)
        if at not in self._plans:
            self._plans[at] = plan(self.model, self.loss, inputs, targets, self.unit)
        found = self._plans[at]
        if self.grad_mode == "fast" and not found.fast:
            raise Unsupported(
                f"there is no fast way for this model: {found.reason}. Nothing was summed; use grad_mode='auto'."
            )
        return found

    def _few(self, present: Tensor) -> bool:
        """Whether the sum may be kept in single precision, which on a processor saves time and memory."""
        near = present.device.type == "cpu" and all(one.dtype == torch.float32 for one in self._parameters.values())
        return near and present.shape[0] <= FEW and self.batches <= 2

    def _empty(self, device: torch.device, *, single: bool) -> tuple[Tensor, dict[str, Tensor]]:
        """Sums of double precision, or of single where that is enough, not yet filled, as views of one vector."""
        trained = {name: value.shape for name, value in self._parameters.items() if value.requires_grad}
        sizes = [shape.numel() for shape in trained.values()]
        flat = torch.empty(sum(sizes), dtype=torch.float32 if single else torch.float64, device=device)
        parts = torch.split(flat, sizes)
        return flat, {name: part.view(shape) for (name, shape), part in zip(trained.items(), parts, strict=True)}


def clipped_sum(
    model: nn.Module,
    loss: Loss,
    batch: tuple[Tree, Tree],
    *,
    clip: float = 1.0,
    unit: Kind = "record",
    present: Tensor | None = None,
) -> ClippedSum:
    """Sum one clipped gradient a unit of one batch; ``Engine`` says what is guaranteed.

    >>> clipped_sum(nn.Linear(2, 1), nn.functional.mse_loss, (torch.eye(2), torch.full((2, 1), 100.0))).norms.shape
    torch.Size([2])
    """
    return Engine(model, loss, clip=clip, unit=unit).sum(*batch, present)
