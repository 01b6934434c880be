"""``vault.generator``: a table, its declared columns, and rows of a generator that a private critic taught."""

import secrets
from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, natural, positive, probability
from sfumato.core.release import Release
from sfumato.errors import BudgetExceeded, InvalidInput, NotDeclared, Refused, SfumatoError
from sfumato.gate.session import SessionGate
from sfumato.learning.generative.cell_rows import CellRows
from sfumato.learning.generative.course import GeneratorCourse, GeneratorSettings, NetworkOptimizer, PairOptimizer
from sfumato.learning.generative.critic_rounds import CRITIC_RATES, critic_of, loss_of
from sfumato.learning.generative.generated import MOST_ROWS, GeneratedTable, GeneratorQuality, RowMaker
from sfumato.learning.generative.networks import CellCritic
from sfumato.learning.person_updates import Loss
from sfumato.learning.progress import bar
from sfumato.learning.trainer import Plan, Trainer
from sfumato.learning.units import Units
from sfumato.synthesis.measured import Layout, one_way, total_of
from sfumato.tables.table import Table

if TYPE_CHECKING:
    from datetime import date

    from numpy.typing import NDArray

    from sfumato.tables.synthesized import Synthesis

__all__ = ["GeneratorTrainer"]

STEPS = 500
BATCH = 1024


class GeneratorTrainer:
    """Trains a generator of rows of a table; made by ``vault.generator``.

    Guarantee: the generator and its rows are (ε, δ)-DP for the vault's unit. The critic alone sees rows, is trained by
    one :class:`~sfumato.learning.Trainer` for one charge, and the generator is handed its noisy weights; noisy shares
    of values, where they are used, are a question of their own, and both charges add up to what was asked for.
    Assumes: columns and settings were chosen without the data. Public: everything but the rows.
    Proof: docs/proofs/generative.md
    """

    _trainers: type[Trainer] = Trainer
    _courses: type[GeneratorCourse] = GeneratorCourse
    _seed: int | None = None  # of tests; else drawn anew for each run

    def __init__(
        self,
        gate: SessionGate,
        table: Table,
        columns: Sequence[str] | None,
        *,
        bins: "Mapping[str, int | Sequence[Exact | date]] | None",
        missing: Sequence[str],
        marginals: Exact,
        n_units: int | None,
        clip: Exact | None,
        settings: GeneratorSettings | None,
    ) -> None:
        if not isinstance(table, Table):
            raise InvalidInput("a generator takes a table of the vault; nothing was read and nothing was spent.")
        self._asked: Synthesis = table.synthesis(columns, bins=bins, missing=missing)
        if len(self._asked.columns) < 2:
            raise InvalidInput("a generator takes two columns or more; nothing was done. Ask for the counts of one.")
        names = [column.name for column in self._asked.columns]
        self._shares_asked: Synthesis = table.synthesis(
            columns, bins=bins, missing=missing, workload=[[name] for name in names]
        )
        self._share = probability(marginals, "marginals")
        if self._share > Fraction(1, 2):
            raise InvalidInput("marginals is the part of ε for noisy shares of values, at most a half; nothing done.")
        if settings is not None and type(settings) is not GeneratorSettings:
            raise InvalidInput("settings are learning.GeneratorSettings(…); nothing was done.")
        if settings is not None and settings.critic not in CRITIC_RATES:
            raise InvalidInput(f"critic is one of {', '.join(CRITIC_RATES)}; nothing was done.")
        self._gate, self._table, self._settings = gate, table, settings or GeneratorSettings()
        self._clip = positive(self._critic(0).clip if clip is None else clip, "clip")
        rows = CellRows(table, self._asked.columns)
        rows.check_home(gate.notary)
        self._units = Units._late(
            rows,
            n_units=rows.n_units if n_units is None else n_units,
            name=table.dataset.name,
            version=table.dataset.edition,
            max_records_per_unit=rows.most_rows,
            times=None,
        )
        self._trainer(self._critic(0))  # what cannot be trained is refused here

    def __repr__(self) -> str:
        return f"<generator of {len(self._asked.columns)} columns, from {self._units!r}>"

    def across_sites(self) -> tuple[CellCritic, Loss, Units]:
        """What a site of a consortium brings: a critic that has learned nothing, its loss, and the unread rows."""
        critic = self._critic(0)
        return critic, loss_of(critic), self._units

    def plan(
        self,
        *,
        epsilon: Exact,
        delta: Exact,
        steps: int | None = None,
        epochs: Exact | None = None,
        batch: int | None = None,
    ) -> Plan:
        """What the run of the critic would be, from public facts alone; reads nothing and spends nothing.

        Without ``steps`` or ``epochs`` there are 500 steps, and without ``batch`` one of 1,024 units, or of a quarter
        of all where there are fewer.
        """
        spend = Budget.asked(epsilon=epsilon, delta=delta)
        if steps is None and epochs is None:
            steps = STEPS
        batch = min(BATCH, max(1, self._units.n_units // 4)) if batch is None else batch
        return self._trainer(self._critic(0)).plan(
            epsilon=spend.epsilon * (1 - self._share), delta=spend.delta, steps=steps, epochs=epochs, batch=batch
        )

    def fit(
        self,
        *,
        epsilon: Exact,
        delta: Exact,
        steps: int | None = None,
        epochs: Exact | None = None,
        batch: int | None = None,
        rows: int | None = None,
        lr: float | None = None,
        progress: bool | None = None,
    ) -> GeneratedTable:
        """Charge, train the critic, let the generator learn from its noisy weights, and make rows.

        ``steps``, ``epochs`` and ``batch`` are the critic's, as for a trainer, and ``lr`` its learning rate. ``rows``
        is how many rows are made; without it the noisy number of rows, or, where no noisy shares are asked for, the
        declared number of units if each has one row. Of ε the part ``marginals`` goes to the noisy shares, the rest
        and δ to the critic. A run that is cut off has no rows, and its charge stays: there is no checkpoint.
        """
        plan = self.plan(epsilon=epsilon, delta=delta, steps=steps, epochs=epochs, batch=batch)
        self._check_rows(rows)
        self._check_left(Budget.asked(epsilon=epsilon, delta=delta))
        rate = CRITIC_RATES[self._settings.critic] if lr is None else float(positive(lr, "lr"))
        marginals, shares, total = self._shares(Budget.asked(epsilon=epsilon, delta=delta))
        try:
            seed = secrets.randbits(48) if self._seed is None else self._seed
            critic = self._critic(seed)
            course = self._courses(self._asked.sizes, critic, shares, seed=seed, settings=self._settings)
            run = self._trainer(critic).run(
                epsilon=plan.spend.epsilon,
                delta=plan.spend.delta,
                steps=plan.query.steps,
                batch=plan.batch,
                optimizer=lambda given: self._optimizer(given, critic, course, rate),
            )
        except SfumatoError as wrong:
            if marginals is not None:
                wrong.add_note(
                    "What is said of spending is about the critic alone. Noisy shares of values were asked for before "
                    f"it, for {marginals.charged}; they are stored, and asked again at the same ε cost nothing."
                )
            raise
        with bar(plan.query.dataset.name, plan.query.steps, run._spending, shown=progress) as told:
            for step in run:
                step.loss()
                course.learn(step.weights)
                told(step.index + 1)
        return self._made(run.trained.release, marginals, course, plan, rows, total)

    def _critic(self, seed: int) -> CellCritic:
        """A critic that has learned nothing, by a seed."""
        return critic_of(self._asked.sizes, self._settings, seed)

    def _optimizer(
        self, given: Sequence[Tensor], critic: CellCritic, course: GeneratorCourse, rate: float
    ) -> torch.optim.Optimizer:
        if self._settings.critic == "pairs":
            return PairOptimizer(given, course=course, lr=rate)
        return NetworkOptimizer(given, critic=critic, course=course, clip=float(self._clip), lr=rate)

    def _trainer(self, critic: CellCritic) -> Trainer:
        return self._trainers(self._gate, critic, loss_of(critic), data=self._units, clip=self._clip)

    def _check_rows(self, rows: int | None) -> None:
        if rows is not None:
            natural(rows, "rows", most=MOST_ROWS)
        elif not self._share and self._units.kind == "user":
            raise NotDeclared(
                "say rows=…, how many rows to make; nothing was read and nothing was spent. How many the data has is "
                "known by noisy shares alone (marginals='1/10')."
            )

    def _check_left(self, asked: Budget) -> None:
        """Refuse here what the second of two charges would refuse after the first was spent."""
        ledger = self._gate.notary.ledger
        left = ledger.left
        if self._share and ledger.budget.rho is not None:
            raise Refused(
                "the account is kept in ρ, in which two charges do not add up to one ε; nothing was read and nothing "
                "was spent. Say marginals=0."
            )
        if left.epsilon < asked.epsilon or left.delta < asked.delta:
            raise BudgetExceeded(
                f"this run asks for {asked}, and {left} are left; nothing was read and nothing was spent. Ask for less."
            )

    def _shares(self, asked: Budget) -> tuple[Release | None, Tensor | None, float | None]:
        """Ask for the noisy shares of values, and for the noisy number of rows with them."""
        if not self._share:
            return None, None, None
        part = asked.epsilon * self._share
        release = self._shares_asked.question(epsilon=part).release(epsilon=part)
        measured = self._shares_asked.measured(release)
        found = torch.from_numpy(one_way(measured, Layout(self._asked.sizes))).to(torch.float32)
        return release, found, total_of(measured)

    def _made(
        self,
        release: Release,
        marginals: Release | None,
        course: GeneratorCourse,
        plan: Plan,
        rows: int | None,
        total: float | None,
    ) -> GeneratedTable:
        number = rows
        if number is None:
            number = self._units.n_units if total is None else max(1, min(round(total), MOST_ROWS))
        maker = RowMaker(self._asked.columns, course)
        made, codes = maker.made(number, seed=int(sha256(release.statement.identifier.encode()).hexdigest()[:12], 16))
        return GeneratedTable(
            release=release,
            marginals=marginals,
            rows=made,
            generator=maker,
            quality=GeneratorQuality(
                steps=plan.query.steps,
                batch=plan.batch,
                noise_multiplier=float(cast("Fraction", plan.mechanism.multiplier)),  # type: ignore[attr-defined]  # noisy sums
                parameters=plan.query.parameters,
                generator_steps=plan.query.steps * self._settings.steps,
                distance_to_shares=None if course.shares is None else _distance(codes, course),
                estimated_rows=total,
                declared_rows=rows is not None,
            ),
        )


def _distance(codes: "NDArray[np.int32]", course: GeneratorCourse) -> float:
    """Mean total variation between the columns of rows and the noisy shares."""
    assert course.shares is not None  # noqa: S101 - as the caller asked
    away = [
        np.abs(np.bincount(codes[:, place], minlength=size) / len(codes) - part.numpy()).sum() / 2
        for place, (size, part) in enumerate(
            zip(course.sizes, torch.split(course.shares, list(course.sizes)), strict=True)
        )
    ]
    return float(np.mean(away))
