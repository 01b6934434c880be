"""Ways out of training: weights that were learned, votes of teachers, and evaluations."""

from collections.abc import Callable, Sized
from dataclasses import replace
from typing import TYPE_CHECKING

from sfumato.audit.ways import Heard, WayOut
from sfumato.audit.ways_played import DELTA, HALF_CHARGED, drawn_again, new_vault, undercharged
from sfumato.audit.ways_tables import OF_CERTIFICATE, PERSON, RECORD
from sfumato.core.release import Release

if TYPE_CHECKING:
    from sfumato.core.foreign import Array

__all__ = ["TRAINING"]

LEARNING = "torch"
UNITS = 1_000


def _canaries(size: int, times: int) -> Heard:
    """Noisy sums of gradients, read off the weights, in which each of many units has a place of its own or none."""
    import numpy as np

    from sfumato.learning.canaries import summed

    found: list[Array] = []
    for _ in range(-(-size // UNITS)):
        given = np.full(UNITS, float(times))
        sums, release = summed(new_vault(RECORD).trainer, given, batch=UNITS, steps=1, epsilon=8, delta=DELTA)
        found.append(sums.ravel())
    return Heard(
        scores=np.concatenate(found), epsilon=release.charged.epsilon, delta=release.charged.delta, releases=len(found)
    )


def _half_of_the_noise(size: int, times: int) -> Heard:
    """The same with half of the noise."""
    heard = _canaries(size, times)
    return replace(heard, scores=times + (heard.scores - times) / 2)


def _votes(times: int, epsilon: int) -> Release:
    """Votes of two teachers for one of two classes: a teacher that has the second person votes for the second."""
    import numpy as np

    targets = np.array([0, 1][: 1 + times], dtype=np.int64)
    examples = new_vault(PERSON).examples(
        np.zeros((len(targets), 1)), targets, name="invented", version="1", ids=list(range(1, 1 + len(targets)))
    )
    taught = examples.teachers(_convinced, parts=2, classes=2, name="teachers")
    return taught.labels(np.zeros((1, 1)), name="questions").release(epsilon=epsilon, delta=DELTA, even_if_useless=True)


def _convinced(_inputs: object, targets: "Array", _seed: int) -> Callable[[Sized], list[int]]:
    vote = int(any(int(target) for target in targets))
    return lambda questions: [vote] * len(questions)


_VOTED = drawn_again(_votes)
TRAINING: tuple[WayOut, ...] = (
    WayOut(
        name="weights of a trained model",
        kind="training",
        how="vault, a step of training with many units",
        play=_canaries,
        curve=True,
        most=10_000,
        broken=_half_of_the_noise,
        flaw="half of the noise",
        needs=LEARNING,
    ),
    WayOut(
        name="votes of teachers",
        kind="training",
        how=OF_CERTIFICATE,
        most=200_000,
        play=_VOTED,
        broken=undercharged(_VOTED),
        flaw=HALF_CHARGED,
        needs=LEARNING,
    ),
)
