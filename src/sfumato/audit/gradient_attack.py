"""The plain membership attack on one noisy mean gradient, and how often it is right.

It is an attack and no guarantee: that it is right in 54 of 100 cases does not mean that no other does better.
Claim: S3-16.
"""

import math
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.learning.trained import Trained

__all__ = ["gradient_attack", "gradient_attack_accuracy"]


def gradient_attack_accuracy(*, epsilon: float, delta: float, ratio: float, moved: int = 1) -> float:
    """How often the attack is right: Φ(min(r, 1)·ε/(2·moved·√(2·ln(1.25/δ)))).

    ``ratio`` is the length of the gradient over the clip, ``moved`` how many clips the noise was made for: 1 where one
    unit comes or goes, 2 where one is replaced. Assumes: even odds, one step, the classical σ = √(2·ln(1.25/δ))/ε of
    that distance, and others' gradients known or negligible.

    >>> [round(gradient_attack_accuracy(epsilon=1, delta=1e-5, ratio=ratio), 4) for ratio in (1, 0.5)]
    [0.5411, 0.5206]
    """
    if not (epsilon > 0 and 0 < delta < 1 and ratio >= 0 and moved in (1, 2)):
        raise InvalidInput("ε is above 0, δ between 0 and 1, a ratio not below 0; nothing was computed.")
    apart = min(ratio, 1.0) * epsilon / (moved * math.sqrt(2 * math.log(1.25 / delta)))
    return (1 + math.erf(apart / 2 / math.sqrt(2))) / 2


def gradient_attack(result: "Trained", *, step_length: float, pull: float) -> tuple[int, int]:
    """Attack every canary of a run of one step: how many coins are guessed right, and of how many.

    A canary is said to be in where the weights moved along its gradient by more than half of what it would add: the
    learning rate over the batch, ``step_length``, times its clipped gradient, ``pull``.
    """
    if result.canaries is None:
        raise InvalidInput("this run had no canaries; nothing was attacked.")
    scores, coins = result.canaries.scores(result.model), result.canaries.sealed.coins
    return int(((scores > step_length * pull / 2) == coins).sum()), len(coins)
