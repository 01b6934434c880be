"""Optimal selection: (ε, δ) checked exactly for every number of persons, and optimal against the truth."""

from fractions import Fraction
from itertools import pairwise, product
from math import prod

import mpmath
import pytest

from sfumato.accounting import compose
from sfumato.core import enclosures
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused
from sfumato.mechanisms import NoisyThreshold, OptimalSelection
from sfumato.mechanisms.several_keys import each_of, in_order, of_any
from sfumato.noise import SystemWords

pytestmark = pytest.mark.kills

CASES = [
    (1, 1, "1/1000000"),
    (3, 1, "1/1000000"),
    (1, "1/100", "1/1000"),
    (5, "1/2", "1/3"),
    (1, 3, "1/1000000000000"),
    (1, 100, "1/10000000000000000000000000000000000000000"),  # beyond the largest ε that is used
    (1, "1/1000000", "1/100"),
    (1, "1/2", "9/10"),
]
every_case = pytest.mark.parametrize(("keys", "epsilon", "delta"), CASES, ids=str)


def chances(rule: OptimalSelection) -> list[Fraction]:
    """π(0), …, up to two persons more than make it sure."""
    return [rule.chance(persons) for persons in range(rule.sure + 3)]


@every_case
def test_every_pair_of_neighbours_keeps_epsilon_and_delta_exactly(keys: int, epsilon: object, delta: object) -> None:
    """Four inequalities of rationals for each n, with e^ε replaced by a rational that is proven to be below it."""
    rule = OptimalSelection.calibrated(keys=keys, epsilon=epsilon, delta=delta)
    found = chances(rule)
    least = enclosures.exp(rule.epsilon, bits=400).low
    assert found[0] == 0
    assert found[rule.sure - 1] < 1 == found[rule.sure] == found[-1]
    for fewer, more in pairwise(found):
        assert fewer <= more
        for p, q in ((fewer, more), (more, fewer), (1 - fewer, 1 - more), (1 - more, 1 - fewer)):
            assert p <= least * q + rule.delta


@every_case
def test_no_rule_shows_keys_more_often(keys: int, epsilon: object, delta: object) -> None:
    """The recursion in 120 digits, which is the optimum of Desfontaines, Voss, Gipson and Mandayam, step by step."""
    rule = OptimalSelection.calibrated(keys=keys, epsilon=epsilon, delta=delta)
    with mpmath.workdps(120):
        growth = mpmath.exp(min(mpmath.mpf(rule.epsilon.numerator) / rule.epsilon.denominator, 44))
        more = mpmath.mpf(rule.delta.numerator) / rule.delta.denominator
        best = mpmath.mpf(0)
        for persons in range(rule.sure + 1):
            mine = rule.chance(persons)
            ours = mpmath.mpf(mine.numerator) / mine.denominator
            assert ours <= best * (1 + mpmath.mpf(10) ** -100)
            assert ours >= best * (1 - mpmath.mpf(10) ** -17)
            best = min(growth * best + more, 1 - (1 - best - more) / growth, mpmath.mpf(1))


@pytest.mark.few(1)
@pytest.mark.parametrize("keys", [1, 2, 3])
def test_several_keys_of_one_person_by_enumeration(keys: int) -> None:
    """All outcomes for keys with any numbers of persons: what one person more or less, or another one, brings."""
    rule = OptimalSelection.calibrated(keys=keys, epsilon=1, delta="1/100")
    steps = [(n, n + up) for n in (0, 1, 5, rule.sure // 2, rule.sure - 1) for up in (-1, 1) if n + up >= 0]
    claimed = rule.event.guarantee
    most = enclosures.exp(claimed.epsilon).low

    def excess(moves: tuple[tuple[int, int], ...], factor: Fraction) -> Fraction:
        total = Fraction(0)
        for outcome in product((False, True), repeat=len(moves)):
            here, there = (
                prod(
                    rule.chance(move[side]) if one else 1 - rule.chance(move[side])
                    for move, one in zip(moves, outcome, strict=True)
                )
                for side in (0, 1)
            )
            total += max(Fraction(0), here - factor * there)
        return total

    worst = max(excess(moves, most) for moves in product(steps, repeat=keys))
    assert worst <= claimed.delta
    assert worst >= claimed.delta * Fraction(999, 1000)  # fresh keys alone reach it
    assert any(
        excess(moves, enclosures.exp(claimed.epsilon * Fraction(4, 5)).high) > claimed.delta * 2
        for moves in product(steps, repeat=keys)
    )


def test_the_loss_of_several_keys_adds_up_and_its_delta_is_that_of_any_of_them() -> None:
    assert compose([OptimalSelection.calibrated(keys=3, epsilon=1, delta=1e-6).event]).epsilon == 1
    rule = OptimalSelection(keys=4, epsilon=Fraction(1, 4), delta=Fraction(1, 100))
    assert rule.event == rule.loss(4)
    for keys in range(6):
        guarantee = rule.loss(keys).guarantee
        assert guarantee.epsilon == Fraction(keys, 4)
        assert guarantee.delta == 1 - Fraction(99, 100) ** keys
    assert rule.loss(Sensitivity.of(l0=2, linf=1)) == rule.loss(2)
    assert rule.loss(Sensitivity.of(l0=2, linf="1/2")) == rule.loss(2)
    for linf in (2, "11/10"):
        with pytest.raises(Refused, match="not counts of persons"):
            rule.loss(Sensitivity.of(l0=2, linf=linf))


@pytest.mark.parametrize("keys", [1, 2, 3, 17, 1000, 10_001, 10**12])
@pytest.mark.parametrize("delta", ["1/1000000", "3/4", "1e-100"])
def test_a_delta_is_shared_out_so_that_together_it_is_almost_all_used(keys: int, delta: str) -> None:
    asked = Fraction(delta)
    together = of_any(each_of(asked, keys), keys)
    assert together <= asked
    assert together >= asked * (1 - Fraction(1, 10**15))
    assert together.denominator.bit_length() < 1000  # short enough for a certificate
    assert of_any(each_of(asked, keys) * Fraction(101, 100), keys) > asked
    assert of_any(asked, 0) == 0
    assert of_any(asked, 1) == asked
    exact = 1 - (1 - asked) ** 20
    assert exact <= of_any(asked, 20) <= exact * (1 + Fraction(1, 2**240))


def test_it_shows_keys_from_fewer_persons_than_the_noisy_threshold() -> None:
    """At least as often for every number of persons with the same (ε, δ): for one key no other rule does better."""
    ours = OptimalSelection.calibrated(keys=1, epsilon=1, delta=1e-6)
    theirs = NoisyThreshold.calibrated(keys=1, most=1, epsilon=1, delta=1e-6)
    q = mpmath.exp(-1 / mpmath.mpf(float(theirs.scale)))
    for persons in range(1, 60):
        steps = theirs.threshold - persons  # P(Z ≥ steps)
        shown = q**steps / (1 + q) if steps > 0 else 1 - q ** (1 - steps) / (1 + q)
        assert float(ours.chance(persons)) >= float(shown) * (1 - 1e-12)
    assert float(ours.chance(14)) > 0.69 > 0.3 > float(q ** (theirs.threshold - 14) / (1 + q))


@pytest.mark.alpha(1e-9)
def test_keys_are_shown_as_often_as_their_chance_says() -> None:
    """60,000 keys for each number; Hoeffding at α = 1e-10 allows 0.0141, and the chance of one person more fails."""
    rule = OptimalSelection.calibrated(keys=1, epsilon=1, delta="1/100")
    band = (mpmath.log(2e10) / 120_000) ** 0.5
    words = SystemWords()
    for persons in range(3, rule.sure - 3):
        shown = len(rule.show(dict.fromkeys(range(60_000), persons), words)) / 60_000
        assert abs(shown - float(rule.chance(persons))) < band
        assert abs(shown - float(rule.chance(persons + 1))) > band
    assert rule.show(dict.fromkeys(range(100), rule.sure), words) == tuple(range(100))


@pytest.mark.alpha(1e-100)
def test_the_order_of_what_is_shown_is_that_of_the_keys() -> None:
    rule = OptimalSelection.calibrated(keys=1, epsilon=1, delta=1e-6)
    keys = [("b", 2), ("a", 10), ("a", 9)]
    for order in (keys, keys[::-1]):
        assert rule.show(dict.fromkeys(order, 10**6), SystemWords()) == (("a", 9), ("a", 10), ("b", 2))
    assert rule.show({}, SystemWords()) == ()
    assert in_order([True, "x", 3, 2.5, "X", 2]) == [True, 2.5, 2, 3, "X", "x"]
    with pytest.raises(InvalidInput, match="from 1 on"):
        rule.show({"nobody": 0}, SystemWords())
    with pytest.raises(InvalidInput, match="from 1 on"):
        rule.show({"half": 0.5}, SystemWords())  # type: ignore[dict-item]


@pytest.mark.long
def test_what_cannot_be_kept_is_refused_before_anything_is_drawn() -> None:
    for delta in (0, 1, -1, 2):
        with pytest.raises(InvalidInput, match="delta"):
            OptimalSelection.calibrated(keys=1, epsilon=1, delta=delta)
    for bad in ({"keys": 0, "epsilon": 1}, {"keys": 1, "epsilon": 0}):
        with pytest.raises(InvalidInput, match=r"keys|epsilon"):
            OptimalSelection.calibrated(delta=1e-6, **bad)  # type: ignore[arg-type]
    with pytest.raises(Refused, match="Give more ε or δ, or fewer keys"):
        OptimalSelection.calibrated(keys=1, epsilon="1e-9", delta="1e-12")
