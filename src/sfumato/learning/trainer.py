"""The trainer: a model, a loss and units, and one charge for all that is learned from them."""

import copy
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from torch import Tensor, nn

from sfumato.accounting import epsilon as accounted
from sfumato.core.budget import Budget
from sfumato.core.deprecation import renamed
from sfumato.core.events import PrivacyEvent
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.query import Mechanism
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.gate.sealed import charge_of, locked, read_sealed
from sfumato.gate.session import SessionGate
from sfumato.learning.adaptive import AdaptiveClip
from sfumato.learning.autocasting import cast_of, checked_cast
from sfumato.learning.averaging import Average
from sfumato.learning.clip_groups import Clip, clips_of
from sfumato.learning.correlated import Correlated
from sfumato.learning.engine import Engine
from sfumato.learning.given_units import check_units
from sfumato.learning.hints import LANES, suggested_batch, suggested_part, suggested_rate
from sfumato.learning.joined_rows import JoinedUnits
from sfumato.learning.laid import UnitRows
from sfumato.learning.listeners import check_no_hooks, check_nobody_listens
from sfumato.learning.multiplicity import Multiplied
from sfumato.learning.noisy_sums import NoisySums
from sfumato.learning.open_run import OpenRun
from sfumato.learning.optimisers import made_optimiser, rehearse
from sfumato.learning.progress import Spending, bar
from sfumato.learning.refusals import check_uncoupled
from sfumato.learning.run import Callback, Run
from sfumato.learning.schedules import Rate, first_rate, made_schedule
from sfumato.learning.sealed_canaries import Canaries, RevealedCanaries
from sfumato.learning.step_view import StepCallback, StepView, checked_callbacks
from sfumato.learning.trained import Trained
from sfumato.learning.training import Training
from sfumato.learning.units import Units
from sfumato.learning.weights import unpacked, weights_digest
from sfumato.noise import SystemWords, Words

if TYPE_CHECKING:
    import torch

    from sfumato.learning.engine.losses import Kind
    from sfumato.learning.engine.sums import GradMode

__all__ = ["Plan", "Trained", "Trainer"]

MILLION = 10**6


@renamed(physical="max_physical_batch_size")
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run will be, from public facts alone. ``rate`` is the learning rate to begin with."""

    query: Training
    mechanism: Mechanism
    spend: Budget
    batch: int
    rate: float
    max_physical_batch_size: int
    every: int


class Trainer:
    """Trains a model on units of a vault; made by ``vault.trainer``.

    Guarantee: all weights that :meth:`fit` hands over are (ε, δ)-DP for the vault's unit, for one charge that is made
    before any row is read. Assumes: model, loss, optimiser and all settings were chosen without the data; the loss of
    one unit depends on that unit alone; the optimiser and the average reveal nothing of what they see. A unit that the
    model or the loss cannot compute adds nothing, and what they write to is restored after each batch. Public:
    everything but the units. Proof: docs/proofs/training.md
    """

    _words: Callable[[], Words] = SystemWords  # tests put a source here that can be put back
    _runs: type[Run] = Run

    def __init__(
        self,
        gate: SessionGate,
        model: nn.Module,
        loss: Callable[..., Tensor],
        *,
        data: Units,
        clip: Clip = 1,
        grad_mode: str = "auto",
        augmentations: Multiplied | None = None,
        canaries: Canaries | None = None,
    ) -> None:
        self._check_loss(model, loss)
        self._check_data(data)
        if augmentations is not None and type(augmentations) is not Multiplied:
            raise InvalidInput(
                "augmentations must be learning.Multiplied(augment, augmentations=…), and not of a class made from it; "
                "nothing was done."
            )
        data.check(gate.unit)
        data.check_home(gate.notary)
        self._gate, self._model, self._loss, self._units = gate, model, loss, data
        self._clip, self._clips = clips_of(clip)
        self._grad_mode, self._augmentations = grad_mode, augmentations
        self._canaries = self._checked_canaries(canaries)
        self._parameters = sum(one.numel() for one in model.parameters() if one.requires_grad)
        if not self._parameters:
            raise InvalidInput("the model has no parameter to train; nothing was done.")
        self._try_out(2)

    def _check_data(self, data: object) -> None:
        """Refuse what is no data of the classes that a run reads."""
        check_units(data)

    def _checked_canaries(self, canaries: Canaries | None) -> Canaries | None:
        """Refuse canaries that cannot be units of a run; reads nothing."""
        if canaries is None:
            return None
        if type(canaries) is not Canaries or self._augmentations is not None:
            raise InvalidInput(
                "canaries must be learning.Canaries(…), and go with no augmentations; nothing was read or spent."
            )
        if self._gate.unit.relation is not Relation.ADD_REMOVE:
            raise Refused(
                "a canary is in or out, and this vault's relation is replace, under which nobody comes or goes; "
                "nothing was read and nothing was spent. Audit a run of a vault with relation='add/remove'."
            )
        fitted = canaries.fitted(self._units)
        fitted.try_out(self._model, self._loss)
        return fitted

    def _check_loss(self, model: nn.Module, loss: object) -> None:
        """Refuse what cannot be trained by its class."""
        if not isinstance(model, nn.Module) or not callable(loss):
            raise InvalidInput(
                "a trainer takes a torch module, and a loss of outputs and targets; nothing was done. Losses over a "
                "whole batch have no loss of one unit: train with vault.trainer(model, learning.InBatchContrast(model, "
                "…), data=…), or on groups of fixed places (Units.of_groups, learning.info_nce)."
            )

    def __repr__(self) -> str:
        return f"<trainer of {self._parameters:,} parameters on {self._units!r}>"

    @renamed(physical="max_physical_batch_size")
    def plan(
        self,
        *,
        epsilon: Exact | None = None,
        delta: Exact,
        noise_multiplier: Exact | None = None,
        epochs: Exact | None = None,
        steps: int | None = None,
        batch: int | None = None,
        lr: float | Rate | None = None,
        max_physical_batch_size: int | None = None,
        every: int | None = None,
        noise: Correlated | None = None,
    ) -> Plan:
        """What a run with these settings will be; reads nothing and spends nothing.

        Say ``epsilon``, and the noise follows; or ``noise_multiplier``, and ε follows, rounded up to a millionth.
        """
        number = self._units.n_units
        batch = self._usual_batch(number) if batch is None else natural(batch, "batch", most=number)
        if (epochs is None) is (steps is None):
            raise NotDeclared("say epochs=… or steps=…, one of them; nothing was read and nothing was spent.")
        if epochs is not None:
            steps = int(-(-positive(epochs, "epochs") * number // batch))
        query = self._query(steps=natural(steps, "steps"), batch=batch)
        self._check_noise(noise)
        moved = query.sensitivity(self._gate.unit, query.limit(self._gate.unit))
        mechanism: Mechanism
        if noise_multiplier is not None:
            mechanism, spend = self._multiplied(query, noise_multiplier, epsilon, delta, noise, moved)
        elif epsilon is None:
            raise NotDeclared("say epsilon=… or noise_multiplier=…; nothing was read and nothing was spent.")
        else:
            spend = Budget.asked(epsilon=epsilon, delta=delta)
            mechanism = self._calibrated(query, spend) if noise is None else noise.mechanism(query, spend, moved)
        rate = suggested_rate(
            clip=self._step_length(query), multiplier=mechanism.multiplier, expected=Fraction(batch), steps=query.steps
        )
        most = None if max_physical_batch_size is None else natural(max_physical_batch_size, "max_physical_batch_size")
        usual = suggested_part(batch, number, device=next(self._model.parameters()).device.type)
        return Plan(
            query=query,
            mechanism=mechanism,
            spend=spend,
            batch=batch,
            rate=first_rate(lr, rate),
            max_physical_batch_size=usual if most is None else _up(most, LANES),
            every=-(-number // batch) if every is None else natural(every, "every"),
        )

    @renamed(optimiser="optimizer", physical="max_physical_batch_size", watch="callback")
    def fit(
        self,
        *,
        epsilon: Exact | None = None,
        delta: Exact,
        noise_multiplier: Exact | None = None,
        epochs: Exact | None = None,
        steps: int | None = None,
        batch: int | None = None,
        optimizer: object = None,
        lr: float | Rate | None = None,
        scheduler: object = None,
        max_physical_batch_size: int | None = None,
        autocast: "torch.dtype | None" = None,
        checkpoint: str | Path | None = None,
        every: int | None = None,
        resume: bool = False,
        idempotency: str | None = None,
        noise: Correlated | None = None,
        average: Average | None = None,
        callback: Callback | None = None,
        callbacks: Iterable[StepCallback] | None = None,
        progress: bool | None = None,
    ) -> Trained:
        """Charge the whole run, train, and put the weights into the model; nothing is read before the charge.

        A step expects ``batch`` units and computes at most ``max_physical_batch_size`` of them at a time, rounded up
        to a multiple of 16, with ``autocast`` (``torch.bfloat16``) in shorter floats.
        Say ``epsilon``, or ``noise_multiplier`` and the ε that follows is charged.
        ``optimizer`` is a class of ``torch.optim`` (with ``lr``), a function of parameters, or an optimizer of this
        model, whose settings count. What it raises ends the run for good; with hooks, or of another maker, it is given
        a sum only after that was written down, if there is a checkpoint.
        ``lr`` is a number or a function of the step; ``scheduler`` one of ``torch.optim.lr_scheduler``, or a function
        that makes one from an optimizer.

        With ``checkpoint`` the run is stored, encrypted, every ``every`` steps (by default, every epoch);
        after a crash the same call with ``resume=True`` goes on from there, for the same charge. An older file than the
        last one is refused. The file stays when the run has ended, and gives the weights again; ``idempotency`` finds
        the charge of a process that died before its first state.

        ``noise`` is another way to noise than fresh Gaussian draws; ``average`` takes in the weights of each step;
        ``callback(step, weights)`` is shown the weights each time the run is written down, and ends it with True. The
        charge stays what it was. ``callbacks`` are called after each step with a :class:`~sfumato.learning.StepView`,
        and end the run in the same way; whoever looks at its weights has the run written down first.
        """
        told = checked_callbacks(callbacks)
        plan = self.plan(
            epsilon=epsilon,
            delta=delta,
            noise_multiplier=noise_multiplier,
            epochs=epochs,
            steps=steps,
            batch=batch,
            lr=lr,
            max_physical_batch_size=max_physical_batch_size,
            every=every,
            noise=noise,
        )
        ways = _Ways(optimizer=optimizer, lr=lr, scheduler=scheduler, autocast=autocast, average=average)
        begun = self._begun(plan, ways, checkpoint, idempotency, resume=resume)
        if isinstance(begun, Trained):
            return begun
        run, spending, revealed = begun
        spend = plan.spend.epsilon, plan.spend.delta

        def after() -> bool:
            view = StepView(run, spending, spend, run.step - 1)
            said = [one(view) is True for one in told]  # each is called, whatever another says
            return any(said)

        with bar(plan.query.dataset.name, plan.query.steps, spending, shown=progress) as told_steps:
            while run.left:
                run.advance(min(plan.every - run.step % plan.every, run.left), after if told else None)
                run.tell(callback)
                told_steps(run.step)
        return self._trained(run.finish(self._model), spending, revealed)

    def run(
        self,
        *,
        epsilon: Exact | None = None,
        delta: Exact,
        noise_multiplier: Exact | None = None,
        epochs: Exact | None = None,
        steps: int | None = None,
        batch: int | None = None,
        optimizer: object = None,
        lr: float | Rate | None = None,
        scheduler: object = None,
        max_physical_batch_size: int | None = None,
        autocast: "torch.dtype | None" = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        idempotency: str | None = None,
        noise: Correlated | None = None,
        average: Average | None = None,
    ) -> OpenRun:
        """Charge the whole run, and hand over its steps one by one, for a loop of one's own.

        Each setting means what it means for :meth:`fit`, and the charge is the same. A model with hooks of the caller
        is refused, and so is a step while a mode or a hook of torch would hear it. With ``checkpoint`` a run is
        written down whenever its weights or its optimizer's state are looked at, and when it is closed; one that has
        ended is not opened again.
        """
        check_no_hooks(self._model)
        plan = self.plan(
            epsilon=epsilon,
            delta=delta,
            noise_multiplier=noise_multiplier,
            epochs=epochs,
            steps=steps,
            batch=batch,
            lr=lr,
            max_physical_batch_size=max_physical_batch_size,
            noise=noise,
        )
        ways = _Ways(optimizer=optimizer, lr=lr, scheduler=scheduler, autocast=autocast, average=average, strict=True)
        begun = self._begun(plan, ways, checkpoint, idempotency, resume=resume)
        if isinstance(begun, Trained):
            raise Refused(
                "this run has ended, and its weights were put into the model again; nothing was read and nothing was "
                "spent. trainer.fit(…, resume=True) hands over its release."
            )
        opened, spending, revealed = begun

        def end(run: Run, spending: Spending) -> Trained:
            return self._trained(run.finish(self._model), spending, revealed)

        return OpenRun(opened, spending, plan.spend, self._loss, end)

    def _begun(
        self, plan: Plan, ways: "_Ways", checkpoint: str | Path | None, idempotency: str | None, *, resume: bool
    ) -> "Trained | tuple[Run, Spending, RevealedCanaries | None]":
        """Charge a run, or find its charge again; whatever can be refused is refused before. One that has ended is told
        again."""
        path = None if checkpoint is None else Path(checkpoint)
        if self._canaries is not None and (path is not None or idempotency is not None or resume):
            raise InvalidInput(
                "the coins of canaries are drawn for one run and kept in no file; nothing was read and nothing was "
                "spent. Leave checkpoint, idempotency and resume out, or the canaries."
            )
        make = partial(made_optimiser, ways.optimizer, self._model, rate=plan.rate)
        schedule = partial(made_schedule, ways.scheduler, ways.lr, ways.optimizer)
        trial = rehearse(make, self._model, ways.average)  # what cannot be copied or learned with is refused here
        if (rates := schedule(trial)) is not None:
            rates.rehearse(trial, plan.query.steps)
        check_nobody_listens(strict=ways.strict)
        device = next(self._model.parameters()).device
        with cast_of(device, checked_cast(ways.autocast))():
            tried = self._try_out(plan.max_physical_batch_size, copy.deepcopy(self._model))
        with ExitStack() as held:
            _hold(held, path, idempotency, resume=resume)
            if resume and path is not None and (told := self._told(plan, path, idempotency, ways.average)) is not None:
                return told
            units, plan, revealed = self._with_canaries(plan)
            limit = plan.query.limit(self._gate.unit)
            again = partial(self._gate.find, charge=_charge(path, idempotency)) if resume else None
            find = again or self._gate.open
            opened = find(plan.query, plan.mechanism, limit, plan.spend, idempotency=idempotency)
            run = self._runs(
                self._gate,
                opened,
                model=self._model,
                loss=self._loss,
                units=units,
                optimizer=make,
                grad_mode=self._grad_mode,
                max_physical_batch_size=plan.max_physical_batch_size,
                words=self._words(),
                augmentations=self._augmentations,
                average=ways.average,
                path=path,
                held=held.pop_all(),
                schedule=schedule,
                autocast=ways.autocast,
                strict=ways.strict,
                tried=tried,
            )
        if resume:
            run.resume()
        else:
            run.start()
        return run, _spending(opened.priced.event, plan), revealed

    def _with_canaries(self, plan: Plan) -> tuple[UnitRows, Plan, RevealedCanaries | None]:
        """The units of a run, and its declaration with the hash of the coins: drawn here, before the charge."""
        if self._canaries is None:
            return self._units, plan, None
        sealed = self._canaries.sealed()
        query = replace(plan.query, canaries=(len(sealed.coins), sealed.commitment))
        before = {name: one.detach().cpu().clone() for name, one in self._model.named_parameters()}
        revealed = RevealedCanaries(sealed=sealed, before=before, loss=self._loss)
        return JoinedUnits(units=self._units, canaries=sealed), replace(plan, query=query), revealed

    def _check_noise(self, noise: Correlated | None) -> None:
        """Refuse noise that a run cannot have."""
        if noise is not None and self._clips is not None:
            raise InvalidInput(
                "noise=… goes with one clip for the whole gradient, and this trainer clips groups of layers; nothing "
                "was done. Say clip=… as a number, or leave noise out."
            )
        if noise is not None and type(noise) not in (AdaptiveClip, Correlated):
            raise InvalidInput(
                "noise must be learning.AdaptiveClip(…) or learning.Correlated(…), and not of a class made from them; "
                "nothing was done."
            )

    def _query(self, *, steps: int, batch: int) -> Training:
        """What a run asks of the data."""
        number = self._units.n_units
        return Training(
            dataset=self._units.dataset,
            units=self._units.kind,
            clip=self._clip,
            times=self._units.times,
            records=self._units.max_records_per_unit,
            number=number,
            rate=Fraction(batch, number),
            steps=steps,
            parameters=self._parameters,
            clips=self._clips,
        )

    def _usual_batch(self, number: int) -> int:
        """How many units a step expects where nothing is said."""
        return suggested_batch(number)

    def _calibrated(self, query: Training, spend: Budget) -> NoisySums:
        """The noise with which a run keeps a spend."""
        return NoisySums.calibrated(query, spend)

    def _with_noise(self, query: Training, multiplier: Fraction) -> NoisySums:
        """The noise of a run with a multiplier that was said."""
        return NoisySums(multiplier=multiplier, steps=query.steps, rate=query.rate, parameters=query.parameters)

    def _multiplied(
        self,
        query: Training,
        multiplier: Exact,
        epsilon: Exact | None,
        delta: Exact,
        noise: Correlated | None,
        moved: Sensitivity,
    ) -> tuple[NoisySums, Budget]:
        """The noise that was said, and what it spends at δ."""
        if epsilon is not None:
            raise InvalidInput(
                "both epsilon and noise_multiplier were said, and each follows from the other; nothing was read and "
                "nothing was spent. Say one of them."
            )
        if noise is not None:
            raise InvalidInput(
                "noise_multiplier is for independent noise; nothing was done. With noise=…, say epsilon=…."
            )
        mechanism = self._with_noise(query, positive(multiplier, "noise_multiplier"))
        if positive(delta, "delta") >= 1:
            raise InvalidInput("delta must be below 1; nothing was done. Give a smaller one.")
        found = accounted(mechanism.loss(moved), delta=delta)
        return mechanism, Budget.asked(epsilon=Fraction(-(-found * MILLION // 1), MILLION), delta=delta)

    def _step_length(self, query: Training) -> Fraction:
        """How long a step of the learning rate takes the gradient of one unit to be."""
        return self._clip

    def _trained(self, release: Release, spending: Spending, revealed: RevealedCanaries | None = None) -> Trained:
        said = release.statement
        return Trained(
            model=self._model,
            release=release,
            epsilon=said.spend.epsilon,
            delta=said.spend.delta,
            curve=spending.curve,
            canaries=revealed,
        )

    def _told(self, plan: Plan, path: Path, idempotency: str | None, average: Average | None) -> Trained | None:
        """A run that had ended before its weights were handed over: they are in its last state. Costs nothing."""
        limit = plan.query.limit(self._gate.unit)
        charge = _charge(path, idempotency) if path.exists() else None
        try:
            release = self._gate.told(
                plan.query, plan.mechanism, limit, plan.spend, idempotency=idempotency, charge=charge
            )
        except NotDeclared:
            return None
        if not path.exists():
            raise Refused(f"this run has ended, and {path} with its weights is not there; nothing was spent.")
        _, _, body = read_sealed(path, self._gate.secret("state"), what=Run.WHAT)
        parts = unpacked(body)
        weights = parts["model"]
        trial = copy.deepcopy(self._model)
        trial.load_state_dict(weights)
        if weights_digest(trial) != release.statement.query.weights:  # type: ignore[attr-defined]  # a run is asked by a Training
            return None  # another run with the same settings has ended; this one goes on
        self._model.load_state_dict(weights)
        if average is not None and parts["average"] is not None:
            average.load(parts["average"])
        return self._trained(release, _spending(release.statement.event, plan))

    def _try_out(self, size: int, model: nn.Module | None = None) -> Engine | None:
        """Run the engine on made-up units: what cannot be trained says so before anything is charged or read.

        With ``model``, a copy that a run will train: what was found out about it is handed over.
        """
        model = self._model if model is None else model
        device = next(model.parameters()).device
        inputs, targets, present = self._units.example(size)
        inputs, targets, present = tuple(part.to(device) for part in inputs), targets.to(device), present.to(device)
        check_uncoupled(model, self._loss, inputs, targets, unit=self._units.kind)
        kind = self._units.kind
        if self._augmentations is not None:
            given = inputs[0] if len(inputs) == 1 else inputs
            made, targets, present = self._augmentations(given, targets, present, words=SystemWords(), kind=kind)
            inputs, kind = (made,), "user"
        engine = Engine(
            model,
            self._loss,
            clip=float(self._clip),
            unit=cast("Kind", kind),
            grad_mode=cast("GradMode", self._grad_mode),
            clips=None if self._clips is None else {name: float(one) for name, one in self._clips},
        )
        engine.sum(inputs if len(inputs) > 1 else inputs[0], targets, present)
        return engine


def _spending(event: PrivacyEvent, plan: Plan) -> Spending:
    """The ε of a run by its steps; with groups that take turns an event is one turn of a unit."""
    turn = getattr(plan.mechanism, "groups", 1)
    return Spending(event, plan.spend.delta, plan.spend.epsilon, steps=plan.query.steps, every=turn)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ways:
    """How a run learns and what it computes in; ``strict`` where the loop is the caller's."""

    optimizer: object
    lr: float | Rate | None
    scheduler: object
    autocast: "torch.dtype | None"
    average: Average | None
    strict: bool = False


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _charge(path: Path | None, idempotency: str | None) -> int | None:
    return None if idempotency is not None or path is None else charge_of(path, what=Run.WHAT)


def _hold(held: ExitStack, path: Path | None, idempotency: str | None, *, resume: bool) -> None:
    """Take hold of the file of the state; whatever can be refused is refused here, before anything is charged."""
    if path is None:
        if idempotency is not None or resume:
            raise InvalidInput("a run is found again by its file; nothing was spent. Say checkpoint=….")
        return
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"there is no folder for {path}; nothing was read and nothing was spent.")
    held.enter_context(locked(path, what=Run.WHAT))
    if not resume and path.exists():
        raise Refused(
            f"{path} holds the state of a training run already; nothing was read and nothing was spent. Say "
            "resume=True, or choose another file."
        )
