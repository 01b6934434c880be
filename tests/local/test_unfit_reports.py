"""Reports that no honest population explains are named, and normal intervals miss no more often than stated."""

import warnings

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.local import Collection, DuchiMean, KaryResponse, UnfitReports, estimate_mean, estimate_shares
from sfumato.local.aggregate import UNLIKELY
from sfumato.local.plots.estimated_shares import _percent, shares

ASK = KaryResponse(epsilon=1, values=2)


def test_two_hundred_times_one_is_said_to_fit_no_population() -> None:
    with pytest.warns(UnfitReports, match="no honest population explains these reports: they put 2 of 2 values"):
        found = estimate_shares(ASK, [1] * 200)
    assert round(float(found.estimates[1]), 2) == 1.58
    assert not found.fits
    assert found.unfit == (0, 1)
    with pytest.warns(UnfitReports, match="the mean"):
        mean = estimate_mean(DuchiMean(epsilon=1), [1] * 200)
    assert not mean.fits


def test_the_picture_says_it_in_both_languages() -> None:
    with pytest.warns(UnfitReports):
        found = estimate_shares(ASK, [1] * 200)
    asked = Collection(name="smoking", ask=ASK, labels=("no", "yes"))
    assert "No honest population" in " ".join(shares(found, asked).to_dict()["title"]["subtitle"])
    assert "如实作答" in " ".join(shares(found, asked, "zh").to_dict()["title"]["subtitle"])
    fine = shares(estimate_shares(ASK, [0, 1] * 50), asked).to_dict()
    assert "No honest population" not in " ".join(fine["title"]["subtitle"])


@pytest.mark.parametrize("n", [1, 10, 200])
def test_honest_reports_are_seldom_called_unfit(n: int) -> None:
    """By enumeration over all outcomes of the worst populations: everybody has the value, or nobody has."""
    p, q = float(ASK.hit), float(ASK.stray)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfitReports)
        unfit = np.array([not estimate_shares(ASK, [1] * k + [0] * (n - k)).fits for k in range(n + 1)])
    for chance in (p, q):
        assert binom.pmf(np.arange(n + 1), n, chance)[unfit].sum() <= UNLIKELY


@pytest.mark.parametrize(("epsilon", "n"), [("0.2", 123), (1, 153), (2, 400)])
@pytest.mark.parametrize("confidence", ["0.9", "0.95"])
def test_normal_intervals_of_shares_miss_no_more_than_stated(epsilon: object, n: int, confidence: str) -> None:
    ask = KaryResponse(epsilon=epsilon, values=2)  # type: ignore[arg-type]  # ruled by the class
    p, q = float(ask.hit), float(ask.stray)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfitReports)
        found = [
            estimate_shares(ask, [1] * k + [0] * (n - k), method="normal", confidence=confidence) for k in range(n + 1)
        ]
    low, high = np.array([each.low[1] for each in found]), np.array([each.high[1] for each in found])
    for have in (0, n // 10, n // 3, n // 2, n):
        law = np.convolve(
            binom.pmf(np.arange(have + 1), have, p), binom.pmf(np.arange(n - have + 1), n - have, q)
        )  # a fixed population
        missed = (low > have / n) | (high < have / n)
        assert law[missed].sum() <= 1 - float(confidence)


@pytest.mark.parametrize(("epsilon", "n"), [("0.2", 50), ("0.2", 37), (1, 200)])
def test_normal_intervals_of_means_miss_no_more_than_stated(epsilon: object, n: int) -> None:
    """At ε = 0.2 with 50 reports, 6.5% missed where 5% was stated: the mean of coins is a lattice."""
    ask = DuchiMean(epsilon=epsilon)  # type: ignore[arg-type]  # ruled by the class
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfitReports)
        found = [estimate_mean(ask, [1] * k + [0] * (n - k), method="normal") for k in range(n + 1)]
    for value in (-1, 0, 0.5, 1):
        law = binom.pmf(np.arange(n + 1), n, float(ask.probability(1, ask.step(value))))
        missed = np.array([not each.low <= value <= each.high for each in found])
        assert law[missed].sum() <= 0.05


def test_the_ends_in_a_picture_are_rounded_outward() -> None:
    assert _percent(0.12349, up=True) == "12.4%"
    assert _percent(0.12341, up=True) == "12.4%"
    assert _percent(0.12349, up=False) == "12.3%"
    assert _percent(-0.0001, up=False) == "−0.1%"
    drawn = shares(estimate_shares(ASK, [0] * 57 + [1] * 43), Collection(name="s", ask=ASK)).to_dict()
    row = drawn["layer"][0].get("data", drawn.get("data"))["values"][0]
    low, high = (float(end.rstrip("%").replace("−", "-")) / 100 for end in row["within"].split(" … "))
    assert low <= row["low"]
    assert row["high"] <= high
