"""Coins of dyadic probability: exact by enumerating all words, and right on fresh randomness."""

from fractions import Fraction
from math import log, sqrt

import pytest

from sfumato.noise import SystemWords
from sfumato.noise.coins import sample_coins
from tests.noise.replayed import ReplayedWordsForTests, enumerated


@pytest.mark.parametrize(("bits", "width"), [(3, 3), (3, 2), (5, 2), (2, 5), (1, 4), (6, 6)])
def test_every_coin_has_exactly_its_probability(bits: int, width: int) -> None:
    depth = -(-bits // width)
    for chance in range((1 << bits) + 1):
        masses, unresolved = enumerated(
            lambda words, chance=chance: bool(sample_coins([chance], bits, words)[0]), width=width, depth=depth
        )
        assert unresolved == 0
        assert masses.get(True, 0) == Fraction(chance, 1 << bits)


def test_coins_are_independent_and_draw_the_same_number_of_words_whatever_their_chance() -> None:
    """All words for two coins of 3 bits in words of 2: the joint law is the product."""
    masses, unresolved = enumerated(lambda words: tuple(sample_coins([3, 6], 3, words).tolist()), width=2, depth=4)
    assert unresolved == 0
    assert masses[True, True] == Fraction(3, 8) * Fraction(6, 8)
    assert masses[True, False] == Fraction(3, 8) * Fraction(2, 8)
    for chances in ([0, 0, 0], [8, 8, 8], [1, 4, 7]):
        words = ReplayedWordsForTests([1] * 99, width=2)
        sample_coins(chances, 3, words)
        assert words.used == 6


@pytest.mark.alpha(2e-9)
def test_fresh_coins_follow_their_chance_and_another_chance_fails() -> None:
    """By Hoeffding's inequality a frequency of n = 480,000 strays by more than 0.00473 with probability below 1e-9."""
    chance = Fraction(3, 10) * (1 << 150)
    heads = sample_coins([int(chance)] * 480_000, 150, SystemWords()).mean()
    band = sqrt(log(2e9) / (2 * 480_000))
    assert abs(heads - 0.3) <= band
    assert abs(heads - 0.31) > band
    assert sample_coins([], 10, SystemWords()).tolist() == []
