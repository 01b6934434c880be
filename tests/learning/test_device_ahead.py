"""Samples that a device draws: exact, in every order, and settled on the host where words leave something open."""

from collections import Counter
from fractions import Fraction
from itertools import permutations
from math import factorial

import pytest
from scipy.stats import binom

from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor  # noqa: E402

from sfumato.learning.device_ahead import DeviceAhead, DeviceSample  # noqa: E402
from sfumato.learning.device_words import DeviceWords  # noqa: E402

ALPHA = 1e-9
CPU = torch.device("cpu")


def words_of(numbers: list[int]) -> Tensor:
    """Words that make these numbers of 64 bits, counted from 0."""
    high = [(each >> 32) - 2**31 for each in numbers]  # numbers of a device count from −2^63
    low = [(each & 0xFFFFFFFF) - ((each >> 31 & 1) << 32) for each in numbers]
    return torch.tensor(high + low, dtype=torch.int64).to(torch.int32)


def drawn(sample: DeviceSample, numbers: list[int]) -> tuple[list[int], int, bool]:
    places, told, _ = sample.drawn(words_of(numbers))
    count, doubt = told.tolist()
    return places[:count].tolist(), count, bool(doubt)


def test_a_unit_is_in_where_its_number_is_below_the_rate_and_units_lie_in_their_order() -> None:
    sample = DeviceSample(4, Fraction(1, 4), 4)
    quarter = 2**62
    assert drawn(sample, [quarter - 1, 5, quarter, 7]) == ([1, 3, 0], 3, False)
    assert drawn(sample, [2**64 - 1, quarter, 2**63, quarter + 1]) == ([], 0, False)


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(2, 7), Fraction(1, 10**9)])
def test_what_begins_as_the_rate_is_left_to_the_host(rate: Fraction) -> None:
    sample = DeviceSample(3, rate, 3)
    whole = int(rate * 2**64)
    places, count, doubt = drawn(sample, [whole, 2**64 - 1, whole + 1])
    assert (doubt, count, places) == (True, 0, [])
    assert not drawn(sample, [whole + 1, whole - 1, 2**64 - 1])[2]


def test_equal_numbers_are_left_to_the_host() -> None:
    sample = DeviceSample(3, Fraction(1, 2), 3)
    assert drawn(sample, [9, 9, 2**63])[2]
    assert not drawn(sample, [9, 2**63 + 9, 2**63 + 9])[2]  # who is not in needs no order


def test_more_than_there_is_room_for_is_left_to_the_host() -> None:
    sample = DeviceSample(5, Fraction(1, 2), 2)
    numbers = [3, 1, 2, 2**63, 4]
    places, told, kept = sample.drawn(words_of(numbers))
    assert (told.tolist(), len(places)) == ([4, 1], 2)
    found, count = sample.settled(kept)
    assert (found.tolist(), count) == ([1, 2, 0, 4], 4)


@pytest.mark.alpha(2 * ALPHA)
def test_the_host_decides_by_the_rest_of_the_rate_and_orders_equals_evenly() -> None:
    """Numbers that begin as 1/3 are in one time in three; two that are equal lie in both orders alike."""
    rate, runs = Fraction(1, 3), 1000
    sample = DeviceSample(3, rate, 3)
    rest = rate * 2**64 - int(rate * 2**64)
    _, _, kept = sample.drawn(words_of([int(rate * 2**64), 7, 7]))
    inside = first = 0
    for _ in range(runs):
        places, count = sample.settled(kept)
        inside += count == 3
        first += places.tolist().index(1) < places.tolist().index(2)
    for seen, chance in ((inside, float(rest)), (first, 0.5)):
        assert min(binom.cdf(seen, runs, chance), binom.sf(seen - 1, runs, chance)) > ALPHA / 2


def sizes(rate: Fraction, number: int, runs: int, told: Fraction | None = None) -> tuple[int, Counter[tuple[int, ...]]]:
    """How many units are in, over some runs, and how often the first three that are lie in which order."""
    words, sample = DeviceWords(CPU), DeviceSample(number, told or rate, DeviceSample.room_for(number, rate))
    seen, orders = 0, Counter[tuple[int, ...]]()
    for _ in range(runs):
        places, (count, doubt), _ = ((part.tolist()) for part in sample.drawn(words.draw(2 * number)))
        assert not doubt
        assert len(set(places[:count])) == count
        seen += count
        if count >= 3:
            three = places[:3]
            orders[tuple(sorted(three).index(each) for each in three)] += 1
    return seen, orders


@pytest.mark.alpha(8 * ALPHA)
def test_samples_have_the_size_and_every_order_that_chance_gives_them() -> None:
    rate, number, runs = Fraction(1, 5), 2000, 100
    seen, orders = sizes(rate, number, runs)
    assert min(binom.cdf(seen, number * runs, float(rate)), binom.sf(seen - 1, number * runs, float(rate))) > ALPHA / 2
    total = sum(orders.values())
    for order in permutations(range(3)):
        found = orders[order]
        assert min(binom.cdf(found, total, 1 / factorial(3)), binom.sf(found - 1, total, 1 / factorial(3))) > ALPHA / 2


@pytest.mark.alpha(1e-13)
def test_a_rate_that_is_5_percent_off_is_noticed() -> None:
    rate, number, runs = Fraction(1, 5), 4000, 75
    seen, _ = sizes(rate, number, runs, told=rate * Fraction(21, 20))
    assert binom.sf(seen - 1, number * runs, float(rate)) < ALPHA


def test_each_step_has_draws_of_its_own() -> None:
    ahead = DeviceAhead(CPU, number=50, rate=Fraction(1, 2), size=200)
    steps = [ahead.next() for _ in range(4)]
    noise = [tuple(each.noise.tolist()) for each in steps]
    assert len(set(noise)) == 4
    last = steps[-1]  # those before it are overwritten
    assert last.near[: last.count].tolist() == last.places[: last.count].tolist()


def test_what_is_open_is_settled_before_it_is_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds of doubt, said to be there where they are not: the sample and the noise are asked for again."""
    asked = []
    ahead = DeviceAhead(CPU, number=50, rate=Fraction(1, 2), size=20)
    settled, settled_noise = ahead._sample.settled, ahead._noise.settled
    monkeypatch.setattr(ahead._sample, "settled", lambda numbers: (asked.append("sample"), settled(numbers))[1])
    monkeypatch.setattr(ahead._noise, "settled", lambda drawn: (asked.append("noise"), settled_noise(drawn))[1])
    before = ahead.next()
    assert not asked
    assert before.count <= 50
    ahead._slots[ahead._turn].told[1:] = 1
    found = ahead.next()
    assert asked == ["sample", "noise"]
    assert len(set(found.places.tolist())) == len(found.places) == found.count


def test_a_process_that_was_forked_off_has_draws_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = DeviceAhead(CPU, number=50, rate=Fraction(1, 2), size=200)
    ahead.next()
    waiting = ahead._slots[ahead._turn].result
    assert waiting is not None
    parents = waiting[3].values.tolist()
    monkeypatch.setattr("os.getpid", lambda: -7)
    assert ahead.next().noise.tolist() != parents
