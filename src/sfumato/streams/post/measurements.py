"""What a release of a stream measured, as a linear model Y = C·x + z: x the exact steps, z noise of a known law.

C follows from the strategy that the certificate states, Y are the released numbers. All fits of this folder start here;
for a tree that uses more than its totals do, since blocks of several sizes speak of the same steps.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput, Unsupported
from sfumato.mechanisms.matrix.steps.buffers import Buffers
from sfumato.mechanisms.matrix.steps.tree import Tree
from sfumato.streams.noise import SeriesNoise
from sfumato.streams.total import RunningTotal

if TYPE_CHECKING:
    from sfumato.streams.strategy_encoder import Floats, Strategy

__all__ = ["MOST", "Measured", "design", "variance_of"]

MOST = 2048  # steps of one fit: matrices of this many rows and columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """A release of running totals as measurements, in units of 1: ``y`` has a column for each group.

    ``matrix`` is C, ``variance`` the variance of z. Public: all of it.
    """

    release: Release
    query: RunningTotal
    mechanism: SeriesNoise
    matrix: "Floats"
    y: "Floats"
    variance: float

    @classmethod
    def of(cls, release: Release) -> "Measured":
        """Read a release."""
        import numpy as np

        said = only_release(release).statement
        query, mechanism = said.query, said.mechanism
        if not isinstance(query, RunningTotal) or not isinstance(mechanism, SeriesNoise):
            raise InvalidInput("this is not a release of running totals; nothing was computed.")
        if not query.kept or not query.told:
            raise Unsupported(
                "this release holds no totals: none was released, or none was kept. Nothing was computed."
            )
        if query.told > MOST:
            raise Unsupported(
                f"a fit takes up to {MOST:,} steps, and this release has {query.told:,}; nothing was computed. Open a "
                "stream with longer steps."
            )
        unit = 2.0**mechanism.strategy.bits
        y = np.array(said.values, dtype=np.float64).reshape(-1, max(1, len(query.groups))) / unit
        return cls(
            release=release,
            query=query,
            mechanism=mechanism,
            matrix=design(mechanism.strategy, query.told),
            y=y,
            variance=variance_of(mechanism) / unit**2,
        )


def variance_of(mechanism: SeriesNoise) -> float:
    """The variance of the noise of one measurement, in lattice units.

    >>> from fractions import Fraction
    >>> from sfumato.mechanisms.matrix.steps.pattern import Pattern
    >>> tree, one = Tree(arity=2, horizon=4, bits=0), Pattern(times=1, separation=1, change="added")
    >>> round(variance_of(SeriesNoise(strategy=tree, pattern=one, norm="l1", noise=Fraction(6))), 2)
    71.83
    """
    if mechanism.norm == "l1":
        return 1 / (math.cosh(1 / float(mechanism.noise)) - 1)
    return float(mechanism.noise) ** 2 + 1 / 12


@lru_cache(maxsize=8)
def design(strategy: "Strategy", told: int) -> "Floats":
    """C in units of 1: what each measurement of the first ``told`` steps adds up.

    >>> design(Tree(arity=2, horizon=4, bits=0), 2).tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """
    import numpy as np
    from scipy.linalg import solve_triangular

    from sfumato.streams.reconstruction import back_row

    if isinstance(strategy, Tree):
        rows = []
        for step in range(1, told + 1):
            for level in range(strategy.levels):
                size = strategy.arity**level
                if step % size:
                    break
                row = np.zeros(told)
                row[step - size : step] = 1
                rows.append(row)
        return np.array(rows)
    if isinstance(strategy, Buffers):
        column = _coefficients(strategy, told)
        return np.tril(column[np.abs(np.subtract.outer(np.arange(told), np.arange(told)))])
    back = np.zeros((told, told))
    for step in range(1, told + 1):
        back[step - 1, :step] = back_row(strategy, step)
    # totals are back·measurements, and sums of steps: back·C is the triangle of ones
    return np.asarray(solve_triangular(back, np.tril(np.ones((told, told))), lower=True))


def _coefficients(strategy: Buffers, count: int) -> "Floats":
    import numpy as np

    decays, weights = (np.array([float(one) for one in part]) for part in (strategy.decays, strategy.weights))
    powers = decays[None, :] ** np.arange(count - 1)[:, None]
    return np.concatenate([[1.0], powers @ weights])[:count]
