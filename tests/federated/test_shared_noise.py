"""Shared noise: as much as was agreed is left, whoever leaves; and a share that forgets somebody is too small."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting import rdp
from sfumato.core.events import Skellam
from sfumato.errors import InvalidInput, Refused
from sfumato.federated import RoundTerms, SharedNoise, SumPhase, noise_verdict, round_in_process
from sfumato.noise import sample_skellam, skellam
from tests.federated.rounds import agreed, keys_of

ALPHA = 1e-10
LENGTH = 10_000
FAR = 6.7
"""Standard errors beyond which lies less than 3e-11 of a normal law; sums of squares are a little wider."""


def left(terms: RoundTerms, leaving: dict[int, SumPhase] | None = None) -> float:
    """The mean square of a sum of noise alone, through the whole protocol."""
    values = [np.zeros(terms.length, dtype=np.int64)] * terms.parties.sites
    total = round_in_process(terms, keys_of(terms.parties.sites), values, leaving=leaving).result().total
    return float(np.square(total.astype(np.float64)).mean())


def near(found: float, variance: float, length: int = LENGTH) -> bool:
    return abs(found - variance) < FAR * math.sqrt((2 * variance**2 + variance) / length)


@pytest.mark.claim("S0-26")
@pytest.mark.alpha(3 * ALPHA)
def test_the_sum_holds_what_was_agreed_and_more_where_sites_stay_that_might_have_left() -> None:
    """m/(m − t − c) times the variance with nobody missing, and σ² itself where t left and c are known."""
    sigma = Fraction(400)
    terms = agreed(6, 2, 1, length=LENGTH, noise=SharedNoise(variance=sigma))
    assert near(left(terms), 6 / 3 * 400)
    gone = {1: SumPhase.SHARE, 4: SumPhase.MASK}
    assert near(left(terms, gone), 4 / 3 * 400)
    assert terms.noise is not None
    assert terms.noise.share(terms.parties, 2) * terms.parties.honest == sigma
    pieces = agreed(6, 2, length=LENGTH, noise=SharedNoise(variance=sigma, removable=True))
    assert near(left(pieces, {2: SumPhase.MASK}), 400)


@pytest.mark.claim("S0-26")
@pytest.mark.parametrize("removable", [False, True])
@pytest.mark.parametrize(("sites", "missing", "colluding"), [(6, 2, 0), (6, 2, 2), (7, 2, 2), (10, 3, 1), (3, 0, 0)])
def test_honest_sites_that_stay_hold_the_variance_whoever_leaves(
    sites: int, missing: int, colluding: int, removable: bool
) -> None:
    terms = agreed(sites, missing, colluding, noise=SharedNoise(variance=Fraction(100), removable=removable))
    noise, parties = terms.noise, terms.parties
    assert noise is not None
    for gone in range(missing + 1):
        honest = (sites - gone - colluding) * noise.share(parties, gone)
        assert honest >= 100
        if removable:
            assert honest == 100
            assert noise.left(parties, gone) == Fraction(100 * (sites - gone), sites - gone - colluding)
        else:
            assert noise.left(parties, gone) == Fraction(100 * (sites - gone), sites - missing - colluding)


def test_a_share_that_forgets_colluders_costs_more_than_is_charged() -> None:
    """σ²/(m − t) with t missing and t colluding, m = 6 and t = 2: half of the variance is left."""
    charged = rdp.epsilon(Skellam(l1=Fraction(16), l2_squared=Fraction(256), variance=Fraction(256 * 16)), delta=1e-5)
    real = rdp.epsilon(Skellam(l1=Fraction(16), l2_squared=Fraction(256), variance=Fraction(256 * 8)), delta=1e-5)
    assert real > Fraction(14, 10) * charged


@pytest.mark.alpha(2 * ALPHA)
def test_a_survivor_that_falls_silent_leaves_no_excess_behind() -> None:
    terms = agreed(6, 2, length=LENGTH, noise=SharedNoise(variance=Fraction(300), removable=True))
    assert near(left(terms, {1: SumPhase.REVEAL, 2: SumPhase.AGREE}), 300)
    assert near(left(terms), 300)


def test_noise_is_part_of_the_sum_and_pieces_come_out_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise of the base silenced, what is left of removable pieces is nothing, to the last unit."""
    real = sample_skellam
    base = Fraction(300, 6)
    monkeypatch.setattr(
        "sfumato.federated.site.sample_skellam", lambda v, size, words: real(v, size, words) * (0 if v == base else 1)
    )
    terms = agreed(6, 2, length=50, bits=16, noise=SharedNoise(variance=Fraction(300), removable=True))
    assert left(terms) == 0
    assert left(terms, {1: SumPhase.REVEAL}) == 0
    assert left(terms, {1: SumPhase.MASK}) > 0


@pytest.mark.alpha(2 * ALPHA)
def test_a_round_of_zeros_refutes_a_site_that_adds_half_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of three sites takes a sixth off the variance: 16 standard errors at 20,000 numbers."""
    terms = agreed(3, 1, length=20_000, zero=True, noise=SharedNoise(variance=Fraction(90)))
    values = [np.zeros(20_000, dtype=np.int64)] * 3
    turns, real = iter((Fraction(1, 2), 1, 1, 1, 1, 1)), sample_skellam
    monkeypatch.setattr(
        "sfumato.federated.site.sample_skellam", lambda v, size, words: real(v * next(turns), size, words)
    )
    half = noise_verdict(round_in_process(terms, keys_of(3), values).result())
    assert half.refuted
    assert "adds less than its share" in half.explain()
    assert not noise_verdict(round_in_process(terms, keys_of(3), values).result(), confidence=1 - ALPHA).refuted


@pytest.mark.alpha(ALPHA)
def test_a_round_of_zeros_reads_no_numbers_and_no_other_round_is_judged() -> None:
    terms = agreed(4, 1, length=1_000, zero=True, noise=SharedNoise(variance=Fraction(90)))
    values = [np.full(1_000, 10**6)] * 4
    server = round_in_process(terms, keys_of(4), values)
    sound = noise_verdict(server.result(), confidence=1 - ALPHA)
    assert not sound.refuted
    assert sound.agreed == 120
    assert "chance explains" in sound.explain()
    with pytest.raises(Refused, match="round of zeros"):
        noise_verdict(round_in_process(agreed(3, 1), keys_of(3), [np.zeros(5, dtype=np.int64)] * 3).result())


@pytest.mark.long
@pytest.mark.alpha(2e-8)
def test_half_a_share_of_one_site_of_ten_is_seen_nearly_always() -> None:
    """Of 200 rounds of 20,000 numbers at 99%: at least 180 with half a share, at most 20 without. Binomial tails."""
    from sfumato.federated import SumResult

    terms = agreed(10, 2, length=20_000, zero=True, noise=SharedNoise(variance=Fraction(800)))
    full, seen = Fraction(800, 8), {True: 0, False: 0}
    for cheats in (True, False):
        for _ in range(200):
            total = skellam(variance=full * (Fraction(19, 2) if cheats else 10), size=20_000)
            verdict = noise_verdict(SumResult(terms=terms, total=total, survivors=tuple(range(1, 11))))
            seen[cheats] += verdict.refuted
    assert seen[True] >= 180
    assert seen[False] <= 20


@pytest.mark.long
@pytest.mark.claim("S0-26")
@pytest.mark.alpha(4e-9)
@pytest.mark.parametrize("removable", [False, True])
def test_a_million_numbers_hold_the_variance_to_one_percent(removable: bool) -> None:
    length = 1_000_000
    terms = agreed(
        6, 2, 0 if removable else 1, length=length, noise=SharedNoise(variance=Fraction(500), removable=removable)
    )
    expected = 500 if removable else 6 / 3 * 500
    assert abs(left(terms) / expected - 1) < 0.01
    gone = left(terms, {1: SumPhase.MASK, 6: SumPhase.SHARE})
    assert abs(gone / (500 if removable else 4 / 3 * 500) - 1) < 0.01


def test_noise_that_no_sampler_draws_is_refused() -> None:
    with pytest.raises(InvalidInput, match="coarser unit"):
        agreed(3, 1, bits=60, noise=SharedNoise(variance=Fraction(2**40)))


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(100), Fraction(10**6)])
def test_the_probability_of_wrapping_is_bounded_from_the_law(variance: Fraction) -> None:
    from scipy.stats import skellam as law

    terms = agreed(3, 0, bits=40, noise=SharedNoise(variance=variance))
    far = 7.1 * float(variance) ** 0.5
    assert 2 * law.sf(np.ceil(far) - 1, float(variance) / 2, float(variance) / 2) <= terms.wrap_probability < 1e-3
    assert 3 * terms.limit + far <= 2**39 - 1 < 3 * (terms.limit + 1) + far + 1


@pytest.mark.parametrize("sites_per_person", [1, 3])
def test_noise_for_a_budget_keeps_it_and_a_little_less_does_not(sites_per_person: int) -> None:
    asked = {"l1": 10, "l2_squared": 40, "sites_per_person": sites_per_person}
    found = SharedNoise.within(epsilon=2, delta=1e-6, rounds=5, **asked)  # type: ignore[arg-type]
    less = SharedNoise(variance=found.variance - 2)

    def spent(noise: SharedNoise) -> Fraction:
        return rdp.epsilon([noise.event(**asked)] * 5, delta=1e-6)  # type: ignore[arg-type]

    assert spent(found) <= 2 < spent(less)


def test_a_person_in_several_sites_moves_the_sum_by_as_many_norms() -> None:
    """Brute force: k sites each clip the same person to C, and the sum moves by k·C."""
    from sfumato.federated import PersonRounding

    rule = PersonRounding(dimensions=3, norm=Fraction(5), unit=Fraction(1), slack=Fraction(1))
    own = rule.shortened(np.array([[3, 4, 0]]))[0]
    moved = 3 * own
    event = SharedNoise(variance=Fraction(1)).event(l1=rule.l1, l2_squared=rule.l2_squared, sites_per_person=3)
    assert int((moved**2).sum()) == event.l2_squared
    assert int(np.abs(moved).sum()) <= event.l1
