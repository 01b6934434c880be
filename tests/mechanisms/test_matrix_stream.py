"""Buffered linear Toeplitz: close to the square root, with two numbers of memory, and the error that it states."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato import noise
from sfumato.errors import InvalidInput, Refused
from sfumato.mechanisms.matrix import Buffered, Matrix, tree
from sfumato.mechanisms.matrix.toeplitz import coefficients, lower, rmse


@pytest.mark.parametrize("n", [64, 1024])
def test_two_buffers_are_within_one_percent_of_the_square_root(n: int) -> None:
    root = np.array([float(one) for one in coefficients(n)])
    assert Buffered.optimal(n, buffers=2).rmse <= 1.01 * rmse(root, root)


def test_the_error_is_that_of_the_matrix_with_these_coefficients() -> None:
    strategy = Buffered.optimal(32, buffers=3)
    parts = list(zip(strategy.weights, strategy.decays, strict=True))
    column = np.array([1.0, *(float(sum(w * d**k for w, d in parts)) for k in range(31))])
    matrix = lower(column)
    decoder = np.tril(np.ones((32, 32))) @ np.linalg.inv(matrix)
    assert np.isclose(strategy.rmse, np.sqrt((decoder**2).sum() / 32 * (column**2).sum()))
    assert Matrix.square_root(32).rmse * 0.96 < strategy.rmse < Matrix.square_root(32).rmse * 1.01


def test_a_stream_adds_the_noise_that_the_strategy_undoes() -> None:
    """C·w = z up to rounding: what the buffers correlate, the strategy takes apart again."""
    strategy = Buffered.optimal(40, buffers=2, bits=24)
    drawn = noise.discrete_gaussian(sigma_squared=4**24, size=40)
    queue = iter(drawn)
    stream = strategy.open(sigma_squared=1, draw=lambda parameter, size: np.array([next(queue)]))
    inputs = np.arange(40)
    totals = np.array([float(stream.add(int(one))) for one in inputs])
    correlated = np.diff(totals, prepend=0.0) - inputs
    parts = list(zip(strategy.weights, strategy.decays, strict=True))
    column = np.array([1.0, *(float(sum(w * d**k for w, d in parts)) for k in range(39))])
    assert np.allclose(lower(column) @ correlated, drawn / 2.0**24, atol=1e-5)


@pytest.mark.long
@pytest.mark.alpha(1e-9)
def test_the_error_of_fresh_streams_is_the_one_stated() -> None:
    """1,000 streams of 32 totals: their mean square has a standard error below 5%: ±40% is α < 1e-9, and half fails."""
    strategy, seen = Buffered.optimal(32, buffers=2, bits=12), []
    for _ in range(1000):
        queue = iter(noise.discrete_gaussian(sigma_squared=Fraction(4) ** 12, size=32))
        stream = strategy.open(sigma_squared=1, draw=lambda parameter, size, queue=queue: np.array([next(queue)]))
        seen.append(np.mean([float(stream.add(1) - step) ** 2 for step in range(1, 33)]))
    parts = list(zip(strategy.weights, strategy.decays, strict=True))
    length = 1 + sum(float(sum(w * d**k for w, d in parts)) ** 2 for k in range(31))
    stated = strategy.rmse**2 / length
    assert 0.6 < np.mean(seen) / stated < 1.4
    assert not 0.6 < np.mean(seen) / (stated / 2) < 1.4


def test_a_stream_ends_at_its_horizon_and_takes_whole_numbers() -> None:
    stream = Buffered.optimal(4, buffers=1).open(sigma_squared=1)
    for wrong in (1.0, True, "1"):
        with pytest.raises(InvalidInput, match="whole number"):
            stream.add(wrong)
    for _ in range(4):
        stream.add(1)
    with pytest.raises(Refused, match="4 inputs"):
        stream.add(1)


def test_strategies_that_make_no_sense_are_refused() -> None:
    half = Fraction(1, 2)
    for decays, weights in (
        ((), ()),
        ((half,), ()),
        ((Fraction(1),), (half,)),
        ((half,), (-half,)),
        ((-half,), (half,)),
    ):
        with pytest.raises(InvalidInput):
            Buffered(horizon=4, decays=decays, weights=weights, bits=4)
    with pytest.raises(InvalidInput, match="power of two"):
        tree(12)
