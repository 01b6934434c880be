"""Banded noise over sampled groups, beside the loss of whole runs worked out by brute force."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato import accounting
from sfumato.accounting import banded_plan, pld
from sfumato.core.events import Gaussian, PoissonSampled, Repeated
from sfumato.errors import InvalidInput

RATE, SIGMA = 0.3, 1.0
COLUMN = (1.0, 0.5)
STEPS = 4
GRID = np.linspace(-4.6, 6.6, 33)


def coins(count: int) -> list[tuple[tuple[int, ...], float]]:
    return [
        (drawn, float(np.prod([RATE if one else 1 - RATE for one in drawn]))) for drawn in product((0, 1), repeat=count)
    ]


def run(turns: tuple[int, ...], *, present: bool, other: bool) -> np.ndarray:
    """The density of all four measurements on a grid: coins of the unit and of another one are summed over.

    The other unit is in the second group, and what it adds depends on the measurement before, as gradients do.
    """
    places = np.meshgrid(*[GRID] * STEPS, indexing="ij", sparse=True)
    density = np.zeros((len(GRID),) * STEPS)
    for mine, chance in coins(len(turns)) if present else [((0,) * len(turns), 1.0)]:
        for theirs, weight in coins(2) if other else [((0, 0), 1.0)]:
            sums: list[object] = []
            term: object = chance * weight
            for step in range(STEPS):
                added: object = float(sum(coin for coin, turn in zip(mine, turns, strict=True) if turn == step))
                if step % 2 == 1 and theirs[step // 2]:
                    added = added + np.tanh(places[step - 1])
                sums.append(added)
                mean = COLUMN[0] * sums[step] + (COLUMN[1] * sums[step - 1] if step else 0.0)
                term = term * np.exp(-((places[step] - mean) ** 2) / (2 * SIGMA**2)) / (SIGMA * np.sqrt(2 * np.pi))
            density += term
    return density


def lost(turns: tuple[int, ...], epsilon: float, *, add: bool, other: bool) -> float:
    """δ(ε) of the whole run, by summing over a grid."""
    with_it, without = (run(turns, present=present, other=other) for present in (True, False))
    one, two = (without, with_it) if add else (with_it, without)
    cell = (GRID[1] - GRID[0]) ** STEPS
    return float(np.maximum(one - np.exp(epsilon) * two, 0.0).sum() * cell)


PLAN = banded_plan(column=[1, "1/2"], sigma=1, steps=STEPS, groups=2, sampling="3/10")


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("other", [False, True])
def test_a_whole_run_loses_no_more_than_sampled_gaussians_and_reaches_them(add, other):
    """Turns 0 and 2 of a unit in the first group, both with a whole column."""
    for epsilon in (0.1, 0.5):
        stated = float(pld.delta(PLAN, epsilon=Fraction(str(epsilon))))
        found = lost((0, 2), epsilon, add=add, other=other)
        assert found <= stated * 1.005  # the sum over a grid is off by less
        if not add and not other:  # coins of others stay secret, which only helps
            assert found >= stated * 0.98


def test_a_unit_of_two_groups_loses_more():
    """The broken twin: turns 0 and 1 overlap in a measurement, so that two sampled Gaussians do not cover them."""
    stated = float(pld.delta(PLAN, epsilon=Fraction("0.5")))
    assert lost((0, 1), 0.5, add=False, other=False) > stated * 1.02


def test_the_event_counts_turns_and_the_whole_column():
    noise = Gaussian(l2_squared=Fraction(21, 16), sigma_squared=Fraction(4))
    steps = PoissonSampled(rate=Fraction(1, 10), event=noise)
    column = [1, "1/2", "1/4"]
    assert banded_plan(column=column, sigma=2, steps=10, groups=3, sampling="0.1") == Repeated(event=steps, times=4)
    assert banded_plan(column=column, sigma=2, steps=9, groups=3, sampling="0.1").times == 3
    assert banded_plan(column=column, sigma=2, steps=1, groups=8, sampling=1) == Repeated(event=noise, times=1)
    clipped = banded_plan(column=column, sigma=2, steps=1, groups=8, sampling=1, clip=3)
    assert clipped.event.l2_squared == Fraction(9 * 21, 16)


def test_one_band_over_one_group_is_the_plan_of_independent_noise():
    assert banded_plan(column=[1], sigma=2, steps=50, groups=1, sampling="0.01") == accounting.plan(
        sigma=2, steps=50, sampling="0.01"
    )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"groups": 1}, "2 bands overlap where a unit's turn comes every 1 steps"),
        ({"column": []}, "no coefficient other than 0"),
        ({"column": [0, 0]}, "no coefficient other than 0"),
        ({"sampling": 0}, "sampling"),
        ({"sigma": 0}, "sigma"),
        ({"steps": 0}, "steps"),
    ],
)
def test_what_is_not_covered_is_refused(wrong, says):
    given = {"column": [1, "1/2"], "sigma": 1, "steps": 4, "groups": 2, "sampling": "0.1"}
    with pytest.raises(InvalidInput, match=says):
        banded_plan(**given | wrong)
