"""A model that is trained on synthetic rows: a logistic regression on the cells of the other columns. It costs nothing.

Its coefficients are rounded to thousandths, so that the score of a row is a sum of whole numbers: the same on every
engine. A score is a function of one row, and so can be counted by bins like any column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.synthesis.measured import Codes

__all__ = ["SyntheticScore", "trained"]

MOST_ROWS = 100_000
PARTS = 1_000
"""Steps of the score to one unit of the logit."""
LARGEST = 30.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SyntheticScore:
    """The points of each cell of each covariate, and the edges of the bins of their sum. Public: all of it."""

    covariates: tuple[int, ...]
    points: tuple[tuple[int, ...], ...]
    edges: tuple[int, ...]
    """Inner edges; a bin holds its lower edge."""

    def scores(self, codes: Codes) -> NDArray[np.int64]:
        """The sum of the points of each row."""
        found = np.zeros(len(codes), dtype=np.int64)
        for column, points in zip(self.covariates, self.points, strict=True):
            found += np.array([*points, 0])[codes[:, column]]
        return found

    def bins(self, codes: Codes) -> NDArray[np.int64]:
        """The bin of each row, from 0 on."""
        return np.searchsorted(np.array(self.edges), self.scores(codes), side="right")


def trained(codes: Codes, sizes: Sequence[int], outcome: int, event: int, bins: int) -> SyntheticScore:
    """A model of the event in one column of two values, by all others; bins hold about as many synthetic rows each."""
    from scipy.optimize import minimize
    from scipy.sparse import csr_array

    covariates = tuple(place for place in range(len(sizes)) if place != outcome)
    used = codes[(codes >= 0).all(axis=1) & (codes[:, outcome] < 2)][:MOST_ROWS]
    happened = (used[:, outcome] == event).astype(np.float64)
    if not covariates or not 0 < happened.sum() < len(used):
        raise InvalidInput(
            "a model needs a covariate, and synthetic rows with the event and without; nothing was read and nothing "
            "was spent. Choose another outcome, or compare without one."
        )
    starts = np.concatenate([[0], np.cumsum([sizes[place] for place in covariates])])
    places = (used[:, covariates] + starts[:-1]).ravel()
    rows = np.repeat(np.arange(len(used)), len(covariates))
    cells = csr_array((np.ones(len(places)), (rows, places)), shape=(len(used), int(starts[-1])))

    def loss(coefficients: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logits = cells @ coefficients[1:] + coefficients[0]
        away = 1 / (1 + np.exp(-np.clip(logits, -LARGEST, LARGEST))) - happened
        value = np.logaddexp(0, logits).sum() - happened @ logits + coefficients[1:] @ coefficients[1:] / 2
        return float(value), np.concatenate([[away.sum()], cells.T @ away + coefficients[1:]])

    fitted = minimize(loss, np.zeros(int(starts[-1]) + 1), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    points = np.rint(PARTS * np.clip(fitted.x[1:], -LARGEST, LARGEST)).astype(np.int64)
    split = tuple(tuple(map(int, points[one:two])) for one, two in pairwise(starts))
    scores = SyntheticScore(covariates=covariates, points=split, edges=()).scores(used)
    cuts = np.quantile(scores, np.arange(1, bins) / bins, method="higher").astype(np.int64)
    edges = tuple(int(edge) for edge in np.unique(cuts) if scores.min() < edge)
    if not edges:
        raise InvalidInput(
            "the model gives all synthetic rows the same score, so there is nothing to test; nothing was read and "
            "nothing was spent. Choose another outcome, or compare without one."
        )
    return SyntheticScore(covariates=covariates, points=split, edges=edges)
