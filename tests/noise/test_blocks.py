"""Slots drawn by blocks: exact by enumeration, whatever the blocks are."""

from fractions import Fraction

import pytest

from sfumato.core import enclosures
from sfumato.noise.blocks import LEVELS, Block, Landscape, sample_slot
from tests.noise.replayed import enumerated

CASES = [
    ([0], [1]),
    ([0, 0, 0], [3]),
    pytest.param([2, 1, 0, 1], [1, 1, 1, 1], marks=pytest.mark.long),
    pytest.param([3, 2, 1, 0, 0, 5], [3, 3], marks=pytest.mark.long),
    pytest.param([0, 1, 2, 3], [4], marks=pytest.mark.long),
    ([40, 0, 40], [1, 1, 1]),
]


def landscape(excesses: list[int], lengths: list[int]) -> Landscape:
    """Blocks of these lengths over slots with these excesses."""
    blocks: list[Block] = []
    for length in lengths:
        start = sum(block[1] for block in blocks)
        blocks.append((start, length, min(excesses[start : start + length])))

    def within(limit: int) -> list[Block]:
        return [block for block in blocks if block[2] <= limit]

    return Landscape(slots=len(excesses), within=within, excess=lambda slot: excesses[slot])


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "rate",
    [Fraction(1, 3), *(pytest.param(some, marks=pytest.mark.long) for some in (Fraction(1), Fraction(7, 10)))],
    ids=str,
)
@pytest.mark.parametrize(("excesses", "lengths"), CASES, ids=str)
def test_every_slot_has_exactly_its_probability(excesses: list[int], lengths: list[int], rate: Fraction) -> None:
    seen = landscape(excesses, lengths)
    masses, unresolved = enumerated(lambda words: sample_slot(seen, rate, words), width=3, depth=5)
    assert unresolved < Fraction(1, 2)
    weights = [enclosures.exp(-rate * excess) for excess in excesses]
    least, most = sum(weight.low for weight in weights), sum(weight.high for weight in weights)
    for slot, weight in enumerate(weights):
        mass = masses.get(slot, Fraction(0))
        assert mass <= weight.high / least
        assert weight.low / most <= mass + unresolved


def test_a_law_with_a_twentieth_more_rate_is_told_apart() -> None:
    """The broken twin of the enumeration above: there, no word is left to decide between the two laws."""
    seen = landscape([1, 0, 30], [1, 1, 1])
    masses, unresolved = enumerated(lambda words: sample_slot(seen, Fraction(2), words), width=4, depth=4)
    for rate, holds in ((Fraction(2), True), (Fraction(21, 10), False)):
        weight = enclosures.exp(-rate)
        share = weight.high / (1 + weight.low)
        assert (masses[0] <= share and share <= masses[0] + unresolved) is holds


def test_halvings_never_pass_below_the_exponential() -> None:
    one = 1 / enclosures.log(Fraction(2)).high
    assert one - Fraction(1, 10**17) < LEVELS < one


@pytest.mark.alpha(1e-19)
def test_blocks_too_far_to_matter_are_not_looked_at() -> None:
    """Four billion slots, of which ten are good: fails by chance with probability below 2^-64."""
    asked: list[int] = []

    def within(limit: int) -> list[Block]:
        asked.append(limit)
        return [(5, 10, 0)] + ([(15, 2**32, 1000)] if limit >= 1000 else [])

    from sfumato.noise import SystemWords

    seen = Landscape(slots=10 + 2**32, within=within, excess=lambda slot: 0 if slot < 15 else 1000)
    assert 5 <= sample_slot(seen, Fraction(1), SystemWords()) < 15
    assert max(asked) < 100
