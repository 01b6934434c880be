"""What a model was trained on, and how: the public facts that its words are made of."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.exact import decimal_up, fraction_text
from sfumato.errors import Unsupported
from sfumato.learning.adaptive import AdaptiveSums
from sfumato.learning.correlated import CorrelatedSums
from sfumato.learning.evaluation import Evaluations
from sfumato.learning.noisy_sums import NoisySums
from sfumato.learning.paradigms.learning_curves import LearningCurve
from sfumato.learning.training import Training
from sfumato.reports.catalogue import counted, message

if TYPE_CHECKING:
    from sfumato.core.statement import Statement

__all__ = ["ACCURACIES", "Lesson", "lesson_figures", "lesson_of", "trained_noise"]

ACCURACIES = (Evaluations, LearningCurve)
SHOWN = 16  # signs of the digest of the weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """The facts of one training run. Public: all of them.

    ``way`` is how units come into steps: ``all``, ``sampled`` or ``cycle``. ``follows`` says that the clip followed a
    noisy count. ``limited`` is how a person counts: ``user`` (all rows in one unit), ``times`` (in several), or None.
    """

    units: str
    number: int
    batch: Fraction
    steps: int
    done: int
    parameters: int
    clip: Fraction
    multiplier: Fraction
    digest: str
    way: str
    follows: bool
    limited: str | None

    @property
    def early(self) -> bool:
        """Whether the run ended before its declared end."""
        return self.done < self.steps


def lesson_of(said: "Statement") -> Lesson:
    """The facts of a training run, read off its statement."""
    run, noise = said.query, said.mechanism
    if not isinstance(run, Training) or not isinstance(noise, NoisySums | AdaptiveSums | CorrelatedSums):
        raise Unsupported(f"a {run.KIND} by a {noise.KIND} is no training run; no text was made.")
    way = "cycle" if isinstance(noise, CorrelatedSums) else "all" if run.rate == 1 else "sampled"
    limited = None if said.limit is None else "user" if run.units == "user" else "times"
    return Lesson(
        units=run.units,
        number=run.number,
        batch=run.rate * run.number,
        steps=run.steps,
        done=run.done,
        parameters=run.parameters,
        clip=run.clip,
        multiplier=noise.multiplier,
        digest=run.weights[:SHOWN],
        way=way,
        follows=isinstance(noise, AdaptiveSums),
        limited=limited,
    )


def lesson_figures(lesson: Lesson, language: str) -> dict[str, str]:
    """What sentences about training need."""
    return {
        "weights": counted(language, "weight", lesson.parameters),
        "steps": counted(language, "step", lesson.done),
        "planned": counted(language, "step", lesson.steps),
        "members": message(language, f"lesson.members_{lesson.units}", n=f"{lesson.number:,}"),
        "batch": f"{math.ceil(lesson.batch):,}",
        "clip": fraction_text(lesson.clip),
        "multiplier": decimal_up(lesson.multiplier),
        "digest": lesson.digest,
        "chance": decimal_up(100 * lesson.batch / lesson.number, 3),
        "turn": f"{math.ceil(lesson.number / lesson.batch):,}",
    }


def trained_noise(said: "Statement", language: str) -> str:
    """The noise of a training run in one line."""
    lesson = lesson_of(said)
    name = "fact.noise_cycle" if lesson.way == "cycle" else "fact.noise_trained"
    return message(language, name, **lesson_figures(lesson, language))
