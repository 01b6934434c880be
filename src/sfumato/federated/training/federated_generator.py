"""A generator of rows that learns from a private critic of several sites; ``consortium.generator``."""

import math
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core import enclosures
from sfumato.core.exact import Exact, natural, positive
from sfumato.errors import InvalidInput
from sfumato.federated.training.federated_trainer import FederatedTrainer, TrainedAcrossSites, Watch
from sfumato.federated.training.training_proposal import TrainingProposal
from sfumato.learning.generative.course import GeneratorSettings
from sfumato.learning.generative.critic_rounds import CriticRounds
from sfumato.learning.generative.generated import MOST_ROWS, GeneratedTable, GeneratorQuality, RowMaker
from sfumato.learning.person_updates import Model

if TYPE_CHECKING:
    from sfumato.tables.synthesized import Synthesis

__all__ = ["FederatedGenerator"]


class FederatedGenerator:
    """Trains a generator of rows across sites; made by ``consortium.generator``. It holds no rows.

    Each round adds up what the people of all sites teach a critic, clipped for each of them, masked, and with noise of
    which each site adds a share. The coordinator adds what made rows teach it, and its generator learns from the
    critic's released weights.

    Guarantee: the critic has the guarantee of :class:`~sfumato.federated.FederatedTrainer`, and each site charges the
    whole run before it reads a row. The generator and all its rows are functions of released sums and of what was
    declared: post-processing, which costs nothing. Assumes: what the secure sum assumes; that columns and settings were
    chosen without the data. Proof: docs/proofs/generative.md
    """

    def __init__(
        self,
        trainer: Callable[[Model, Exact], FederatedTrainer],
        asked: "Synthesis",
        *,
        settings: GeneratorSettings | None = None,
        clip: Exact | None = None,
        seed: int = 0,
    ) -> None:
        if len(asked.columns) < 2:
            raise InvalidInput("a generator takes two columns or more; nothing was done. Ask for the counts of one.")
        if settings is not None and type(settings) is not GeneratorSettings:
            raise InvalidInput("settings are learning.GeneratorSettings(…); nothing was done.")
        self._asked, self._settings = asked, settings or GeneratorSettings()
        self._seed = natural(seed, "seed", least=0, most=2**40)
        self._clip: Exact = clip if clip is not None else self._rounds(1, None).critic.clip
        self._make = trainer
        self._trainer = trainer(self._rounds(self._clip, None).critic, positive(self._clip, "clip"))

    def plan(self, *, epsilon: Exact, delta: Exact, rounds: int, batch: int | None = None) -> TrainingProposal:
        """What the run of the critic will be, as the sites will see it; asks nobody and spends nothing."""
        return self._trainer.plan(epsilon=epsilon, delta=delta, rounds=rounds, batch=batch)

    def fit(
        self,
        *,
        epsilon: Exact,
        delta: Exact,
        rounds: int,
        rows: int,
        batch: int | None = None,
        lr: float | None = None,
        folder: str | Path | None = None,
        watch: Watch | None = None,
    ) -> GeneratedTable:
        """Propose the run, let the sites vote and charge, train the critic and the generator, and make ``rows``.

        ``rounds`` and ``batch`` are the critic's, ``lr`` its learning rate; ``folder`` and ``watch`` are as for a
        trainer across sites: with a folder the same call goes on after a crash, and charges nobody again.
        """
        natural(rows, "rows", most=MOST_ROWS)
        learned = self._rounds(self._clip, lr)
        trained = self._trainer.fit(
            epsilon=epsilon,
            delta=delta,
            rounds=rounds,
            batch=batch,
            optimizer=learned,
            folder=folder,
            watch=watch,
        )
        plan = self.plan(epsilon=epsilon, delta=delta, rounds=rounds, batch=batch)
        return self._made(trained, plan, learned, rows)

    def _rounds(self, clip: Exact, lr: float | None) -> CriticRounds:
        return CriticRounds(self._asked.sizes, settings=self._settings, clip=clip, lr=lr, seed=self._seed)

    def _made(
        self, trained: TrainedAcrossSites, plan: TrainingProposal, learned: CriticRounds, rows: int
    ) -> GeneratedTable:
        training = plan.training
        maker = RowMaker(self._asked.columns, learned.course(trained.kept, trained.rounds))
        seed = int(sha256(trained.release.statement.identifier.encode()).hexdigest()[:12], 16)
        return GeneratedTable(
            release=trained.release,
            marginals=None,
            rows=maker.rows(rows, seed=seed),
            generator=maker,
            quality=GeneratorQuality(
                steps=trained.rounds,
                batch=math.ceil(training.rate * training.number),
                noise_multiplier=float(enclosures.sqrt(plan.mechanism.variance).high * training.step / training.clip),
                parameters=training.parameters,
                generator_steps=trained.rounds * self._settings.steps,
                distance_to_shares=None,
                estimated_rows=None,
                declared_rows=True,
            ),
        )
