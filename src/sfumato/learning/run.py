"""A training run: sampled, summed, noised and learned from, step by step, by a copy that nobody sees before its end.

Order of a released point: compute and draw, write the sealed state, move the count, release. What was computed since
the last state and is lost in a crash was not released, and may be drawn again. Where code of the user may see the
optimizer, a step of it is a release too: the state with its sum is written first.

Proof: docs/proofs/training.md

Over 600 lines because it is one course of a step: what reads rows, what puts back, what draws, what learns and what is
written down must be seen together to see that nothing leaves between them.
"""

import copy
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

import torch
from torch import Tensor, nn

from sfumato.core.documents import Json
from sfumato.core.interrupts import FAILED, attempt, signals
from sfumato.core.release import Release
from sfumato.errors import EngineFailed, InvalidInput, Refused, SfumatoError
from sfumato.gate.checkpoint import Checkpointed
from sfumato.gate.sealed import SealedState, remove_sealed
from sfumato.gate.session import Opened, SessionGate
from sfumato.learning.autocasting import cast_of
from sfumato.learning.averaging import Average
from sfumato.learning.course import SampledCourse, course_of
from sfumato.learning.device_steps import DeviceSteps
from sfumato.learning.draws import Draws
from sfumato.learning.engine import ClippedSum, Engine
from sfumato.learning.given import RunState, Tree
from sfumato.learning.laid import Laid, UnitRows
from sfumato.learning.library_code import LibraryCode
from sfumato.learning.listeners import Unheard, check_nobody_listens, forget_memory, shared_hooks
from sfumato.learning.loss_facts import LossFacts
from sfumato.learning.multiplicity import Multiplied
from sfumato.learning.optimisers import heard
from sfumato.learning.refusals import check_uncoupled
from sfumato.learning.replayed import Replayed
from sfumato.learning.rows_ahead import Gather, RowsAhead, parts_of
from sfumato.learning.schedules import RateSchedule
from sfumato.learning.shielded import shielded
from sfumato.learning.silence import silence
from sfumato.learning.training import Training
from sfumato.learning.unchanged import Unchanged
from sfumato.learning.weights import packed, unpacked, weights_digest
from sfumato.noise import Words

if TYPE_CHECKING:
    from sfumato.learning.engine.losses import Kind
    from sfumato.learning.engine.sums import GradMode

__all__ = ["Callback", "Run"]

Callback = Callable[[int, Mapping[str, Tensor]], object]
Result = TypeVar("Result")
LOSSES = 4  # of a loop of one's own, about which is remembered how they are summed
ROUNDED = 1e-4  # how far two sums of the same units may be apart, relatively, in single or half precision


class Run(Checkpointed):
    """One charged run of a model. Sensitive: all of it until it is released.

    Guarantee: what is released, at checkpoints and at the end, is covered by the charge, however often the process is
    killed and resumed. The caller's model is left alone until the end. Assumes: the optimiser and the average tell
    nobody what they see; those that are not plain ones of torch, or have hooks, see nothing that could be drawn anew.
    """

    WHAT: ClassVar[str] = "training run"
    RUNS: ClassVar[type[Training]] = Training

    def __init__(
        self,
        gate: SessionGate,
        opened: Opened,
        *,
        model: nn.Module,
        loss: Callable[..., Tensor],
        units: UnitRows,
        optimizer: Callable[[nn.Module], torch.optim.Optimizer],
        grad_mode: str,
        max_physical_batch_size: int,
        words: Words,
        augmentations: Multiplied | None = None,
        average: Average | None = None,
        path: Path | None = None,
        held: ExitStack | None = None,
        schedule: Callable[[torch.optim.Optimizer], RateSchedule | None] | None = None,
        autocast: torch.dtype | None = None,
        strict: bool = False,
        tried: Engine | None = None,
    ) -> None:
        if type(opened.query) is not self.RUNS or not isinstance(opened.query, Training):
            raise InvalidInput("this is not a training run; nothing was done.")
        super().__init__(gate, opened, path, held)
        self._rows_ahead: RowsAhead | None = None
        self._one_at_a_time = Lock()  # code of the caller that learns from a step must not make another one
        self._run, self._units, self._words = opened.query, units, words
        self._physical, self._augmentations, self._shown_average = max_physical_batch_size, augmentations, average
        self._average = copy.deepcopy(average)  # that of the caller is as private as the model
        self._model = copy.deepcopy(model) if tried is None else tried.model
        self._planned = tried  # what was planned on made-up units for this copy, before the charge
        self._trained = {name: one for name, one in self._model.named_parameters() if one.requires_grad}
        self._optimiser = optimizer(self._model)
        self._schedule = None if schedule is None else schedule(self._optimiser)
        if self._schedule is not None:
            self._schedule.apply(self._optimiser)
        near = self._device.type == "cpu"
        spare = near and torch.get_num_threads() < (os.cpu_count() or 1)  # threads of one product wait for the slowest
        self._cast, self._strict = cast_of(self._device, autocast), strict
        self._course = course_of(self._run, opened.mechanism, opened.priced.sensitivity, words, ahead=spare)
        self._draws, self._grad_mode = Draws(self._device, words), grad_mode
        self._ways: list[tuple[LossFacts, _Way]] = []
        self._recorded: tuple[float, Replayed[ClippedSum]] | None = None
        self._on_device: DeviceSteps | None = None
        self._take_loss(loss)
        self._laid: Laid | None = None
        self._step, self._stopped = 0, False
        self._pending: Tensor | None = None  # a noisy sum that was written down and not learned from yet
        self._written = 0  # how many steps were made when the run was last written down, or may be shown

    def _take_loss(self, loss: Callable[..., Tensor]) -> None:
        """Sum by this loss from now on: what was found out about one of the last few is not found out again."""
        known = self._way_of(loss)
        if known is None:
            last = self._ways[-1:]
            try:
                known = self._found_way(loss)
            except BaseException:
                if last:
                    self._take(last[0][1])
                raise
            self._ways.append((LossFacts(loss), known))
            del self._ways[:-LOSSES]
        self._take(known)

    def _take(self, way: "_Way") -> None:
        self._engine, self._kept, self._recorded, self._on_device = way.engine, way.kept, way.recorded, way.on_device
        self._code = way.code

    def _found_way(self, loss: Callable[..., Tensor]) -> "_Way":
        kind = "user" if self._augmentations is not None else self._run.units
        self._engine = self._made_engine(loss, kind, self._grad_mode)
        augment = None if self._augmentations is None else self._augmentations.augment
        self._kept = Unchanged(self._model, loss, augment, *shared_hooks())
        self._code = LibraryCode(self._model, loss)
        self._prepare()
        return _Way(
            engine=self._engine,
            kept=self._kept,
            code=self._code,
            recorded=self._recorded,
            on_device=self._on_device,
        )

    def use_loss(self, loss: Callable[..., Tensor]) -> None:
        """Sum by another loss from the next step on; what cannot be is refused on made-up units, and nothing is read.

        It is run with the weights on these, so that they are written down first.
        """
        self._check_usable()
        if self._way_of(loss) is not None:
            self._take_loss(loss)
            return
        self._write_down()
        last = self._ways[-1]
        few = self._units.example(2)
        with self._draws.used(), self._cast():
            inputs, targets = tuple(part.to(self._device) for part in few[0]), few[1].to(self._device)
            check_uncoupled(self._model, loss, inputs, targets, unit=self._run.units)
        self._take_loss(loss)
        try:
            with self._draws.used():
                self._sum(*self._flat_batch(*self._units.example(self._physical)))
        except BaseException:
            self._ways = [last]
            self._take(last[1])
            raise

    def _way_of(self, loss: Callable[..., Tensor]) -> "_Way | None":
        facts = LossFacts(loss)
        return next((way for other, way in self._ways if other.same(facts)), None)

    @property
    def step(self) -> int:
        """How many steps were made. Public."""
        return self._step

    @property
    def left(self) -> int:
        """How many steps there are still. Public."""
        return 0 if self._stopped else self._run.steps - self._step

    @property
    def total(self) -> int:
        """How many steps were charged for. Public."""
        return self._run.steps

    @property
    def rates(self) -> tuple[float, ...]:
        """The learning rates of the next step, one for each group of parameters. Public."""
        return tuple(float(group["lr"]) for group in self._optimiser.param_groups)

    def set_rate(self, rate: float) -> None:
        """Learn at another rate from the next step on."""
        self._check_usable()
        if self._schedule is not None:
            raise InvalidInput("this run has a schedule for its learning rate, which counts; nothing was changed.")
        for group in self._optimiser.param_groups:
            group["lr"] = rate

    def shown_weights(self) -> dict[str, Tensor]:
        """Copies of the weights, after they were written down. Public."""
        self._write_down()
        return {name: one.detach().clone() for name, one in self._model.state_dict().items()}

    def shown_optimizer(self) -> RunState:
        """A copy of the optimiser's state, after it was written down. Public."""
        self._write_down()
        return copy.deepcopy(self._optimiser.state_dict())

    def _write_down(self) -> None:
        """Write the run down, if it has gone on since it last was: only then may anything of it be shown."""
        self._check_usable()
        if self._written == self._step:
            return
        with self._unbroken():
            if self._on_device is not None:
                self._attempted(self._settled)
            self.save()

    def save(self) -> None:
        """As every session does it; what was made until now may be shown from then on."""
        super().save()
        if self._pending is None:
            self._written = self._step

    @property
    def model(self) -> nn.Module:
        """The private copy; what it holds may be released after :meth:`save` and not before."""
        return self._model

    def advance(self, steps: int, after: Callable[[], bool] | None = None) -> None:
        """Make up to a given number of steps; nothing of them is released.

        ``after`` is called after each, and ends the run with True. What would hear rows is refused before they are
        read; before the first of these steps, that ends nothing.
        """
        self._check_usable()
        if self._one_at_a_time.locked():
            raise Refused("a step of this run is being made; nothing was read. Steps are made one after another.")
        with self._one_at_a_time:  # a Ctrl-C cannot fall between taking it and the block
            self._check_usable()
            self._advance(steps, after)

    def _advance(self, steps: int, after: Callable[[], bool] | None) -> None:
        check_nobody_listens(strict=self._strict)
        with self._unbroken():
            for at in range(min(steps, self.left)):
                if at and after is not None:
                    check_nobody_listens(strict=self._strict)
                if self._pending is None:
                    noisy = self._noised()
                    if self._path is not None and heard(self._optimiser, self._average):
                        self._pending = noisy
                        self.save()
                else:
                    noisy = self._pending
                self._learned(noisy)
                self._pending = None
                self._step += 1
                self._follow_schedule()
                forget_memory(self._device)
                if after is not None and after():
                    self._stopped = True
                    break
            if self._on_device is not None:
                self._attempted(self._settled)

    def _follow_schedule(self) -> None:
        if self._schedule is not None and self._step < self._run.steps:
            self._schedule.reach(self._step)
            self._schedule.apply(self._optimiser)

    def tell(self, callback: Callback | None) -> None:
        """Write the state down, move the count, and only then show the weights to the callback."""
        self._check_usable()
        with self._unbroken():
            self.save()
            if callback is not None:
                weights = {name: one.detach().clone() for name, one in self._model.state_dict().items()}
                self._stopped = callback(self._step, weights) is True or self._stopped
                if self._stopped:
                    self.save()  # whoever resumes it from now on goes on to the end

    def finish(self, model: nn.Module) -> Release:
        """Sign and store the end of the run, then hand the weights over. The last state stays on disk."""
        self._check_usable()
        with self._unbroken():
            self.save()  # a run that a copy has overtaken is refused here
            query = replace(self._run, weights=weights_digest(self._model), done=self._step)
            release = self._gate.close(self._opened, query, ())
        self._end()
        self._closed = True
        model.load_state_dict(self._model.state_dict())
        if self._average is not None and self._shown_average is not None:
            self._shown_average.load(self._average.state())
        return release

    def leave(self) -> None:
        """End the run without a release, if it has not ended; the charge stays, and so does a state on disk."""
        if not self._done and self._process == os.getpid():
            self._end()

    def _end(self) -> None:
        if isinstance(self._course, SampledCourse):
            self._course.close()
        if self._rows_ahead is not None:
            self._rows_ahead.close()
        super()._end()

    def _made_engine(self, loss: Callable[..., Tensor], kind: str, grad_mode: str) -> Engine:
        """What sums the gradients of the private copy."""
        engine, self._planned = self._planned, None  # the first loss is the one that was tried
        engine = engine or Engine(
            self._model,
            loss,
            clip=float(self._run.clip),
            unit=cast("Kind", kind),
            grad_mode=cast("GradMode", grad_mode),
            clips=None if self._run.clips is None else {name: float(one) for name, one in self._run.clips},
        )
        # on a device, what the engine keeps and puts back is recorded with its sums; here it is kept once, and by this
        if self._device.type == "cpu":
            engine.unchanged = nullcontext()
        return engine

    def _prepare(self) -> None:
        """Let the engine plan for the one shape of its batches, on made-up units and before anything is read."""
        with self._draws.used():
            inputs, targets, present = self._placed(*self._units.example(self._physical))
        with self._draws.used(), self._cast():
            self._engine.prepare(inputs if len(inputs) > 1 else inputs[0], targets)
        self._recorded, self._on_device = None, None
        if self._device.type == "cuda" and self._same_again(*inputs, targets, present):
            self._recorded = float(self._run.clip), Replayed(self._sum)
            if self._augmentations is None and isinstance(self._course, SampledCourse):
                with suppress(RuntimeError):  # what cannot be recorded is run as it is written
                    self._on_device = DeviceSteps(self._course, self._recorded[1], (*inputs, targets, present))
            if self._on_device is None:
                self._recorded = None

    def _same_again(self, *batch: Tensor) -> bool:
        """Whether nothing in a sum is random, so that it can be recorded: it draws nothing, and comes out the same.

        Up to rounding: some kernels add up in no fixed order, and a mask that is drawn moves a sum by far more.
        """
        found = []
        for _ in range(2):
            with self._draws.used():
                before = _generators(self._device)
                found.append(self._sum(*batch).flat)
                after = _generators(self._device)
            if any(not torch.equal(one, other) for one, other in zip(before, after, strict=True)):
                return False
        return bool((found[0] - found[1]).norm() <= ROUNDED * found[0].norm())

    def _sum(self, *batch: Tensor) -> ClippedSum:
        *inputs, targets, present = batch
        with self._cast():
            return self._engine.sum(tuple(inputs) if len(inputs) > 1 else inputs[0], targets, present)

    def _noised(self) -> Tensor:
        """The noisy sum of one step."""
        steps = self._on_device
        if steps is None or not steps.as_recorded(self._trained.values()):
            return self._course.release(self._summed())
        return self._attempted(partial(self._replayed, steps))

    def _summed(self) -> Tensor:
        """The sum of the clipped gradients of one step, flat, in float64 or in float32. Sensitive."""
        return self._attempted(self._drawn)

    def _attempted(self, how: Callable[[], Result]) -> Result:
        """What code that sees data gives; where it fails, the data is closed."""
        found = attempt(how)  # a Ctrl-C passes: it says nothing of rows, and closes no data
        if found is not FAILED:
            return found
        raise self._engine_failed()

    def _engine_failed(self) -> EngineFailed:
        """What a run ends with that could not go on; its data is closed."""
        closed = self._closed_data()
        if (
            closed is False
        ):  # another one failed before: that error is raised once, and this run says what any other says
            self._gate.check(self._opened)
        return EngineFailed(
            f"the engine stopped while it read {self._run.dataset.name!r}. Rows were read, so the charge of "
            f"{self._opened.charged} is kept; no further weight was released, and "
            + (
                "this version of the data is closed. Check the data, then declare it as a new version."
                if closed is not None
                else "the run cannot be resumed. Its data could not be closed as well: close it in the ledger."
            )
        )

    def _drawn(self) -> Tensor:
        with silence():
            return self._clipped()

    def _closed_data(self) -> bool | None:
        """Close the data of a run that failed: whether this was the first to do so, None where it cannot be done.

        Where it cannot be done the state of the run is removed.
        """
        try:
            return self._gate.fail(self._opened)
        except Exception:  # noqa: BLE001 - a ledger that cannot be written to: the other way is left
            self._bury()
        return None

    def _bury(self) -> None:
        """See to it that nobody goes on from any state of this run: its place in the count is taken, the file gone."""
        if self._path is None:
            return
        remove_sealed(self._path)
        with suppress(SfumatoError):  # a ledger that cannot be written to now; the file is gone all the same
            self._gate.move(self._opened, self._serial + 1, secrets.token_hex(16))

    def _replayed(self, steps: "DeviceSteps") -> Tensor:
        """The noisy sum of one step by what was recorded on invented units: no code of the user runs."""
        with silence() if self._laid is None or self._laid.runs_code else nullcontext():
            return steps.noisy(self._read(), self._step)

    def _read(self) -> Laid:
        if self._laid is None:
            secret = self._gate.secret(f"rows of {self._run.dataset.name}")
            self._laid = self._units.laid(secret).near(self._device)
        return self._laid

    def _clipped(self) -> Tensor:
        laid = self._read()
        total, near = None, self._device.type == "cpu"
        self._engine.clip = float(self._course.clip)
        recorded = self._recorded is not None and self._recorded[0] == self._engine.clip  # a clip is recorded as well
        how = self._recorded[1] if self._recorded is not None and recorded else self._sum
        for gathered in self._batches(laid):
            whole = self._tried(how, *gathered())
            # what failed may have written to its rows: they are gathered anew
            for found, present in self._one_by_one(*gathered()) if whole is None else (whole,):
                if total is None:  # what was recorded writes all its sums to the same memory
                    total = found.flat if near else found.flat.clone()
                else:
                    total = total.double().add_(found.flat)
                self._course.observe(found.norms, present if present.ndim == 1 else present.any(1))
        return torch.zeros(self._run.parameters, device=self._device) if total is None else total

    def _tried(
        self, how: Callable[..., ClippedSum], inputs: tuple[Tensor, ...], targets: Tensor, present: Tensor
    ) -> tuple[ClippedSum, Tensor] | None:
        """The sum of a part of a step and who is in it; None where the model or the loss cannot do some row of it.

        What dies with an exception, or with a result, dies before everything is put back.
        """

        def summed() -> tuple[ClippedSum, Tensor]:
            *batch, here = self._flat_batch(inputs, targets, present)
            return how(*batch, here), here

        with self._draws.used():
            plain = self._device.type == "cpu" and self._augmentations is None and bool(self._code)
            # modes go first: they would hear what is put back
            found = shielded(summed, self._code.kept() if plain else self._kept, Unheard())
        return None if found is FAILED else found

    def _one_by_one(
        self, inputs: tuple[Tensor, ...], targets: Tensor, present: Tensor
    ) -> Iterator[tuple[ClippedSum, Tensor]]:
        """A part of a step unit by unit, each in its place of the same shape; one that cannot be computed counts 0.

        So an error that a row brings about changes what its own unit adds and nothing else. Nothing is tried on
        made-up units here: that it was tried, and failed, would reveal something about a row. Where no unit can be
        computed any more, the run goes on with noise alone.
        """
        for place in range(self._physical):
            alone = torch.zeros_like(present)
            alone[place] = present[place]
            if alone.any():
                repeated = tuple(part[place].expand_as(part).clone() for part in inputs)
                found = self._tried(self._sum, repeated, targets[place].expand_as(targets).clone(), alone)
                if found is not None:
                    yield found

    def _flat_batch(self, *batch: Tree) -> tuple[Tensor, ...]:
        inputs, targets, present = self._placed(*batch)
        return *inputs, targets, present

    def _batches(self, laid: Laid) -> Iterator[Gather]:
        """The units of a step in parts of one fixed shape; the next part is read meanwhile where that can be."""
        number, course, step = laid.number, self._course, self._step
        if laid.source is None or laid.runs_code or not isinstance(course, SampledCourse) or not course.fresh:
            return iter(parts_of(laid, course.places(number, step), self._physical, step))
        if self._rows_ahead is None:
            self._rows_ahead = RowsAhead(laid, lambda later: course.places(number, later), physical=self._physical)
        return self._rows_ahead.parts(step, last=step + 1 >= self._run.steps)

    def _placed(
        self, inputs: tuple[Tensor, ...], targets: Tensor, present: Tensor
    ) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        """A batch as the engine takes it: augmented, and on the device of the model."""
        if self._augmentations is not None:
            given = inputs[0] if len(inputs) == 1 else inputs
            made, targets, present = self._augmentations(
                given, targets, present, words=self._words, kind=self._run.units
            )
            inputs = (made,)
        return tuple(part.to(self._device) for part in inputs), targets.to(self._device), present.to(self._device)

    def _learned(self, noisy: Tensor) -> None:
        """Learn from a noisy sum. Whatever that raises ends the run for good: the sum was seen, and counts."""
        try:
            with self._buried_if_raised():
                self._learn(noisy)
        except RuntimeError:
            if self._on_device is not None:
                self._attempted(self._settled)  # what failed may have been the step itself, found here
            raise

    def _settled(self) -> None:
        """Wait for the device: what fails there is found by whoever asks next."""
        torch.cuda.synchronize(self._device)

    @contextmanager
    def _buried_if_raised(self) -> Iterator[None]:
        """End the run for good where the caller's code (an optimiser, a hook) raises: it may have heard new weights.

        Gone on from an older state, the step would be drawn anew for the same charge. A real Ctrl-C is nobody's code.
        """
        with signals() as arrived:
            try:
                yield
            except BaseException:
                if not arrived:
                    self._bury()
                raise

    def _learn(self, noisy: Tensor) -> None:
        """Hand the noisy mean to the optimiser: the sum over rate · number, which is public."""
        kinds = {one.dtype for one in self._trained.values()}
        # what an optimiser is given is memory that no sum was in and none will be in: it may hold on to it
        mean = noisy.to(kinds.pop() if len(kinds) == 1 else noisy.dtype) / float(self._run.rate * self._run.number)
        parts = torch.split(mean, [one.numel() for one in self._trained.values()])
        for one, part in zip(self._trained.values(), parts, strict=True):
            one.grad = part.view(one.shape).to(one)
        self._optimiser.step()
        self._optimiser.zero_grad()
        for one in self._trained.values():
            one.grad = None  # an optimiser may have a part of them alone
        if self._average is not None:
            self._average.update(self._model.state_dict())

    @property
    def _device(self) -> torch.device:
        return next(iter(self._trained.values())).device

    def _state(self) -> dict[str, Json]:
        return {"step": self._step, "stopped": self._stopped, "words": getattr(self._words, "position", None)}

    def _restore(self, state: SealedState) -> None:
        self._step, self._stopped = state["step"], state.get("stopped", False)
        self._follow_schedule()
        if state["words"] is not None:  # a test's source of words, which can be put back; the system's never is
            self._words.position = state["words"]  # type: ignore[attr-defined]  # those of a test have a position

    def _body(self) -> bytes:
        with self._buried_if_raised():
            return packed(
                {
                    "model": self._model.state_dict(),
                    "optimiser": self._optimiser.state_dict(),
                    "course": self._course.state(),
                    "average": None if self._average is None else self._average.state(),
                    "pending": self._pending,
                }
            )

    def _restore_body(self, body: bytes) -> None:
        parts = unpacked(body)
        self._model.load_state_dict(parts["model"])
        self._optimiser.load_state_dict(parts["optimiser"])
        self._course.load(parts["course"])
        if self._average is not None and parts["average"] is not None:
            self._average.load(parts["average"])
        pending = parts.get("pending")
        self._pending = None if pending is None else pending.to(self._device)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How sums are made by one loss, as found out on made-up units."""

    engine: Engine
    kept: Unchanged
    code: LibraryCode
    recorded: tuple[float, Replayed[ClippedSum]] | None
    on_device: DeviceSteps | None


def _generators(device: torch.device) -> list[Tensor]:
    """The states of torch's generators that a model can draw from."""
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])]
