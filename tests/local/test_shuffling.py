"""Shuffling: the bound against every pair of small datasets, its closed form, and twins that must fail."""

from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb, factorial

import pytest

from sfumato.core import enclosures
from sfumato.errors import InvalidInput
from sfumato.local import KaryResponse, Shuffled, shuffling

pytestmark = pytest.mark.kills


def shuffled_law(oracle: KaryResponse, truths: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """The exact law of the histogram of reports."""
    laws: dict[tuple[int, ...], Fraction] = {(0,) * oracle.values: Fraction(1)}
    for truth in truths:
        after: dict[tuple[int, ...], Fraction] = {}
        for seen, chance in laws.items():
            for report in range(oracle.values):
                counted = (*seen[:report], seen[report] + 1, *seen[report + 1 :])
                after[counted] = after.get(counted, Fraction(0)) + chance * oracle.probability(report, truth)
        laws = after
    return laws


def true_delta(oracle: KaryResponse, n: int, epsilon: Fraction) -> Fraction:
    """The largest hockey-stick divergence over all datasets of the others, for one person's value 0 against 1."""
    mild = enclosures.exp(epsilon).low
    worst = Fraction(0)
    for others in combinations_with_replacement(range(oracle.values), n - 1):
        one, other = shuffled_law(oracle, (0, *others)), shuffled_law(oracle, (1, *others))
        worst = max(
            worst,
            sum((max(Fraction(0), one[seen] - mild * other[seen]) for seen in one), Fraction(0)),
            sum((max(Fraction(0), other[seen] - mild * one[seen]) for seen in one), Fraction(0)),
        )
    return worst


CASES = [(2, 2, 1), (2, 4, 1), (2, 7, 2), (3, 3, 1), (3, 5, 2), (4, 4, 1)]


@pytest.mark.few(2)
@pytest.mark.parametrize(("values", "n", "epsilon"), CASES)
def test_no_small_case_is_worse_than_the_bound(values: int, n: int, epsilon: int) -> None:
    oracle = KaryResponse(epsilon=epsilon, values=values)
    bound = Shuffled(epsilon=epsilon, reports=n)
    sharper = Shuffled(epsilon=epsilon, reports=n, binary=True)
    for part in (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)):
        true = true_delta(oracle, n, part * epsilon)
        assert true <= bound.delta_at(part * epsilon)
        if values == 2:
            assert true <= sharper.delta_at(part * epsilon) <= bound.delta_at(part * epsilon)


def test_binary_bound_is_nearly_reached_and_more_clones_would_break_it(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle, asked = KaryResponse(epsilon=2, values=2), Fraction(1)
    true = true_delta(oracle, 6, asked)
    assert Shuffled(epsilon=2, reports=6, binary=True).delta_at(asked) < Fraction(3, 2) * true
    monkeypatch.setattr(shuffling, "_share", lambda epsilon, *, binary: Fraction(3, 4))
    assert Shuffled(epsilon=2, reports=6).delta_at(asked) < true


def test_one_report_is_not_amplified() -> None:
    alone = Shuffled(epsilon=1, reports=1)
    assert alone.epsilon_at("1e-6") > Fraction(999, 1000)
    top = enclosures.exp(1).high
    assert float(alone.delta_at(0)) == pytest.approx(float((top - 1) / (top + 1)), rel=1e-9)
    assert alone.delta_at(1) == 0


@pytest.mark.parametrize(("epsilon", "n"), [(1, 2_000), (2, 10_000)])
def test_the_bound_is_below_the_closed_form_and_falls_with_the_crowd(epsilon: int, n: int) -> None:
    crowd = Shuffled(epsilon=epsilon, reports=n)
    stated = crowd.epsilon_at("1e-6")
    assert crowd.delta_at(stated) <= Fraction(1, 10**6) < crowd.delta_at(stated * Fraction(99, 100))
    assert stated < crowd.closed_form("1e-6") < epsilon
    assert Shuffled(epsilon=epsilon, reports=4 * n).epsilon_at("1e-6") < stated * Fraction(6, 10)
    assert crowd.guarantee("1e-6").epsilon == stated


def test_the_divergence_is_the_one_of_the_two_laws() -> None:
    """Against the sum over all outcomes, in rationals."""
    top, mild = Fraction(3), Fraction(3, 2)
    for clones in (0, 1, 2, 5, 12):
        fair = [
            Fraction(factorial(clones), factorial(a) * factorial(clones - a) * 2**clones) for a in range(clones + 1)
        ]
        one = [(top * ([0, *fair][a]) + [*fair, 0][a]) / (top + 1) for a in range(clones + 2)]
        other = [([0, *fair][a] + top * [*fair, 0][a]) / (top + 1) for a in range(clones + 2)]
        true = sum(max(Fraction(0), x - mild * y) for x, y in zip(one, other, strict=True))
        stated = shuffling._divergence(clones, top, mild)
        assert true <= stated < true + Fraction(1, 2**150)


def test_a_large_delta_needs_no_epsilon_and_none_is_above_that_of_one_report() -> None:
    crowd = Shuffled(epsilon=1, reports=100)
    assert crowd.epsilon_at("0.9") == 0
    assert crowd.delta_at(2) == 0
    assert shuffling._divergence(5, Fraction(3), Fraction(3)) == 0


def test_few_reports_have_no_closed_form() -> None:
    with pytest.raises(InvalidInput, match="too few reports"):
        Shuffled(epsilon=4, reports=100).closed_form("1e-6")


@pytest.mark.few(2)
@pytest.mark.parametrize(("epsilon", "n"), [(1, 500), (2, 300), (3, 400)])
def test_the_bound_is_never_below_what_an_attacker_attains_in_a_crowd(epsilon: int, n: int) -> None:
    """Binary response, all others with value 0, and the number of ones seen: an attack, so a lower bound of δ; exact.

    In whole numbers: weights over a common denominator. The twin counts on a crowd ten times as large.
    """
    oracle = KaryResponse(epsilon=epsilon, values=2)
    top, bottom = oracle.ratio.as_integer_ratio()
    others = [comb(n - 1, ones) * bottom**ones * top ** (n - 1 - ones) for ones in range(n)]
    zero = [top * a + bottom * b for a, b in zip([*others, 0], [0, *others], strict=True)]
    one = [bottom * a + top * b for a, b in zip([*others, 0], [0, *others], strict=True)]
    for part in (Fraction(1, 10), Fraction(1, 3), Fraction(2, 3)):
        up, down = enclosures.exp(part * epsilon).high.as_integer_ratio()
        excess = max(
            sum(max(0, down * x - up * y) for x, y in zip(*pair, strict=True)) for pair in ((zero, one), (one, zero))
        )
        attained = Fraction(excess, down * (top + bottom) ** n)
        sharper = Shuffled(epsilon=epsilon, reports=n, binary=True).delta_at(part * epsilon)
        assert 0 < attained <= sharper <= Shuffled(epsilon=epsilon, reports=n).delta_at(part * epsilon)
        assert Shuffled(epsilon=epsilon, reports=10 * n, binary=True).delta_at(part * epsilon) < attained


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(4)])
def test_the_share_of_clones_is_rounded_down_and_hardly(epsilon: Fraction) -> None:
    for binary, true in (
        (False, enclosures.exp(-epsilon)),
        (True, 2 / (enclosures.exp(epsilon).high + 1)),
    ):
        low, high = (true, true) if isinstance(true, Fraction) else (true.low, true.high)
        share = shuffling._share(epsilon, binary=binary)
        assert high - Fraction(1, 2**62) < share <= low
