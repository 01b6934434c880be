"""The 95% intervals of every measure cover at least as often as they say, on answers drawn again and again.

The exact totals are fixed; each repetition is a cell of its own, with noise of its own, drawn by the mechanism's
sampler. Too few hits are refuted by an exact binomial test at α = 1e-9, 24 tests in all. The twin draws noise 30%
too wide and must be refuted by the same test. Where an interval takes long to compute, the short run draws fewer, and
sees less: with probability 99%, intervals that cover at most 90.3% of the time are refuted from 2,000 draws, 88.0% from
1,000, 72.7% from 150, 66.8% from 100 and 23.8% from 20 (a gross fault only); the long run always draws
2,000.
"""

import os
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from scipy.stats import binomtest

from sfumato import laws, noise
from sfumato.core.query import Law
from sfumato.engines.expressions import col
from sfumato.tables.clamped import Clamped
from sfumato.tables.estimators import Reader
from sfumato.tables.measure import Measure
from sfumato.tables.measures.association import Association
from sfumato.tables.measures.average import MeanValue
from sfumato.tables.measures.proportion import Proportion
from sfumato.tables.measures.quotient import Quotient
from sfumato.tables.measures.row_count import RowCount
from sfumato.tables.measures.total import Total
from sfumato.tables.measures.variation import Variation
from sfumato.tables.statistic_plan import blocks_of
from tests.laws import gauge_by_hand as by_hand

pytestmark = pytest.mark.no_cover  # thousands of plans: measuring coverage would double their time

ALPHA = 1e-9
LEVEL = Fraction(19, 20)
ROWS = 400
LONG = os.environ.get("SFUMATO_LONG") == "1"
TIMES = 2_000
FEWER = {
    "laplace": {
        "mean": 1_000,
        "proportion": 1_000,
        "ratio": 1_000,
        "mean with squares": 500,
        "ratio together": 100,
        "variance": 150,
        "covariance": 100,
    }
    | {"standard deviation": 150, "correlation": 20},
    "gaussian": {"variance": 150, "standard deviation": 150, "covariance": 100, "correlation": 20},
}
X = Clamped(value=col("x").node, low=Fraction(0), high=Fraction(10))
Y = Clamped(value=col("y").node, low=Fraction(-1), high=Fraction(3))
GOOD = col("x") > 4
TABLE = [
    {"x": float(place * 7 % 101) / 10, "y": float(place * 7 % 101) / 50 + (place % 5) / 5 - 1} for place in range(ROWS)
]
XS, YS = np.array([row["x"] for row in TABLE]), np.array([row["y"] for row in TABLE])

TRUTHS: dict[str, tuple[Measure, float]] = {
    "count": (RowCount(name="it"), ROWS),
    "sum": (Total(name="it", of=X), XS.sum()),
    "mean": (MeanValue(name="it", of=X), XS.mean()),
    "mean with squares": (MeanValue(name="it", of=X, squares=True), XS.mean()),
    "ratio together": (Quotient(name="it", over=X, under=Y, together=True), XS.sum() / YS.sum()),
    "variance": (Variation(name="it", of=X), XS.var()),
    "standard deviation": (Variation(name="it", of=X, root=True), XS.std()),
    "proportion": (Proportion(name="it", condition=GOOD), float((XS > 4).mean())),
    "ratio": (Quotient(name="it", over=X, under=Y), XS.sum() / YS.sum()),
    "covariance": (Association(name="it", first=X, second=Y), np.cov(XS, YS, ddof=0)[0, 1]),
    "correlation": (Association(name="it", first=X, second=Y, scaled=True), np.corrcoef(XS, YS)[0, 1]),
}


def drawn(law: Law, size: int, wider: Fraction) -> np.ndarray:
    match law:
        case laws.DiscreteLaplace(scale=scale):
            return noise.discrete_laplace(scale=scale * wider, size=size)
        case laws.RoundedGaussian(sigma=sigma):
            return noise.rounded_gaussian(sigma=sigma * wider, size=size)
    raise AssertionError(law)


def covered(name: str, law: Law, times: int, *, wider: Fraction = Fraction(1)) -> int:
    """In how many of so many answers the interval holds the truth."""
    measure, truth = TRUTHS[name]
    blocks = blocks_of([measure])
    values: list[int] = []
    for block in blocks:
        rows = [by_hand.of_row(block.gauge, row) for row in TABLE]
        for part in zip(*rows, strict=True):
            values += (sum(part) + drawn(law, times, wider).astype(object)).tolist()
    reader = Reader(blocks=blocks, cells=times, number=None, identifier="drawn", law=law, values=values,
                    labels={"cell": tuple(range(times))}, sources=())  # fmt: skip
    # What the lattice rounds away is no noise: half a step of each row.
    room = 1e-3 * abs(truth) / sqrt(ROWS) if name != "count" else 0.0
    return sum(
        float(low) - room <= truth <= float(high) + room
        for low, high in measure.estimate(reader).interval(LEVEL, of="data")
    )


def refuted(hits: int, times: int) -> bool:
    return bool(binomtest(hits, times, float(LEVEL), alternative="less").pvalue < ALPHA)


def law_for(name: str, kind: str) -> Law:
    """Noise of five rows."""
    scale = Fraction(5 * blocks_of([TRUTHS[name][0]])[0].reach.alone.linf)
    return laws.DiscreteLaplace(scale=scale) if kind == "laplace" else laws.RoundedGaussian(sigma=scale)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.alpha(ALPHA)
def test_intervals_cover_at_least_as_often_as_they_say(name: str, kind: str) -> None:
    times = TIMES if LONG else FEWER[kind].get(name, TIMES)
    assert not refuted(covered(name, law_for(name, kind), times), times)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["count", "mean"])
@pytest.mark.alpha(ALPHA)
def test_noise_that_is_too_wide_is_refuted(name: str) -> None:
    assert refuted(covered(name, law_for(name, "gaussian"), TIMES, wider=Fraction(13, 10)), TIMES)
