"""Rényi DP: a curve of losses by order, which adds at each order, and a tight conversion to (ε, δ) in the end.

Sampled events are treated at whole orders; between them (α − 1)·D_α is convex in α, so the straight line through the
neighbours is an upper bound. Floats are moved outward before they become rationals. Proof: docs/proofs/rdp.md
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from sfumato.accounting.basic import loss_of
from sfumato.accounting.counted import counted
from sfumato.core.events import (
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampled,
    Gaussian,
    PoissonSampled,
    PrivacyEvent,
    RandomizedResponse,
    Stated,
)
from sfumato.core.exact import Exact, non_negative, probability
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
from sfumato.errors import InvalidInput, Refused, Unsupported

__all__ = ["ORDERS", "compose", "delta", "epsilon", "loss_at"]

ORDERS = (
    *(Fraction(order, 20) for order in range(21, 40)),
    *(Fraction(order, 10) for order in range(20, 110)),
    *(Fraction(order) for order in (*range(11, 64), *range(64, 257, 8), 320, 384, 448, 512, 640, 768, 896, 1024)),
)

Curve = Callable[[int], float]


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
    totals, own = [Fraction(0)] * len(wanted), Fraction(0)
    for event, times in counted(events).items():
        kept, more = _without_delta(event)
        own += times * more
        totals = [total + times * loss_at(kept, order) for total, order in zip(totals, wanted, strict=True)]
    return RDP(curve=tuple(zip(wanted, totals, strict=True))), min(Fraction(1), own)


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
    raise Unsupported(f'{event.KIND} has no Rényi curve; nothing was accounted. Use method="pld".')


def _stated(curve: tuple[tuple[Fraction, Fraction], ...], order: Fraction) -> Fraction:
    """Divergence grows with the order, so that the next higher order that is stated bounds it."""
    above = [(known, loss) for known, loss in curve if known >= order]
    if not above:
        raise Unsupported(f"the stated curve ends below order {order}; nothing was accounted. Ask for lower orders.")
    return min(above)[1]


def _response(epsilon: Fraction, categories: int, order: Fraction) -> Fraction:
    """ln((e^(αε) + e^((1−α)ε) + k − 2)/(e^ε + k − 1))/(α − 1), and never above ε."""
    power, one = float(order), float(epsilon)
    terms = [(power - 1) * one, (1 - power) * one - one]
    weights = [1.0, 1.0, (categories - 2) * math.exp(-one)]
    largest = max(*terms, 0.0)
    total = math.fsum(w * math.exp(t - largest) for w, t in zip(weights, [*terms, 0.0], strict=True))
    value = largest + math.log(total) - math.log1p((categories - 1) * math.exp(-one))
    return min(epsilon, _outward(value, largest + abs(power * one)) / (order - 1))


def _laplace(shift: int, scale: Fraction, order: Fraction) -> Fraction:
    """Of the law with atoms (shift − 2j)/scale, a geometric sum."""
    if shift == 0:
        return Fraction(0)
    step, power = float(1 / scale), float(order)
    highest, ratio = (power - 1) * shift * step, (2 * power - 1) * step
    middle = -math.expm1(-step) * math.exp(-ratio) * math.expm1(-ratio * (shift - 1)) / math.expm1(-ratio)
    total = 1 + middle + math.exp(-shift * step - 2 * highest)
    value = highest + math.log(total) - math.log1p(math.exp(-step))
    return _outward(value, highest + 1) / (order - 1)


def _sampled(event: PoissonSampled | FixedSizeSampled, order: Fraction) -> Fraction:
    whole = math.ceil(order)
    upper = _whole(event)(whole)
    if whole == order:
        bound = upper
    else:
        lower = _whole(event)(whole - 1) if whole > 2 else Fraction(0)
        share = order - (whole - 1)
        bound = lower + share * (upper - lower)
    return bound / (order - 1)


def _whole(event: PoissonSampled | FixedSizeSampled) -> Callable[[int], Fraction]:
    """(α − 1)·D_α at whole orders α."""
    return lambda order: _whole_at(event, order)


@lru_cache(maxsize=1 << 14)
def _whole_at(event: PoissonSampled | FixedSizeSampled, order: int) -> Fraction:
    if isinstance(event, PoissonSampled):
        return _poisson(event, order)
    return _fixed_size(event, order)


def _poisson(event: PoissonSampled, order: int) -> Fraction:
    """ln Σ C(α, k) q^k (1 − q)^(α−k) e^((k−1)ε_k); where the two laws are not mirror images, tripled from k = 3 on."""
    if event.rate == 1:
        return (order - 1) * loss_at(event.event, Fraction(order))
    losses = _losses(event.event, order)
    ks, rate = np.arange(order + 1), float(event.rate)
    terms = _binomials(order) + ks * math.log(rate) + (order - ks) * math.log1p(-rate) + (ks - 1) * losses
    if not _mirrored(event.event):
        terms[3:] += math.log(3)
    return _summed(terms, order)


def _fixed_size(event: FixedSizeSampled, order: int) -> Fraction:
    """Wang, Balle and Kasiviswanathan 2019, Theorem 9, for replacing one unit."""
    losses = _losses(event.event, order)
    ks, share = np.arange(order + 1), event.size / event.population
    most = _most(event.event)
    terms = _binomials(order) + ks * math.log(share) + (ks - 1) * losses
    terms[0], terms[1] = 0.0, -math.inf
    caps = np.minimum(math.log(2), ks * math.log(math.expm1(most))) if 0 < most < 700 else np.full(len(ks), math.log(2))
    second = _binomials(order)[2] + 2 * math.log(share)
    simple = second + (math.log(4) + _log_expm1(float(losses[2])))
    terms[2:] += caps[2:]
    terms[2] = min(simple, float(terms[2]))
    return _summed(terms, order)


def _log_expm1(value: float) -> float:
    return math.log(math.expm1(value)) if 0 < value < 700 else (value if value > 0 else -math.inf)


def _losses(event: PrivacyEvent, order: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    found = [0.0, 0.0, *(float(loss_at(event, Fraction(k))) for k in range(2, order + 1))]
    return np.array(found)


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
        case Gaussian() | DiscreteGaussian() | DiscreteLaplace() | RandomizedResponse():
            return True
        case Stated(guarantee=Pure() | GDP()):
            return True
    return False


def _binomials(order: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    ks = np.arange(order + 1)
    return np.asarray(gammaln(order + 1) - gammaln(ks + 1) - gammaln(order - ks + 1))


def _summed(terms: "np.ndarray[tuple[int], np.dtype[np.float64]]", order: int) -> Fraction:
    largest = float(terms.max())
    value = largest + math.log(float(np.exp(terms - largest).sum()))
    finite = np.abs(terms[np.isfinite(terms)])
    return max(Fraction(0), _outward(value, float(finite.max()) + order * math.log(order + 1)))


def _outward(value: float, size: float) -> Fraction:
    """The value and a bound on its rounding: 2^-46 of the largest number that went into it."""
    return Fraction(value + 2.0**-46 * (size + 1))
