"""Whoever moves nothing loses nothing, under every mechanism; less than nothing is refused."""

from fractions import Fraction

import pytest

from sfumato.accounting import compose
from sfumato.core.guarantees import Pure
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.mechanisms.exponential import Exponential, PermuteAndFlip
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.noisy_max import NoisyMax
from sfumato.mechanisms.optimal_selection import OptimalSelection
from sfumato.mechanisms.sparse_vector import SparseVector
from sfumato.mechanisms.threshold import NoisyThreshold
from sfumato.mechanisms.top import TopChoice

pytestmark = pytest.mark.kills

LOSSES = {
    "laplace": lambda moved: Laplace.calibrated(l1=1, epsilon=1).loss(Sensitivity.of(l1=moved)),
    "exponential": Exponential.calibrated(sensitivity=1, epsilon=1).loss,
    "permute and flip": PermuteAndFlip.calibrated(sensitivity=1, epsilon=1).loss,
    "noisy max": NoisyMax.calibrated(sensitivity=1, epsilon=1).loss,
    "sparse vector": SparseVector.calibrated(sensitivity=1, alarms=2, epsilon=1).loss,
    "noisy threshold": NoisyThreshold.calibrated(keys=1, most=1, epsilon=1, delta=1e-6).loss,
    "optimal selection": OptimalSelection.calibrated(keys=1, epsilon=1, delta=1e-6).loss,
    "top choice": TopChoice.calibrated(choices=2, sensitivity=1, epsilon=1).loss,
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_a_unit_that_moves_nothing_loses_nothing(loss):
    assert compose([loss(0)]) == Pure(epsilon=Fraction(0))
    assert compose([loss(1)]).epsilon > 0


WORDS = {
    "laplace": "l1 = -1 must not be below 0",
    "exponential": "must not be below 0",
    "permute and flip": "must not be below 0",
    "noisy max": "sensitivity = -1 must be a whole number of at least 0",
    "sparse vector": "sensitivity = -1 must be a whole number of at least 0",
    "noisy threshold": "keys = -1 must be a whole number of at least 0",
    "optimal selection": "keys = -1 must be a whole number of at least 0",
    "top choice": "sensitivity = -1 must be a whole number of at least 0",
}


@pytest.mark.parametrize(("name", "says"), WORDS.items())
def test_a_move_below_nothing_is_refused_by_name(name, says):
    with pytest.raises(InvalidInput, match=says):
        LOSSES[name](-1)
