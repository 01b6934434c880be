"""Weighted means over strata hold the population's as often as they say: simulated samples and noise.

A cell is refuted where its hits would be rarer than α = 1e-9 if it covered 94.5%; with the 120,000 runs of the long
tests that refutes coverage below 93.9% with probability 99%. Deliberately broken copies (noise left out; strata that
are held to their bounds before they are added up) must be refuted.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from sfumato.inference import stratified
from sfumato.inference.population import Residuals
from sfumato.inference.stratified import Strata

Floats = npt.NDArray[np.float64]
Sample = Callable[[int, np.random.Generator], Strata]

pytestmark = pytest.mark.no_cover  # thousands of samples: measuring coverage would slow them down

ALPHA, COVER = 1e-9, 0.945
SHORT, LONG, AT_ONCE = 4_000, 120_000, 4_000
SPOTS = np.array([0.0, 0.5, 1.0])
SQUARES = np.array([[0, 0, 1.0], [0, -1.0, -2.0], [1.0, 1.0, 1.0]])
SHARES = {"rare": (0.02, 0.02), "tenth": (0.1, 0.1), "apart": (0.05, 0.5), "most": (0.9, 0.9)}


def weights_of(kind: str, strata: int) -> Floats:
    """Equal ones, or each half of the one before."""
    found = np.ones(strata) if kind == "equal" else 0.5 ** np.arange(strata)
    return np.asarray(found / found.sum())


def of_shares(kind: str, rows: int, epsilon: float, weights: Floats) -> tuple[Sample, float]:
    p = np.linspace(*SHARES[kind], len(weights))

    def sample(runs: int, draw: np.random.Generator) -> Strata:
        met = draw.binomial(rows, p, (runs, len(p))).astype(float)
        sums = np.stack([met, rows - met], axis=-1).reshape(-1, 2)
        return Strata(
            residuals=Residuals(
                sums=sums + draw.laplace(size=sums.shape) / epsilon,
                noise=np.full(2, np.sqrt(2) / epsilon),
                gaussian=False,
                over=np.array([1.0, 0.0]),
                under=np.ones(2),
                number=np.ones(2),
                within=(0.0, 1.0),
                half=0.5,
                exact_variance=True,
            ),
            weights=weights,
        )

    return sample, float(weights @ p)


def powers(t: Floats) -> Floats:
    """What degree 2 measures of values on [0, 1], added up over rows."""
    return np.stack([((1 - t) ** 2).sum(1), (2 * t * (1 - t)).sum(1), (t * t).sum(1)], axis=1)


def of_means(kind: str, rows: int, epsilon: float, weights: Floats) -> tuple[Sample, float]:
    del kind
    second = np.linspace(2, 8, len(weights))  # beta values with means from 0.5 down to 0.2

    def sample(runs: int, draw: np.random.Generator) -> Strata:
        sums = np.stack([powers(draw.beta(2.0, each, (runs, rows))) for each in second], axis=1).reshape(-1, 3)
        return Strata(
            residuals=Residuals(
                sums=sums + draw.laplace(size=sums.shape) / epsilon,
                noise=np.full(3, np.sqrt(2) / epsilon),
                gaussian=False,
                over=SPOTS,
                under=np.ones(3),
                number=np.ones(3),
                squares=SQUARES,
                between=np.array([0.0, 1.0, 0.0]),
                within=(0.0, 1.0),
            ),
            weights=weights,
        )

    return sample, float(weights @ (2 / (2 + second)))


def of_ratios(kind: str, rows: int, epsilon: float, weights: Floats) -> tuple[Sample, float]:
    """Events over years that each person was watched, up to one; rates from ``kind`` on to three times as much."""
    rates = np.linspace(float(kind), 3 * float(kind), len(weights))
    spots = np.repeat(SPOTS, 3), np.tile(SPOTS, 3)

    def sample(runs: int, draw: np.random.Generator) -> Strata:
        found = np.empty((runs, len(rates), 9))
        for place, rate in enumerate(rates):
            years = draw.uniform(0, 1, (runs, rows))
            event = draw.random((runs, rows)) < rate * years
            parts = np.stack([(1 - years) ** 2, 2 * years * (1 - years), years * years], axis=-1)
            with_event = np.einsum("rn,rnk->rk", event, parts)
            found[:, place] = np.concatenate([parts.sum(1) - with_event, np.zeros((runs, 3)), with_event], axis=1)
        sums = found.reshape(-1, 9)
        return Strata(
            residuals=Residuals(
                sums=sums + draw.laplace(size=sums.shape) / epsilon,
                noise=np.full(9, np.sqrt(2) / epsilon),
                gaussian=False,
                over=spots[0],
                under=spots[1],
                number=np.ones(9),
                squares=np.array([spots[0] == 1, -2 * spots[0] * spots[1], spots[1] == 1], dtype=float),
            ),
            weights=weights,
        )

    return sample, float(weights @ rates)


def hits(made: tuple[Sample, float], runs: int, broken: str = "") -> int:
    draw, found = np.random.default_rng(), 0
    sample, truth = made
    for _ in range(max(1, runs // AT_ONCE)):
        strata = sample(min(runs, AT_ONCE), draw)
        source = strata.residuals
        if broken == "no noise":
            strata = replace(strata, residuals=replace(source, noise=np.zeros(len(source.noise))))
        limits = strata.limits(0.95)
        low, high = limits.low, limits.high
        if broken == "held":
            centre = np.clip(source.sums @ source.over / (source.sums @ source.under), 0, 1)
            shift = (centre.reshape(-1, len(strata.weights)) @ strata.weights) - limits.estimate
            low, high = low + shift, high + shift
        found += int(((low <= truth) & (truth <= high)).sum())
    return found


def refuted(found: int, runs: int) -> bool:
    return bool(binom.cdf(found, runs, COVER) < ALPHA)


KINDS = [(of_shares, kind) for kind in SHARES] + [(of_means, "beta"), (of_ratios, "0.05"), (of_ratios, "0.3")]


@pytest.fixture(autouse=True)
def fewer_halvings(monkeypatch: pytest.MonkeyPatch) -> None:
    """2⁻¹⁶ of the range is much less than any width here."""
    monkeypatch.setattr(stratified, "HALVINGS", 18)


@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize(
    ("make", "kind", "rows", "strata", "epsilon"),
    [
        (of_shares, "rare", 30, 10, 0.3),
        (of_shares, "tenth", 30, 3, 3),
        (of_shares, "apart", 200, 3, 1),
        (of_means, "beta", 30, 3, 1),
        (of_ratios, "0.3", 30, 3, 3),
    ],
)
def test_a_weighted_mean_is_covered(
    make: Callable[..., tuple[Sample, float]], kind: str, rows: int, strata: int, epsilon: float
) -> None:
    made = make(kind, rows, epsilon, weights_of("halved", strata))
    assert not refuted(hits(made, SHORT), SHORT)


@pytest.mark.long
@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize(("make", "kind"), KINDS)
@pytest.mark.parametrize("weights", ["equal", "halved"])
@pytest.mark.parametrize("epsilon", [0.3, 1, 3])
@pytest.mark.parametrize("strata", [3, 10])
@pytest.mark.parametrize("rows", [30, 200, 1_000])
def test_a_weighted_mean_is_covered_in_many_runs(
    make: Callable[..., tuple[Sample, float]], kind: str, rows: int, strata: int, epsilon: float, weights: str
) -> None:
    runs = LONG if make is of_shares or (make is of_means and rows * strata <= 2_000) else SHORT
    made = make(kind, rows, epsilon, weights_of(weights, strata))
    assert not refuted(hits(made, runs), runs)


@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize(
    ("broken", "kind", "rows", "epsilon"), [("no noise", "apart", 200, 0.3), ("held", "rare", 30, 1)]
)
def test_broken_copies_are_found(broken: str, kind: str, rows: int, epsilon: float) -> None:
    made = of_shares(kind, rows, epsilon, weights_of("equal", 10))
    assert refuted(hits(made, SHORT, broken), SHORT)


@pytest.mark.alpha(1e-9)
def test_strata_that_are_lost_in_noise_leave_no_estimate_and_all_that_is_possible() -> None:
    sample, _ = of_shares("tenth", 5, 0.1, weights_of("equal", 10))
    found = sample(400, np.random.default_rng(3)).limits(0.95)
    open_ = np.isnan(found.estimate)
    assert open_.mean() > 0.9
    assert (found.low[open_] == 0).all()
    assert (found.high[open_] == 1).all()


@pytest.mark.alpha(1e-9)
def test_one_stratum_is_the_interval_of_one_group() -> None:
    sample, _ = of_shares("tenth", 1_000, 1, np.ones(1))
    strata = sample(200, np.random.default_rng(4))
    low, high = strata.residuals.limits(0.95)
    found = strata.limits(0.95)
    np.testing.assert_allclose(found.low, low, atol=1e-3)
    np.testing.assert_allclose(found.high, high, atol=2e-3)


def test_people_who_are_not_sampled_are_all_that_varies_in_a_finite_population() -> None:
    sample, _ = of_shares("tenth", 200, 1, weights_of("equal", 3))
    strata = sample(1, np.random.default_rng(5))
    wide, half, none = (replace(strata, unsampled=np.full(3, share)).limits(0.95) for share in (1.0, 0.5, 0.0))
    plain = strata.limits(0.95)
    assert (wide.low, wide.high) == (plain.low, plain.high)
    assert wide.low < half.low < none.low < none.high < half.high < wide.high
