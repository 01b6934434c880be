"""What the library is compared with: mpmath at 80 digits, and finite mechanisms written out output by output.

Nothing here imports the package under test.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import prod

import mpmath

mp = mpmath.MPContext()
mp.dps = 80
NOISE = Fraction(1, 10**50)  # far above what 80 digits lose here, far below any excess that is tested

Number = Fraction | mpmath.mpf


def number(x: Fraction | int) -> mpmath.mpf:
    """A rational in mpmath's own numbers."""
    return mp.mpf(x.numerator) / x.denominator


def exactly(x: Number) -> Fraction:
    """What an mpmath number holds, to the last bit."""
    return x if isinstance(x, Fraction) else Fraction(*mpmath.libmp.to_rational(x._mpf_))


def excess(found: Fraction, truth: Number) -> Fraction:
    """How much of the truth was added by rounding; negative where the truth was undercut."""
    value = exactly(truth)
    return (found - value) / abs(value) if value else found


def rounded_up(found: Fraction, truth: Number, by: float) -> bool:
    """Whether ``found`` is not below the truth and exceeds it by at most this share of it."""
    return -NOISE <= excess(found, truth) <= Fraction(by)


def normal_cdf(x: mpmath.mpf) -> mpmath.mpf:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def gaussian_delta(mu: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """The hockey-stick divergence between N(μ, 1) and N(0, 1)."""
    m, e = number(mu), number(epsilon)
    return normal_cdf(m / 2 - e / m) - mp.exp(e) * normal_cdf(-m / 2 - e / m)


def renyi_delta(order: Fraction, loss: Fraction, epsilon: Fraction) -> mpmath.mpf:
    a, gap = number(order), number(loss - epsilon)
    return mp.exp((a - 1) * (gap + mp.log(1 - 1 / a))) / a


def renyi_epsilon(order: Fraction, loss: Fraction, delta: Fraction) -> mpmath.mpf:
    a = number(order)
    return number(loss) + mp.log(1 - 1 / a) - mp.log(number(delta) * a) / (a - 1)


# ------------------------------------------------------------------------------------------ finite mechanisms

Law = Sequence[Number]  # the probability of each output, in one order for all inputs


def hockey_stick(p: Law, q: Law, factor: Number) -> Number:
    """Σ max(0, p − factor·q): the least δ that goes with factor = e^ε in this direction."""
    return sum((max(a - factor * b, 0 * a) for a, b in zip(p, q, strict=True)), 0 * p[0])


def least_delta(p: Law, q: Law, factor: Number) -> Number:
    """The least δ for this pair of inputs, whichever comes first."""
    return max(hockey_stick(p, q, factor), hockey_stick(q, p, factor))


def randomised_response(odds: Number) -> tuple[Law, Law]:
    """The truth with probability odds/(1 + odds), else the opposite: one law for each of the two inputs."""
    keep = odds / (1 + odds)
    return (keep, 1 - keep), (1 - keep, keep)


def side_by_side(*laws: Law) -> Law:
    """The law of independent outputs together."""
    return tuple(prod(each, start=each[0] ** 0) for each in product(*laws))


def four_points(odds: Number, delta: Number) -> tuple[Law, Law]:
    """The worst (ε, δ) mechanism: with probability δ it tells, else it is randomised response."""
    keep, turn = (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds)
    nothing = 0 * delta
    return (delta, keep, turn, nothing), (nothing, turn, keep, delta)


def least_missed(p: Law, q: Law, false_alarms: Fraction) -> Number:
    """The trade-off at a rate of false alarms: the best test of q against p, by Neyman and Pearson."""
    order = sorted(range(len(p)), key=lambda x: p[x] / q[x] if q[x] else mp.inf)
    left, missed = number(false_alarms), mp.mpf(1)
    for x in order:
        share = min(mp.mpf(1), left / p[x]) if p[x] else mp.mpf(1)
        left, missed = left - share * p[x], missed - share * q[x]
    return missed
