"""Least squares: unbiased, with the covariance of the formula, and refused where no unbiased estimate exists."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato import noise
from sfumato.errors import InvalidInput, Refused
from sfumato.mechanisms.matrix import Matrix, Measurement, all_range, given, identity, prefix
from sfumato.mechanisms.matrix.gls import covariance, estimator

DRAWS = 500_000
LIMIT = 6.5  # standard errors; with 10 entries of a covariance: α < 1e-9 a test, and a fault of 3% is 14 of them


def widest(measured: Measurement, formula: np.ndarray) -> float:
    """How many standard errors the covariance of fresh answers is from a formula, at the worst entry."""
    strategy = measured.matrix.strategy / 2.0**measured.matrix.bits
    decode = estimator(measured.matrix.workload.matrix, strategy)
    drawn = noise.discrete_gaussian(sigma_squared=measured.noise, size=DRAWS * len(strategy))
    errors = decode @ drawn.reshape(-1, DRAWS) / 2.0**measured.matrix.bits
    scale = np.sqrt((np.outer(formula.diagonal(), formula.diagonal()) + formula**2) / DRAWS)
    return float((np.abs(errors @ errors.T / DRAWS - formula) / scale).max())


@pytest.mark.claim("S0-04")
@pytest.mark.alpha(1e-9)
def test_the_covariance_of_fresh_answers_is_the_formula() -> None:
    measured = Matrix.optimal(prefix(4), bits=3).measure(sigma_squared=2)
    assert widest(measured, measured.covariance) < LIMIT


@pytest.mark.claim("S0-04")
@pytest.mark.alpha(3e-9)
def test_the_formula_before_rounding_is_a_broken_twin() -> None:
    measured = Matrix.optimal(prefix(4), bits=2).measure(sigma_squared=2)
    unrounded = Matrix.optimal(prefix(4), bits=20).measure(sigma_squared=2)
    assert widest(measured, measured.covariance) < LIMIT
    assert widest(measured, unrounded.covariance) > LIMIT
    assert widest(measured, 1.03 * measured.covariance) > LIMIT


@pytest.mark.claim("S0-04")
def test_a_query_outside_the_row_space_is_refused() -> None:
    strategy = [[1, 1, 0], [0, 1, 1]]
    estimator([[1, 2, 1], [1, 0, -1]], strategy)
    for outside in ([[1, 0, 0]], [[1, 1, 0], [1, 1, 1]]):
        for asked in (estimator, covariance):
            with pytest.raises(Refused, match="no unbiased estimate exists"):
                asked(outside, strategy)
    blind = Matrix.of(prefix(3), np.array(strategy), norm="l2", bits=0)
    with pytest.raises(Refused, match="row space"):
        blind.measure(sigma_squared=1).estimate([1, 2])


@pytest.mark.claim("S0-04")
def test_generalised_least_squares_is_unbiased_and_no_other_estimate_is_better() -> None:
    chance = np.random.default_rng()
    for _ in range(20):
        strategy, half = chance.normal(size=(6, 3)), chance.normal(size=(6, 6))
        spread, query = half @ half.T + np.eye(6), chance.normal(size=(2, 3))
        decode = estimator(query, strategy, noise=spread)
        assert np.allclose(decode @ strategy, query)
        assert np.allclose(decode @ spread @ decode.T, covariance(query, strategy, noise=spread))
        # Any other unbiased estimate differs by rows that the strategy does not see.
        unseen = np.eye(6) - strategy @ np.linalg.pinv(strategy)
        other = decode + chance.normal(size=(2, 6)) @ unseen
        assert np.allclose(other @ strategy, query)
        assert np.linalg.eigvalsh(other @ spread @ other.T - decode @ spread @ decode.T).min() > -1e-9


def test_answers_without_noise_are_exact_whatever_the_size_of_the_counts() -> None:
    silent = lambda parameter, size: np.zeros(size, dtype=np.int64)  # noqa: E731
    for workload in (prefix(8), all_range(5), identity(3), given([[1, 1, 1], [1, 1, 1]])):
        x = np.arange(1, workload.columns + 1) ** 3
        for matrix in (Matrix.optimal(workload), Matrix.pure(workload)):
            measured = matrix.measure(**{"sigma_squared" if matrix.norm == "l2" else "scale": 1})
            assert np.allclose(measured.answer(x, draw=silent), workload.matrix @ x)
    huge = [2**80, 1, 2]
    observed = Matrix.square_root(3, bits=3).measure(sigma_squared=1).observe(huge, draw=silent)
    assert observed.tolist() == [8 * 2**80, 4 * 2**80 + 8, 3 * 2**80 + 4 + 16]


def test_the_noise_that_is_drawn_is_the_noise_of_the_event() -> None:
    asked: list[Fraction] = []

    def draw(parameter: Fraction, size: int) -> np.ndarray:
        asked.append(parameter)
        return np.arange(size)

    gaussian = Matrix.square_root(3, bits=3).measure(sigma_squared="5/2")
    assert gaussian.observe([0, 0, 0], draw=draw).tolist() == [0, 1, 2]
    laplace = Matrix.of(identity(3), np.eye(3), norm="l1", bits=3).measure(scale="5/2")
    laplace.observe([0, 0, 0], draw=draw)
    assert asked == [160, 20] == [gaussian.noise, laplace.noise]
    assert np.isclose(gaussian.variance, 2.5)
    assert np.isclose(laplace.variance, 2 * 2.5**2, rtol=1e-2)
    for measured in (gaussian, laplace):
        assert measured.answer([5, 6, 7]).shape == (3,)


def test_what_is_not_whole_or_does_not_fit_is_refused() -> None:
    measured = Matrix.square_root(3, bits=3).measure(sigma_squared=1)
    for wrong in ([1.0, 2.0, 3.0], [1, 2], [True, False, True], np.array([1, 2.5, 3], dtype=object)):
        with pytest.raises(InvalidInput, match="x must be 3 whole numbers"):
            measured.observe(wrong)
    with pytest.raises(InvalidInput, match="the noise must be 3 whole numbers"):
        measured.observe([1, 2, 3], draw=lambda parameter, size: np.zeros(size))
    with pytest.raises(InvalidInput, match="sigma_squared alone"):
        Matrix.square_root(3).measure(scale=1)
    with pytest.raises(InvalidInput, match="all of it is 0"):
        Matrix.of(identity(2), np.eye(2) / 8, norm="l2", bits=2)
    with pytest.raises(InvalidInput, match="about 2 counts and the workload about 3"):
        Matrix.of(identity(3), np.eye(2), norm="l2")
    with pytest.raises(InvalidInput, match="too large for 20 bits"):
        Matrix.of(identity(2), np.eye(2) * 1e300, norm="l2")
    with pytest.raises(InvalidInput, match="64 bits"):
        given([[2**40]])
    with pytest.raises(InvalidInput, match="positive definite"):
        estimator([[1]], [[1], [1]], noise=[[1, 1], [1, 1]])
    with pytest.raises(InvalidInput, match="symmetric with 2 rows"):
        estimator([[1]], [[1], [1]], noise=[[1]])
    with pytest.raises(InvalidInput, match="finite"):
        estimator([[np.nan]], [[1]])
    with pytest.raises(InvalidInput, match="about 2 and 1 counts"):
        estimator([[1, 1]], [[1]])
