"""The error of running totals beside the peers' numbers, and the lower bound of all strategies."""

import numpy as np
import pytest

from sfumato.mechanisms.matrix.steps.buffers import Buffers, buffers_for
from sfumato.mechanisms.matrix.steps.pattern import ADDED, Pattern
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz
from sfumato.streams.choice import strategy_for
from sfumato.streams.reconstruction import spread_of
from sfumato.streams.strategy_encoder import Strategy
from sfumato.streams.strategy_error import lower_bound, root_mean_squared

ONE = Pattern(times=1, separation=1, change=ADDED)


def named(name: str, n: int) -> Strategy:
    return strategy_for(name, horizon=n, pattern=ONE, largest=1000, pure=False)


@pytest.mark.few(1)
@pytest.mark.parametrize(("n", "root", "bound"), [(64, 2.2297, 2.0401), (256, 2.6688, 2.4714), (1024, 3.1098, 2.9096)])
def test_square_root_and_buffers_beside_the_peers(n: int, root: float, bound: float) -> None:
    assert root_mean_squared(named("square root", n)) == pytest.approx(root, rel=1e-3)
    buffers = named("buffers", n)
    assert isinstance(buffers, Buffers)
    assert len(buffers.decays) <= 8
    assert lower_bound(n) == pytest.approx(bound, rel=1e-4)
    assert (
        1
        < root_mean_squared(buffers) / lower_bound(n)
        < root_mean_squared(named("square root", n)) / lower_bound(n)
        < 1.1
    )


def test_buffers_of_a_long_stream_are_within_the_square_root() -> None:
    """At 65,536 the square root is in closed form: 4.4344."""
    c = np.concatenate([[1.0], np.cumprod((2 * np.arange(1, 2**16) - 1) / (2 * np.arange(1, 2**16)))])
    root = float(np.sqrt(((2**16 - np.arange(2**16)) * c**2).sum() / 2**16 * (c**2).sum()))
    assert root == pytest.approx(4.4344, abs=1e-4)
    buffers = named("buffers", 2**16)
    assert buffers_for(2**16) == 6
    assert root_mean_squared(buffers) < 1.011 * root


@pytest.mark.parametrize(
    ("n", "best"), [(64, 2.0999), (256, 2.5244), pytest.param(1024, 2.9555, marks=pytest.mark.long)]
)
def test_the_optimum_of_a_short_stream(n: int, best: float) -> None:
    assert root_mean_squared(named("optimal", n)) == pytest.approx(best, rel=1e-3)


def test_the_tree_of_the_textbooks_and_the_best_pure_one() -> None:
    assert root_mean_squared(named("tree", 64)) == pytest.approx(4.594, abs=5e-4)
    binary, pure = (strategy_for(name, horizon=4096, pattern=ONE, largest=9, pure=True) for name in ("tree", "best"))
    errors = [float(np.sqrt(spread_of(one).mean())) * one.absolute(ONE) for one in (binary, pure)]
    assert errors[1] < 0.6 * errors[0]


def test_many_steps_of_one_unit_are_told_by_increments() -> None:
    every = Pattern(times=256, separation=1, change=ADDED)
    chosen = strategy_for("best", horizon=256, pattern=every, largest=1, pure=False)
    assert isinstance(chosen, Toeplitz)
    assert chosen.form == "increments"
    few = Pattern(times=4, separation=60, change=ADDED)
    assert isinstance(strategy_for("best", horizon=256, pattern=few, largest=1, pure=False), Buffers)
