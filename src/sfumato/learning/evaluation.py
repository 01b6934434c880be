"""Private evaluation: how many held-out units a model gets right, asked a declared number of times for one charge.

Stopping early, or picking the best of several models, on private units without this is a release that nobody paid for.
Proof: docs/proofs/training_noise.md
"""

import copy
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NoReturn, SupportsIndex

from sfumato.core.budget import Budget
from sfumato.core.deprecation import renamed
from sfumato.core.description import Description, Word, phrase
from sfumato.core.exact import Exact, fraction_text, natural
from sfumato.core.finding import check_fit
from sfumato.core.interrupts import FAILED, attempt
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Law, Mechanism
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Record, Unit, User, describe
from sfumato.errors import EngineFailed, InvalidInput, Refused, Unsupported
from sfumato.gate.session import Opened, SessionGate
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.learning.describe import accuracies
from sfumato.learning.laid import Laid
from sfumato.learning.shielded import shielded
from sfumato.learning.silence import silence
from sfumato.learning.unchanged import Unchanged
from sfumato.learning.units import Units
from sfumato.mechanisms.gaussian import Gaussian

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sfumato.core.release import Release
    from sfumato.noise import Words

__all__ = ["EarlyStop", "Evaluated", "Evaluations", "Evaluator"]

KINDS = ("record", "user")
CONFIDENCE = Fraction(19, 20)
PHYSICAL = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluations:
    """How many of ``number`` held-out units a model gets right, asked up to ``evaluations`` times.

    Of its ``units`` a *record* is right or wrong, and a *user* is right where more than half of the person's records
    are (at most ``records`` count). Whoever is protected occurs in at most ``times`` units. Later models may be chosen
    after seeing earlier answers. ``done`` is how many times was asked.

    Guarantee: :meth:`sensitivity` bounds the move of all counts together. Assumes: a model says of one unit what it
    would say of it alone. Public: every field. Sensitive: who is right.
    """

    KIND: ClassVar[str] = "query.evaluations"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.gaussian",)
    dataset: Dataset
    units: str
    evaluations: int
    number: int
    times: int
    records: int
    done: int = 0

    def __post_init__(self) -> None:
        natural(self.evaluations, "evaluations", most=2**20)
        for name in ("number", "times", "records"):
            natural(getattr(self, name), name, most=2**40)
        natural(self.done, "done", least=0, most=self.evaluations)
        if self.units not in KINDS:
            raise InvalidInput(f"units to evaluate on are of kind {' or '.join(KINDS)}; nothing was done.")

    @property
    def size(self) -> None:
        """As many numbers as were asked for: see :meth:`misfit`."""
        return

    @property
    def measure(self) -> None:
        """None: shares are computed from the counts."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("accuracy",)

    def labels(self) -> Mapping[str, Sequence[int]]:
        """Which evaluation it was, from 1 on."""
        return {"evaluation": tuple(range(1, self.done + 1))}

    def columns(self, release: "Release") -> Mapping[str, Figure]:
        """The share of units that each model gets right, with the error of its noise."""
        said, part = release.statement, Fraction(1, self.number)
        forms = tuple(
            LinearCombination(value * part, {Noise(said.identifier, place, said.law): part})
            for place, value in enumerate(said.values)
        )
        labels = {name: tuple(column) for name, column in self.labels().items()}
        return {"accuracy": Figure(forms=forms, labels=labels, measure="accuracy", sources=(release,))}

    check_answer = check_fit

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        facts: dict[str, Word] = {}
        if said.sensitivity.l2 is not None:
            squared = fraction_text(said.sensitivity.l2.squared)
            facts["sensitivity"] = phrase("fact.sensitivity_rows_l2", squared=squared)
        return accuracies(self, said, number=self.number, **facts)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of each share, or of all of them at once."""
        return {"accuracy": Fraction(law.margin(confidence, numbers=self.evaluations if joint else 1), self.number)}

    def limit(self, unit: Unit) -> Limit | None:
        """How much of each person counts."""
        if not isinstance(unit, User):
            return None
        if self.units == "user":
            return Limit(groups=1, rows_per_group=self.records)
        return Limit(groups=self.times, rows_per_group=1)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one protected unit moves all counts: by ``times`` in each evaluation, added, removed or replaced.

        >>> from sfumato.core.units import record
        >>> asked = Evaluations(dataset=Dataset(name="test", edition="1"), units="record", evaluations=9, number=100,
        ...                     times=1, records=1)
        >>> asked.sensitivity(record(relation="add/remove"), None).l2
        L2(squared=Fraction(9, 1))
        """
        if not isinstance(unit, Record | User):
            raise Unsupported(f"an evaluation protects records or users, not {describe(unit)}; nothing was read.")
        if limit != self.limit(unit):
            raise Refused(f"the limit of this evaluation must be {self.limit(unit)}; nothing was read or spent.")
        asked, moved = self.evaluations, self.times
        return Sensitivity.of(l0=asked, l1=asked * moved, l2_squared=asked * moved**2, linf=moved)

    def mechanism(self, unit: Unit, spend: Budget) -> Gaussian:
        """The least noise on each count that a spend allows for all of them."""
        if spend.delta == 0:
            raise InvalidInput("the noise of evaluations is Gaussian and needs a delta above 0; nothing was done.")
        moved = self.sensitivity(unit, self.limit(unit)).l2
        if moved is None:
            raise InvalidInput("the counts have no l2 bound; nothing was done.")
        return Gaussian.calibrated(l2=moved, epsilon=spend.epsilon, delta=spend.delta)

    def mismatch(self, mechanism: Mechanism, unit: Unit) -> str | None:
        """What is wrong with a mechanism for this, if anything."""
        return None if type(mechanism) is Gaussian else "must be Gaussian noise on counts"

    def misfit(self, mechanism: Mechanism, unit: Unit, values: tuple[int, ...]) -> str | None:
        """What is wrong with an answer, if anything."""
        problem = self.mismatch(mechanism, unit)
        if problem is None and len(values) != self.done:
            problem = f"must have released {self.done} counts"
        return problem


@renamed(number="n_units")
@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """A noisy count of units that a model got right, of ``n_units``; within ±``margin`` in 95 of 100. Public."""

    count: int
    n_units: int
    margin: int

    @property
    def share(self) -> float:
        """The share that was right; noise can take it below 0 and above 1.

        >>> Evaluated(count=90, n_units=100, margin=4).share
        0.9
        """
        return self.count / self.n_units


class Evaluator:
    """Held-out units that were paid for, to ask how models do on them; made by ``vault.evaluator``.

    Guarantee: all answers together are (ε, δ)-DP for the vault's unit, for one charge that is made before any row is
    read; models may be chosen after seeing answers. A question beyond the declared number is refused, whichever thread
    asks it, and each takes its place before a row is read. It cannot be copied, pickled, or used after a fork. The
    charge is added to that of training: where nobody is in both parts, this is more than needed. A unit that the model
    cannot compute counts as wrong, with no error. Assumes: no operation of a model or of ``metric`` has a rule of its
    own for many units at once (``torch.autograd.Function.vmap``, ``torch.library``) that mixes them. Sensitive: the
    units alone.
    """

    def __init__(
        self,
        gate: SessionGate,
        *,
        data: Units,
        evaluations: int,
        epsilon: Exact,
        delta: Exact,
        metric: "Callable[[Tensor, Tensor], Tensor] | None" = None,
        words: "Words | None" = None,
    ) -> None:
        from sfumato.learning.given_units import check_units

        check_units(data)
        data.check(gate.unit)
        data.check_home(gate.notary)
        query = Evaluations(
            dataset=data.dataset,
            units=data.kind,
            evaluations=evaluations,
            number=data.n_units,
            times=data.times,
            records=data.max_records_per_unit,
        )
        spend = Budget.asked(epsilon=epsilon, delta=delta)
        mechanism = query.mechanism(gate.unit, spend)
        opened = gate.open(query, mechanism, query.limit(gate.unit), spend, idempotency=None)
        self._begin(gate, opened, data=data, query=query, mechanism=mechanism, metric=metric, words=words)

    def _begin(
        self,
        gate: SessionGate,
        opened: Opened,
        *,
        data: Units,
        query: Evaluations,
        mechanism: Gaussian,
        metric: "Callable[[Tensor, Tensor], Tensor] | None",
        words: "Words | None",
    ) -> None:
        """Begin with what was charged for."""
        self._gate, self._units, self._metric, self._words = gate, data, metric or _highest, words
        self._opened, self._query, self._mechanism = opened, query, mechanism
        self._lock, self._process = threading.RLock(), os.getpid()
        self._values: list[int] = []
        self._taken, self._reading = 0, 0  # places in the declared number, and questions that are under way
        self._laid: Laid | None = None
        self._release: Release | None = None

    def __repr__(self) -> str:
        return f"<evaluator on {self._query.dataset.name!r}: {self.left:,} of {self._query.evaluations:,} left>"

    @property
    def left(self) -> int:
        """How many more times may be asked. Public."""
        return 0 if self._release is not None else self._query.evaluations - self._taken

    def ask(self, model: "nn.Module") -> Evaluated:
        """How many of the units this model gets right, with noise. A copy of it is asked; several threads take turns.

        A question that failed while it read has taken its place, and is not given back.
        """
        with self._lock:
            self._check_left()
            asked = copy.deepcopy(model).eval()
            self._rehearse(asked)
            self._gate.check(self._opened)
            self._check_left()  # the rehearsal ran the caller's code, which may have asked as well
            self._taken, self._reading = self._taken + 1, self._reading + 1
            try:
                told = self._told(asked)
                self._values.append(told)
            finally:
                self._reading -= 1
        return Evaluated(count=told, n_units=self._query.number, margin=self._mechanism.law.margin(CONFIDENCE))

    def close(self) -> "Release":
        """Sign what was released; what was not asked for is not refunded."""
        with self._lock:
            if self._release is None:
                self._check_process()
                if self._reading:
                    raise Refused("a question is under way, and its answer would not be signed; nothing was closed.")
                query = replace(self._query, done=len(self._values))
                self._release = self._gate.close(self._opened, query, tuple(self._values))
            return self._release

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise Refused(
            "an evaluator is not copied: two of them would release from one charge. Nothing was copied. Open another "
            "evaluator, which is charged by itself."
        )

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise Refused(
                "this evaluator was opened in another process, and a forked copy would release from the same charge; "
                "nothing was read. Go on where it was opened."
            )

    def _check_left(self) -> None:
        self._check_process()
        if not self.left:
            raise Refused(
                f"{self._query.evaluations:,} evaluations were declared and paid for, and they were made; nothing was "
                "read. Open another evaluator, which is charged by itself."
            )

    def _told(self, model: "nn.Module") -> int:
        from sfumato.noise import SystemWords

        return self._mechanism.add_noise((self._counted(model),), self._words or SystemWords())[0]

    def _rehearse(self, model: "nn.Module") -> None:
        """Ask the model about made-up units: what cannot be asked says so before a row is read."""
        with Unchanged(model, self._metric):
            self._of(model, *self._units.example(PHYSICAL))

    def _counted(self, model: "nn.Module") -> int:
        """The exact count. Sensitive."""
        found = attempt(lambda: self._silently(model))
        if found is not FAILED or not self._gate.fail(self._opened):
            self._gate.check(self._opened)  # of questions at once, one tells that it failed; all others this
        if found is not FAILED:
            return found
        raise EngineFailed(
            f"the engine stopped while it read {self._query.dataset.name!r}. Rows were read, so the charge of "
            f"{self._opened.charged} is kept; nothing was released, and this version of the data is closed. Check the "
            "data, then declare it as a new version."
        )

    def _silently(self, model: "nn.Module") -> int:
        with silence():
            return self._exact(model)

    def _exact(self, model: "nn.Module") -> int:
        import torch

        if self._laid is None:
            self._laid = self._units.laid(self._gate.secret(f"rows of {self._query.dataset.name}"))
        laid, found = self._laid, 0
        asked = self._asked(laid.number)
        for start in range(0, len(asked), PHYSICAL):
            spots = torch.arange(start, start + PHYSICAL)
            here, places = spots < len(asked), asked[spots % len(asked)]  # of one shape; what comes round is absent
            part = partial(laid.gathered, *laid.rows_of(places, here), self._taken)
            whole = self._tried(model, *part())
            if whole is None:  # what failed may have written to its rows: they are gathered anew
                whole = self._one_by_one(model, *part())
            found += whole
        return found

    def _asked(self, number: int) -> "Tensor":
        """Which of this many units count: all of them. Sensitive."""
        import torch

        return torch.arange(number)

    def _one_by_one(self, model: "nn.Module", inputs: "tuple[Tensor, ...]", targets: "Tensor", here: "Tensor") -> int:
        """How many units of a batch are right, each in its place of the same shape; one that fails is wrong.

        So an error that a row brings about changes what its own unit adds and nothing else, as in training; and as
        there, nothing is tried on made-up units here.
        """
        found = 0
        for place in range(len(here)):
            alone = here.clone().fill_(value=False)
            alone[place] = here[place]
            if alone.any():
                repeated = tuple(part[place].expand_as(part).clone() for part in inputs)
                batch = repeated, targets[place].expand_as(targets).clone(), alone
                found += self._tried(model, *batch) or 0
        return found

    def _tried(self, model: "nn.Module", inputs: "tuple[Tensor, ...]", targets: "Tensor", here: "Tensor") -> int | None:
        """How many units of a batch are right; None where the model cannot do some row of it.

        What dies with an exception dies before everything is put back.
        """
        found = shielded(lambda: self._of(model, inputs, targets, here), Unchanged(model, self._metric))
        return None if found is FAILED else found

    def _of(self, model: "nn.Module", inputs: "tuple[Tensor, ...]", targets: "Tensor", here: "Tensor") -> int:
        """How many units of a batch are right, each record asked about by itself."""
        import torch
        from torch.func import functional_call

        from sfumato.learning.kept_tensors import NoAssignedData

        parameters = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        device = next((one.device for one in parameters.values()), torch.device("cpu"))

        def one(x: "tuple[Tensor, ...]", y: "Tensor") -> "Tensor":
            outputs = functional_call(model, parameters, tuple(part[None] for part in x))
            return self._metric(outputs, y[None]).reshape(())

        ask = torch.vmap(one)
        if self._query.units == "user":
            ask = torch.vmap(ask)
        with NoAssignedData(), torch.no_grad():
            right = ask(tuple(part.to(device) for part in inputs), targets.to(device)).cpu().bool() & here
        if self._query.units == "user":
            right = 2 * right.sum(1) > here.sum(1)
        return int(right.sum())


class EarlyStop:
    """End a run when held-out accuracy has not risen for ``patience`` evaluations: ``fit(callback=EarlyStop(…))``.

    It asks an :class:`Evaluator`, so that every look is paid for; once that has no evaluation left, the run goes on to
    its end unseen. ``told`` is what it received, and ``best`` are the weights that did best by the noisy counts, which
    are released weights and may be used. The charge of the run is what it was, however early it ends.
    """

    def __init__(self, evaluator: Evaluator, model: "nn.Module", *, patience: int = 2) -> None:
        self._evaluator, self._model = evaluator, copy.deepcopy(model)
        self._patience = natural(patience, "patience")
        self.told: list[tuple[int, Evaluated]] = []
        self.best: dict[str, Tensor] | None = None

    def __call__(self, step: int, weights: "Mapping[str, Tensor]") -> bool:
        """Look at the weights of a step; True ends the run."""
        if not self._evaluator.left:
            return False
        self._model.load_state_dict(dict(weights))
        now = self._evaluator.ask(self._model)
        self.told.append((step, now))
        counts = [each.count for _, each in self.told]
        if now.count == max(counts) and counts.count(now.count) == 1:
            self.best = dict(weights)
        return len(counts) - 1 - counts.index(max(counts)) >= self._patience


def _highest(outputs: "Tensor", targets: "Tensor") -> "Tensor":
    """Whether the highest output is that of the class; of one output, whether its sign is."""
    if outputs.shape[-1] == 1:
        return (outputs.squeeze(-1) > 0).long() == targets.long()
    return outputs.argmax(-1) == targets
