"""Many small classifiers trained at once, by one product of matrices a step: what an adversary trains for itself.

Each is a linear model with softmax, trained on its own part of the same invented rows. Nothing here protects anybody:
no noise is drawn, and ordinary generators choose who is in a batch. Models that protect people are trained by
``vault.trainer``.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]
    Doubles = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

__all__ = ["Lessons", "confidences", "halves", "trained_models"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lessons:
    """How a model learns: by gradients of all its rows, or of a sample whose gradients are clipped, without noise.

    ``expected`` is what the sum of a step is divided by; None where it is the number of rows that a model has.
    """

    steps: int
    rate: float
    sampled: float = 1.0
    expected: float | None = None
    clip: float | None = None

    def __post_init__(self) -> None:
        if self.steps < 1 or not self.rate > 0 or not 0 < self.sampled <= 1:
            raise InvalidInput("lessons have steps, a learning rate, and a share of rows in a step; nothing was done.")


def halves(models: int, rows: int, random: "np.random.Generator") -> "Flags":
    """Who is in which model: a fair coin for every row, and in every second model just those who are not in the first.

    So every row is in half of the models.

    >>> import numpy as np
    >>> halves(4, 100, np.random.default_rng(1)).sum(axis=0).tolist() == [2] * 100
    True
    """
    import numpy as np

    if models < 2 or models % 2:
        raise InvalidInput("reference models come in pairs, one with a row and one without; nothing was done.")
    first = random.random((models // 2, rows)) < 0.5
    return np.stack([first, ~first], axis=1).reshape(models, rows)


def trained_models(
    rows: "Floats", labels: "Integers", inside: "Flags", lessons: Lessons, random: "np.random.Generator"
) -> "Floats":
    """The weights of a model for each line of ``inside``: models × (columns + 1) × classes, the last for a constant.

    Models begin at 0, and classes are the numbers from 0 to the largest label.
    """
    import numpy as np

    widened = _widened(rows)
    wanted = np.eye(int(labels.max()) + 1, dtype=np.float32)[labels]
    lengths = np.sqrt((widened * widened).sum(axis=1))
    members = inside.astype(np.float32)
    under = members.sum(axis=1) if lessons.expected is None else np.full(len(members), lessons.expected)
    step = (lessons.rate / np.maximum(under, 1)).astype(np.float32)[:, None, None]
    weights = np.zeros((len(members), widened.shape[1], wanted.shape[1]), dtype=np.float32)
    for _ in range(lessons.steps):
        slopes = _softmax(widened @ weights) - wanted
        counted = members
        if lessons.sampled < 1:
            counted = members * (random.random(members.shape, dtype=np.float32) < lessons.sampled)
        if lessons.clip is not None:
            norms = np.sqrt((slopes * slopes).sum(axis=2)) * lengths
            counted = counted * np.minimum(1, lessons.clip / np.maximum(norms, 1e-12))
        weights -= step * (widened.T @ (slopes * counted[:, :, None]))
    return weights


def confidences(weights: "Floats", rows: "Floats", labels: "Integers") -> "Doubles":
    """How sure each model is of the right label of each row: the logarithm of the odds of its probability.

    >>> import numpy as np
    >>> weights = np.array([[[1.0, 0.0], [0.0, 0.0]]], dtype=np.float32)
    >>> rows = np.array([[2.0], [3.0]], dtype=np.float32)
    >>> confidences(weights, rows, np.array([0, 1])).tolist()
    [[2.0, -3.0]]
    """
    import numpy as np

    found = _widened(rows) @ weights
    places = np.broadcast_to(labels[None, :, None], (*found.shape[:2], 1))
    own = np.take_along_axis(found, places, axis=2)[:, :, 0]
    np.put_along_axis(found, places, -np.inf, axis=2)
    most = found.max(axis=2)
    sure: Doubles = (own - most - np.log(np.exp(found - most[:, :, None]).sum(axis=2))).astype(np.float64)
    return sure


def _widened(rows: "Floats") -> "Floats":
    import numpy as np

    return np.concatenate([rows, np.ones((len(rows), 1))], axis=1, dtype=np.float32)


def _softmax(found: "Floats") -> "Floats":
    import numpy as np

    found -= found.max(axis=2, keepdims=True)
    np.exp(found, out=found)
    found /= found.sum(axis=2, keepdims=True)
    return found
