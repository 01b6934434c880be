"""S3-06: noise on the logits of a discriminator lowers the value of the game, and leaves its minimum where it was."""

import math

import numpy as np
import pytest

from sfumato.errors import InvalidInput
from sfumato.learning.generative.equilibrium import discriminator_objective, equilibrium_value

pytestmark = pytest.mark.claim("S3-06")

DEVIATIONS = (0.0, 0.5, 1.0, 2.0)
ALTERNATIVES = 25
REAL = (0.3, 0.25, 0.2, 0.15, 0.1)


def alternatives() -> list[list[float]]:
    draw = np.random.default_rng(306)
    near = [np.abs(np.array(REAL) + draw.normal(0, 0.02, len(REAL))) for _ in range(10)]
    far = list(draw.dirichlet(np.ones(len(REAL)), ALTERNATIVES - 10))
    return [list(each / each.sum()) for each in (*near, *far)]


def test_the_value_at_equal_distributions() -> None:
    assert [round(equilibrium_value(sd), 3) for sd in DEVIATIONS] == [-1.386, -1.447, -1.612, -2.135]
    assert equilibrium_value(0) == pytest.approx(-2 * math.log(2), abs=1e-12)


def test_the_value_is_twice_the_mean_logarithm_of_a_sigmoid() -> None:
    """By another way: a fine sum over the normal density."""
    at = np.linspace(-12, 12, 200_001)
    density = np.exp(-(at**2) / 2)
    for sd in DEVIATIONS:
        mean = float((-np.logaddexp(0, -sd * at) * density).sum() / density.sum())
        assert equilibrium_value(sd) == pytest.approx(2 * mean, abs=1e-6)
        assert discriminator_objective(REAL, REAL, sd=sd) == pytest.approx(2 * mean, abs=1e-6)


@pytest.mark.parametrize("sd", DEVIATIONS)
def test_no_alternative_lies_below_equal_distributions(sd: float) -> None:
    least = equilibrium_value(sd)
    others = [discriminator_objective(REAL, made, sd=sd) for made in alternatives()]
    assert len(others) == ALTERNATIVES
    assert min(others) > least


def test_noise_of_mean_zero_lowers_every_value() -> None:
    for made in alternatives():
        found = [discriminator_objective(REAL, made, sd=sd) for sd in DEVIATIONS]
        assert found == sorted(found, reverse=True)


def test_the_best_logits_without_noise_are_the_log_ratio() -> None:
    """Then the objective is −2 ln 2 plus twice the Jensen-Shannon divergence."""
    real, made = np.array(REAL), np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    middle = (real + made) / 2
    divergence = (real @ np.log(real / middle) + made @ np.log(made / middle)) / 2
    assert discriminator_objective(REAL, list(made), sd=0) == pytest.approx(2 * divergence - 2 * math.log(2), abs=1e-9)


@pytest.mark.parametrize(
    ("real", "made", "sd"),
    [([0.5, 0.5], [1.0], 1.0), ([0.5, 0.6], [0.5, 0.5], 1.0), ([-0.5, 1.5], [0.5, 0.5], 1.0), ([1.0], [1.0], -1.0)],
)
def test_what_is_no_distribution_is_refused(real: list[float], made: list[float], sd: float) -> None:
    with pytest.raises(InvalidInput, match="nothing was done"):
        discriminator_objective(real, made, sd=sd)
