"""Output-perturbed logistic regression: how far one row moves the minimiser, and how close to it the weights are."""

from fractions import Fraction
from math import ceil, isclose, sqrt
from typing import Any

import numpy as np
import pytest

from sfumato.core import enclosures
from sfumato.core.query import Dataset
from sfumato.core.units import family, record
from sfumato.errors import InvalidInput, Refused
from sfumato.learning.paradigms import logistic
from sfumato.learning.paradigms.logistic import gradient_bound, held_to_one, minimiser
from sfumato.learning.paradigms.noisy_auc import (
    auc_at,
    cosine_at,
    cosine_for,
    noise_to_signal,
    strength_for,
)
from sfumato.learning.paradigms.output_perturbation import FINENESS, LogisticWeights, logistic_weights

pytestmark = pytest.mark.kills

SWAPPED, ADDED = record(relation="replace"), record(relation="add/remove")
TINY = Fraction(1, 10**9)


def declared(**other: Any) -> LogisticWeights:
    given: dict[str, Any] = {"features": 3, "number": 50, "regularisation": "1/100", "residual": TINY, **other}
    return logistic_weights(Dataset(name="visits", edition="1"), **given)


def fit(rows: Any, signs: Any, number: int, regularisation: Fraction) -> Any:
    found = minimiser(held_to_one(rows), signs, number=number, regularisation=regularisation, residual=TINY)
    return np.array([float(weight) for weight in found])


NUMBER, SMALL = 50_000, Fraction(1, 10_000)
CONTENT = np.tile([1.0, 0.0], (NUMBER - 1, 1))  # rows that the weights fit so well that they hardly bend the loss
TILTS = (0.4, 0.45)


def pulled(tilt: float) -> tuple[Any, Any]:
    """A row and its replacement that both pull against the weights, and apart from each other."""
    side = sqrt(1 - tilt * tilt)
    return np.array([-tilt, side]), np.array([-tilt, -side])


@pytest.mark.claim("S2-17")
def test_a_replaced_row_comes_close_to_the_stated_move_and_never_exceeds_it() -> None:
    stated = float(declared(features=2, number=NUMBER, regularisation=SMALL).moved(SWAPPED, None))
    most = 0.0
    for tilt in TILTS:
        one, other = (fit(np.vstack([CONTENT, row]), np.ones(NUMBER), NUMBER, SMALL) for row in pulled(tilt))
        most = max(most, float(np.linalg.norm(one - other)))
    assert 0.8 * stated < most <= stated, "half of it, 1/(n·λ), would be too little"


@pytest.mark.claim("S2-17")
def test_a_row_more_or_less_comes_close_to_half_of_that_and_never_exceeds_it() -> None:
    stated = float(declared(features=2, number=NUMBER, regularisation=SMALL).moved(ADDED, None))
    before = fit(CONTENT, np.ones(NUMBER - 1), NUMBER, SMALL)
    most = 0.0
    for tilt in TILTS:
        after = fit(np.vstack([CONTENT, pulled(tilt)[0]]), np.ones(NUMBER), NUMBER, SMALL)
        most = max(most, float(np.linalg.norm(after - before)))
    assert 0.8 * stated < most <= stated


def test_rows_that_are_not_scaled_down_are_caught() -> None:
    stated = float(declared(features=2, number=NUMBER, regularisation=SMALL).moved(SWAPPED, None))
    one, other = (
        minimiser(np.vstack([CONTENT, 3 * row]), np.ones(NUMBER), number=NUMBER, regularisation=SMALL, residual=TINY)
        for row in pulled(0.4)
    )
    assert sqrt(sum(float(a - b) ** 2 for a, b in zip(one, other, strict=True))) > stated


@pytest.mark.claim("S2-17")
def test_no_neighbour_at_random_moves_the_weights_further_than_is_stated() -> None:
    draw = np.random.default_rng(5)
    for _ in range(40):
        number, width = int(draw.integers(1, 9)), int(draw.integers(1, 4))
        regularisation = Fraction(1, int(draw.integers(1, 200)))
        query = declared(features=width, number=number, regularisation=regularisation)
        rows = draw.normal(size=(number, width)) * draw.choice([0.1, 1, 50])
        signs = draw.choice([-1.0, 1.0], size=number)
        other, turned = rows.copy(), signs.copy()
        other[0], turned[0] = draw.normal(size=width) * 50, draw.choice([-1.0, 1.0])
        here = fit(rows, signs, number, regularisation)
        assert np.linalg.norm(here - fit(other, turned, number, regularisation)) <= float(query.moved(SWAPPED, None))
        assert np.linalg.norm(here - fit(rows[1:], signs[1:], number, regularisation)) <= float(
            query.moved(ADDED, None)
        )


@pytest.mark.claim("S2-17")
def test_weights_that_are_no_minimiser_are_caught() -> None:
    """An optimiser that stops early on one data set and not on its neighbour moves further than is stated."""
    number, regularisation = 4000, Fraction(1, 100)
    query = declared(features=1, number=number, regularisation=regularisation)
    whole = fit(np.ones((number, 1)), np.ones(number), number, regularisation)
    stopped = np.zeros(1)
    bound = gradient_bound(np.ones((number, 1)), stopped, number=number, regularisation=regularisation)
    assert abs(whole[0] - stopped[0]) > float(query.moved(SWAPPED, None))
    assert bound > query.residual, "and its gradient tells"


def test_the_stated_moves() -> None:
    query = declared(features=4, number=100, regularisation="1/10", residual="1/1000")
    assert query.moved(SWAPPED, None) == Fraction(2, 10) + Fraction(2, 100)
    assert query.moved(ADDED, None) == Fraction(1, 10) + Fraction(2, 100)
    assert query.moved(family(3, "id", relation="replace"), None) == Fraction(6, 10) + Fraction(2, 100)
    assert query.pitch == Fraction(1, 10 * FINENESS)
    moved = query.sensitivity(SWAPPED, None)
    assert moved.l0 is not None
    assert moved.l1 is not None
    assert moved.l2 is not None
    steps = Fraction(22, 10) * FINENESS
    assert moved.l0.count == 4
    assert moved.l1.value == ceil(2 * steps + 4)
    assert moved.l2.squared == ceil(steps + 2) ** 2


def test_rounding_to_the_lattice_stays_within_what_is_stated() -> None:
    query = declared(features=2)
    draw = np.random.default_rng(1)
    for _ in range(200):
        one = draw.normal(size=2)
        other = one + draw.normal(size=2) * float(query.pitch)
        apart = sqrt(sum((a - b) ** 2 for a, b in zip(one, other, strict=True))) / float(query.pitch)
        found = [a - b for a, b in zip(query.rounded(list(one)), query.rounded(list(other)), strict=True)]
        assert sqrt(sum(step * step for step in found)) <= apart + sqrt(2) + 1e-6


@pytest.mark.claim("S2-17")
def test_regression_without_regularisation_is_refused() -> None:
    with pytest.raises(Refused, match="without bound"):
        declared(regularisation=0)
    with pytest.raises(InvalidInput):
        declared(residual=0)


def test_the_residual_is_a_hundredth_of_one_row_unless_it_is_given() -> None:
    assert declared(residual=None).residual == Fraction(1, 5000)


# The solver.


def exact_gradient(pulls: Any, weights: list[Fraction], number: int, regularisation: Fraction) -> Fraction:
    """The norm of the gradient, to forty digits."""
    gradient = [regularisation * weight for weight in weights]
    for row in pulls.tolist():
        product = sum((Fraction(a) * b for a, b in zip(row, weights, strict=True)), Fraction(0))
        push = 1 / (1 + enclosures.exp(product).low)
        gradient = [g - push * Fraction(a) / number for g, a in zip(gradient, row, strict=True)]
    return enclosures.sqrt(sum((g * g for g in gradient), Fraction(0))).high


def test_the_gradient_is_as_small_as_was_asked_and_its_bound_holds() -> None:
    draw = np.random.default_rng(2)
    for count, width in ((1, 1), (7, 3), (40, 5)):
        pulls = held_to_one(draw.normal(size=(count, width)))
        regularisation = Fraction(1, 50)
        found = minimiser(pulls, np.ones(count), number=count, regularisation=regularisation, residual=TINY)
        assert exact_gradient(pulls, found, count, regularisation) <= TINY
        for weights in (np.zeros(width), draw.normal(size=width), draw.normal(size=width) * 100):
            bound = gradient_bound(pulls, weights, number=count, regularisation=regularisation)
            exact = exact_gradient(pulls, [Fraction(w) for w in weights.tolist()], count, regularisation)
            assert exact <= bound <= exact * Fraction(101, 100) + Fraction(1, 10**9)


def test_a_residual_beyond_doubles_is_reached_all_the_same() -> None:
    pulls = held_to_one([[0.5], [-0.25], [1.0]])
    residual = Fraction(1, 10**25)
    found = minimiser(pulls, np.ones(3), number=3, regularisation=Fraction(1, 2), residual=residual)
    assert exact_gradient(pulls, found, 3, Fraction(1, 2)) <= 2 * residual


def test_a_start_that_failed_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "_newton", lambda pulls, number, regularisation: np.full(pulls.shape[1], 30.0))
    pulls = held_to_one([[0.5, 0.1], [-0.25, 0.6], [1.0, 0.0]])
    found = minimiser(pulls, np.ones(3), number=3, regularisation=Fraction(1, 2), residual=Fraction(1, 10**6))
    assert exact_gradient(pulls, found, 3, Fraction(1, 2)) <= Fraction(1, 10**6)


def test_no_rows_and_rows_of_no_numbers_are_answered_too() -> None:
    assert minimiser(np.zeros((0, 2)), np.ones(0), number=9, regularisation=Fraction(1, 9), residual=TINY) == [0, 0]
    strange = held_to_one([[np.nan, np.inf], [1e300, -1e300], [1e-300, 0.0]])
    assert np.isfinite(strange).all()
    found = minimiser(strange, np.ones(3), number=3, regularisation=Fraction(1, 9), residual=TINY)
    assert exact_gradient(strange, found, 3, Fraction(1, 9)) <= TINY


def test_rows_are_held_to_a_norm_of_one_exactly() -> None:
    draw = np.random.default_rng(3)
    for row in held_to_one(draw.normal(size=(300, 7)) * 10).tolist():
        assert sum((Fraction(value) ** 2 for value in row), Fraction(0)) <= 1
    small = [[0.25, 0.5]]
    assert held_to_one(small).tolist() == small


# What noise does to an AUC.


@pytest.mark.claim("S2-17")
def test_the_worked_example_of_an_auc() -> None:
    cosine = cosine_for(0.95, 0.91)
    assert round(cosine, 3) == 0.815
    assert round(noise_to_signal(cosine), 3) == 0.711
    assert isclose(cosine_at(noise_to_signal(cosine)), cosine)
    assert round(auc_at(0.95, cosine), 4) == 0.91
    assert round(strength_for(0.711, features=20, epsilon=1, delta=1e-5)) == 47
    # in 20 dimensions, by simulation: 200,000 draws, a standard error of about 0.00006
    draw = np.random.default_rng(17)
    noise = draw.normal(size=(200_000, 20)) * 0.711 / sqrt(20)
    noise[:, 0] += 1
    cosines = noise[:, 0] / np.sqrt((noise * noise).sum(axis=1))
    at = np.linspace(-1, 1, 2001)
    aucs = np.interp(cosines, at, [auc_at(0.95, float(each)) for each in at])
    assert abs(float(aucs.mean()) - 0.9097) < 0.0005
    with pytest.raises(InvalidInput):
        cosine_for(0.9, 0.95)
    with pytest.raises(InvalidInput):
        noise_to_signal(0)
