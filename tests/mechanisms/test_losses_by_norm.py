"""Every mechanism derives its loss from a sensitivity, by the norm that it needs and by no other."""

import dataclasses
from fractions import Fraction

import pytest

from sfumato.accounting import compose
from sfumato.core.guarantees import ZCDP, Pure
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused, WrongNorm
from sfumato.mechanisms import (
    MECHANISMS,
    BufferedNoise,
    ChosenCap,
    DegreeNoise,
    Exponential,
    Gaussian,
    Ladder,
    Ladders,
    Laplace,
    LimitSearch,
    LInfKNorm,
    MatrixNoise,
    NoisyCells,
    NoisyLocalSensitivity,
    NoisyMax,
    NoisyThreshold,
    OptimalSelection,
    PermuteAndFlip,
    QuantileChoice,
    RandomizedResponse,
    SparseVector,
    TopChoice,
    TopSet,
)

pytestmark = pytest.mark.kills

ONE, NOTHING = (Sensitivity.of(l0=n, l1=n, l2_squared=n, linf=n) for n in (1, 0))
HALF = Fraction(1, 2)
CASES = {
    Laplace.calibrated(l1=1, epsilon=HALF): {"l1"},
    Gaussian(l2_squared=Fraction(1), sigma=Fraction(2)): {"l2"},
    NoisyCells.calibrated(cells=9, l1=1, epsilon=HALF): {"l1"},
    NoisyMax.calibrated(sensitivity=1, epsilon=HALF): {"linf"},
    NoisyMax.calibrated(sensitivity=1, epsilon=HALF, monotone=True): {"linf"},
    SparseVector.calibrated(sensitivity=1, alarms=3, epsilon=HALF): {"linf"},
    LimitSearch.calibrated(candidates=[(1, 2), (1, 3, 4)], epsilon=HALF, spend=[1, 1]): {"linf"},
    NoisyThreshold.calibrated(keys=1, most=1, epsilon=HALF, delta="1/1000"): {"l0", "linf"},
    OptimalSelection.calibrated(keys=1, epsilon=HALF, delta="1/1000"): {"l0", "linf"},
    TopChoice.calibrated(choices=3, sensitivity=1, epsilon=HALF): {"linf"},
    TopChoice.calibrated(choices=3, sensitivity=1, epsilon=HALF, monotone=True): {"linf"},
    TopSet.calibrated(candidates=4, choices=2, moved=1, epsilon=HALF, monotone=True): {"l1", "linf"},
    RandomizedResponse.calibrated(epsilon=HALF, categories=3): {"l0"},
    QuantileChoice(quantiles=(HALF,), steps=9, parts=1, epsilon=HALF): {"l0", "linf"},
    DegreeNoise(nodes=4, epsilon=HALF): {"l1"},
    LInfKNorm.calibrated(dimensions=4, linf=1, epsilon=HALF): {"linf"},
    MatrixNoise(strategy=((2, 0), (1, 2)), bits=1, norm="l1", noise=Fraction(6), workload="prefix", questions=()): {
        "l1"
    },
    BufferedNoise(horizon=3, decays=(HALF,), weights=(HALF,), bits=2, noise=Fraction(42)): {"l1"},
}
every_case = pytest.mark.parametrize(("mechanism", "norms"), CASES.items(), ids=[type(m).__name__ for m in CASES])


def test_no_mechanism_is_left_out() -> None:
    by_score = {Exponential, PermuteAndFlip}  # they take a spread of scores, tested with them
    # These are for one count, or for numbers at given caps, and refuse any other move than that: tested with them.
    by_count = {Ladder, Ladders, NoisyLocalSensitivity, ChosenCap}
    assert {type(mechanism) for mechanism in CASES} | by_score | by_count == set(MECHANISMS)


@pytest.mark.parametrize(
    "mechanism",
    [
        Ladder.calibrated(nodes=5, epsilon=HALF),
        Ladders(parts=(Ladder.calibrated(nodes=5, epsilon=HALF),)),
        NoisyLocalSensitivity.calibrated(nodes=5, epsilon=HALF, delta="1/1000"),
        ChosenCap(caps=(1, 3), choice=HALF / 2, epsilon=HALF / 2, spread=1, doubling=0, moves=(1, 3), numbers=1),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_what_is_for_one_count_is_refused_for_another(mechanism) -> None:
    event = mechanism.loss(Sensitivity.of(l1=3))
    assert compose([event]).epsilon == HALF
    for other in (0, 2, 4):
        with pytest.raises(Refused):
            mechanism.loss(Sensitivity.of(l1=other))
    with pytest.raises(WrongNorm, match="l1"):
        mechanism.loss(Sensitivity.of(linf=3))


@every_case
def test_a_unit_within_the_calibration_costs_what_was_asked_for(mechanism, norms) -> None:
    event = mechanism.loss(ONE)
    if isinstance(mechanism, BufferedNoise):
        assert event.guarantee == ZCDP(rho=Fraction(21, 84))
    elif isinstance(mechanism, Gaussian):
        assert (event.l2_squared, event.sigma_squared) == (1, 4)
    else:
        assert compose([event]).epsilon == HALF


@every_case
def test_a_unit_that_moves_nothing_loses_nothing(mechanism, norms) -> None:
    event = mechanism.loss(NOTHING)
    if isinstance(mechanism, BufferedNoise):
        assert event.guarantee == ZCDP(rho=Fraction(0))
    elif isinstance(mechanism, Gaussian):
        assert event.l2_squared == 0
    else:
        assert compose([event]) == Pure(epsilon=Fraction(0))


@every_case
def test_the_norms_that_are_needed_are_asked_for_by_name_and_the_others_are_not_read(mechanism, norms) -> None:
    needed = dataclasses.replace(ONE, **{name: None for name in ("l0", "l1", "l2", "linf") if name not in norms})
    assert mechanism.loss(needed) == mechanism.loss(ONE)
    for name in norms:
        with pytest.raises(WrongNorm, match=name):
            mechanism.loss(dataclasses.replace(ONE, **{name: None}))


def test_a_threshold_is_for_counts_that_move_so_far_and_no_further() -> None:
    rule = NoisyThreshold.calibrated(keys=3, most=2, epsilon=1, delta="1/1000")
    assert rule.loss(Sensitivity.of(l0=3, linf=2)) == rule.event
    assert rule.loss(Sensitivity.of(l0=1, linf=1)) == rule.loss(1)
    with pytest.raises(Refused, match="more than the 2 of this threshold"):
        rule.loss(Sensitivity.of(l0=1, linf=3))


def test_several_reports_are_several_events() -> None:
    with pytest.raises(InvalidInput, match="one report"):
        RandomizedResponse.calibrated(epsilon=1, categories=2).loss(Sensitivity.of(l0=2))
