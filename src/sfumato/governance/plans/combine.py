"""Coarser figures as the best mean of their own release and the sum of finer ones: no closed form, so SciPy looks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.governance.plans.split import fit

__all__ = ["CombinedFigure", "least_variance", "objective", "precision"]

ROUNDS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedFigure:
    """A figure of a plan: what its variance counts, and the places and factors of what it is made from.

    ``sources`` are pairs (place, spread): a source at the amount x has the variance spread/x^power.
    """

    counts: Fraction
    sources: tuple[tuple[int, Fraction], ...]


def precision(figure: CombinedFigure, amounts: Sequence[Fraction], power: int) -> Fraction:
    """One over the variance of the best mean of the sources: precisions add up.

    >>> figure = CombinedFigure(counts=Fraction(1), sources=((0, Fraction(2)), (1, Fraction(2))))
    >>> precision(figure, [Fraction(1), Fraction(1)], 2)
    Fraction(1, 1)
    """
    return sum((amounts[place] ** power / spread for place, spread in figure.sources), Fraction(0))


def objective(figures: Sequence[CombinedFigure], amounts: Sequence[Fraction], power: int) -> Fraction:
    """The weighted sum of all variances, exactly."""
    return sum((figure.counts / precision(figure, amounts, power) for figure in figures), Fraction(0))


def least_variance(
    figures: Sequence[CombinedFigure],
    times: Sequence[int],
    floors: Sequence[Fraction],
    cap: Fraction,
    *,
    power: int,
    starts: Sequence[Sequence[Fraction]],
    held: frozenset[int] = frozenset(),
) -> tuple[Fraction, ...]:
    """The best amounts that constrained optimisation finds from several starts.

    The amounts at the places ``held`` stay at their floors.
    Guarantee: Σ times·amount is at most the cap and no amount lies below its floor, exactly, whatever the optimiser
    says; never worse than the best start. Assumes: nothing about the optimum being global, and none is claimed.

    >>> alone = [CombinedFigure(counts=Fraction(10), sources=((0, Fraction(2)),)),
    ...          CombinedFigure(counts=Fraction(80), sources=((1, Fraction(2)),))]
    >>> zero = [Fraction(0)] * 2
    >>> found = least_variance(alone, [10, 10], zero, Fraction(3), power=2, starts=[[Fraction(1, 10)] * 2])
    >>> [round(float(amount), 4) for amount in found]
    [0.1, 0.2]
    """
    import numpy as np
    from scipy.optimize import minimize

    room = float(cap)
    count = np.array([float(number) for number in times])
    low = np.log(np.maximum([float(floor) for floor in floors], room * 1e-9))
    top = np.maximum(low, np.log(room / count))
    top[list(held)] = low[list(held)]

    def fitted(amounts: Sequence[Fraction]) -> tuple[Fraction, ...]:
        kept = [floors[place] if place in held else amount for place, amount in enumerate(amounts)]
        return fit(kept, times, floors, cap)

    def value(logs: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
        total = 0.0
        for figure in figures:
            gained = sum(math.exp(power * logs[place]) / float(spread) for place, spread in figure.sources)
            total += float(figure.counts) / gained
        return math.log(total)

    def left(logs: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
        return 1.0 - float(count @ np.exp(logs)) / room

    found = [fitted(start) for start in starts]
    for start in list(found):
        begin = np.clip(np.log(np.maximum([float(amount) for amount in start], room * 1e-9)), low, top)
        answer = minimize(
            value,
            begin,
            method="SLSQP",
            bounds=list(zip(low, top, strict=True)),
            constraints=[{"type": "ineq", "fun": left}],
            options={"maxiter": ROUNDS, "ftol": 1e-13},
        )
        found.append(fitted([Fraction(f"{amount:.15g}") for amount in np.exp(answer.x)]))
    usable = [amounts for amounts in found if all(precision(figure, amounts, power) > 0 for figure in figures)]
    return min(usable, key=lambda amounts: objective(figures, amounts, power))
