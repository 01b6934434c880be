"""The sparse vector technique: its exact worst loss, its broken cousins, and its silence after the last alarm."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato import errors
from sfumato.core.guarantees import Pure
from sfumato.mechanisms import SparseVector

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


@pytest.mark.claim("S4-15")
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
