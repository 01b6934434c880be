"""Noise that a bootstrap draws again has the law of the release, and a generator that the release decides."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import Unsupported
from sfumato.laws import Cube, DiscreteGaussian, DiscreteLaplace, RoundedGaussian
from sfumato.studies.draws import CellNoise, generator_of

LAWS = [
    DiscreteLaplace(scale=Fraction(1, 3)),
    DiscreteLaplace(scale=Fraction(10)),
    DiscreteLaplace(scale=Fraction(10**6)),
    DiscreteGaussian(sigma_squared=Fraction(1, 2)),
    DiscreteGaussian(sigma_squared=Fraction(30)),
    DiscreteGaussian(sigma_squared=Fraction(10**10)),
    RoundedGaussian(sigma=Fraction(4)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_have_the_variance_and_the_tails_of_their_law(law: DiscreteLaplace) -> None:
    drawn = CellNoise.of(law).draw(generator_of("trial"), (200_000,))
    variance = float(law.variance)
    assert abs(drawn.mean()) < 5 * (variance / len(drawn)) ** 0.5
    assert drawn.var() == pytest.approx(variance, rel=0.03)
    assert np.mean(np.abs(drawn) > law.margin(0.95)) < 0.0525
    fourth = np.mean(drawn**4) - 3 * variance**2
    assert CellNoise.of(law).fourth == pytest.approx(fourth, abs=0.6 * variance**2 + 0.5)


def test_weights_scale_the_noise() -> None:
    law = DiscreteLaplace(scale=Fraction(2**30))
    one, half = CellNoise.of(law, 2**30), CellNoise(((0.5 / 2**30, law), (0.5 / 2**30, law)))
    assert one.variance == pytest.approx(2, rel=1e-6)
    assert half.variance == pytest.approx(1, rel=1e-6)
    assert half.draw(generator_of("a"), (100_000,)).var() == pytest.approx(1, rel=0.03)


def test_the_release_decides_the_draws() -> None:
    same, other = (generator_of(name).random(3).tolist() for name in ("a", "b"))
    assert generator_of("a").random(3).tolist() == same
    assert same != other


def test_noise_that_is_not_independent_is_refused() -> None:
    with pytest.raises(Unsupported, match="not independent"):
        CellNoise.of(Cube(dimensions=3, scale=Fraction(1))).draw(generator_of("a"), (3,))
