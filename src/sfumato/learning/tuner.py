"""Tuning with its price: a hidden number of private training runs, one charge, and one model at the end.

All ``most`` runs are made, whatever the hidden number is, so that neither time nor memory nor a log tells it.
Proof: docs/proofs/tuning.md
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, natural, non_negative, positive, probability
from sfumato.core.hidden_runs import MOST_RUNS, gamma_for
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, NotDeclared, Refused, SfumatoError
from sfumato.gate.session import Opened, SessionGate
from sfumato.learning.best_of_runs import BestOfRuns
from sfumato.learning.clip_groups import clips_of
from sfumato.learning.evaluation import Evaluations, Evaluator
from sfumato.learning.given import Thing
from sfumato.learning.hidden_parts import HiddenSplit, PartSums
from sfumato.learning.hints import suggested_batch, suggested_part, suggested_rate
from sfumato.learning.laid import Laid
from sfumato.learning.optimisers import heard, made_optimiser, rehearse
from sfumato.learning.run import Run
from sfumato.learning.silence import silence
from sfumato.learning.trainer import Trainer
from sfumato.learning.training import Training
from sfumato.learning.tuning import Tuning, check_searched
from sfumato.learning.units import Units
from sfumato.learning.weights import weights_digest
from sfumato.noise import SystemWords, Words
from sfumato.noise.hidden_runs import sample_run_number
from sfumato.noise.words import WordBits

if TYPE_CHECKING:
    from sfumato.gate.notary import Priced

__all__ = ["SearchPlan", "TunedModel", "Tuner"]

OF_TRAINING = ("lr", "clip", "batch", "steps", "epochs", "optimizer")
TIMES = 4  # as many runs are made as are expected to count, times this
LOWEST = -(2**62)  # the score of a run that failed

Settings = Mapping[str, Thing]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """What a search will be, from public facts alone: ``mechanism.expected`` runs count on average."""

    query: Tuning
    mechanism: BestOfRuns
    spend: Budget
    rates: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedModel:
    """The best model of a search, its settings, and what the search cost. Public: all of it.

    ``score`` is the noisy count of ``n_units`` held-out units that it got right: the highest of several, and so too
    high on average.
    """

    model: nn.Module
    settings: Settings
    score: int
    n_units: int
    release: Release
    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True)
class _Try:
    """A candidate as it is run."""

    settings: Settings
    model: nn.Module
    training: Training
    optimizer: object


class Tuner:
    """Searches over settings of training runs; made by ``vault.tuning``.

    Guarantee: the model that :meth:`fit` hands over, its settings and its score are (ε, δ)-DP for the vault's unit, for
    one charge that is made before any row is read. No other model, no score and no number of runs is told, logged or
    written; a run whose optimizer fails has the lowest score. Assumes: what a :class:`~sfumato.learning.Trainer`
    assumes; model, loss and metric tell nobody what they see in runs that are not handed over; the time that a run
    takes is that of any run. Public: everything but the units. Proof: docs/proofs/tuning.md
    """

    _words: Callable[[], Words] = SystemWords  # tests put a source here that can be put back

    def __init__(
        self,
        gate: SessionGate,
        build: Callable[..., nn.Module],
        loss: Callable[..., Tensor],
        *,
        data: Units,
        candidates: Sequence[Settings],
        held_out: Exact = Fraction(1, 5),
        metric: Callable[[Tensor, Tensor], Tensor] | None = None,
        grad_mode: str = "auto",
    ) -> None:
        if isinstance(build, nn.Module) or not callable(build):
            raise InvalidInput("build is a function of settings that makes a model, not a model; nothing was done.")
        given = list(candidates)
        if not given or any(not isinstance(one, Mapping) for one in given):
            raise InvalidInput("candidates is a list of dicts of settings, at least one; nothing was done.")
        check_searched(gate.unit, data.times, data.kind)
        self._gate, self._build, self._loss, self._units = gate, build, loss, data
        self._candidates, self._metric, self._grad_mode = [dict(one) for one in given], metric, grad_mode
        self._held_out = positive(probability(held_out, "held_out"), "held_out")
        if self._held_out == 1:
            raise InvalidInput("held_out = 1 leaves nobody to train on; nothing was done.")

    def __repr__(self) -> str:
        return f"<search over {len(self._candidates):,} candidates on {self._units!r}>"

    def plan(
        self,
        *,
        epsilon: Exact,
        delta: Exact,
        expected_runs: Exact = 10,
        eta: Exact = 1,
        most: int | None = None,
        **common: Thing,
    ) -> SearchPlan:
        """What a search with these settings will be; reads nothing and spends nothing."""
        return self._planned(self._tries(common), epsilon, delta, expected_runs, eta, most)

    def fit(
        self,
        *,
        epsilon: Exact,
        delta: Exact,
        expected_runs: Exact = 10,
        eta: Exact = 1,
        most: int | None = None,
        **common: Thing,
    ) -> TunedModel:
        """Charge the whole search, make all runs, and hand over the best model; nothing is read before the charge.

        ``common`` are settings of all candidates that do not say them: ``lr``, ``clip``, ``batch``, ``steps`` or
        ``epochs``, ``optimizer``. How many runs count is drawn in secret, ``expected_runs`` on average if there were no
        largest number ``most``, which is four times as many if not said; all ``most`` runs are made. ``eta`` is the
        shape of that law: 0 costs least, larger ones vary less.
        """
        tries = self._tries(common)
        plan = self._planned(tries, epsilon, delta, expected_runs, eta, most)
        split, words = HiddenSplit(plan.query.held_out, self._words()), self._words()
        units = cast("Units", _Once(self._units))
        scorer = _Scorer(self._gate, plan, units, self._metric, words, split)
        for one, rate in zip(tries, plan.rates, strict=True):
            make = partial(made_optimiser, one.optimizer, one.model, rate=rate)
            rehearse(make, one.model, None)
            if not _of_torch(one.optimizer) or heard(make(copy.deepcopy(one.model)), None):
                raise Refused(
                    "the optimizer of a search is a class of torch.optim or one made by it, without hooks, and no "
                    "function of yours: models that are not handed over must not be heard. Nothing was read and "
                    "nothing was spent."
                )
            scorer.rehearse(one.model)
        query = plan.query
        limit = query.limit(self._gate.unit)
        opened = self._gate.open(query, plan.mechanism, limit, plan.spend, idempotency=None)
        scorer.paid(opened)
        with silence():
            chosen, score, weights = self._best(tries, plan, opened, scorer, split, units, words)
        found = copy.deepcopy(tries[chosen].model)
        found.load_state_dict(weights)
        self._gate.check(opened)
        ended = replace(query, chosen=chosen + 1, score=score, weights=weights_digest(found))
        release = self._gate.close(opened, ended, ())
        said = release.statement.spend
        return TunedModel(
            model=found,
            settings=tries[chosen].settings,
            score=score,
            n_units=int(query.judges),
            release=release,
            epsilon=said.epsilon,
            delta=said.delta,
        )

    def _tries(self, common: Settings) -> list[_Try]:
        """All candidates, each with a model that was tried on made-up units."""
        unknown = set(common) - set(OF_TRAINING)
        if unknown:
            raise InvalidInput(
                f"{', '.join(sorted(unknown))} is no setting of training; nothing was done. Those are "
                f"{', '.join(OF_TRAINING)}; say what the model is made with in the candidates."
            )
        return [self._try(one, common) for one in self._candidates]

    def _try(self, own: Settings, common: Settings) -> _Try:
        said = {**common, **{name: value for name, value in own.items() if name in OF_TRAINING}}
        if "steps" in own or "epochs" in own:
            said = {**said, "steps": own.get("steps"), "epochs": own.get("epochs")}
        model = self._build(**{name: value for name, value in own.items() if name not in OF_TRAINING})
        clip, clips = clips_of(said.get("clip", 1))
        given = said.get("clip", 1)
        Trainer(self._gate, model, self._loss, data=self._units, clip=given, grad_mode=self._grad_mode)
        number = max(1, int(self._units.n_units * (1 - self._held_out)))
        batch = said.get("batch")
        batch = suggested_batch(number) if batch is None else natural(batch, "batch", most=number)
        steps, epochs = said.get("steps"), said.get("epochs")
        if (epochs is None) is (steps is None):
            raise NotDeclared("say epochs=… or steps=…, one of them; nothing was read and nothing was spent.")
        if epochs is not None:
            steps = int(-(-positive(epochs, "epochs") * number // batch))
        training = Training(
            dataset=self._units.dataset,
            units=self._units.kind,
            clip=clip,
            times=self._units.times,
            records=self._units.max_records_per_unit,
            number=number,
            rate=Fraction(batch, number),
            steps=natural(steps, "steps"),
            parameters=sum(one.numel() for one in model.parameters() if one.requires_grad),
            clips=clips,
        )
        return _Try({**said, **own}, model, training, said.get("optimizer"))

    def _planned(
        self, tries: list[_Try], epsilon: Exact, delta: Exact, expected: Exact, eta: Exact, most: int | None
    ) -> SearchPlan:
        spend, shape = Budget.asked(epsilon=epsilon, delta=delta), non_negative(eta, "eta")
        mean = positive(expected, "expected_runs")
        made = min(MOST_RUNS, int(-(-TIMES * mean // 1))) if most is None else natural(most, "most", most=MOST_RUNS)
        query = Tuning(
            dataset=self._units.dataset,
            number=self._units.n_units,
            held_out=self._held_out,
            candidates=tuple(one.training for one in tries),
        )
        query.sensitivity(self._gate.unit, query.limit(self._gate.unit))  # refuses whom this does not protect
        mechanism = BestOfRuns.calibrated(
            query.candidates, spend, eta=shape, gamma=gamma_for(mean, eta=shape), most=made
        )
        rates = tuple(_rate(one, sums.multiplier) for one, sums in zip(tries, mechanism.runs, strict=True))
        return SearchPlan(query=query, mechanism=mechanism, spend=spend, rates=rates)

    def _best(
        self,
        tries: list[_Try],
        plan: SearchPlan,
        opened: Opened,
        scorer: "_Scorer",
        split: HiddenSplit,
        units: Units,
        words: Words,
    ) -> tuple[int, int, dict[str, Tensor]]:
        """Make all runs and keep the best of those that count. Sensitive: everything but the result."""
        law = plan.mechanism
        counted = sample_run_number(law.eta, law.gamma, law.most, words)
        best: tuple[int, int, dict[str, Tensor]] | None = None
        for place in range(law.most):
            chosen = WordBits(words).below(len(tries))
            one = tries[chosen]
            mechanism = PartSums(law.runs[chosen], split)
            moved = one.training.sensitivity(self._gate.unit, opened.priced.limit)
            priced = replace(
                cast("Priced[Thing]", opened.priced), query=one.training, mechanism=mechanism, sensitivity=moved
            )
            trained = self._trained(one, plan.rates[chosen], replace(opened, priced=priced), units, words)
            score = LOWEST if trained is None else scorer.score(trained)
            kept = one.model if trained is None else trained
            if place < counted and (best is None or score > best[1]):
                best = chosen, score, {name: part.detach().clone() for name, part in kept.state_dict().items()}
        if best is None:
            raise Refused("no run counted; nothing was released.")
        return best

    def _trained(self, one: _Try, rate: float, opened: Opened, units: Units, words: Words) -> nn.Module | None:
        """The model of one run; None where its optimizer failed, which it can only by what was noised."""
        run = Run(
            self._gate,
            opened,
            model=one.model,
            loss=self._loss,
            units=units,
            optimizer=partial(made_optimiser, one.optimizer, one.model, rate=rate),
            grad_mode=self._grad_mode,
            max_physical_batch_size=_part(one),
            words=words,
        )
        try:
            run.advance(one.training.steps)
        except SfumatoError:
            raise
        except Exception:  # noqa: BLE001 - code of the caller on noised sums: the run scores lowest, and none other is told
            return None
        return run.model


class _Scorer(Evaluator):
    """Judges models on the units that are held out, for the charge of the search. Sensitive: what it says."""

    def __init__(
        self,
        gate: SessionGate,
        plan: SearchPlan,
        units: Units,
        metric: Callable[[Tensor, Tensor], Tensor] | None,
        words: Words,
        split: HiddenSplit,
    ) -> None:
        first = plan.query.candidates[0]
        query = Evaluations(
            dataset=plan.query.dataset,
            units=first.units,
            evaluations=plan.mechanism.most,
            number=plan.query.number,
            times=first.times,
            records=first.records,
        )
        self._split, unpaid = split, cast("Opened", None)
        self._begin(gate, unpaid, data=units, query=query, mechanism=plan.mechanism.score, metric=metric, words=words)

    def paid(self, opened: Opened) -> None:
        """Take the charge that looks are covered by."""
        self._opened = opened

    def rehearse(self, model: nn.Module) -> None:
        """Ask a model about made-up units, before anything is charged."""
        self._rehearse(copy.deepcopy(model).eval())

    def score(self, model: nn.Module) -> int:
        """How many held-out units a model gets right, with noise."""
        return self._told(copy.deepcopy(model).eval())

    def _asked(self, number: int) -> Tensor:
        return torch.from_numpy(self._split.held(number))


def _of_torch(optimizer: object) -> bool:
    """Whether no code of the caller is given the parameters of a run: a class of torch, its settings, or one of it."""
    kind = optimizer.func if isinstance(optimizer, partial) else optimizer
    kind = kind if isinstance(kind, type) else type(kind)
    return optimizer is None or getattr(torch.optim, kind.__name__, None) is kind


class _Once:
    """Units that are laid out once for all runs."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self._laid: Laid | None = None

    def laid(self, key: bytes) -> Laid:
        """The units, laid out; sensitive."""
        if self._laid is None:
            self._laid = self._units.laid(key)
        return self._laid

    def __getattr__(self, name: str) -> Thing:
        return getattr(self._units, name)


def _rate(one: _Try, multiplier: Fraction) -> float:
    run, said = one.training, one.settings.get("lr")
    if said is not None and not (np.isfinite(said) and said >= 0):
        raise InvalidInput("lr must be a finite number of at least 0; nothing was done and nothing was spent.")
    expected = run.rate * run.number
    return (
        suggested_rate(clip=run.clip, multiplier=multiplier, expected=expected, steps=run.steps)
        if said is None
        else float(said)
    )


def _part(one: _Try) -> int:
    """How many units are computed at a time, as in a plain run."""
    run, device = one.training, next(one.model.parameters()).device.type
    return suggested_part(int(run.rate * run.number), run.number, device=device)
