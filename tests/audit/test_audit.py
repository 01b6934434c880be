"""The attacks: every mechanism has one, honest ones stand, twins fall, and the bounds themselves are honest."""

import json
import math
import os
from collections.abc import Iterable
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

from sfumato.audit import ATTACKS, TWINS, Attack, Drawn, audit, epsilon_lower_bound
from sfumato.audit.bounds import exact_epsilon, gaussian_epsilon, gaussian_lower_bound
from sfumato.audit.laws import projected
from sfumato.audit.supports import cosets, float_laplace
from sfumato.cli.app import app
from sfumato.local import MEANS, ORACLES
from sfumato.mechanisms import (
    ADDED_NOISE,
    BufferedNoise,
    DegreeNoise,
    Laplace,
    LInfKNorm,
    MatrixNoise,
    NoisyThreshold,
    SparseVector,
)
from sfumato.noise import SystemWords
from sfumato.reports.declarations import DECLARATIONS
from sfumato.streams.noise import SeriesNoise

# Whatever a certificate can name as a mechanism, wherever it is declared, and every way to report in the local model.
KINDS = {kind for kind in DECLARATIONS.kinds if kind.startswith("mechanism.")} | {
    way.KIND for way in (*ORACLES, *MEANS)
}
SAMPLES = 200_000
WIDE = {"COLUMNS": "200"}
HONEST_ALPHA = 1e-9  # each sampling attack on sound mechanisms fails its test once in 10^9 runs
TWIN_ALPHA = 0.01  # twins are caught at 99%
# The nearest to the truth, 5% off, is 13 standard deviations away from passing at 1,000,000, and 5 at 250,000: it is
# missed less often than once in 10^6 runs.
TWIN_SAMPLES = 1_000_000 if os.environ.get("SFUMATO_LONG") == "1" else 250_000
# Slow to play, beside a cheaper attack on the same mechanism: make test-all.
DEAR = {
    "evaluator: counts",
    "randomised response, as drawn",
    "exponential, as drawn",
    "stream: running totals, an event more",
    "training: a model that writes to its weights",
    "degree noise, a replaced edge counted once",
    "degree noise on counts that are no degrees: support",
    "degree noise: support",
    "buffered stream: support",
    "sparse vector: support",
    "noisy threshold: support",
    "stream of persons: support",
    "stream of persons, tree with Laplace noise",
    "vault: wedges by a ladder",
    "vault: top groups",
}


def each(attacks: Iterable[Attack | Drawn]) -> list[Any]:
    return [pytest.param(one, id=one.name, marks=[pytest.mark.long] if one.name in DEAR else []) for one in attacks]


def unseen(kinds: Iterable[str], attacks: Iterable[Attack | Drawn]) -> set[str]:
    """The kinds of mechanism whose draws no attack looks at."""
    return set(kinds) - {attack.kind for attack in attacks if isinstance(attack, Drawn)}


def unbounded(kinds: Iterable[str], attacks: Iterable[Attack | Drawn]) -> set[str]:
    """The kinds of mechanism of which no attack seeks the ε, or only one that need not prove anything."""
    bounds = (attack for attack in attacks if isinstance(attack, Attack))
    return set(kinds) - {attack.kind for attack in bounds if attack.share > 0 or attack.delta > 0}


# Of these the draws are attacked, and their ε follows from the Gaussian curve of the sums that are: NoisySums.
BY_THEIR_DRAWS = {
    *("mechanism.adaptive_sums", "mechanism.correlated_sums", "mechanism.banded_sums"),
    *("mechanism.best_of_runs", "mechanism.confident_max", "mechanism.noisy_graph_sums"),
    "mechanism.noisy_root_sums",
}


def test_the_draws_of_every_mechanism_are_attacked_and_a_broken_copy_of_each_is_refuted() -> None:
    assert len(KINDS) > 30
    assert not unseen(KINDS, ATTACKS)
    assert not unseen(KINDS, TWINS)
    assert unbounded(KINDS, ATTACKS) == BY_THEIR_DRAWS
    assert {attack.kind for attack in (*ATTACKS, *TWINS)} == KINDS
    for kind in KINDS:  # and without its attacks each of them would be missed
        others = [attack for attack in ATTACKS if attack.kind != kind]
        assert unseen(KINDS, others) == {kind}
    assert unseen({*KINDS, "mechanism.new"}, ATTACKS) == {"mechanism.new"}
    assert len({attack.name for attack in (*ATTACKS, *TWINS)}) == len(ATTACKS) + len(TWINS)


def test_what_is_left_to_the_long_run_leaves_every_mechanism_its_attacks_and_a_broken_copy() -> None:
    shipped = [attack for attack in ATTACKS if attack.name not in DEAR]
    assert not unseen(KINDS, shipped)
    assert unbounded(KINDS, shipped) == BY_THEIR_DRAWS
    assert not unseen(KINDS, [twin for twin in TWINS if twin.name not in DEAR])
    assert {one.name for one in (*ATTACKS, *TWINS)} >= DEAR


@pytest.mark.claim("X-02")
@pytest.mark.parametrize("attack", each(ATTACKS))
@pytest.mark.alpha(HONEST_ALPHA)
def test_no_claim_of_a_shipped_mechanism_is_refuted(attack) -> None:
    verdict = attack.run(samples=SAMPLES, alpha=HONEST_ALPHA)
    assert not verdict.refuted, verdict
    assert verdict.skipped is None
    if isinstance(attack, Attack):
        # A blunter attack would prove nothing. Persons in a tree fall short once in 500 runs: not four times.
        again = (attack.run(samples=SAMPLES, alpha=HONEST_ALPHA) for _ in range(3))
        assert any(one.proven >= attack.share * one.epsilon for one in chain([verdict], again))


@pytest.mark.claim("X-02")
@pytest.mark.parametrize("twin", each(TWINS))
@pytest.mark.alpha(1e-9)
def test_every_broken_twin_is_refuted(twin) -> None:
    """In one of five runs: an attack that chooses a poor event by chance misses one run in some hundred."""
    verdicts = []
    for _ in range(5):
        verdicts.append(twin.run(samples=TWIN_SAMPLES, alpha=TWIN_ALPHA))
        if verdicts[-1].refuted:
            return
    raise AssertionError(verdicts)


ADDITIVE = {*ADDED_NOISE, NoisyThreshold, SparseVector, MatrixNoise, BufferedNoise, DegreeNoise, LInfKNorm, SeriesNoise}


def test_supports_are_attacked_wherever_noise_is_added() -> None:
    """The other mechanisms name one of finitely many things: there the exact loss is infinite if supports differ."""
    supports = {attack.kind for attack in ATTACKS if attack.name.endswith(": support")}
    assert supports == {mechanism.KIND for mechanism in ADDITIVE}
    finite = {attack.kind for attack in ATTACKS if isinstance(attack, Attack) and attack.exact}
    sums = {
        f"mechanism.{name}_sums" for name in ("noisy", "adaptive", "correlated", "banded", "noisy_graph", "noisy_root")
    }  # on a lattice of floats
    # Those which name classes, and one of the models, and whole numbers modulo 2^b, which are uniform until summed.
    rest = {"mechanism.confident_max", "mechanism.best_of_runs", "mechanism.shared_skellam"}
    assert KINDS - supports <= finite | sums | rest


@pytest.mark.alpha(1e-12)
def test_cosets_of_neighbours_are_the_same_and_those_of_floats_are_not() -> None:
    """Which cosets are reached at all. Each of the 12 (of an even sum: 6) has a probability above 1/60 and is missed by
    200,000 draws, or by 100,000 where the draws are vectors, with probability below e^−1600."""
    words = SystemWords()
    ball, cube = DegreeNoise(nodes=4, epsilon=Fraction(1)), LInfKNorm.calibrated(dimensions=3, linf=1, epsilon=1)
    laplace = Laplace.calibrated(l1=1, epsilon="1/4")
    here, there = (set(cosets(laplace.add_noise([x] * SAMPLES, words)).tolist()) for x in (0, 1))
    assert here == there == set(range(12))
    here, there = (set(cosets(cube.sample(SAMPLES // 2, words) + x).tolist()) for x in (0, 1))
    assert here == there == set(range(12))
    for degrees, others in (((1, 1, 0, 0), (2, 1, 1, 0)), ((3, 3, 3, 3), (2, 3, 3, 2))):
        here, there = (set(cosets(ball.sample(SAMPLES // 2, words) + np.array(x)).tolist()) for x in (degrees, others))
        assert here == there == {code for code in range(12) if code % 2 == 0}
    here, there = (set(cosets(float_laplace(SAMPLES, x)).tolist()) for x in (0, 1))
    assert here == {0, 1, 2}  # with 0 as the answer, outputs near 0 are as fine as doubles are there
    assert there == {1, 2}  # 1 + noise near 0 has the spacing of doubles below 1, always


@pytest.mark.alpha(1e-9)
def test_the_sampling_bound_errs_no_more_often_than_it_says() -> None:
    """Under a true ε of ln 3 the bound exceeds it in at most α of the runs: 300 at α = 0.1, limit by the binomial law.

    The plain ratio of frequencies exceeds it in almost half of the runs, and passes with probability below 1e-11.
    """
    limit = binom.isf(1e-9, 300, 0.1)
    bits = np.frombuffer(np.random.bytes(300 * 2 * 2000), dtype=np.uint8).reshape(300, 2, 2000)
    wrong = 0
    for here, there in bits:
        bound = epsilon_lower_bound(here < 192, there < 64, delta=0.0, alpha=0.1)
        wrong += bound > math.log(3)
    assert wrong <= limit
    careless = sum(np.log(np.mean(here < 192) / max(np.mean(there < 64), 1e-9)) > math.log(3) for here, there in bits)
    assert careless > limit  # the plain ratio of frequencies is no bound


def test_exact_losses() -> None:
    assert exact_epsilon([0.5, 0.5], [0.5, 0.5]) == 0
    assert exact_epsilon([0.5, 0.5, 0.0], [0.5, 0.0, 0.5]) == math.inf
    assert exact_epsilon([0.6, 0.4], [0.4, 0.6], delta=0.2) == pytest.approx(0, abs=1e-12)
    assert exact_epsilon([0.75, 0.25], [0.25, 0.75], delta=0.25) == pytest.approx(math.log(2), abs=1e-9)
    assert exact_epsilon([1.0, 0.0], [0.5, 0.5], delta=0.1) == math.inf


@pytest.mark.parametrize(("move", "square"), [((1,), 4.0), ((2, 1), 3.0), ((3, -1, 0), 2.0)])
def test_the_projected_law_has_the_whole_loss(move: tuple[int, ...], square: float) -> None:
    """Against the loss of the joint law, by enumeration: the two (ε, δ) curves are the same."""
    reach = 12
    grid = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * len(move), indexing="ij"), axis=-1)
    here = np.exp(-(grid**2).sum(axis=-1) / (2 * square))
    there = np.exp(-((grid - np.array(move)) ** 2).sum(axis=-1) / (2 * square))
    for delta in (0.05, 0.001):
        whole = exact_epsilon((here / here.sum()).ravel(), (there / there.sum()).ravel(), delta=delta)
        laws = [projected(move, Fraction(square), moved=moved) for moved in (False, True)]
        assert exact_epsilon(*laws, delta=delta) == pytest.approx(whole, rel=1e-6)


def test_the_bound_needs_both_halves_to_agree() -> None:
    same = np.zeros(1000)
    assert epsilon_lower_bound(same, same, delta=0.0, alpha=0.01) == 0.0
    other = np.ones(1000)
    assert epsilon_lower_bound(same, other, delta=0.0, alpha=0.01) > 4
    assert epsilon_lower_bound(same, other, delta=1.0, alpha=0.01) == 0.0


@pytest.mark.long
@pytest.mark.alpha(1e-9)
def test_the_bound_by_the_curve_errs_no_more_often_than_it_says() -> None:
    """Two Gaussians 1 apart: the bound exceeds their ε in at most α of the runs: 150 at α = 0.1, by the binomial law.
    With 0.7 of the noise, 10,000 draws are 19 sd from passing."""
    true, normal = gaussian_epsilon(1.0, 1e-5), np.random.default_rng().normal
    found = [gaussian_lower_bound(normal(0, 1, 1000), normal(1, 1, 1000), delta=1e-5, alpha=0.1) for _ in range(150)]
    assert sum(bound > true for bound in found) <= binom.isf(1e-9, 150, 0.1)
    assert np.mean(found) > 0.6 * true  # and it is not blunt
    less = normal(0, 0.7, 20_000), normal(1, 0.7, 20_000)
    assert gaussian_lower_bound(*less, delta=1e-5, alpha=0.1) > true


@pytest.mark.long
def test_the_command_prints_claimed_and_proven() -> None:
    answer = CliRunner().invoke(app, ["audit", "--samples", "6000", "--only", "Laplace", "--json"])
    verdicts = json.loads(answer.stdout)
    chosen = [attack.name for attack in (*ATTACKS, *TWINS) if "Laplace" in attack.name]
    assert [verdict["name"] for verdict in verdicts] == chosen
    assert answer.exit_code in (0, 4)  # with few samples a twin may get away; the table is what is tested
    doubt = sum(1 - verdict["confidence"] for verdict in verdicts)
    assert 0 < doubt <= 0.01 * (1 + 1e-9)  # all verdicts together hold with the confidence asked for
    assert {verdict["twin"] for verdict in verdicts} == {True, False}
    shown = CliRunner().invoke(app, ["audit", "--samples", "6000", "--only", "randomised response"], env=WIDE)
    assert "randomised response" in shown.stdout
    assert "nothing found" in shown.stdout
    assert "stands" not in shown.stdout  # a word that could be read as a proof
    assert CliRunner().invoke(app, ["audit", "--only", "no such attack"]).exit_code == 2
    assert len(list(audit(ATTACKS[1:3], samples=2_000))) == 2
