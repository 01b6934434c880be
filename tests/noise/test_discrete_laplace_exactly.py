"""The sampler's law, worked out exactly from all its decisions, is the discrete Laplace law that is claimed."""

from fractions import Fraction

import pytest

from sfumato.core import enclosures
from sfumato.core.enclosures import Enclosure
from sfumato.noise import Bits, draw_discrete_laplace, draw_geometric
from sfumato.noise.reference import toss_exp
from tests.noise.decisions import Sampler, walk

SCALES = [
    *(Fraction(1, 2), Fraction(1), Fraction(2)),
    *(pytest.param(scale, marks=pytest.mark.long) for scale in (Fraction(10, 3), Fraction(10))),
]
REMAINDER = Fraction(1, 10**8)
ONE = Fraction(1)


def law(value: int, scale: Fraction) -> Enclosure:
    """P(value) = (1 − q)/(1 + q) · q^|value| with q = exp(−1/scale)."""
    q = enclosures.exp(-1 / scale)
    return (1 - q) / (1 + q) * enclosures.exp(-abs(value) / scale)


def walked(sampler: Sampler) -> tuple[dict[int, Fraction], Fraction]:
    masses, left = walk(sampler, remainder=REMAINDER)
    assert left <= REMAINDER
    assert sum(masses.values()) + left == 1
    return masses, left


def strays(masses: dict[int, Fraction], left: Fraction, scale: Fraction) -> list[int]:
    """The values whose probability, known within what is left, is not the law's."""
    wrong = []
    for value in {*masses, *range(-5, 6)}:
        mass, claimed = masses.get(value, Fraction(0)), law(value, scale)
        if claimed.high < mass or claimed.low > mass + left:
            wrong.append(value)
    return sorted(wrong)


@pytest.mark.few(2)
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_every_probability_is_the_laws(scale: Fraction) -> None:
    masses, left = walked(lambda bits: draw_discrete_laplace(scale, bits))
    assert strays(masses, left, scale) == []
    assert min(masses) <= -int(15 * scale)
    assert max(masses) >= int(15 * scale)


@pytest.mark.parametrize("scale", SCALES[:3], ids=str)
def test_every_probability_of_the_geometric_law(scale: Fraction) -> None:
    masses, left = walk(lambda bits: draw_geometric(scale, bits), remainder=REMAINDER)
    assert left <= REMAINDER
    q = enclosures.exp(-1 / scale)
    for value, mass in masses.items():
        claimed = (1 - q) * enclosures.exp(-value / scale)
        assert mass <= claimed.high
        assert claimed.low <= mass + left


@pytest.mark.parametrize("gamma", ["0", "1/10", "1/3", "1/2", "9/10", "1", "3/2", "7"])
def test_the_coin_has_probability_exp_of_minus_gamma(gamma: str) -> None:
    exact = Fraction(gamma)
    masses, left = walk(lambda bits: toss_exp(exact, bits), remainder=Fraction(1, 10**30))
    assert left <= Fraction(1, 10**30)
    claimed = enclosures.exp(-exact)
    assert masses.get(True, 0) <= claimed.high
    assert claimed.low <= masses.get(True, 0) + left


# ------------------------------------------------------------------------------------------------ broken twins


def keeps_both_zeros(bits: Bits) -> int:
    while True:
        wholes = 0
        while toss_exp(ONE, bits):
            wholes += 1
        return -wholes if bits.below(2) == 1 else wholes


def short_coin(bits: Bits) -> bool:
    """exp(−1) cut after three terms of its series: 1/3 in place of 0.3679."""
    k = 1
    while k < 3 and bits.below(k) < 1:
        k += 1
    return k == 3 and bits.below(3) > 0


def stops_the_coin_early(bits: Bits) -> int:
    while True:
        wholes = 0
        while short_coin(bits):
            wholes += 1
        negative = bits.below(2) == 1
        if negative and wholes == 0:
            continue
        return -wholes if negative else wholes


def forgets_to_reject_the_remainder(bits: Bits) -> int:
    while True:
        remainder, wholes = bits.below(2), 0
        while toss_exp(ONE, bits):
            wholes += 1
        size, negative = remainder + 2 * wholes, bits.below(2) == 1
        if negative and size == 0:
            continue
        return -size if negative else size


@pytest.mark.parametrize(
    ("twin", "scale"),
    [(keeps_both_zeros, 1), (stops_the_coin_early, 1), (forgets_to_reject_the_remainder, 2)],
    ids=lambda it: getattr(it, "__name__", str(it)),
)
def test_twin_a_wrong_sampler_is_caught(twin: Sampler, scale: int) -> None:
    assert strays(*walked(twin), Fraction(scale)) != []


def test_twin_a_scale_that_is_off_by_one_in_ten_thousand_is_caught() -> None:
    scale = Fraction(2)
    assert strays(*walked(lambda bits: draw_discrete_laplace(scale, bits)), scale * Fraction(10_001, 10_000)) != []
