"""Noise of a noisy scale: what it costs, how far its guide is raised, and the law of what it draws."""

from dataclasses import replace
from fractions import Fraction

import mpmath
import pytest

from sfumato.accounting.basic import cost, guarantee_of
from sfumato.accounting.filter_cost import filter_cost
from sfumato.core import events
from sfumato.core.budget import Budget
from sfumato.core.guarantees import Approximate
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused
from sfumato.mechanisms.noisy_local_sensitivity import NoisyLocalSensitivity, usual_share
from sfumato.noise import SystemWords

pytestmark = pytest.mark.kills

MILLIONTH, HALF = Fraction(1, 10**6), Fraction(1, 2)


@pytest.mark.parametrize("leaves", [None, 2, 3])
@pytest.mark.parametrize("share", [None, "1/3"])
def test_the_loss_is_what_was_asked_for(leaves: int | None, share: str | None) -> None:
    noise = NoisyLocalSensitivity.calibrated(nodes=9, leaves=leaves, epsilon=1, delta=MILLIONTH, share=share)
    event = noise.loss(Sensitivity.of(l1=noise.widest))
    assert event == events.Stated(guarantee=Approximate(epsilon=Fraction(1), delta=MILLIONTH))
    spend = Budget(epsilon=1, delta=MILLIONTH)
    assert cost(guarantee_of(event, spend)) == spend
    assert noise.epsilon + noise.guide == 1
    assert share is None or noise.guide == Fraction(share)
    assert noise.numbers == 2


def test_no_finer_loss_than_the_proven_one_is_claimed() -> None:
    """A filter by ρ or by a Rényi loss holds no δ of its own: the release is refused there."""
    event = NoisyLocalSensitivity.calibrated(nodes=9, epsilon=1, delta=MILLIONTH).loss(Sensitivity.of(l1=7))
    for order in (None, Fraction(2)):
        with pytest.raises(Refused, match="δ"):
            filter_cost(event, order)


def below(guide: Fraction, s: int) -> mpmath.mpf:
    """P(Z < −s) = q^(s + 1)/(1 + q), q = e^(−guide)."""
    q = mpmath.exp(-mpmath.mpf(guide.numerator) / guide.denominator)
    return q ** (s + 1) / (1 + q)


@pytest.mark.parametrize("guide", ["1/50", "1/5", "1", "7"])
@pytest.mark.parametrize("delta", ["1/1000000000", "1/1000000", "1/100", "1/3", "1"])
def test_the_guide_is_raised_as_little_as_delta_allows(guide: str, delta: str) -> None:
    noise = NoisyLocalSensitivity(
        nodes=9, leaves=None, epsilon=Fraction(1), guide=Fraction(guide), delta=Fraction(delta)
    )
    with mpmath.workdps(50):
        allowed = mpmath.mpf(noise.delta.numerator) / noise.delta.denominator
        assert below(noise.guide, noise.shift) <= allowed
        assert noise.shift == 0 or below(noise.guide, noise.shift - 1) > allowed


def test_bounds_are_how_far_one_edge_can_move_a_count() -> None:
    triangles, wedges, stars = (
        NoisyLocalSensitivity.calibrated(nodes=9, leaves=leaves, epsilon=1, delta=MILLIONTH) for leaves in (None, 2, 4)
    )
    assert [noise.guides for noise in (triangles, wedges, stars)] == [(1, 7), (1, 14), (3, 7)]
    assert [triangles.bound(guide) for guide in (-5, 0, 1, 3, 7, 99)] == [1, 1, 1, 3, 7, 7]
    assert [wedges.bound(guide) for guide in (0, 3, 14, 15)] == [1, 3, 14, 14]
    assert [stars.bound(guide) for guide in (0, 3, 4, 7, 8)] == [2, 2, 8, 70, 70]
    assert [noise.widest for noise in (triangles, wedges, stars)] == [7, 14, 70]
    assert wedges.scale(3) == 3 / wedges.epsilon
    assert wedges.law == wedges.law_at(14)
    assert wedges.law_at(3).scale == wedges.scale(3)


def test_the_share_of_the_guide_follows_from_public_facts() -> None:
    """Never above a half, which is best where the guide is nothing beside its noise, and falling as ε and δ grow."""

    def share(
        epsilon: str | int, delta: Fraction = MILLIONTH, leaves: int | None = None, nodes: int = 4039
    ) -> Fraction:
        return usual_share(nodes=nodes, leaves=leaves, epsilon=epsilon, delta=delta)

    assert [share(epsilon) for epsilon in ("1/10000", "1/10", 1, 10, 10**6)] == [
        Fraction(1, 2),
        Fraction(37, 100),
        Fraction(18, 100),
        Fraction(7, 100),
        Fraction(1, 100),
    ]
    assert [share(1, leaves=leaves) for leaves in (None, 2, 3)] == [Fraction(k, 100) for k in (18, 10, 14)]
    assert share(1, Fraction(1, 1000)) < share(1) < share(1, Fraction(1, 10**12))
    assert share(1, nodes=10**6) < share(1)
    assert share(1, Fraction(1)) > 0


def test_what_it_is_not_for_is_refused() -> None:
    noise = NoisyLocalSensitivity.calibrated(nodes=9, epsilon=1, delta=MILLIONTH)
    for moved in (6, 8, 14):
        with pytest.raises(Refused, match="nodes"):
            noise.loss(Sensitivity.of(l1=moved))
    for delta in (0, Fraction(1, 2**1001)):
        with pytest.raises(InvalidInput, match="δ above 0"):
            NoisyLocalSensitivity.calibrated(nodes=9, epsilon=1, delta=delta)
    with pytest.raises(InvalidInput, match="share below 1"):
        NoisyLocalSensitivity.calibrated(nodes=9, epsilon=1, delta=MILLIONTH, share=1)
    with pytest.raises(InvalidInput, match="share"):
        NoisyLocalSensitivity.calibrated(nodes=9, epsilon=1, delta=MILLIONTH, share=0)
    with pytest.raises(InvalidInput, match="guide"):
        replace(noise, guide=Fraction(0))
    with pytest.raises(InvalidInput, match="nodes"):
        replace(noise, nodes=2)
    with pytest.raises(InvalidInput, match="leaves"):
        replace(noise, leaves=9)
    assert replace(noise, delta=Fraction(1, 2**1000)).shift > 1000


@pytest.mark.alpha(1e-19)
def test_guides_are_held_to_their_range_and_sums_to_64_bits() -> None:
    noise = NoisyLocalSensitivity(nodes=6, leaves=None, epsilon=Fraction(50), guide=Fraction(50), delta=HALF)
    words = SystemWords()
    assert noise.shift == 0
    assert noise.add_noise((7, 0), words) == (7, 1)  # but for e^−49
    assert noise.add_noise((7, 4), words) == (7, 4)
    assert noise.add_noise((7, 99), words) == (7, 4)
    assert noise.add_noise((2**70, 3), words) == (2**63 - 1, 3)
