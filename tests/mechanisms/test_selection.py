"""Exponential mechanism, permute-and-flip and noisy max: exact losses over all neighbours of small scores."""

import math
from fractions import Fraction
from itertools import permutations, product

import mpmath
import numpy as np
import pytest

from sfumato import errors
from sfumato.core.guarantees import Pure
from sfumato.mechanisms import Exponential, NoisyMax, PermuteAndFlip, RandomizedResponse

pytestmark = pytest.mark.kills

Law = list[mpmath.mpf]


def softmax(exponents: list[Fraction]) -> Law:
    weights = [mpmath.exp(mpmath.mpf(x.numerator) / x.denominator) for x in exponents]
    return [weight / sum(weights) for weight in weights]


def flips(exponents: list[Fraction]) -> Law:
    """The law of permute-and-flip by enumerating all orders."""
    stop = [mpmath.exp(mpmath.mpf(x.numerator) / x.denominator) for x in exponents]
    law = [mpmath.mpf(0)] * len(stop)
    orders = list(permutations(range(len(stop))))
    for order in orders:
        going = mpmath.mpf(1) / len(orders)
        for candidate in order:
            law[candidate] += going * stop[candidate]
            going *= 1 - stop[candidate]
    return law


def largest(scores: tuple[int, ...], scale: Fraction) -> Law:
    """The law of noisy max with ties to the first, by summing over the winner's noise."""
    q = math.exp(-1 / scale)
    noise = np.arange(-160, 161)

    def below(values: np.ndarray) -> np.ndarray:
        sizes = np.abs(values)
        return np.where(values >= 0, 1 - q ** (sizes + 1.0) / (1 + q), q**sizes / (1 + q))

    law = []
    for winner, score in enumerate(scores):
        chance = q ** np.abs(noise) * (1 - q) / (1 + q)
        for rival, other in enumerate(scores):
            if rival != winner:
                chance = chance * below(score + noise - other - (1 if rival < winner else 0))
        law.append(mpmath.mpf(float(chance.sum())))
    return law


def worst_loss(law: "object", moves: list[tuple[int, ...]], scores: list[tuple[int, ...]]) -> float:
    worst = mpmath.mpf(0)
    for here in scores:
        before = law(here)  # type: ignore[operator]
        for move in moves:
            after = law(tuple(a + b for a, b in zip(here, move, strict=True)))  # type: ignore[operator]
            worst = max(worst, *(abs(mpmath.log(p / r)) for p, r in zip(before, after, strict=True)))
    return float(worst)


ANY = list(product((-1, 0, 1), repeat=3))
UP = list(product((0, 1), repeat=3))
SCORES = [(0, 0, 0), (0, 1, 2), (0, 0, 9), (0, 30, 30), (40, 0, 40), (60, 30, 0)]


@pytest.mark.claim("S0-01")
@pytest.mark.parametrize(("monotone", "moves"), [(False, ANY), (True, UP)])
def test_the_exponential_mechanism_reaches_epsilon_and_never_passes_it(monotone: bool, moves: list) -> None:
    mechanism = Exponential.calibrated(sensitivity=1, epsilon=1, monotone=monotone)
    loss = worst_loss(lambda scores: softmax(mechanism.exponents(scores)), moves, SCORES)
    assert loss <= 1 + 1e-12
    assert loss > 0.99
    assert mechanism.event.epsilon == 1
    assert mechanism.loss(mechanism.spread / 2).epsilon == Fraction(1, 2)
    careless = Exponential(epsilon=Fraction(1), spread=mechanism.spread / 2)
    assert worst_loss(lambda scores: softmax(careless.exponents(scores)), moves, SCORES) > 1.5


@pytest.mark.claim("S0-01")
@pytest.mark.parametrize(("monotone", "moves"), [(False, ANY), (True, UP)])
def test_permute_and_flip_is_private_and_never_worse(monotone: bool, moves: list) -> None:
    ours = PermuteAndFlip.calibrated(sensitivity=1, epsilon=1, monotone=monotone)
    theirs = Exponential.calibrated(sensitivity=1, epsilon=1, monotone=monotone)
    loss = worst_loss(lambda scores: flips(ours.exponents(scores)), moves, SCORES)
    assert loss <= 1 + 1e-12
    assert loss > 0.9
    assert ours.event.guarantee == Pure(epsilon=Fraction(1))
    assert ours.loss(ours.spread * 2).guarantee == Pure(epsilon=Fraction(2))
    for scores in SCORES:
        score_of_ours = sum(p * s for p, s in zip(flips(ours.exponents(scores)), scores, strict=True))
        score_of_theirs = sum(p * s for p, s in zip(softmax(theirs.exponents(scores)), scores, strict=True))
        assert score_of_ours >= score_of_theirs - mpmath.mpf("1e-12")
    careless = PermuteAndFlip(epsilon=Fraction(1), spread=ours.spread / 2)
    assert worst_loss(lambda scores: flips(careless.exponents(scores)), moves, SCORES) > 1.5


def test_permute_and_flip_is_not_bounded_range() -> None:
    """Its Rényi divergence shows ρ ≥ 0.26 at ε = 1, where bounded range would give 1/8 (hence its event is plain)."""
    mechanism = PermuteAndFlip.calibrated(sensitivity=1, epsilon=1)
    worst = 0.0
    for here, there in [((0, 0), (1, -1)), ((0, 1), (1, 0)), ((0, 2), (1, 1)), ((0, 0), (-1, 1))]:
        p, r = flips(mechanism.exponents(here)), flips(mechanism.exponents(there))
        for order in (1.01, 1.5, 2, 4):
            moment = sum(a**order * b ** (1 - order) for a, b in zip(p, r, strict=True))
            worst = max(worst, float(mpmath.log(moment) / (order - 1) / order))
    assert worst > 1 / 8


@pytest.mark.parametrize(("monotone", "moves"), [(False, ANY), (True, UP)])
def test_noisy_max_with_ties_on_the_lattice(monotone: bool, moves: list) -> None:
    mechanism = NoisyMax.calibrated(sensitivity=1, epsilon=1, monotone=monotone)
    assert mechanism.scale == (1 if monotone else 2)
    loss = worst_loss(
        lambda scores: largest(scores, mechanism.scale), moves, [(0, 0, 0), (0, 1, 2), (9, 0, 9), (0, 20, 20)]
    )
    assert loss <= 1 + 1e-9
    assert loss > 0.9
    assert mechanism.loss(1).guarantee == Pure(epsilon=Fraction(1))
    assert mechanism.loss(3).guarantee == Pure(epsilon=Fraction(3))
    assert NoisyMax.calibrated(sensitivity=2, epsilon="1/2").scale == 8
    careless = largest
    assert worst_loss(lambda scores: careless(scores, mechanism.scale / 2), moves, [(0, 20, 20), (9, 0, 9)]) > 1.5


@pytest.mark.parametrize("categories", [2, 5])
def test_randomised_response_by_its_definition(categories: int) -> None:
    mechanism = RandomizedResponse.calibrated(epsilon=1, categories=categories)
    laws = [softmax(mechanism.exponents(truth)) for truth in range(categories)]
    truthful = mpmath.e / (mpmath.e + categories - 1)
    assert all(abs(law[truth] - truthful) < 1e-12 for truth, law in enumerate(laws))
    worst = max(abs(mpmath.log(p / r)) for one in laws for two in laws for p, r in zip(one, two, strict=True))
    assert float(worst) == pytest.approx(1)
    assert mechanism.event.epsilon == 1
    assert mechanism.event.categories == categories
    for reports in (0, 2):
        with pytest.raises(errors.InvalidInput, match="several"):
            mechanism.loss(reports)
    with pytest.raises(errors.InvalidInput, match="true value"):
        mechanism.exponents(categories)


@pytest.mark.parametrize("mechanism", [Exponential, PermuteAndFlip])
def test_nothing_to_choose_from(mechanism: type) -> None:
    with pytest.raises(errors.InvalidInput, match="no candidate"):
        mechanism.calibrated(sensitivity=1, epsilon=1).exponents([])


@pytest.mark.parametrize("mechanism", [Exponential, PermuteAndFlip])
def test_both_are_calibrated_in_one_place(mechanism: type) -> None:
    general, monotone = (mechanism.calibrated(sensitivity="3/2", epsilon=0.5, monotone=m) for m in (False, True))
    assert type(general) is type(monotone) is mechanism
    assert (general.spread, monotone.spread, general.epsilon) == (3, Fraction(3, 2), Fraction(1, 2))
    for bad in ({"sensitivity": 0, "epsilon": 1}, {"sensitivity": 1, "epsilon": 0}):
        with pytest.raises(errors.InvalidInput, match="must be above 0"):
            mechanism.calibrated(**bad)
    with pytest.raises(errors.InvalidInput, match="spread = 0 must be above 0"):
        mechanism(epsilon=Fraction(1), spread=Fraction(0))
