"""Batch, steps, clip, learning rate and average of private runs, as functions of public facts alone.

Nothing here looks at the data, so nothing here is charged. Inputs are the declared number of units, how many of them a
step expects, and the noise multiplier that the accountant gives for ε and δ. docs/explanation/accuracy.md states the
rules in words and how they were come by.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["MOMENTUM", "Setting", "averaged_over", "rate", "tabular"]

MOMENTUM = 0.9
WALK = 1 / 9  # how far noise alone moves a weight over a whole run, in standard deviations
CAPS = {"linear": 2.0, "network": 0.5}  # the largest learning rate, times the clip
LARGEST_BATCH, PASSES, FEWEST = 4096, 20, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a run is declared with, apart from ε, δ and the learning rate. ``kind`` is *linear* or *network*."""

    batch: int
    steps: int
    clip: Fraction
    kind: str


def rate(setting: Setting, multiplier: float) -> float:
    """The learning rate for SGD with momentum 0.9.

    The noise of a step has standard deviation clip · multiplier / batch in each weight of the mean gradient. Momentum
    hands on ten times the learning rate of it, and the steps add up like a random walk. The rate is the one at which
    that walk ends 1/9 away from where it began, but no larger than a cap: with little noise it is not noise that
    limits it.

    >>> one = Setting(batch=4096, steps=586, clip=Fraction(1, 10), kind="linear")
    >>> rate(one, 2.4595), rate(one, 0.1)
    (7.64, 20.0)
    """
    walk = WALK * (1 - MOMENTUM) * setting.batch / (multiplier * float(setting.clip) * math.sqrt(setting.steps))
    return float(f"{min(walk, CAPS[setting.kind] / float(setting.clip)):.3g}")


def tabular(number: int, kind: str) -> Setting:
    """Settings for rows of a table: about 4,096 units a step, twenty passes, but at least a hundred steps; clip 1.

    >>> tabular(32_561, "linear").steps, tabular(1_700, "linear").batch
    (159, 1700)
    """
    batch = min(number, LARGEST_BATCH)
    return Setting(batch=batch, steps=max(FEWEST, -(-PASSES * number // batch)), clip=Fraction(1), kind=kind)


def averaged_over(steps: int) -> Fraction:
    """The decay of the average of weights: it reaches back over about the last tenth of the run.

    >>> averaged_over(586), averaged_over(12)
    (Fraction(288, 293), Fraction(1, 2))
    """
    return max(Fraction(1, 2), 1 - Fraction(10, steps)) if steps > 10 else Fraction(1, 2)
