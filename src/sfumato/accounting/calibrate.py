"""Calibration: any one of σ, ε, the number of steps and the sampling rate from the other three, on the safe side.

A search proposes; what is returned was itself accounted and found to be within (ε, δ), and rounded towards more noise,
fewer steps or a smaller sample.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Protocol

from sfumato.accounting.gaussian import gaussian_sigma
from sfumato.core import enclosures
from sfumato.core.events import Composed, Gaussian, PoissonSampled, PrivacyEvent, Repeated
from sfumato.core.exact import Exact, natural, positive, probability
from sfumato.errors import InvalidInput, Refused

__all__ = ["calibrate_noise", "calibrate_rate", "calibrate_sigma", "calibrate_steps", "plan"]

MOST_STEPS = 10**9
COARSE = 1e-3
FINE = 5e-5


class _Spent(Protocol):
    def __call__(self, size: float, precision: float) -> float: ...


def plan(*, sigma: Exact, steps: int, sampling: Exact = 1) -> PrivacyEvent:
    """``steps`` sums of unit sensitivity, each over a Poisson sample at rate ``sampling``, with Gaussian noise σ.

    >>> plan(sigma=2, steps=1).times
    1
    """
    noise = positive(sigma, "sigma")
    step: PrivacyEvent = Gaussian(l2_squared=Fraction(1), sigma_squared=noise**2)
    rate = positive(probability(sampling, "sampling"), "sampling")
    if rate < 1:
        step = PoissonSampled(rate=rate, event=step)
    return Repeated(event=step, times=natural(steps, "steps"))


def calibrate_sigma(
    *, epsilon: Exact, delta: Exact, steps: int = 1, sampling: Exact = 1, beside: PrivacyEvent | None = None
) -> Fraction:
    """The least σ, to about four digits and rounded up, at which all steps together are (ε, δ)-DP.

    With ``beside`` that event happens to the same units as well, and all of it together is within (ε, δ).

    Guarantee: the plan with this σ was accounted (PLD, upper bound) and is within (ε, δ), for unit l2 sensitivity under
    add/remove. Of samples, noise whose loss in one step is beyond 512 is not accounted for: there σ is the least that
    is. Assumes: continuous Gaussian noise; Poisson sampling of the protected unit; steps fixed beforehand.

    >>> 3.81 < calibrate_sigma(epsilon=1, delta=1e-5, steps=10_000, sampling=0.01) < 3.816
    True
    """
    asked, room = positive(epsilon, "epsilon"), _room(delta)
    count, rate = natural(steps, "steps"), positive(probability(sampling, "sampling"), "sampling")
    if rate == 1 and beside is None:
        return gaussian_sigma(l2=enclosures.sqrt(Fraction(count)).high, epsilon=asked, delta=room)

    def made(size: Fraction) -> PrivacyEvent:
        run = plan(sigma=size, steps=count, sampling=rate)
        return run if beside is None else Composed(events=(run, beside))

    return calibrate_noise(made, epsilon=asked, delta=room, start=float(rate) * math.sqrt(count))


def calibrate_noise(
    made: Callable[[Fraction], PrivacyEvent], *, epsilon: Exact, delta: Exact, start: float
) -> Fraction:
    """The least σ, to about four digits and rounded up, at which the event that ``made`` makes of it is (ε, δ)-DP.

    ``start`` is about how far a unit moves all that is released, for a first guess.

    Guarantee: the event with this σ was accounted (PLD, upper bound) and is within (ε, δ). Assumes: more noise loses no
    more, or the search finds none that it would return.

    >>> 3.73 < calibrate_noise(lambda sigma: plan(sigma=sigma, steps=1), epsilon=1, delta=1e-5, start=1.0) < 3.732
    True
    """
    asked, room = positive(epsilon, "epsilon"), _room(delta)

    def spent(size: float, precision: float) -> float:
        return _epsilon(made(_shortened(size, up=True)), room, precision)

    guess = max(0.3, start * math.sqrt(2 * math.log(1.25 / float(room))) / float(asked))
    return _shortened(_solve(spent, guess, float(asked)), up=True)


def calibrate_rate(*, sigma: Exact, epsilon: Exact, delta: Exact, steps: int) -> Fraction:
    """The largest sampling rate, to about four digits and rounded down, at which all steps together are (ε, δ)-DP.

    >>> 0.0099 < calibrate_rate(sigma=3.82, epsilon=1, delta=1e-5, steps=10_000) < 0.0101
    True
    """
    asked, room, noise = positive(epsilon, "epsilon"), _room(delta), positive(sigma, "sigma")
    if _epsilon(plan(sigma=noise, steps=steps), room, FINE) <= asked:
        return Fraction(1)

    def spent(size: float, precision: float) -> float:
        rate = _shortened(1 / size, up=False)
        return _epsilon(plan(sigma=noise, steps=steps, sampling=rate), room, precision)

    start = max(1.001, math.sqrt(2 * steps * math.log(1.25 / float(room))) / (float(noise) * float(asked)))
    return _shortened(1 / _solve(spent, start, float(asked), least=1.0), up=False)


def calibrate_steps(*, sigma: Exact, epsilon: Exact, delta: Exact, sampling: Exact = 1) -> int:
    """The largest number of steps that are together (ε, δ)-DP.

    >>> calibrate_steps(sigma=50, epsilon=10, delta=1e-5)
    10004
    """
    asked, room, noise = positive(epsilon, "epsilon"), _room(delta), positive(sigma, "sigma")

    def fits(steps: int) -> bool:
        return _epsilon(plan(sigma=noise, steps=steps, sampling=sampling), room, FINE) <= asked

    if not fits(1):
        raise Refused(f"a single step with σ = {noise} already exceeds ε = {asked}; no number was given. Raise σ.")
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
        if high > MOST_STEPS:
            return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _solve(spent: _Spent, start: float, goal: float, *, least: float = 0.0) -> float:
    """Find x with spent(x) ≤ goal, close to the least; ``spent`` falls with x, nearly like a power."""
    x = start
    for precision, close in ((COARSE, 1e-2), (FINE, 1e-4)):
        x = _power_search(partial(spent, precision=precision), x, goal, close, least)
    return x


def _power_search(spent: Callable[[float], float], start: float, goal: float, close: float, least: float) -> float:
    """Secant steps in logarithms inside a bracket; the upper end always fits and is what is returned.

    Where ``spent`` is infinite nothing is known but that x is too small, and the bracket is halved.
    """
    low, high = least, math.inf
    low_value = high_value = math.nan
    x, slope = start, -1.0
    for _ in range(60):
        value = spent(x)
        if value <= goal:
            high, high_value = x, value
            if value >= goal * (1 - close) or high - low <= close * 1e-1 * high:
                return high
        else:
            low, low_value = x, value if math.isfinite(value) else math.nan
        if not math.isnan(low_value) and not math.isnan(high_value):
            slope = math.log(low_value / max(high_value, 1e-12)) / math.log(low / high)
        anchor, known = (high, high_value) if value <= goal else (low, low_value)
        aim = goal * (1 - close / 3)
        x = math.nan
        if not math.isnan(known):
            x = anchor * math.exp(max(-3.0, min(3.0, math.log(aim / max(known, 1e-12)) / min(slope, -0.05))))
        if not low < x < high:
            x = 2 * low if math.isinf(high) else (low + high) / 2
    if math.isinf(high):
        raise Refused("no value within reach meets the target; nothing was calibrated. Allow a larger ε or δ.")
    return high


def _epsilon(event: PrivacyEvent, delta: Fraction, precision: float) -> float:
    """The ε of an event, rounded up; infinite where losses lie beyond what is accounted for."""
    from sfumato.accounting import pld  # needs NumPy and SciPy

    known = pld.known_epsilon(event, delta=delta, precision=precision)
    return math.inf if known is None else float(known) * (1 + 2.0**-50)


def _shortened(value: float, *, up: bool) -> Fraction:
    """Six significant digits."""
    exponent = math.floor(math.log10(value)) - 5
    unit = Fraction(10) ** exponent
    exact = Fraction(value) / unit
    return (math.ceil(exact) if up else math.floor(exact)) * unit


def _room(delta: Exact) -> Fraction:
    room = positive(probability(delta, "delta"), "delta")
    if room == 1:
        raise InvalidInput("delta = 1 guarantees nothing; nothing was calibrated. Give a delta below 1.")
    return room
