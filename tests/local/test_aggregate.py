"""Reports in bulk: their law is the client's, counts are those by hand, and intervals cover."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.errors import InvalidInput
from sfumato.local import (
    DuchiMean,
    HadamardResponse,
    KaryResponse,
    LocalHash,
    OptimisedUnary,
    ProjectiveResponse,
    SubsetSelection,
    SymmetricUnary,
    aggregate,
    counts,
    draws,
    estimate_shares,
    reports,
    simulate,
)
from sfumato.noise import SystemBits, SystemWords

SOME = [
    KaryResponse(epsilon=1, values=11),
    SymmetricUnary(epsilon=1, values=11),
    OptimisedUnary(epsilon=2, values=16),
    LocalHash.calibrated(epsilon=1, values=11),
    LocalHash(epsilon=1, values=11, buckets=5),
    SubsetSelection.calibrated(epsilon=1, values=11),
    SubsetSelection(epsilon=4, values=40, size=4),
    HadamardResponse(epsilon=1, values=11),
    ProjectiveResponse.calibrated(epsilon=1, values=11),
    ProjectiveResponse(epsilon=1, values=11, order=3),
]


def named(oracle: object) -> str:
    return repr(oracle).replace("Fraction", "")


def each(drawn) -> list:
    """Rows of an array as clients would send them."""
    return [row.tobytes() for row in drawn] if drawn.ndim == 2 else drawn.tolist()


@pytest.mark.parametrize("oracle", SOME, ids=named)
def test_counts_are_those_by_hand(oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    truths = np.arange(60) % oracle.values
    drawn = reports(oracle, truths)
    by_hand = [sum(oracle.supports(report, value) for report in each(drawn)) for value in range(oracle.values)]
    assert counts(oracle, drawn).tolist() == counts(oracle, each(drawn)).tolist() == by_hand
    assert counts(oracle, drawn, values=[3, 1]).tolist() == [by_hand[3], by_hand[1]]
    monkeypatch.setattr(aggregate, "_CELLS", 7)  # nothing fits into a table
    monkeypatch.setattr(aggregate, "TABLE", 1)
    assert counts(oracle, drawn).tolist() == by_hand
    clients = [oracle.report(int(truth), SystemBits()) for truth in truths[:20]]
    assert counts(oracle, clients).tolist() == [
        sum(oracle.supports(report, value) for report in clients) for value in range(oracle.values)
    ]


@pytest.mark.parametrize("oracle", SOME, ids=named)
@pytest.mark.alpha(1e-9)
def test_bulk_reports_support_as_stated(oracle) -> None:
    """20,000 reports of one value: all counts within 7 standard deviations, α below 1e-8 for each oracle.

    The twin holds the truth to be another value.
    """
    n, truth = 20_000, 5
    supported = counts(oracle, reports(oracle, np.full(n, truth)))

    def off(true: int) -> float:
        chances = np.array([float(oracle.hit if value == true else oracle.stray) for value in range(oracle.values)])
        return float((np.abs(supported - n * chances) / np.sqrt(n * chances * (1 - chances))).max())

    assert off(truth) < 7 < off(6)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "oracle", [SOME[0], SOME[3], SOME[5], SOME[7], SOME[9], SubsetSelection(epsilon=1, values=6, size=2)], ids=named
)
@pytest.mark.alpha(4e-9)
def test_bulk_reports_have_the_law_of_the_client(oracle) -> None:
    """40,000 reports: the squared distance of each report's share, added up; α below 1e-9 by the χ² law's bound."""
    n = 40_000
    for truth in (0, 4):
        drawn = each(reports(oracle, np.full(n, truth)))
        seen = dict.fromkeys(oracle.outputs(), 0)
        for report in drawn:
            seen[report] += 1
        wanted = {report: n * float(oracle.probability(report, truth)) for report in seen}
        other = {report: n * float(oracle.probability(report, truth + 1)) for report in seen}
        k = len(seen) - 1
        limit = k + 2 * (k * 21) ** 0.5 + 2 * 21  # P(χ² > limit) ≤ e^−21
        assert sum((seen[it] - wanted[it]) ** 2 / wanted[it] for it in seen) < limit
        assert sum((seen[it] - other[it]) ** 2 / other[it] for it in seen) > limit


@pytest.mark.parametrize(
    "chance", [Fraction(0), Fraction(1, 3), Fraction(1, 2), OptimisedUnary(epsilon=1, values=9).stray]
)
def test_bytes_of_coins_have_the_exact_law(chance: Fraction) -> None:
    table = draws.coin_bytes(chance)
    laws = [chance ** byte.bit_count() * (1 - chance) ** (8 - byte.bit_count()) for byte in range(256)]
    assert exact_law(table) == laws
    assert (table.rest is None) == (chance.denominator.bit_count() == 1)  # nothing is left over


def exact_law(table: draws.RandomBytes) -> list[Fraction]:
    dealt = np.bincount(table.table[: table.left_over], minlength=256).tolist()
    share = Fraction((1 << 16) - table.left_over, 1 << 16)
    if table.rest is not None:
        rest = exact_law(table.rest)
    else:
        ends = [0, *table.weights]
        rest = [Fraction(b - a, max(1, table.total)) for a, b in pairwise(ends)]
    return [Fraction(units, 1 << 16) + share * part for units, part in zip(dealt, rest, strict=True)]


class FewWords:
    """A source of words of three bits that gives what it is told."""

    width = 3

    def __init__(self, *given: int) -> None:
        self.given = list(given)

    def fill(self, out) -> None:
        for place in range(out.size):
            out[place] = self.given.pop(0)


def test_a_coin_asks_for_more_only_where_its_probability_begins_like_the_word() -> None:
    """2/5 is 3.2 eighths: words 0 to 2 are heads, 4 to 7 tails, and 3 is heads with probability 1/5."""
    assert draws.coins(Fraction(2, 5), 7, FewWords(0, 1, 2, 4, 5, 6, 7)).tolist() == [True] * 3 + [False] * 4
    assert [bool(draws.coins(Fraction(2, 5), 1, FewWords(3, more))[0]) for more in range(5)] == [True] + [False] * 4


def test_uniform_numbers_are_drawn_again_where_too_large() -> None:
    assert draws.below(5, 3, FewWords(7, 0, 4, 6, 5, 3)).tolist() == [3, 0, 4]
    with pytest.raises(InvalidInput, match="too large"):
        draws.below(1 << 63, 1, SystemWords())


@pytest.mark.parametrize("wrong", [[-1], [11], [0.5], [[1]]])
def test_wrong_values_are_refused(wrong) -> None:
    with pytest.raises(InvalidInput):
        reports(SOME[0], np.array(wrong))
    with pytest.raises(InvalidInput, match="mean_reports"):
        reports(DuchiMean(epsilon=1), [0])


@pytest.mark.parametrize("oracle", SOME, ids=named)
def test_impossible_reports_are_refused(oracle) -> None:
    number = isinstance(oracle, KaryResponse | LocalHash | HadamardResponse | ProjectiveResponse)
    wrong = ([-1], [10**9]) if number else ([b"\xff" * 9], [3], np.zeros((2, 9), dtype=np.uint8))
    for given in wrong:
        with pytest.raises(InvalidInput):
            counts(oracle, given)
    if oracle.values == 11 and not number:
        with pytest.raises(InvalidInput):
            counts(oracle, [b"\x00\xff"])


def test_a_large_hash_needs_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = LocalHash(epsilon=1, values=40, buckets=3)
    monkeypatch.setattr(simulate, "TABLE", 1)
    monkeypatch.setattr(aggregate, "TABLE", 1)
    supported = counts(oracle, reports(oracle, np.full(20_000, 7)))
    sd = float(20_000 * oracle.hit * (1 - oracle.hit)) ** 0.5
    assert abs(supported[7] - 20_000 * float(oracle.hit)) < 5.5 * sd


def exact_coverage(oracle, n: int) -> tuple[float, float]:
    """The least probability that a value's interval holds its share: over all fixed populations of n, and over shares
    of a population from which n persons are drawn."""
    p, q = float(oracle.hit), float(oracle.stray)
    low, high = ((end - q) / (p - q) for end in aggregate._binomial_ends(np.arange(n + 1), n, 0.1))
    fixed = drawn = 1.0
    for true in range(n + 1):
        chance = np.convolve(binom.pmf(range(true + 1), true, p), binom.pmf(range(n - true + 1), n - true, q))
        fixed = min(fixed, chance[(low <= true / n) & (true / n <= high)].sum())
    for share in np.linspace(0, 1, 101):
        chance = binom.pmf(range(n + 1), n, q + share * (p - q))
        drawn = min(drawn, chance[(low <= share) & (share <= high)].sum())
    return fixed, drawn


@pytest.mark.few(20)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 25, 60])
@pytest.mark.parametrize("oracle", [KaryResponse(epsilon=2, values=2), *SOME], ids=named)
def test_exact_intervals_cover_every_small_population(oracle, n: int) -> None:
    """No randomness: all counts, all populations."""
    assert min(exact_coverage(oracle, n)) >= 0.9 - 1e-12


def test_intervals_that_take_the_noise_for_none_do_not_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin."""
    monkeypatch.setattr(aggregate, "_binomial_ends", lambda seen, n, miss: (seen / n - 0.02, seen / n + 0.02))
    assert min(exact_coverage(KaryResponse(epsilon=2, values=2), 25)) < 0.5


def test_shares_use_these_intervals() -> None:
    oracle = KaryResponse(epsilon=2, values=2)
    shares = estimate_shares(oracle, [1] * 8 + [0] * 17, confidence="0.9")
    low, high = aggregate._binomial_ends(np.array([17, 8]), 25, 0.1)
    p, q = float(oracle.hit), float(oracle.stray)
    assert shares.low == pytest.approx(np.clip((low - q) / (p - q), 0, 1))
    assert shares.high == pytest.approx(np.clip((high - q) / (p - q), 0, 1))


@pytest.mark.alpha(1e-9)
def test_normal_intervals_cover_and_half_of_them_do_not() -> None:
    """1,000 surveys of 500: misses at 5% by the binomial law, with half a percent for the approximation."""
    oracle, truths = KaryResponse(epsilon=1, values=2), np.arange(500) % 5 // 4
    misses = halved = 0
    for _ in range(1000):
        shares = estimate_shares(oracle, reports(oracle, truths), method="normal")
        misses += not shares.low[1] <= 0.2 <= shares.high[1]
        margin = 1.96 * float(oracle.variance("0.2") / 500) ** 0.5
        halved += abs(shares.estimates[1] - 0.2) > margin / 2
    assert misses <= binom.isf(1e-9, 1000, 0.055) < halved


def test_joint_intervals_are_wider() -> None:
    drawn = reports(SOME[0], np.arange(2000) % 11)
    one, all_of_them = (estimate_shares(SOME[0], drawn, joint=joint) for joint in (False, True))
    assert (all_of_them.high - all_of_them.low > one.high - one.low).all()
    assert (one.low >= 0).all()
    with pytest.raises(InvalidInput, match="unknown"):
        estimate_shares(SOME[0], drawn, method="best")
    with pytest.raises(InvalidInput, match="no reports"):
        estimate_shares(SOME[0], [])


@pytest.mark.claim("S4-13")
@pytest.mark.alpha(2e-9)
def test_estimates_of_randomised_response_are_unbiased_with_the_variance_claimed() -> None:
    """200,000 surveys of 40: bias within 6.2 standard errors, n·Var within 2%, which is 6.3 of its own; α below 2e-9.

    n times the variance does not depend on n, so that this is the one of n = 1,000 too.
    """
    oracle, surveys, n = KaryResponse(epsilon=1, values=2), 200_000, 40
    truths = np.tile(np.arange(n) % 10 < 3, surveys).astype(np.int64)
    seen = np.asarray(reports(oracle, truths)).reshape(surveys, n).mean(axis=1)
    estimates = (seen - float(oracle.stray)) / float(oracle.hit - oracle.stray)
    variance = float(oracle.variance("0.3")) / n
    assert abs(estimates.mean() - 0.3) < 6.2 * (variance / surveys) ** 0.5
    assert abs(estimates.var() / variance - 1) < 0.02
    assert abs(estimates.var() / (variance + 0.21 / n) - 1) > 0.02  # the twin: an i.i.d. population


NORMAL = [
    KaryResponse(epsilon=4, values=16),
    HadamardResponse(epsilon=3, values=15),
    OptimisedUnary(epsilon=3, values=100),
    LocalHash(epsilon=3, values=50, buckets=2),
    SubsetSelection(epsilon=2, values=100, size=2),
    KaryResponse(epsilon="1/2", values=20),
]


def worst_miss(oracle, n: int, each: float) -> float:
    """The largest probability, over some populations of n, that a normal interval misses, as a multiple of ``each``."""
    p, q = float(oracle.hit), float(oracle.stray)
    seen = (np.arange(n + 1) / n - q) / (p - q)
    low, high = (np.clip(end, 0, 1) for end in aggregate._normal_ends(seen, n, p, q, each))
    worst = 0.0
    for true in (0, 1, 5, n // 100, n // 10, n // 2, n - n // 10, n - 5, n):
        chance = np.convolve(binom.pmf(range(true + 1), true, p), binom.pmf(range(n - true + 1), n - true, q))
        share = true / n
        worst = max(worst, chance[(low > share + 1e-12) | (high < share - 1e-12)].sum() / each)
    return worst


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("oracle", NORMAL, ids=named)
def test_normal_intervals_are_given_only_where_they_nearly_cover(oracle, joint: bool) -> None:
    """No randomness: at the least number of reports that is taken, misses are at most 1.25 times as many as stated."""
    each = 0.05 / (oracle.values if joint else 1)
    spread = float(min(oracle.hit * (1 - oracle.hit), oracle.stray * (1 - oracle.stray)))
    n = int(np.ceil(aggregate._erring_needed(each) / spread))
    assert worst_miss(oracle, n, each) < 1.25
    drawn = reports(oracle, np.zeros(n, dtype=np.int64))
    assert estimate_shares(oracle, drawn, method="normal", joint=joint).method == "normal"
    with pytest.raises(InvalidInput, match="method='exact'"):
        estimate_shares(oracle, drawn[:-1], method="normal", joint=joint)


def test_normal_intervals_of_many_rare_values_are_refused() -> None:
    """At ε = 8 and 1,024 values a third of the surveys of 5,000 had a miss, at a stated 5%."""
    oracle = KaryResponse(epsilon=8, values=1024)
    drawn = reports(oracle, np.arange(5000) % 4)
    for joint in (False, True):
        with pytest.raises(InvalidInput, match="normal intervals"):
            estimate_shares(oracle, drawn, method="normal", joint=joint)
    assert worst_miss(oracle, 5000, 0.05 / 1024) > 3  # the twin of the test above
    assert estimate_shares(oracle, drawn, joint=True).method == "exact"


def test_certainty_is_everything_or_refused() -> None:
    oracle, drawn = KaryResponse(epsilon=1, values=2), np.arange(1000) % 2
    sure = estimate_shares(oracle, drawn, confidence=1)
    assert (sure.low.tolist(), sure.high.tolist(), sure.confidence) == ([0, 0], [1, 1], 1)
    with pytest.raises(InvalidInput, match="normal intervals"):
        estimate_shares(oracle, drawn, confidence=1, method="normal")
