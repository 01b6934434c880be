"""Samples of units are what the accountant assumes: exact, independent, of a secret size."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.learning.sampling import poisson_sample, shuffled_sample
from sfumato.noise import SystemWords
from sfumato.noise.words import WordArray
from tests.learning.words import TestWords

ALPHA = 1e-9  # of each comparison below, by the exact binomial distribution


class Given:
    """Words of four bits that are handed in."""

    width = 4

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def fill(self, out: WordArray) -> None:
        for place in range(len(out)):
            out[place] = self.words.pop(0)


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(5, 16), Fraction(2, 7), Fraction(15, 16), Fraction(1, 100)])
def test_the_chance_of_a_unit_is_the_rate_exactly(rate: Fraction) -> None:
    """All first words, and of those that leave it open all that follow: no chance is left out."""
    chance = Fraction(0)
    whole = int(rate * 16)
    rest = rate * 16 - whole
    for word in range(16):
        if word != whole:
            chance += Fraction(len(poisson_sample(1, rate, Given(word))), 16)
            continue
        chance += rest / 16  # the words that follow are a uniform number below its denominator
    assert chance == rate


@pytest.mark.parametrize(("second", "drawn"), [(3, True), (4, False), (11, False), (12, True)])
def test_a_tie_is_broken_by_more_words(second: int, drawn: bool) -> None:
    """16/3 is five and a third: the word 5 leaves it open. Two bits of the next are 0, 1, 2, or drawn again."""
    assert (len(poisson_sample(1, Fraction(1, 3), Given(5, second, 0, 0))) == 1) is drawn


class Quarters:
    """Words of 64 bits in which each quarter has another value, until all were there; then zeros."""

    width = 64

    def __init__(self) -> None:
        self.left = np.arange(1 << 16, dtype=np.uint16)

    def fill(self, out: WordArray) -> None:
        some, self.left = self.left[: 4 * len(out)], self.left[4 * len(out) :]
        out[:] = 0
        out.view(np.uint16)[: len(some)] = some


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(2, 7), Fraction(5, 2**16), Fraction(1, 10**6)])
def test_a_quarter_of_a_word_begins_the_number_of_a_unit(rate: Fraction) -> None:
    """All beginnings: those below the rate are in, and the one that leaves it open, where zeros follow, as well."""
    found = poisson_sample(1 << 16, rate, Quarters())
    assert found.tolist() == list(range(-(-rate * 2**16 // 1)))


def counted(rate: Fraction, number: int = 1_000_000) -> int:
    return len(poisson_sample(number, rate, SystemWords()))


def likely(seen: int, number: int, rate: float) -> bool:
    """Whether so many of so many are neither too few nor too many, at ALPHA in all."""
    return bool(min(binom.cdf(seen, number, rate), binom.sf(seen - 1, number, rate)) > ALPHA / 2)


@pytest.mark.alpha(ALPHA)
def test_samples_have_the_size_that_chance_gives_them() -> None:
    """α = 1e-9; a rate that is off by 14% is 7.5 standard deviations beyond the limit: missed in 1 of 1e13 runs."""
    number, rate = 1_000_000, Fraction(1, 100)
    assert likely(counted(rate), number, float(rate))
    assert not likely(counted(rate * Fraction(114, 100)), number, float(rate))  # the broken twin


@pytest.mark.alpha(1e-300)
def test_a_sample_in_random_order_is_the_sample() -> None:
    found = shuffled_sample(10_000, Fraction(1, 2), SystemWords())
    assert len(set(found.tolist())) == len(found)
    assert 0 <= found.min() < found.max() < 10_000
    assert found.tolist() != sorted(found.tolist())
    assert sorted(shuffled_sample(50, Fraction(1), SystemWords()).tolist()) == list(range(50))


@pytest.mark.alpha(6 * ALPHA)
def test_any_order_is_as_likely_as_any_other() -> None:
    """α = 6e-9 for six orders together; an order by place would have one order only."""
    seen = np.zeros(6)
    orders = {order: at for at, order in enumerate([(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])}
    for _ in range(6000):
        seen[orders[tuple(shuffled_sample(3, Fraction(1), SystemWords()).tolist())]] += 1
    assert all(likely(int(times), 6000, 1 / 6) for times in seen)


def test_nobody_to_draw() -> None:
    assert len(poisson_sample(0, Fraction(1, 2), SystemWords())) == 0
    assert len(shuffled_sample(0, Fraction(1), SystemWords())) == 0


def test_a_position_is_all_that_is_needed() -> None:
    whole, parts = np.empty(9, dtype=np.uint64), np.empty(9, dtype=np.uint64)
    TestWords().fill(whole)
    source = TestWords()
    for start, end in ((0, 3), (3, 4), (4, 9)):
        again = TestWords()
        again.position = source.position
        again.fill(parts[start:end])
        source.fill(parts[start:end])
    assert (whole == parts).all()
