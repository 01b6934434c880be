"""The sparse vector technique: its exact worst loss, its broken cousins, and its silence after the last alarm."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato import errors
from sfumato.core.guarantees import Pure
from sfumato.core.sensitivity import Sensitivity
from sfumato.mechanisms import SparseVector
from sfumato.noise import SystemWords, sample_discrete_laplace
from tests.noise.replayed import ReplayedWordsForTests, fresh

pytestmark = pytest.mark.kills

HALF = Fraction(1, 2)
FAR = 400  # the sums run over threshold noise from −FAR to FAR
MANY = 10**7  # silent queries before each alarm push the loss to its limit


def below(values: np.ndarray, scale: float) -> np.ndarray:
    """P(z ≤ value) of the discrete Laplace law."""
    q = math.exp(-1 / scale)
    sizes = np.abs(values)
    return np.where(values >= 0, 1 - q ** (sizes + 1.0) / (1 + q), q**sizes / (1 + q))


def log_chance(run: SparseVector, silent: int, loud: int, alarms: int, threshold: int, *, query_scale: float) -> float:
    """ln P of ``MANY`` silent queries without alarm and then a loud one with, ``alarms`` times over."""
    noise = np.arange(-FAR, FAR + 1)
    scale = float(run.threshold_scale)
    log_noise = -np.abs(noise) / scale + math.log(math.tanh(1 / (2 * scale)))
    level = threshold + noise
    with np.errstate(divide="ignore"):
        log_silent = MANY * np.log(below(level - silent - 1, query_scale))
        log_loud = np.log1p(-below(level - loud - 1, query_scale))
    return float(np.logaddexp.reduce(log_noise + alarms * (log_silent + log_loud)))


def worst_loss(run: SparseVector, alarms: int, *, query_scale: float | None = None) -> float:
    """The largest |loss| over neighbours that move each query by at most one, for this family of outputs."""
    scale = float(run.query_scale) if query_scale is None else query_scale
    moves = ((0, 1), (1, 0)) if not run.monotone else ((0, 0), (1, 1), (1, 0), (0, 1))
    worst = 0.0
    for threshold in (0, 40, 120):
        for (a, b), (c, d) in [(one, two) for one in moves for two in moves]:
            if run.monotone and not (c >= a and d >= b):
                continue
            here = log_chance(run, a, b, alarms, threshold, query_scale=scale)
            there = log_chance(run, c, d, alarms, threshold, query_scale=scale)
            if math.isfinite(here) and math.isfinite(there):
                worst = max(worst, abs(here - there))
    return worst


def vector(alarms: int, *, monotone: bool) -> SparseVector:
    return SparseVector(sensitivity=1, alarms=alarms, first=HALF, each=HALF, monotone=monotone)


@pytest.mark.claim("S4-14")
@pytest.mark.parametrize(("alarms", "bound"), [(1, 1.0), (2, 1.5)])
def test_the_bound_is_attained_and_never_passed(alarms: int, bound: float) -> None:
    for monotone in (False, True):
        run = vector(alarms, monotone=monotone)
        assert run.event.guarantee == Pure(epsilon=Fraction(bound))
        loss = worst_loss(run, alarms)
        assert loss <= bound + 1e-6
        assert loss == pytest.approx(bound, abs=0.01)


@pytest.mark.claim("S4-14")
@pytest.mark.parametrize(("alarms", "waste", "violation"), [(1, 0.75, 1.5), (2, 1.0, 2.5)])
def test_the_wrong_scale_for_the_kind_of_query(alarms: int, waste: float, violation: float) -> None:
    assert worst_loss(vector(alarms, monotone=True), alarms, query_scale=4.0) == pytest.approx(waste, abs=0.01)
    assert worst_loss(vector(alarms, monotone=False), alarms, query_scale=2.0) == pytest.approx(violation, abs=0.01)


@pytest.mark.claim("S4-14")
def test_without_stopping_the_loss_grows_with_every_alarm() -> None:
    run = vector(1, monotone=False)
    assert worst_loss(run, 16) > 8 - 0.01
    assert worst_loss(run, 16) > 5 * worst_loss(run, 1)


@pytest.mark.claim("S4-14", "S4-15")
def test_after_the_last_alarm_every_call_is_the_same_refusal() -> None:
    watch = SparseVector.calibrated(sensitivity=1, alarms=2, epsilon=1).watch(0)
    readings = [watch.check(10**9), watch.check(-(10**9)), watch.check(10**9)]
    assert [reading.alarm for reading in readings] == [True, False, True]
    assert readings[1].gap is None
    assert readings[0].gap is not None
    assert readings[0].gap > 10**8
    said = set()
    for value in (10**9, -(10**9), 0):
        with pytest.raises(errors.Refused) as refusal:
            watch.check(value)
        said.add(str(refusal.value))
    assert len(said) == 1


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("alarms", [1, 3, 50])
def test_the_split_is_exact_and_near_its_optimum(alarms: int, monotone: bool) -> None:
    run = SparseVector.calibrated(sensitivity=2, alarms=alarms, epsilon="7/10", monotone=monotone)
    assert run.first + alarms * run.each == Fraction(7, 10)
    assert run.event.guarantee == Pure(epsilon=Fraction(7, 10))
    assert run.loss(6).guarantee == Pure(epsilon=Fraction(21, 10))
    assert run.loss(Sensitivity.of(linf=6)) == run.loss(6)
    with pytest.raises(errors.WrongNorm, match="linf bound is needed"):
        run.loss(Sensitivity.of(l1=6))
    ratio = float(alarms * run.each / run.first)
    assert ratio == pytest.approx((alarms if monotone else 2 * alarms) ** (2 / 3), rel=0.06)
    assert run.threshold_scale == 2 / run.first
    assert run.query_scale == (2 if monotone else 4) / run.each


def test_what_is_no_whole_number_is_refused() -> None:
    run = SparseVector.calibrated(sensitivity=1, alarms=1, epsilon=1)
    with pytest.raises(errors.InvalidInput, match="threshold"):
        run.watch(0.5)  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidInput, match="value"):
        run.watch(0).check(True)


@pytest.mark.parametrize("monotone", [False, True])
def test_a_watch_draws_the_noise_of_its_scales_from_the_words_that_it_is_given(monotone: bool) -> None:
    """One number for the threshold, then one for each query, of the exact fast samplers: replayed and done by hand."""
    run = SparseVector.calibrated(sensitivity=3, alarms=50, epsilon=1, monotone=monotone)
    words = fresh(1000)
    by_hand, source = ReplayedWordsForTests(words), ReplayedWordsForTests(words)
    level = 7 + int(sample_discrete_laplace(run.threshold_scale, 1, by_hand)[0])
    watch = run.watch(7, words=source)
    for value in (7, 1000, -1000, 0, 14, 10**15, 7):
        gap = value + int(sample_discrete_laplace(run.query_scale, 1, by_hand)[0]) - level
        reading = watch.check(value)
        assert (reading.alarm, reading.gap) == (gap >= 0, gap if gap >= 0 else None)
    assert source.used == by_hand.used > 0


def test_a_gap_of_nothing_is_an_alarm() -> None:
    """Ties on the lattice are alarms: with next to no noise, a value at the threshold has gap 0, one below has none."""
    run = SparseVector(sensitivity=1, alarms=2, first=Fraction(1000), each=Fraction(1000), monotone=True)
    watch = run.watch(5)  # noise other than 0 has probability below 2^-1400
    assert (watch.check(5).gap, watch.check(4).alarm, watch.check(6).gap) == (0, False, 1)


@pytest.mark.alpha(1e-100)
def test_numbers_beyond_64_bits_neither_wrap_nor_fail() -> None:
    run = SparseVector(sensitivity=1, alarms=9, first=Fraction(1000), each=Fraction(1000), monotone=True)
    for far in (2**60, 2**61, 2**63 - 1, 2**63, 2**64, 2**200):
        watch = run.watch(far)
        assert (watch.check(far).gap, watch.check(far - 1).alarm, watch.check(2**201).gap) == (0, False, 2**201 - far)
        assert (run.watch(-far).check(far).gap, run.watch(far).check(-far).alarm) == (2 * far, False)
    wide = SparseVector(sensitivity=2**70, alarms=1, first=Fraction(1), each=Fraction(1), monotone=False)
    reading = wide.watch(0).check(2**80)  # fails by chance with probability below e^-300
    assert reading.alarm
    assert 2**79 < reading.gap < 2**81


def test_noisy_numbers_stay_in_arrays() -> None:
    """Python compares small whole numbers faster than large ones; an array of 64-bit numbers takes the same steps."""
    watch = SparseVector.calibrated(sensitivity=1, alarms=1, epsilon=1).watch(0, words=SystemWords())
    assert isinstance(watch._level, np.ndarray)
    assert watch._level.dtype == np.int64
    assert watch._noisy(3, Fraction(2)).dtype == np.int64
