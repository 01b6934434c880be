"""What previews of regressions say of the noise: which outcome was assumed, and what noise would do to its fit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isinf, sqrt

import numpy as np
from numpy.typing import NDArray

from sfumato.studies.regression.foreseen import NoiseForeseen, outcome_shares
from sfumato.tables.clamped import Clamped

__all__ = ["EVEN", "SPREAD", "Assumed", "assumed_counts", "little_noise", "said_of_noise"]

LITTLE = 0.01
LITTLE_WIDER = 1.1  # times the width of an interval without noise
CLEAR = 4.0  # deviations of noise: an interval has no ends below 1.96, and two more are seldom missed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assumed:
    """An outcome that is assumed for a preview: in words, and by the shares of its parts in a row."""

    words: str
    shares: NDArray[np.float64]


EVEN = Assumed(words="as frequent as not", shares=np.full(2, 0.5))
SPREAD = [
    Assumed(
        words=f"whose standard deviation around the fit is {text} of its range",
        shares=outcome_shares(0.0, 2 * part, -1.0, 1.0),
    )
    for text, part in (("a sixth", 1 / 6), ("a twentieth", 1 / 20))
]


def assumed_counts(of: Clamped) -> list[Assumed]:
    """Poisson counts whose mean is a tenth, and a third, of the way between the declared bounds."""
    low, high = float(of.low), float(of.high)
    means = [low + (high - low) * way for way in (1 / 10, 1 / 3)]
    return [Assumed(words=f"of mean {mean:.3g}", shares=outcome_shares(mean, sqrt(mean), low, high)) for mean in means]


def little_noise(assumed: Sequence[Assumed], foreseen: Callable[[Assumed], NoiseForeseen]) -> bool:
    """Whether intervals would be at most a tenth wider than without noise, for all outcomes that are assumed."""
    return all(foreseen(each).wider <= LITTLE_WIDER for each in assumed)


def said_of_noise(
    rows: int, assumed: Sequence[Assumed], foreseen: Callable[[Assumed], NoiseForeseen]
) -> tuple[str, ...]:
    """Which part of the variance of a coefficient would be noise, and how much wider that makes its interval."""
    found = [foreseen(each) for each in assumed]
    parts = []
    for each, noise in zip(assumed, found, strict=True):
        about = "less than 1%" if noise.share < LITTLE else f"about {100 * noise.share:.0f}%"
        wider = (
            "and there may be no finite interval"
            if isinf(noise.wider)
            else f"intervals {noise.wider:.2f} times as wide"
        )
        parts.append(f"{about} with an outcome {each.words} ({wider})")
    told = (
        f"With {rows:,} rows, noise would be this part of the variance of a coefficient: {'; '.join(parts)}. This "
        "assumes numbers that fill their ranges evenly and groups of one size; it is more where they do not, where "
        "events are rarer or values vary less around the fit, and where covariates are close to each other."
    )
    if all(noise.clear > CLEAR for noise in found):
        return (told,)
    return (
        told,
        "Coefficients may have no finite interval. Use fewer covariates or more ε; where numbers are spread over "
        "splines, a smaller pieces=… helps too.",
    )
