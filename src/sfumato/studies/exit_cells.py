"""Exit cells: how many left the risk set in each step of time, with an event or without, and the noise in them.

An array of cells has the shape (…, 2, m): events first, then those who were censored, over m steps. Whoever is still
followed at the end is among the censored of the last step. A person is in one cell. Cells may have been measured once,
or in several levels of ever wider blocks; then least squares made them, and their noise is correlated.
Proof: docs/proofs/survival.md
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sfumato.core.exact import natural

__all__ = ["LOST", "ExitNoise", "Floats", "StudySteps", "at_risk", "best_widths", "first_lost", "level_matrix"]

Floats = npt.NDArray[np.float64]
LOST = 2.0
"""In standard deviations of its noise: a number at risk below this is lost in noise, and curves and sums stop there."""
LONG = 100  # steps from which on two levels make the numbers at risk clearly more exact


@dataclass(frozen=True, kw_only=True)
class ExitNoise:
    """The noise in the m cells of one kind (events, or censored): of ``variance`` in each measured number.

    ``widths`` are the blocks of time that were measured, beginning with single steps: ``(1,)`` is a plain histogram.

    >>> ExitNoise(variance=2.0, steps=3).at_risk.tolist()
    [12.0, 8.0, 4.0]
    """

    variance: float
    steps: int
    widths: tuple[int, ...] = (1,)
    tails: float = 0.0
    """The excess kurtosis of one noise: 0 of Gaussian noise, 3 and more of Laplace noise."""

    @cached_property
    def covariance(self) -> Floats:
        """Of the cells, in units of the variance: (AᵀA)⁻¹ where A are the blocks that were measured."""
        if self.widths == (1,):
            return np.eye(self.steps)
        if len(self.widths) == 2:
            block = np.arange(self.steps) // self.widths[1]
            return np.asarray(np.eye(self.steps) - (block[:, None] == block) / (self._sizes[block] + 1))
        matrix = level_matrix(self.steps, self.widths)
        return np.asarray(np.linalg.inv(matrix.T @ matrix), dtype=np.float64)

    @cached_property
    def _sizes(self) -> npt.NDArray[np.int_]:
        """How many steps each block of the second level has."""
        return np.bincount(np.arange(self.steps) // self.widths[1])

    @cached_property
    def estimator(self) -> Floats:
        """The matrix that makes cells of what was measured: cells = measured · estimator, by least squares."""
        return level_matrix(self.steps, self.widths) @ self.covariance

    @cached_property
    def suffixes(self) -> Floats:
        """The covariance of sums from each step to the last, in units of the variance."""
        return np.cumsum(np.cumsum(self.covariance[::-1, ::-1], axis=0), axis=1)[::-1, ::-1]

    @cached_property
    def cells(self) -> Floats:
        """The variance of each cell."""
        return self.variance * np.diag(self.covariance)

    @cached_property
    def shared(self) -> Floats:
        """The covariance of the events of a step with the number at risk in it."""
        return self.variance * np.diag(np.cumsum(self.covariance[:, ::-1], axis=1)[:, ::-1])

    @cached_property
    def at_risk(self) -> Floats:
        """The variance of the number at risk in each step: events and censored, from there to the last."""
        return 2 * self.variance * np.diag(self.suffixes)

    def through(self, weights: Floats) -> Floats:
        """Weights of cells as weights of the independent noises in what was measured, times their deviation."""
        if self.widths == (1,):
            seen = weights
        elif len(self.widths) == 2:  # a block moves its steps by what it differs from their sum, shared by all of them
            sizes = self._sizes
            moved = np.add.reduceat(weights, np.cumsum(sizes) - sizes, axis=-1) / (sizes + 1)
            seen = np.concatenate([weights - np.repeat(moved, sizes, axis=-1), moved], axis=-1)
        else:
            seen = weights @ self.estimator.T
        return math.sqrt(self.variance) * seen

    def cells_of(self, measured: Floats) -> Floats:
        """The cells (…, m) that least squares makes of what was measured, (…, numbers in all levels)."""
        return measured if self.widths == (1,) else measured @ self.estimator


def at_risk(cells: Floats) -> Floats:
    """How many are at risk in each step: all who leave then or later.

    >>> at_risk(np.array([[1.0, 2.0], [0.0, 3.0]])).tolist()
    [6.0, 5.0]
    """
    left = np.cumsum(cells.sum(axis=-2)[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(left, dtype=np.float64)


def first_lost(risk: Floats, variance: Floats) -> npt.NDArray[np.int_]:
    """The first step (of the last axis) in which a number at risk is lost in noise of this variance; all where none is.

    >>> first_lost(np.array([9.0, 1.0, 5.0]), np.ones(3)).tolist()
    1
    """
    lost = risk < LOST * np.sqrt(variance)
    return np.asarray(np.where(lost.any(axis=-1), lost.argmax(axis=-1), risk.shape[-1]))


@dataclass(frozen=True, kw_only=True)
class StudySteps:
    """Steps of time as tests take them: single ones, or the blocks that were measured too, whose totals are more exact.

    Of a block it takes the events, and those at risk on average over its steps: whoever leaves in the middle of it was
    at risk for half. So groups whose people are censored at different times are compared without bias, as far as the
    hazard does not change inside a block.

    >>> steps = StudySteps(noise=ExitNoise(variance=1.0, steps=4, widths=(1, 2)))
    >>> steps.at_risk(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]])).tolist()
    [3.5, 2.0]
    """

    noise: ExitNoise
    single: bool = False
    """Whether single steps are taken although blocks were measured too."""

    @cached_property
    def sizes(self) -> npt.NDArray[np.int_]:
        """How many steps each has."""
        if self.single or self.noise.widths == (1,):
            return np.ones(self.noise.steps, dtype=np.int_)
        return np.bincount(np.arange(self.noise.steps) // self.noise.widths[-1])

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.sizes)

    def events(self, cells: Floats) -> Floats:
        """The events (…, number) of cells (…, 2, m)."""
        return self._added(cells[..., 0, :])

    def at_risk(self, cells: Floats) -> Floats:
        """Those at risk (…, number), on average over the steps of each."""
        return self._added(at_risk(cells)) / self.sizes

    def _added(self, values: Floats) -> Floats:
        if self.number == self.noise.steps:
            return values
        return np.asarray(np.add.reduceat(values, np.cumsum(self.sizes) - self.sizes, axis=-1))

    def used(self, risk: Floats) -> npt.NDArray[np.int_]:
        """How many are taken of numbers at risk (…, groups, number): up to the first in which a group is lost."""
        return np.asarray(first_lost(risk, self.risk_variance).min(axis=-1))

    def through(self, direct: Floats, drag: Floats) -> Floats:
        """What noise does to Σ direct·events − Σ drag·at risk: weights (…, 2, measured) of independent noises."""
        spread = np.cumsum(np.repeat(drag / self.sizes, self.sizes, axis=-1), axis=-1)
        return self.noise.through(np.stack([np.repeat(direct, self.sizes, axis=-1) - spread, -spread], axis=-2))

    @cached_property
    def _alone(self) -> tuple[Floats, Floats]:
        """What noise does to the events of each, and to those at risk in each."""
        one, none = np.eye(self.number), np.zeros((self.number, self.number))
        return self.through(one, none), self.through(none, -one)

    @cached_property
    def event_variance(self) -> Floats:
        """Of the noise in the events of each."""
        return np.asarray((self._alone[0] ** 2).sum(axis=(-1, -2)))

    @cached_property
    def risk_variance(self) -> Floats:
        """Of the noise in those at risk."""
        return np.asarray((self._alone[1] ** 2).sum(axis=(-1, -2)))

    @cached_property
    def shared(self) -> Floats:
        """The covariance of the two."""
        return np.asarray((self._alone[0] * self._alone[1]).sum(axis=(-1, -2)))


def level_matrix(steps: int, widths: tuple[int, ...]) -> Floats:
    """Which steps each measured number adds up, level by level; the last block of a level may be shorter.

    >>> level_matrix(3, (1, 2)).astype(int).tolist()
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 0, 1]]
    """
    place = np.arange(natural(steps, "steps"))
    levels = [place // width == np.arange(-(-steps // width))[:, None] for width in widths]
    return np.vstack(levels).astype(np.float64)


def best_widths(steps: int) -> tuple[int, ...]:
    """The levels to measure: single steps alone, and from 100 steps on blocks of about 1.6·√steps beside them.

    A person is in one cell of each level, so two levels cost four times the variance under Laplace noise and twice
    under Gaussian noise; a sum over many steps then has few terms. Public: the number of steps alone decides.

    >>> best_widths(30), best_widths(365)
    ((1,), (1, 31))
    """
    return (1,) if steps < LONG else (1, round(1.6 * math.sqrt(steps)))
