"""The information in a ridge regression: falls in λ and in τ, infinite without noise, and the attack shows why."""

import math

import numpy as np
import pytest

from sfumato.demo.attacks.hospital import Register
from sfumato.demo.attacks.ridge import (
    demonstrate_ridge,
    design_matrix,
    ridge_information,
    ridge_weights,
    solve_for_outcome,
)
from sfumato.errors import InvalidInput

DRAW = np.random.default_rng(11)
X = DRAW.normal(size=(9, 3))
ROOT = DRAW.normal(size=(9, 9))
COVARIANCE = ROOT @ ROOT.T


@pytest.mark.claim("S3-12")
def test_information_is_the_difference_of_two_entropies():
    """I(W; y) = h(W) − h(W | y), with the entropies of Gaussian vectors computed by themselves."""
    for penalty, noise in ((0.5, 0.3), (20, 2)):
        linear = np.linalg.inv(X.T @ X + penalty * np.eye(3)) @ X.T
        of_w = linear @ COVARIANCE @ linear.T + noise**2 * np.eye(3)
        given = noise**2 * np.eye(3)
        entropies = [0.5 * np.linalg.slogdet(2 * np.pi * np.e * each)[1] for each in (of_w, given)]
        found = ridge_information(X, penalty=penalty, noise=noise, covariance=COVARIANCE)
        assert found == pytest.approx(entropies[0] - entropies[1], rel=1e-9)


def test_one_column_has_the_closed_form():
    x = np.array([[1.0], [2.0]])
    a = 5 / (5 + 7) ** 2  # the sum of squares of A
    assert ridge_information(x, penalty=7, noise=0.5, covariance=4.0) == pytest.approx(0.5 * math.log(1 + 4 * a / 0.25))


@pytest.mark.claim("S3-12")
@pytest.mark.parametrize("covariance", [1.0, COVARIANCE], ids=["one variance", "a matrix"])
def test_it_falls_strictly_in_the_penalty_and_in_the_noise(covariance):
    grid = np.array(
        [
            [ridge_information(X, penalty=penalty, noise=noise, covariance=covariance) for noise in (0.1, 0.5, 1, 4)]
            for penalty in (0, 0.1, 1, 10, 1000)
        ]
    )
    assert (np.diff(grid, axis=0) < 0).all()
    assert (np.diff(grid, axis=1) < 0).all()


@pytest.mark.claim("S3-12")
def test_without_noise_it_is_infinite_for_each_penalty():
    assert all(ridge_information(X, penalty=penalty, noise=0) == math.inf for penalty in (0, 1, 10**6, 10**12))
    assert ridge_information(np.zeros((4, 2)), penalty=1, noise=0) == 0.0


@pytest.mark.claim("S3-12")
def test_an_attacker_solves_for_an_outcome_whatever_the_penalty(hospital: Register):
    found = demonstrate_ridge(hospital)
    assert found.worst < 1e-6
    assert {each.without_noise for each in found.penalties} == {math.inf}
    for column in zip(*(each.information for each in found.penalties), strict=True):
        assert list(column) == sorted(column, reverse=True)


def test_with_noise_what_is_solved_for_is_off(hospital: Register):
    """The noise that a penalty turns into an error grows with the penalty: with τ = 1 it is larger than the outcome."""
    some = hospital.some((~np.isnan(hospital.pressure)).nonzero()[0][:200])
    x, y = design_matrix(some), some.pressure
    weights = ridge_weights(x, y, penalty=1000) + np.array([1.0, -1.0, 1.0])
    assert abs(solve_for_outcome(x, y, weights, penalty=1000, place=0) - y[0]) > 100


def test_nonsense_is_refused(hospital: Register):
    for wrong in ({"penalty": -1, "noise": 1}, {"penalty": 1, "noise": -1}):
        with pytest.raises(InvalidInput):
            ridge_information(X, **wrong)
    with pytest.raises(InvalidInput, match="depend on each other"):
        ridge_information(np.ones((3, 2)), penalty=0, noise=1)
    with pytest.raises(InvalidInput, match="covariance"):
        ridge_information(X, penalty=1, noise=1, covariance=np.ones(9))
    with pytest.raises(InvalidInput, match="finite matrix"):
        ridge_information(np.array([1.0]), penalty=1, noise=1)
    with pytest.raises(InvalidInput, match="do not depend on this outcome"):
        solve_for_outcome(np.array([[0.0], [1.0]]), np.ones(2), np.ones(1), penalty=1, place=0)
    with pytest.raises(InvalidInput, match="fewer patients"):
        demonstrate_ridge(hospital.some(np.arange(3)))
