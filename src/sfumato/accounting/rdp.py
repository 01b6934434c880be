"""Rényi DP: a curve of losses by order, which adds at each order, and a tight conversion to (ε, δ) in the end.

Sampled events are treated at whole orders; between them (α − 1)·D_α is convex in α, so the straight line through the
neighbours is an upper bound. Floats are moved outward before they become rationals. NumPy is needed for samples alone,
so that a certificate can be checked without it. Proof: docs/proofs/rdp.md
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from sfumato.accounting.composition import loss_of
from sfumato.accounting.elementary import ELEMENTARY
from sfumato.accounting.event_counts import event_counts
from sfumato.accounting.tuned import spread, tuned_loss
from sfumato.core.events import (
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampled,
    Gaussian,
    PoissonSampled,
    PrivacyEvent,
    RandomizedResponse,
    Skellam,
    Stated,
    Tuned,
)
from sfumato.core.exact import Exact, non_negative, probability
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
from sfumato.errors import InvalidInput, Refused, Unsupported

if TYPE_CHECKING:
    from sfumato.accounting.floats import Array

__all__ = ["ORDERS", "compose", "delta", "epsilon", "loss_at"]

ORDERS = (
    *(Fraction(order, 20) for order in range(21, 40)),
    *(Fraction(order, 10) for order in range(20, 110)),
    *(Fraction(order) for order in (*range(11, 64), *range(64, 257, 8), 320, 384, 448, 512, 640, 768, 896, 1024)),
)


def compose(events: PrivacyEvent | Iterable[PrivacyEvent], *, orders: Iterable[Exact] = ORDERS) -> tuple[RDP, Fraction]:
    """The curve of all events together, and the δ that events brought with them.

    Guarantee: at each order the losses add, also when each event was chosen after seeing the outputs before it
    (Mironov 2017, Proposition 1), except with probability δ.

    >>> curve, own = compose(Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(4)), orders=[2, 3])
    >>> curve.curve[1], own
    ((Fraction(3, 1), Fraction(3, 8)), Fraction(0, 1))
    """
    wanted = [Fraction(order) for order in orders]
    if any(order <= 1 for order in wanted):
        raise InvalidInput("Rényi orders lie above 1; nothing was accounted.")
    parts = [(*_without_delta(event), times) for event, times in event_counts(events).items()]
    own = sum((times * more for _, more, times in parts), Fraction(0))

    def total(order: Fraction) -> Fraction:
        return sum((times * loss_at(kept, order) for kept, _, times in parts), Fraction(0))

    return RDP(curve=tuple((order, total(order)) for order in wanted)), min(Fraction(1), own)


def epsilon(
    events: PrivacyEvent | Iterable[PrivacyEvent], *, delta: Exact, orders: Iterable[Exact] = ORDERS
) -> Fraction:
    """The best order's ε at a total δ: what the events' own δ leave pays for the conversion.

    >>> step = PoissonSampled(rate=Fraction(1, 100), event=Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(1)))
    >>> float(round(epsilon([step] * 1000, delta=1e-5, orders=range(2, 257)), 3))
    2.108
    """
    asked = probability(delta, "delta")
    curve, own = compose(events, orders=orders)
    if asked <= own:
        raise Refused(f"no ε goes with δ = {asked}: the events' own δ add up to {own}. Ask for more than that.")
    return curve.epsilon_at(asked - own)


def delta(
    events: PrivacyEvent | Iterable[PrivacyEvent], *, epsilon: Exact, orders: Iterable[Exact] = ORDERS
) -> Fraction:
    """The best order's δ at ε, the events' own included."""
    curve, own = compose(events, orders=orders)
    return min(Fraction(1), own + curve.delta_at(non_negative(epsilon, "epsilon")))


def _without_delta(event: PrivacyEvent) -> tuple[PrivacyEvent, Fraction]:
    """An event that fails with probability δ is a pure one otherwise; inside a sample it is amplified first."""
    inner = event.event if isinstance(event, PoissonSampled | FixedSizeSampled) else event
    if isinstance(inner, Stated) and isinstance(inner.guarantee, Approximate):
        pure, own = loss_of(event)
        return Stated(guarantee=Pure(epsilon=pure)), own
    return event, Fraction(0)


@lru_cache(maxsize=1 << 16)
def loss_at(event: PrivacyEvent, order: Fraction) -> Fraction:
    """An upper bound of the Rényi divergence of this order between neighbours, for one event.

    >>> loss_at(DiscreteGaussian(l2_squared=Fraction(1), sigma_squared=Fraction(2)), Fraction(4))
    Fraction(1, 1)
    """
    match event:
        case Gaussian() | DiscreteGaussian():
            return order * event.l2_squared / (2 * event.sigma_squared)
        case Skellam():
            return _skellam(event, order)
        case Stated(guarantee=GDP(mu=mu)):
            return order * mu**2 / 2
        case Stated(guarantee=ZCDP(rho=rho)):
            return order * rho
        case BoundedRange(epsilon=epsilon):
            return min(order * epsilon**2 / 8, _response(epsilon, 2, order))
        case RandomizedResponse(epsilon=epsilon, categories=categories):
            return _response(epsilon, categories, order)
        case Stated(guarantee=Pure(epsilon=epsilon)):
            return _response(epsilon, 2, order)
        case DiscreteLaplace(l1=l1, scale=scale):
            return min(l1 / scale, _laplace(math.floor(l1), scale, order))
        case Stated(guarantee=RDP(curve=curve)):
            return _stated(curve, order)
        case PoissonSampled() | FixedSizeSampled():
            return _sampled(event, order)
        case Tuned():
            return tuned_loss(_worst(event.events, order), _spread(event), event, order)
    raise Unsupported(f'{event.KIND} has no Rényi curve; nothing was accounted. Use method="pld".')


def _stated(curve: tuple[tuple[Fraction, Fraction], ...], order: Fraction) -> Fraction:
    """Divergence grows with the order, so that the next higher order that is stated bounds it."""
    above = [(known, loss) for known, loss in curve if known >= order]
    if not above:
        raise Unsupported(f"the stated curve ends below order {order}; nothing was accounted. Ask for lower orders.")
    return min(above)[1]


def _worst(runs: tuple[PrivacyEvent, ...], order: Fraction) -> Fraction:
    """What a run loses at an order that is one of several: the most that any does."""
    curves = [compose(run, orders=[order]) for run in runs]
    if any(own for _, own in curves):
        raise Unsupported("a run that brings a δ of its own has no bound for the best of many; nothing was accounted.")
    return max(curve.curve[0][1] for curve, _ in curves)


@lru_cache(maxsize=1 << 10)
def _spread(event: Tuned) -> Fraction:
    return spread(((order, _worst(event.events, order)) for order in ORDERS), event)


def _response(epsilon: Fraction, categories: int, order: Fraction) -> Fraction:
    """ln((e^(αε) + e^((1−α)ε) + k − 2)/(e^ε + k − 1))/(α − 1), and never above ε."""
    power, one = float(order), float(epsilon)
    most = (power - 1) * one
    total = 1 + math.exp(-power * one - most) + (categories - 2) * math.exp(-one - most)
    return min(epsilon, _raised(most, math.log(total), -math.log1p((categories - 1) * math.exp(-one))) / (order - 1))


def _laplace(shift: int, scale: Fraction, order: Fraction) -> Fraction:
    """Of the law with atoms (shift − 2j)/scale, a geometric sum."""
    if shift == 0:
        return Fraction(0)
    step, power = float(1 / scale), float(order)
    most, ratio = (power - 1) * shift * step, (2 * power - 1) * step
    middle = -math.expm1(-step) * math.exp(-ratio) * math.expm1(-ratio * (shift - 1)) / math.expm1(-ratio)
    total = 1 + middle + math.exp(-shift * step - 2 * most)
    return _raised(most, math.log(total), -math.log1p(math.exp(-step))) / (order - 1)


def _skellam(event: Skellam, order: Fraction) -> Fraction:
    """The theorem holds at whole orders; between them the chord of (α − 1)·D_α, which is convex and 0 at α = 1."""
    above = math.ceil(order)
    share = above - order
    return ((1 - share) * _whole_skellam(event, above) + share * _whole_skellam(event, above - 1)) / (order - 1)


def _whole_skellam(event: Skellam, order: int) -> Fraction:
    """(α − 1)·D_α at a whole order α: Agarwal, Kairouz and Liu 2021, Corollary 3.6. docs/proofs/skellam.md"""
    l1, square, variance = min(event.l1, event.l2_squared), event.l2_squared, event.variance
    more = min(((2 * order - 1) * square + 6 * l1) / (4 * variance**2), 3 * l1 / (2 * variance))
    return (order - 1) * (order * square / (2 * variance) + more)


def _sampled(event: PoissonSampled | FixedSizeSampled, order: Fraction) -> Fraction:
    """Between whole orders the chord of (α − 1)·D_α, which is convex and 0 at α = 1."""
    above = math.ceil(order)
    share = above - order
    return ((1 - share) * _whole(event, above) + (share and share * _whole(event, above - 1))) / (order - 1)


@lru_cache(maxsize=1 << 14)
def _whole(event: PoissonSampled | FixedSizeSampled, order: int) -> Fraction:
    """(α − 1)·D_α at a whole order α."""
    if order == 1:
        return Fraction(0)
    if isinstance(event, PoissonSampled):
        return _poisson(event, order)
    return _fixed_size(event, order)


def _poisson(event: PoissonSampled, order: int) -> Fraction:
    """ln Σ C(α, k) q^k (1 − q)^(α−k) e^((k−1)ε_k); where the two laws are not mirror images, tripled from k = 3 on."""
    import numpy as np

    if event.rate == 1:
        return (order - 1) * loss_at(event.event, Fraction(order))
    ks = np.arange(order + 1, dtype=np.float64)
    kept, left = ks * _log(event.rate), (order - ks) * _log(1 - event.rate)
    tripled = np.where(ks < 3, 0.0, 0.0 if _mirrored(event.event) else math.log(3))
    return _summed(_log_binomials(order), kept, left, _log_moments(event.event, order), tripled)


def _fixed_size(event: FixedSizeSampled, order: int) -> Fraction:
    """Wang, Balle and Kasiviswanathan 2019, Theorem 9, for replacing one unit."""
    import numpy as np

    ks, moments = np.arange(2, order + 1, dtype=np.float64), _log_moments(event.event, order)[2:]
    caps = np.minimum(math.log(2), ks * _log_expm1(_most(event.event)))
    caps[0] = min(caps[0], math.log(4) + _log_expm1(moments[0]) - moments[0])
    drawn = ks * _log(Fraction(event.size, event.population))
    return _summed(*(np.append(0.0, part) for part in (_log_binomials(order)[2:], drawn, moments, caps)))


def _log(share: Fraction) -> float:
    """ln p; a share that no float could hold is taken as 1e-300, which is outward."""
    return math.log(max(float(share), 1e-300))


def _log_expm1(value: float) -> float:
    """ln(e^x − 1)."""
    return value + math.log(-math.expm1(-value)) if value > 0 else -math.inf


def _log_moments(event: PrivacyEvent, order: int) -> "Array":
    """(k − 1)·ε_k for k = 0 … α: a bound on ln E_Q[(P/Q)^k], which is 0 for k = 0 and 1."""
    import numpy as np

    if isinstance(event, Skellam):
        return _skellam_moments(event, 1 << order.bit_length())[: order + 1]
    return np.array([0.0, 0.0, *((k - 1) * float(loss_at(event, Fraction(k))) for k in range(2, order + 1))])


@lru_cache(maxsize=1 << 8)
def _skellam_moments(event: Skellam, most: int) -> "Array":
    """The same for Skellam noise, for many orders at once: its curve has no end."""
    import numpy as np

    return np.array([0.0, 0.0, *(float(_whole_skellam(event, k)) for k in range(2, most + 1))])


def _most(event: PrivacyEvent) -> float:
    """The loss at order infinity, if the event is pure."""
    try:
        pure, own = loss_of(event)
    except Unsupported:
        return math.inf
    return float(pure) if own == 0 else math.inf


def _mirrored(event: PrivacyEvent) -> bool:
    """Whether the bounds are those of a pair of laws which some reflection exchanges."""
    match event:
        case Gaussian() | DiscreteGaussian() | DiscreteLaplace() | RandomizedResponse() | Skellam():
            return True
        case Stated(guarantee=Pure() | GDP()):
            return True
    return False


@lru_cache(maxsize=1 << 11)
def _log_binomials(order: int) -> "Array":
    """ln C(α, k) for k = 0 … α, each from the whole number itself."""
    import numpy as np

    row = [1]
    for k in range(order // 2):
        row.append(row[-1] * (order - k) // (k + 1))
    half = [math.log(number) for number in row]
    return np.array(half + half[::-1][1 - order % 2 :])


def _summed(*parts: "Array") -> Fraction:
    """ln Σ e^(the sum of the parts), raised by what all that went into it may be off, and never below 0."""
    import numpy as np

    terms = np.sum(parts, axis=0)
    largest = float(terms.max())
    found = _raised(largest, math.log(float(np.exp(terms - largest).sum())))
    sizes = np.sum(np.abs(parts), axis=0)[np.isfinite(terms)]
    return max(Fraction(0), found + Fraction(16 * ELEMENTARY * (float(sizes.max()) + len(terms))))


def _raised(*parts: float) -> Fraction:
    """The sum, raised by what its parts may be off: 16·ELEMENTARY of their sizes and as much of 1."""
    return Fraction(math.fsum(parts) + 16 * ELEMENTARY * (1 + math.fsum(map(abs, parts))))
