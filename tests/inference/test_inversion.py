"""The spread of linear combinations: never above the truth, and hardly below it."""

import math
import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.query import Law
from sfumato.errors import Unsupported
from sfumato.inference.inversion import FINE, Spread
from sfumato.inference.spectrum import spectrum
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, RoundedGaussian

Terms = list[tuple[Fraction, Law]]


def masses(law: Law) -> tuple[np.ndarray, np.ndarray]:
    """Values and probabilities, by definition, up to a mass of about 1e-14."""
    if isinstance(law, DiscreteLaplace):
        scale = float(law.scale)
        values = np.arange(-math.ceil(34 * scale) - 1, math.ceil(34 * scale) + 2)
        return values, math.tanh(1 / (2 * scale)) * np.exp(-np.abs(values) / scale)
    if isinstance(law, DiscreteGaussian):
        sigma = math.sqrt(law.sigma_squared)
        values = np.arange(-math.ceil(9 * sigma) - 1, math.ceil(9 * sigma) + 2)
        weights = np.exp(-((values / sigma) ** 2) / 2)
        return values, weights / weights.sum()
    assert isinstance(law, RoundedGaussian)
    sigma = float(law.sigma)
    values = np.arange(-math.ceil(9 * sigma) - 1, math.ceil(9 * sigma) + 2)
    edges = [math.erfc(-(k - 0.5) / (sigma * math.sqrt(2))) / 2 for k in [*values, values[-1] + 1]]
    return values, np.diff(edges)


def truth(terms: Terms) -> dict[Fraction, float]:
    """P(S = s) by adding up all combinations."""
    found: dict[Fraction, float] = {Fraction(0): 1.0}
    for coefficient, law in terms:
        values, chances = masses(law)
        more: dict[Fraction, float] = {}
        for value, chance in zip(values.tolist(), chances.tolist(), strict=True):
            for at, before in found.items():
                place = at + coefficient * value
                more[place] = more.get(place, 0.0) + before * chance
        found = more
    return found


LAWS = st.one_of(
    st.builds(DiscreteLaplace, scale=st.sampled_from([Fraction(1, 4), Fraction(1), Fraction(5, 2), Fraction(6)])),
    st.builds(RoundedGaussian, sigma=st.sampled_from([Fraction(1, 5), Fraction(1), Fraction(7, 2), Fraction(12)])),
    st.builds(DiscreteGaussian, sigma_squared=st.sampled_from([Fraction(1, 9), Fraction(2), Fraction(50)])),
)
MANY = 60 if os.environ.get("SFUMATO_LONG") == "1" else 15
COEFFICIENTS = st.sampled_from(
    [Fraction(1), Fraction(-1), Fraction(2), Fraction(1, 3), Fraction(-7, 10), Fraction(5, 4)]
)
TERMS = st.lists(st.tuples(COEFFICIENTS, LAWS), min_size=1, max_size=2)


@given(terms=TERMS, share=st.sampled_from([0, Fraction(1, 3), 1, 2, 3, 5]))
@settings(max_examples=MANY, deadline=None)
def test_what_lies_within_is_the_truth_rounded_down(terms: Terms, share: Fraction) -> None:
    chances, spread = truth(terms), Spread(terms)
    distance = Fraction(share) * Fraction(spread.deviation).limit_denominator(1000)
    allowed = 0 if spread.whole else 2 * FINE * Fraction(spread.deviation)
    exact = math.fsum(chance for at, chance in chances.items() if abs(at) <= distance)
    nearly = math.fsum(chance for at, chance in chances.items() if abs(at) <= distance - allowed)
    assert nearly - 1e-6 <= spread.within(distance) <= exact + 1e-12
    closer = math.fsum(chance for at, chance in chances.items() if abs(at) < distance)
    assert spread.nearer(distance) <= closer + 1e-12


@pytest.mark.long
@given(
    terms=TERMS, confidence=st.sampled_from([Fraction(1, 2), Fraction(9, 10), Fraction(19, 20), Fraction(999, 1000)])
)
@settings(max_examples=MANY, deadline=None)
def test_a_margin_covers_and_is_hardly_too_wide(terms: Terms, confidence: Fraction) -> None:
    chances, spread = truth(terms), Spread(terms)
    margin = spread.margin(confidence)
    assert math.fsum(chance for at, chance in chances.items() if abs(at) <= margin) >= float(confidence) - 1e-12
    shorter = margin - spread.step if spread.whole else margin - 3 * FINE * Fraction(spread.deviation)
    assert math.fsum(chance for at, chance in chances.items() if abs(at) <= shorter) < float(confidence) + 1e-6


def test_a_jitter_that_is_added_and_not_taken_off_is_caught() -> None:
    """The twin: rounded the other way, a lower bound is none."""
    terms: Terms = [
        (Fraction(1), DiscreteLaplace(scale=Fraction(6))),
        (Fraction(-7, 1000), RoundedGaussian(sigma=Fraction(1))),
    ]
    spread = Spread(terms, fine=Fraction(1, 20))
    assert not spread.whole
    exact = math.fsum(chance for at, chance in truth(terms).items() if abs(at) <= Fraction(699, 100))
    assert spread.within(Fraction(699, 100)) <= exact
    assert spread._smooth(6.99 + spread._jitter) > exact


def test_many_parts_cost_no_width() -> None:
    """20 equal parts: the margin is that of the exact law, which the normal law nearly is."""
    noise = DiscreteLaplace(scale=Fraction(12))
    margin = Spread([(Fraction(1), noise)] * 20).margin(Fraction(19, 20))
    assert abs(float(margin) / (1.96 * math.sqrt(20 * float(noise.variance))) - 1) < 0.02


def test_lattices() -> None:
    noise = DiscreteLaplace(scale=Fraction(2))
    assert Spread([(Fraction(1), noise), (Fraction(1, 3), noise)]).step == Fraction(1, 3)
    assert Spread([(Fraction(2, 3), noise), (Fraction(1, 2), noise)]).step == Fraction(1, 6)
    assert Spread([(Fraction(4), noise), (Fraction(6), noise)]).step == 2
    assert Spread([(Fraction(0), noise)]).margin(Fraction(19, 20)) == 0
    assert Spread([]).within(Fraction(0)) == 1
    assert Spread([]).within(Fraction(-1)) == 0


@pytest.mark.parametrize(
    "law",
    [DiscreteLaplace(scale=Fraction(1, 4)), DiscreteLaplace(scale=Fraction(6)), RoundedGaussian(sigma=Fraction(1, 5)),
     RoundedGaussian(sigma=Fraction(1)), RoundedGaussian(sigma=Fraction(12)),
     DiscreteGaussian(sigma_squared=Fraction(1, 9)), DiscreteGaussian(sigma_squared=Fraction(50))],
)  # fmt: skip
def test_a_spectrum_is_that_of_its_law(law: Law) -> None:
    values, chances = masses(law)
    times = np.linspace(0, 20, 501)
    wave = np.cos(np.outer(times, values)) @ chances
    assert np.abs(spectrum(law).wave(times) - wave).max() < 1e-12
    for rate in (0.01, 0.05, 0.1):
        moment = float(np.exp(rate * values) @ chances)
        assert math.log(moment) <= spectrum(law).log_moment(rate) + 1e-12
    assert spectrum(DiscreteLaplace(scale=Fraction(6))).log_moment(0.2) == math.inf


def test_a_law_without_a_spectrum_is_refused() -> None:
    class Strange:
        KIND = "law.strange"

    with pytest.raises(Unsupported, match="strange"):
        spectrum(Strange())  # type: ignore[arg-type]


@pytest.mark.parametrize(("law", "parts"), [(Gaussian(sigma=Fraction(3)), 4), (Laplace(scale=Fraction(3)), 1)])
def test_continuous_laws(law: Law, parts: int) -> None:
    """The sum of four Gaussians is one of twice the width; a Laplace error is itself."""
    spread = Spread([(Fraction(1), law)] * parts)
    exact = (Gaussian(sigma=Fraction(6)) if parts == 4 else law).margin(Fraction(19, 20))
    assert 0 <= spread.margin(Fraction(19, 20)) - exact <= 3 * FINE * Fraction(spread.deviation)
    assert not spread.whole


def test_a_series_made_for_a_short_distance_is_not_used_for_a_longer_one() -> None:
    """What lies beyond one period comes back as near; a period must be as long as the distance asks."""
    law = RoundedGaussian(sigma=Fraction(3 * 2**30))
    terms = [(Fraction(1, 2**30), law)] * 4
    used = Spread(terms)
    used.within(Fraction(3))
    for distance in (10, 20, 25):
        truth = math.erf(distance / 6 / math.sqrt(2))
        assert used.within(Fraction(distance)) <= truth
