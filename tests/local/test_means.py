"""Means by enumeration: their laws, ratios, expectations and variances."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.core import enclosures
from sfumato.errors import InvalidInput
from sfumato.local import DuchiMean, HybridMean, PiecewiseMean, aggregate, estimate_mean, mean_reports
from sfumato.local.simulate import nearest
from tests.local.enumerated import law

pytestmark = pytest.mark.kills

SMALL = [
    DuchiMean(epsilon=1, steps=6),
    PiecewiseMean.calibrated(epsilon=1, steps=10),
    PiecewiseMean(epsilon=2, window=3, steps=8),
    HybridMean.calibrated(epsilon=2, steps=8),
    HybridMean(epsilon=1, window=4, share="1/4", steps=6),
]


def named(asked: object) -> str:
    return repr(asked).replace("Fraction", "")


@pytest.mark.parametrize("asked", SMALL, ids=named)
def test_the_law_is_private_unbiased_and_has_the_stated_variance(asked) -> None:
    worst = Fraction(0)
    for report in asked.outputs():
        chances = [asked.probability(report, step) for step in range(asked.steps + 1)]
        worst = max(worst, max(chances) / min(chances))
        assert abs(asked.number(report)) <= asked.reach
    assert worst == asked.ratio <= enclosures.exp(asked.epsilon).low
    for step in range(asked.steps + 1):
        value = Fraction(2 * step, asked.steps) - 1
        law_of = [(asked.number(report), asked.probability(report, step)) for report in asked.outputs()]
        assert sum(chance for _, chance in law_of) == 1
        assert sum(number * chance for number, chance in law_of) == value
        assert sum(number**2 * chance for number, chance in law_of) - value**2 == asked.variance(value)
        assert asked.variance(value) <= asked.worst_variance


@pytest.mark.parametrize("asked", [*SMALL[:3], SMALL[4]], ids=named)
def test_what_the_client_draws_has_exactly_the_stated_law(asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.local.means.odds", lambda epsilon: Fraction(3, 2))
    for step in range(asked.steps + 1):
        drawn = law(lambda bits, step=step: asked.report(Fraction(2 * step, asked.steps) - 1, bits))
        wanted = {report: asked.probability(report, step) for report in asked.outputs()}
        assert drawn == {report: chance for report, chance in wanted.items() if chance}


def test_worst_variances_are_those_of_the_literature() -> None:
    assert float(DuchiMean(epsilon=1).worst_variance) == pytest.approx(4.683, abs=5e-4)
    assert float(PiecewiseMean.calibrated(epsilon=1).worst_variance) == pytest.approx(5.224, abs=5e-4)
    assert float(HybridMean.calibrated(epsilon=1).worst_variance) == pytest.approx(4.289, abs=5e-4)  # Laplace: 8
    assert HybridMean.calibrated(epsilon="1/2").share == 0
    assert HybridMean.calibrated(epsilon="7/10").share > 0


def test_values_are_clamped_rounded_and_never_repeated() -> None:
    asked = DuchiMean(epsilon=1, steps=4)
    assert [asked.step(value) for value in (-7, -1, "-0.26", 0, 0.24, 0.26, 1, 5)] == [0, 0, 1, 2, 2, 3, 4, 4]
    for value in (float("nan"), "secret", None):
        with pytest.raises(InvalidInput) as refused:
            asked.step(value)
        assert "secret" not in str(refused.value)


@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["normal", "bernstein"])
@pytest.mark.alpha(1e-9)
def test_intervals_of_means_cover(method: str) -> None:
    """300 groups of 400; more than 42 misses at 5% have α = 1e-9 by the binomial law. The twin: narrower intervals."""
    asked = HybridMean.calibrated(epsilon=2)
    values = np.linspace(-1, 1, 400)
    misses = narrow = 0
    for _ in range(300):
        mean = estimate_mean(asked, mean_reports(asked, values), method=method)
        misses += not mean.low <= 0 <= mean.high
        half = (mean.high - mean.low) / 2 / (2 if method == "normal" else 5)
        narrow += abs(mean.estimate) > half
    assert misses <= binom.isf(1e-9, 300, 0.05) < narrow


def test_wrong_reports_are_refused() -> None:
    for wrong in ([], [2], [-1], [[0]]):
        with pytest.raises(InvalidInput):
            estimate_mean(DuchiMean(epsilon=1), wrong)
    with pytest.raises(InvalidInput, match="unknown"):
        estimate_mean(DuchiMean(epsilon=1), [0], method="best")
    with pytest.raises(InvalidInput, match="finite"):
        mean_reports(DuchiMean(epsilon=1), [float("nan")])
    for wrong in ("x", ["x"], [None], None, [[0.5]], [object()]):
        with pytest.raises(InvalidInput, match="finite"):
            mean_reports(DuchiMean(epsilon=1), wrong)


def test_the_method_left_out_is_one_that_covers() -> None:
    """3,000 groups of 300 at x = 0: at ε = 16 few reports err, and the normal margin misses 12% of them, not 5%."""
    asked, groups, n = HybridMean.calibrated(epsilon=16), 3000, 300
    drawn = mean_reports(asked, np.zeros(groups * n))
    means = aggregate._numbers(asked, drawn).reshape(groups, n).mean(axis=1)
    one = estimate_mean(asked, drawn[:n])
    assert one.method == "bernstein"
    limit = groups * 0.05 + 4.75 * (groups * 0.05 * 0.95) ** 0.5
    normal = 1.96 * float(asked.worst_variance / n) ** 0.5
    assert (abs(means) > one.high - one.estimate).sum() < limit < (abs(means) > normal).sum()
    with pytest.raises(InvalidInput, match="method='bernstein'"):
        estimate_mean(asked, drawn[:n], method="normal")


def test_the_normal_method_begins_where_enough_reports_err() -> None:
    asked = DuchiMean(epsilon=1)  # 30·(reach + 1)²/V = 64.2
    assert [estimate_mean(asked, [0, 1] * 32 + [0] * more).method for more in (0, 1)] == ["bernstein", "normal"]
    sure = [estimate_mean(asked, [0, 1] * 32 + [0], confidence=confidence).method for confidence in ("0.99", "0.999")]
    assert sure == ["normal", "bernstein"]


@pytest.mark.parametrize("method", [None, "normal", "bernstein"])
def test_no_interval_of_a_mean_is_certain(method) -> None:
    for confidence in (1, "1", 1 - Fraction(1, 10**400)):
        with pytest.raises(InvalidInput, match="below 1"):
            estimate_mean(DuchiMean(epsilon=1), [0, 1], confidence=confidence, method=method)


def test_the_point_of_a_value_is_the_clients_also_at_ties() -> None:
    assert nearest(DuchiMean(epsilon=32, steps=10), np.array([-0.9])).tolist() == [1]
    ten = DuchiMean(epsilon=32, steps=10)
    assert mean_reports(ten, np.full(20, 1 - 1e-17)).tolist() == [1] * 20
    for asked in (ten, DuchiMean(epsilon=1), DuchiMean(epsilon=1, steps=1 << 30), DuchiMean(epsilon=1, steps=77)):
        halves = (2 * np.arange(0, asked.steps, max(1, asked.steps // 200)) + 1) / asked.steps - 1
        values = np.concatenate(
            (halves, np.nextafter(halves, 2), np.nextafter(halves, -2), [0.7012491226196289, -1.5, -1, 0, 1, 7.5])
        )
        assert nearest(asked, values).tolist() == [asked.step(float(value)) for value in values]
