"""Gradient inversion: the update of one patient, sent without noise, holds that patient's row.

A site trains a softmax regression of the diagnosis and sends the gradient in place of the row, as federated learning
does. For one row x with errors e (predicted minus true shares) the gradient of the weights is e·xᵀ and that of the bias
is e: one divided by the other is x. Clipped to a length and with Gaussian noise added, the same division gives noise,
and even an attacker who holds a list of candidates is right no more often than (ε, δ) allows.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, natural
from sfumato.demo.attacks.hospital import Register
from sfumato.demo.network import DIAGNOSES, REGIONS, SBP
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Gaussian

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

__all__ = [
    "FEATURES",
    "GradientInversion",
    "demonstrate_gradient_inversion",
    "features",
    "invert",
    "private_updates",
    "updates",
]

FEATURES = ("sex", "age", "sbp", *REGIONS)
CANDIDATES, TIMES = 100, 8
DELTA = Fraction(1, 10**6)
CLIP = Fraction(1)
GRID = 2**20  # steps of 1: gradients become whole numbers, rounded towards 0, so that no length grows


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientInversion:
    """What was found. Public: an experiment on invented people.

    ``worst`` is the largest error of any feature of any patient, inverted from an update without noise. ``right`` of
    ``tries`` noisy updates were given to the right one of ``candidates``; ``allowed`` is the chance that (ε, δ) allows.
    """

    patient: str
    true: tuple[float, ...]
    inverted: tuple[float, ...]
    noisy: tuple[float, ...]
    worst: float
    candidates: int
    right_without: int
    tries: int
    right: int
    epsilon: Fraction
    delta: Fraction
    multiplier: Fraction
    """The standard deviation of the noise for a clipping length of 1."""

    @property
    def allowed(self) -> float:
        """The most that any attacker gets right on average: e^ε/candidates + δ.

        Without the patient's update every name is as good as any other; with it, each is e^ε times as likely at most.
        """
        return min(1.0, math.exp(min(float(self.epsilon), 50.0)) / self.candidates + float(self.delta))


def features(people: Register) -> "Floats":
    """Sex, age and blood pressure between 0 and 1, and the region as zeros and a one: people × features."""
    import numpy as np

    low, high = SBP
    pressure = (np.nan_to_num(people.pressure, nan=(low + high) / 2) - low) / (high - low)
    plain = np.column_stack([people.sex, people.age / 100, pressure])
    return np.concatenate([plain, np.eye(len(REGIONS))[people.region]], axis=1)


def updates(rows: "Floats", labels: "Integers", *, weights: "Floats") -> "Floats":
    """The gradient of the loss for each row by itself: people × classes × (features and the bias last)."""
    import numpy as np

    inputs = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    scores = inputs @ weights.T
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    errors = shares / shares.sum(axis=1, keepdims=True) - np.eye(weights.shape[0])[labels]
    return np.asarray(errors[:, :, None] * inputs[:, None, :])


def invert(update: "Floats") -> "Floats":
    """The row behind an update: the gradient of the weights of one class divided by that of its bias.

    Assumes: one row made the update. The class with the largest bias gradient is taken, which is not 0.

    >>> import numpy as np
    >>> row = np.array([[0.25, 0.5]])
    >>> sent = updates(row, np.array([1]), weights=np.zeros((3, 3)))
    >>> invert(sent[0]).round(9).tolist()
    [0.25, 0.5]
    """
    import numpy as np

    place = int(np.abs(update[:, -1]).argmax())
    if update[place, -1] == 0:
        raise InvalidInput("this update has no gradient of the bias, so there is nothing to divide by.")
    return np.asarray(update[place, :-1] / update[place, -1])


def private_updates(sent: "Floats", *, epsilon: Exact, delta: Exact) -> tuple["Floats", Gaussian]:
    """Each update clipped to length 1 and with Gaussian noise added, and the mechanism that did it.

    Guarantee: each is (ε, δ)-DP for one patient more or less (add/remove): without the patient the update is 0. The
    noise is that of :class:`~sfumato.mechanisms.Gaussian` on whole multiples of 1/GRID.
    """
    import numpy as np

    from sfumato.noise import SystemWords

    length = np.sqrt((sent**2).sum(axis=(1, 2), keepdims=True))
    clipped = sent * np.minimum(1.0, (1 - 1e-9) * float(CLIP) / np.maximum(length, 1e-300))
    whole = np.trunc(clipped * GRID).astype(np.int64)
    mechanism = Gaussian.calibrated(l2=CLIP * GRID, epsilon=epsilon, delta=delta)
    noisy = mechanism.add_noise(whole.ravel().tolist(), SystemWords())
    return np.array(noisy, dtype=np.float64).reshape(sent.shape) / GRID, mechanism


def demonstrate_gradient_inversion(
    hospital: Register, *, epsilon: Exact = 1, delta: Exact = DELTA, candidates: int = CANDIDATES, times: int = TIMES
) -> GradientInversion:
    """Invert exact and noisy updates of the hospital's first patients with a blood pressure, ``times`` each.

    The attacker of the noisy ones also holds the rows of all candidates, and names the one whose update is nearest.
    """
    import numpy as np

    natural(candidates, "candidates", least=2)
    natural(times, "times")
    spend = Budget.asked(epsilon=epsilon, delta=delta)
    measured = (~np.isnan(hospital.pressure)).nonzero()[0]
    if len(measured) < candidates:
        raise InvalidInput("this hospital has fewer patients than candidates are asked for; nothing was computed.")
    people = hospital.some(measured[:candidates])
    rows, classes = features(people), len(DIAGNOSES)
    weights = np.random.default_rng(5).normal(scale=0.1, size=(classes, len(FEATURES) + 1))
    sent = updates(rows, people.diagnosis, weights=weights)
    inverted = np.stack([invert(each) for each in sent])
    exact_names = [_nearest(each, sent) for each in sent]
    noisy, mechanism = private_updates(np.repeat(sent, times, axis=0), epsilon=spend.epsilon, delta=spend.delta)
    named = np.array([_nearest(each, _clipped(sent)) for each in noisy])
    return GradientInversion(
        patient=people.names[0],
        true=tuple(rows[0].tolist()),
        inverted=tuple(inverted[0].tolist()),
        noisy=tuple(invert(noisy[0]).tolist()),
        worst=float(np.abs(inverted - rows).max()),
        candidates=candidates,
        right_without=int(sum(name == place for place, name in enumerate(exact_names))),
        tries=len(noisy),
        right=int((named == np.repeat(np.arange(candidates), times)).sum()),
        epsilon=spend.epsilon,
        delta=spend.delta,
        multiplier=mechanism.sigma / GRID,
    )


def _clipped(sent: "Floats") -> "Floats":
    import numpy as np

    length = np.sqrt((sent**2).sum(axis=(1, 2), keepdims=True))
    return np.asarray(sent * np.minimum(1.0, float(CLIP) / np.maximum(length, 1e-300)))


def _nearest(update: "Floats", candidates: "Floats") -> int:
    """The candidate whose update is nearest: the most likely one under Gaussian noise."""
    return int(((candidates - update) ** 2).sum(axis=(1, 2)).argmin())
