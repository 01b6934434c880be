"""Smoothing: less error than the released steps, and intervals that hold for what they say. α = 1e-9 for each count."""

import numpy as np
import pytest

from sfumato.errors import InvalidInput, Unsupported
from sfumato.mechanisms.matrix.steps.pattern import ADDED, Pattern
from sfumato.streams.choice import STRATEGIES, strategy_for
from sfumato.streams.post.measurements import Measured, design, variance_of
from sfumato.streams.post.smoothing import STRENGTHS, smoothed
from sfumato.streams.strategy_encoder import encoder_of
from tests.streams.released import inside, often_enough, released

GROUPS, STEPS = 200, 40
CURVE = np.rint(60 + 30 * np.sin(np.arange(STEPS) / 6)).astype(np.int64)
MADE = np.repeat(CURVE[:, None], GROUPS, axis=1)
ONE = Pattern(times=1, separation=1, change=ADDED)


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name != "doubling"])
@pytest.mark.parametrize("pure", [True, False])
def test_the_model_is_what_the_encoders_measure(name: str, pure: bool) -> None:
    strategy = strategy_for(name, horizon=11, pattern=ONE, largest=200, pure=pure)
    x = np.arange(100, 111, dtype=np.int64)
    exact = encoder_of(strategy).measure(x) / 2.0**strategy.bits
    assert design(strategy, 11) @ x == pytest.approx(exact, abs=2.0 ** (6 - strategy.bits) if strategy.bits else 1e-6)


@pytest.mark.alpha(1e-9)
def test_the_variance_is_that_of_the_noise() -> None:
    from sfumato.noise import SystemWords

    for delta in (0, 1e-7):
        mechanism = Measured.of(released(CURVE, delta=delta)).mechanism
        drawn = mechanism.drawn(150_000, SystemWords()).astype(float)
        error = 6.5 * np.sqrt(5 / len(drawn))  # a Laplace law has the kurtosis 6: Var(z²) = 5·Var(z)²
        assert abs((drawn**2).mean() / variance_of(mechanism) - 1) < error
        assert abs((drawn**2).mean() / (variance_of(mechanism) / 1.1) - 1) > error  # a twin that is off by a tenth


@pytest.mark.few(1)
@pytest.mark.parametrize("delta", [1e-7, 0])
@pytest.mark.alpha(1e-9)
def test_the_interval_covers_the_smoothed_exact_series(delta: float) -> None:
    """At one step, over independent groups; a twin that leaves out most of the noise fails."""
    release = released(MADE, delta=delta)
    smooth, step = smoothed(release, strength=64.0), 17
    weights = smooth.parts[0].weights[step * GROUPS]
    target = weights @ Measured.of(release).matrix @ CURVE
    ends = smooth.interval()[step * GROUPS : (step + 1) * GROUPS]
    assert often_enough(inside(np.full(GROUPS, target), ends))
    assert not often_enough(inside(np.full(GROUPS, target), ends, shrink=0.2))


def test_a_strength_that_was_chosen_widens_the_interval() -> None:
    release = released(CURVE)
    chosen = smoothed(release)
    fixed = smoothed(release, strength=chosen.strength)
    assert chosen.values == fixed.values
    assert chosen.tries == len(STRENGTHS)
    (low, high), (near, far) = chosen.interval()[5], fixed.interval()[5]
    assert low < near < far < high


def test_the_interval_does_not_cover_the_bias_and_says_so() -> None:
    """A series that jumps is moved by strong smoothing further than the noise explains."""
    jump = np.where(np.arange(STEPS) < 20, 0, 2000)
    smooth = smoothed(released(jump), strength=4.0**13)
    assert not inside(jump, smooth.interval()).all()
    for language, words in (("en", "that bias is in no margin"), ("zh", "这一偏差不在任何误差范围之内")):
        assert words in smooth.explain(language)


@pytest.mark.alpha(1e-9)
def test_the_model_interval_covers_where_the_model_holds() -> None:
    """Random walks with the step that the strength supposes; over groups, at one step. A twin without the noise of the
    release (the spread of the walk's own step alone, at a strength 100 times too large) fails."""
    walk = np.random.default_rng().normal(size=(STEPS, GROUPS)) * 40
    exact = np.rint(20_000 + np.cumsum(walk, axis=0)).astype(np.int64)
    release = released(exact)
    strength = Measured.of(release).variance / 40.0**2
    step = 21
    for times, holds in ((1, True), (100, False)):
        ends = smoothed(release, order=1, strength=times * strength).model_interval()
        assert often_enough(inside(exact[step], ends[step * GROUPS : (step + 1) * GROUPS])) is holds


@pytest.mark.few(1)
@pytest.mark.parametrize("strategy", ["best", "tree", "square root"])
def test_smoothing_has_less_error_than_the_released_steps(strategy: str) -> None:
    release = released(MADE, strategy=strategy, delta=0 if strategy == "tree" else 1e-7)
    raw = np.diff(np.array(release["total"].values).reshape(STEPS, GROUPS), axis=0, prepend=0)
    smooth = np.array(smoothed(release).values).reshape(STEPS, GROUPS)
    assert ((smooth - MADE) ** 2).mean() < ((raw - MADE) ** 2).mean() / 4


@pytest.mark.alpha(1e-12)
def test_the_estimate_of_the_risk_is_unbiased() -> None:
    """What the choice of a strength rests on, over groups, beside the true squared error. The limit is wide: it
    varies by a tenth of what the limit takes for a standard error, and the twin is 15 of these off."""
    from sfumato.streams.post.smoothing import _Fit

    measured = Measured.of(released(MADE))
    fit, lengths = _Fit.of(measured, 2), (_Fit.of(measured, 2).back ** 2).sum()
    for strength in (1.0, 256.0):
        error = ((fit.map(strength) @ measured.y - MADE) ** 2).sum(axis=0)
        guessed = fit.risk(strength) / GROUPS - measured.variance * lengths
        spread = 4.75 * 2 * np.sqrt(2 * (measured.variance * (fit.back**2).sum(axis=0)) ** 2).sum() / np.sqrt(GROUPS)
        assert abs(guessed - error.mean()) < spread
        assert abs(guessed + 3 * measured.variance * lengths - error.mean()) > spread  # a twin that forgets the noise


def test_what_cannot_be_smoothed_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too few"):
        smoothed(released([3, 4]))
    with pytest.raises(InvalidInput, match="above 0"):
        smoothed(released(CURVE), strength=0)
    with pytest.raises(InvalidInput, match="post-processing takes releases"):
        smoothed(CURVE)  # type: ignore[arg-type]
    import sfumato as sf

    vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=1), name="made")
    running = vault.stream(name="made", version="1", horizon=9).running_total(keep=False).open(epsilon=1)
    running.add(3)
    with pytest.raises(Unsupported, match="holds no totals"):
        smoothed(running.close())
