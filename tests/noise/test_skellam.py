"""Poisson numbers and their differences are drawn exactly: by enumerating short words, and by the enclosed ends."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.errors import InvalidInput
from sfumato.noise import poisson, sample_poisson, sample_skellam, skellam
from sfumato.noise.poisson_noise import MOST_MEAN, _ends, _Table
from sfumato.noise.sampler import ALIKE
from sfumato.noise.words import SystemWords
from tests.noise.replayed import ReplayedWordsForTests, enumerated, fresh

MEANS = [Fraction(1, 50), Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(7)]


def chance(mean: Fraction, k: int) -> "mpmath.mpf":
    return mpmath.exp(
        -mpmath.mpf(mean.numerator) / mean.denominator + k * mpmath.log(mpmath.mpf(mean.numerator) / mean.denominator)
    ) / mpmath.factorial(k)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize(("width", "depth"), [(3, 4), (6, 2)])
def test_all_sequences_of_short_words_give_the_law(mean: Fraction, width: int, depth: int) -> None:
    """What is still open after so many words is all that separates a probability from the law's."""
    masses, left = enumerated(lambda words: int(sample_poisson(mean, 1, words)[0]), width=width, depth=depth)
    assert left < Fraction(1, 20)
    for k, mass in masses.items():
        assert isinstance(k, int)
        assert float(mass) <= chance(mean, k) + 1e-30
        assert chance(mean, k) <= float(mass + left) + 1e-30


def test_a_law_with_an_end_in_the_wrong_place_is_noticed() -> None:
    masses, left = enumerated(lambda words: int(sample_poisson(Fraction(51, 50), 1, words)[0]), width=6, depth=2)
    off = [k for k, mass in masses.items() if not float(mass) <= chance(Fraction(1), k) <= float(mass + left)]  # type: ignore[arg-type]
    assert off


def test_differences_of_short_words_are_symmetric() -> None:
    masses, _ = enumerated(lambda words: int(sample_skellam(Fraction(1), 1, words)[0]), width=4, depth=4)
    assert all(masses[k] == masses[-k] for k in masses)  # type: ignore[operator]


@pytest.mark.parametrize("mean", [*MEANS, Fraction(1000), Fraction(123_457, 10)])
@pytest.mark.parametrize("bits", [8, 64, 128])
def test_the_ends_enclose_those_of_the_law(mean: Fraction, bits: int) -> None:
    first, lows, highs = _ends(mean, bits)
    unit = mpmath.mpf(2) ** bits
    with mpmath.workdps(80):
        ratio, here, total = mpmath.mpf(mean.numerator) / mean.denominator, chance(mean, 0), mpmath.mpf(0)
        for k in range(first):
            total, here = total + here, here * ratio / (k + 1)
        for at, (low, high) in enumerate(zip(lows, highs, strict=True)):
            total, here = total + here, here * ratio / (first + at + 1)
            if at % max(len(lows) // 50, 1) == 0:
                assert low <= total * unit * (1 + mpmath.mpf(10) ** -60) < high + 2
                assert high - low <= 1


@pytest.mark.parametrize("mean", [Fraction(1, 3), Fraction(40), Fraction(5000)])
def test_blocks_give_what_a_search_gives(mean: Fraction) -> None:
    """The same words, few at a time and all at once."""
    words = fresh(4 * ALIKE)
    at_once = sample_poisson(mean, words.size, ReplayedWordsForTests(words))
    few = [sample_poisson(mean, ALIKE, ReplayedWordsForTests(part)) for part in words.reshape(4, ALIKE)]
    assert at_once.tolist() == np.concatenate(few).tolist()


def test_words_at_an_end_and_beyond_the_table_are_not_answered_by_one_word() -> None:
    mean = Fraction(40)
    table = _Table.of(mean, 64)
    hard = np.array([table.low[10], table.high[30], 0, 2**64 - 1], dtype=np.uint64)
    assert table.unsure(hard, table.searched(hard)).tolist() == [True, True, table.first > 0, True]
    more = fresh(8)
    found = sample_poisson(mean, 4, ReplayedWordsForTests(np.concatenate([hard, more])))
    assert found[0] in (table.first + 10, table.first + 11)
    assert found[2] < 10
    assert found[3] > 80


@pytest.mark.alpha(1e-13)
def test_draws_are_whole_and_their_moments_are_those_of_the_law() -> None:
    """Of one large mean, at more than eight standard errors: α = 1e-14 each."""
    draws = sample_poisson(Fraction(10_000), 20_000, SystemWords())
    assert draws.dtype == np.int64
    assert abs(draws.mean() - 10_000) < 8 * 100 / 141
    assert abs(skellam(variance=3, size=20_000).var() / 3 - 1) < 8 * (2 + 1 / 3) ** 0.5 / 141


def test_means_beyond_reach_are_refused() -> None:
    for wrong in (0, -1, MOST_MEAN + 1):
        with pytest.raises(InvalidInput, match="nothing was d"):
            poisson(mean=wrong, size=1)
    assert skellam(variance=1, size=0).tolist() == []


@pytest.mark.long
@pytest.mark.alpha(1e-13)
def test_the_largest_mean_is_drawn() -> None:
    draws = poisson(mean=MOST_MEAN, size=1000)
    assert abs(float(draws.mean()) - MOST_MEAN) < 8 * MOST_MEAN**0.5 / 31  # eight standard errors
