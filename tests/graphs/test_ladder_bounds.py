"""What a release says of its error: bounds that hold for the exact law of every small graph, and of large ones."""

from fractions import Fraction
from math import comb

import pytest

from sfumato.graphs.kernels import ranked
from sfumato.graphs.local_sensitivity import Front, star_rungs, triangle_rungs
from sfumato.laws.ladder import LadderBound, _Mass
from sfumato.mechanisms.ladder import GUIDE_DOUBT, Ladder
from tests.graphs.small import adjacency, classes

pytest.importorskip("numba")
FACEBOOK = Front.of([(293, 1047), (253, 1297), (14, 1835)]).rungs(4039)
LEVEL = Fraction(19, 20)


def outside(mass: _Mass, margin: int) -> Fraction:
    """The exact probability that the error passes the margin, rounded up."""
    return (2 * mass.beyond(margin) / mass.all).high


@pytest.mark.few(2)
@pytest.mark.parametrize("n", [4, pytest.param(5, marks=pytest.mark.long)])
@pytest.mark.parametrize("leaves", [None, 2, 3])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(2)])
def test_bounds_hold_for_every_small_graph(leaves: int | None, epsilon: Fraction, n: int) -> None:
    ladder = Ladder.calibrated(nodes=n, leaves=leaves, epsilon=epsilon, share=Fraction(1, 2))
    law = LadderBound(epsilon=ladder.epsilon, widest=ladder.widest)
    assert ladder.widest == (n - 2 if leaves is None else 2 * comb(n - 2, leaves - 1))
    for graph in classes(n):
        known = ranked(adjacency(graph, n))
        guide, rungs = triangle_rungs(known) if leaves is None else star_rungs(known, leaves)
        mass = _Mass(rungs, ladder.epsilon)
        for m in range(12 * ladder.widest):
            assert outside(mass, m) <= law.tail(m).high + Fraction(1, 10**30)
        low, high = ladder.bounds(guide, guide)
        assert all(low.width(t) <= rungs.width(t) <= high.width(t) for t in range(3 * n))
        assert outside(mass, ladder.margin([0, guide], LEVEL)) <= 1 - LEVEL


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1)])
def test_bounds_hold_for_a_network_wherever_the_guide_falls(epsilon: Fraction) -> None:
    ladder = Ladder.calibrated(nodes=4039, epsilon=epsilon, share=Fraction(1, 25))
    aside = _laplace_margin(ladder)
    mass = _Mass(FACEBOOK, ladder.epsilon)
    left = (1 - GUIDE_DOUBT) * (1 - LEVEL)
    for guide in (293 - aside, 293, 293 + aside):
        assert outside(mass, ladder.margin([0, guide], LEVEL)) <= left
    assert outside(mass, ladder.law.margin(LEVEL)) <= 1 - LEVEL
    # A guide further off than its own noise says would bound too little: the bound does depend on it.
    assert ladder.margin([0, 293], LEVEL) < ladder.margin([0, 293 + aside], LEVEL)


def _laplace_margin(ladder: Ladder) -> int:
    from sfumato.laws import DiscreteLaplace

    return DiscreteLaplace(scale=1 / ladder.guide).margin(1 - GUIDE_DOUBT * (1 - LEVEL))


def test_masses_are_the_sums_of_their_weights() -> None:
    mass = _Mass(FACEBOOK, Fraction(1))
    ratio = mass._power(1)
    for m in (0, 1, 293, 294, 5000):
        t = FACEBOOK.rung(m)
        by_hand = mass._power(t) * (FACEBOOK.reach(t) - m)
        for s in range(t + 1, t + 400):
            by_hand = (by_hand + mass._power(s) * FACEBOOK.width(s - 1)).outward(bits=300)
        rest = mass._power(t + 400) * 4037 / (1 - ratio)
        assert by_hand.low <= mass.beyond(m).high
        assert mass.beyond(m).low <= by_hand.high + rest.high


def test_the_law_of_the_worst_graph_is_sound_in_all_it_says() -> None:
    law = LadderBound(epsilon=Fraction(1), widest=7)
    tails = [law.tail(m).high for m in range(4000)]
    assert sum(tails) <= law.mean_absolute_error + Fraction(1, 10**9)
    assert sum((2 * m + 1) * tail for m, tail in enumerate(tails)) <= law.variance + Fraction(1, 10**9)
    assert law.quantile(Fraction(1, 2)) == 0
    assert law.quantile(Fraction(39, 40)) == law.margin(LEVEL) == -law.quantile(Fraction(1, 40))
