"""Selection in proportion to exp(x) and random orders: exact by enumeration, and right on fresh randomness."""

from fractions import Fraction
from itertools import permutations
from math import exp, log, sqrt

import numpy as np
import pytest

from sfumato import noise
from sfumato.core import enclosures
from sfumato.errors import InvalidInput
from sfumato.noise import sample_permutation, sample_selection
from sfumato.noise.selection import _sorted_keys
from tests.noise.replayed import ReplayedWordsForTests, enumerated

CASES = [
    ["0"],
    ["0", "0", "0"],
    ["0", "-1", "1/3"],
    pytest.param(["5", "5", "-2", "5", "1/7"], marks=pytest.mark.long),
    ["1000", "1000", "-1000000"],
    pytest.param(["-3", "-3/2", "0", "-3/2"], marks=pytest.mark.long),
]


@pytest.mark.parametrize("exponents", CASES, ids=str)
def test_every_index_has_exactly_its_probability(exponents: list[str]) -> None:
    exact = [Fraction(x) for x in exponents]
    masses, unresolved = enumerated(lambda words: int(sample_selection(exact, 1, words)[0]), width=5, depth=3)
    assert unresolved < Fraction(1, 8)
    top = max(exact)
    weights = [enclosures.exp(max(x - top, Fraction(-1000))) for x in exact]
    least, most = sum(w.low for w in weights), sum(w.high for w in weights)
    for index, weight in enumerate(weights):
        mass = masses.get(index, Fraction(0))
        assert mass <= weight.high / least
        assert weight.low / most <= mass + unresolved


def test_words_at_a_threshold_are_refined() -> None:
    exact = [Fraction(0), Fraction(-1)]
    end = enclosures.exp(0).low / (1 + enclosures.exp(-1).low)
    first = int(end * 256)
    for more, chosen in ((0, 0), (255, 1)):
        source = ReplayedWordsForTests([first, more], width=8)
        assert sample_selection(exact, 1, source).tolist() == [chosen]
        assert source.used == 2


@pytest.mark.alpha(5e-9)
def test_fresh_selections_follow_the_law_and_a_law_five_percent_off_fails() -> None:
    """By Hoeffding's inequality a frequency of n = 480,000 strays by more than 0.00473 with probability below 1e-9."""
    drawn = noise.select(exponents=[0, "1/2", "1/2", -1], size=480_000)
    weights = np.array([1, exp(0.5), exp(0.5), exp(-1)])
    frequencies = np.bincount(drawn, minlength=4) / drawn.size
    band = sqrt(log(2e9) / (2 * 480_000))
    assert abs(frequencies - weights / weights.sum()).max() <= band
    twin = np.array([1, exp(0.55), exp(0.55), exp(-1.05)])
    assert abs(frequencies - twin / twin.sum()).max() > band


def test_nothing_cannot_be_selected_from() -> None:
    with pytest.raises(InvalidInput, match="no exponents were given"):
        noise.select(exponents=[])


@pytest.mark.alpha(1e-300)
def test_a_far_smaller_exponent_is_never_selected_and_costs_nothing() -> None:
    assert set(noise.select(exponents=[0, -(10**12), 0], size=1_000).tolist()) == {0, 2}  # fails by chance: 2^-999


@pytest.mark.parametrize(("size", "parts", "width", "depth"), [(1, 1, 4, 1), (2, 1, 4, 4), (2, 2, 2, 4), (3, 1, 3, 3)])
def test_every_order_is_equally_likely(size: int, parts: int, width: int, depth: int) -> None:
    masses, unresolved = enumerated(
        lambda words: tuple(_sorted_keys(size, parts, words).tolist()), width=width, depth=depth
    )
    assert set(masses) == set(permutations(range(size)))
    assert len(set(masses.values())) == 1
    assert unresolved < 1


@pytest.mark.long
@pytest.mark.alpha(6e-9)
def test_fresh_orders_are_uniform_and_complete() -> None:
    """24,000 orders of 3: each of the 6 has frequency 1/6 within 0.0212 with α = 1e-9 (Hoeffding)."""
    drawn = [tuple(noise.permutation(size=3).tolist()) for _ in range(24_000)]
    for order in permutations(range(3)):
        assert abs(drawn.count(order) / 24_000 - 1 / 6) < sqrt(log(2e9) / 48_000)
    assert sorted(noise.permutation(size=10_000).tolist()) == list(range(10_000))


def test_equal_keys_are_drawn_again() -> None:
    source = ReplayedWordsForTests([7] * 6 + [9, 1, 9, 1, 9, 1], width=8)
    assert sample_permutation(2, source).tolist() == [1, 0]
    assert source.used == 12
    assert sample_permutation(0, source).tolist() == []
