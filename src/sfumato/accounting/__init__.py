"""Accounting: accountants read events, never mechanisms.

``import sfumato.accounting`` loads neither NumPy nor SciPy; the accountants that need them load them when called.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, get_args

from sfumato.accounting import advanced, optimal, zcdp
from sfumato.accounting.banded import banded_plan
from sfumato.accounting.calibrate import calibrate_rate, calibrate_sigma, calibrate_steps, plan
from sfumato.accounting.composition import compose, loss_of
from sfumato.accounting.event_counts import event_counts
from sfumato.accounting.filters import BasicFilter, RDPFilter, ZCDPFilter, open_filter
from sfumato.accounting.gaussian import classical_sigma, gaussian_delta, gaussian_sigma
from sfumato.accounting.odometer import BasicOdometer, ZCDPOdometer
from sfumato.accounting.parallel import parallel
from sfumato.core.events import Composed, PrivacyEvent
from sfumato.core.exact import Exact, probability
from sfumato.core.guarantees import Approximate
from sfumato.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    from sfumato.accounting.brackets import Bracket

__all__ = [
    "METHODS",
    "BasicFilter",
    "BasicOdometer",
    "Method",
    "RDPFilter",
    "ZCDPFilter",
    "ZCDPOdometer",
    "banded_plan",
    "bracket",
    "calibrate_rate",
    "calibrate_sigma",
    "calibrate_steps",
    "classical_sigma",
    "compose",
    "delta",
    "epsilon",
    "gaussian_delta",
    "gaussian_sigma",
    "open_filter",
    "parallel",
    "plan",
]

Method = Literal["pld", "rdp", "zcdp", "basic", "advanced", "optimal"]
METHODS: tuple[Method, ...] = get_args(Method)

Events = PrivacyEvent | Iterable[PrivacyEvent]


def epsilon(events: Events, *, delta: Exact, method: Method = "pld") -> Fraction:
    """The ε of all events together at δ, rounded up.

    Guarantee: (ε, δ)-DP for all events on the same units. ``pld`` is tight, and it and ``advanced`` and ``optimal``
    hold for lists fixed beforehand; ``basic``, ``zcdp`` and ``rdp`` at one order also under filters.

    >>> from sfumato.core.events import DiscreteLaplace
    >>> steps = [DiscreteLaplace(l1=Fraction(1), scale=Fraction(20))] * 100
    >>> [float(round(epsilon(steps, delta=1e-6, method=how), 2)) for how in ("basic", "advanced", "zcdp", "pld")]
    [5.0, 2.75, 2.42, 2.21]
    """
    if method not in _EPSILON:
        raise _unknown(method)
    return _EPSILON[method](events, probability(delta, "delta"))


def delta(events: Events, *, epsilon: Exact, method: Method = "pld") -> Fraction:
    """The δ of all events together at ε, rounded up.

    >>> from sfumato.core.events import DiscreteLaplace
    >>> delta([DiscreteLaplace(l1=Fraction(1), scale=Fraction(2))] * 2, epsilon=1, method="basic")
    Fraction(0, 1)
    """
    if method not in _DELTA:
        raise _unknown(method)
    return _DELTA[method](events, epsilon)


def bracket(events: Events, *, delta: Exact) -> "Bracket":
    """The ε of all events together at δ by ``pld``, and beside it an ε below which no accountant can come.

    Guarantee: ``upper`` is :func:`epsilon`; some mechanism with these events is not (ε, δ)-DP at any ε below ``lower``.
    Where the two are close, more accounting gains nothing. Proof: docs/proofs/pld_bracket.md

    >>> found = bracket(plan(sigma=1, steps=100, sampling="0.01"), delta=1e-5)
    >>> found.lower <= found.upper <= found.lower * Fraction("1.001")
    True
    """
    from sfumato.accounting import brackets

    return brackets.bracket(events, delta=delta)


def _basic(events: Events) -> Approximate:
    total = compose(events)
    return total if isinstance(total, Approximate) else total.approximate()


def _pld_epsilon(events: Events, delta: Fraction) -> Fraction:
    from sfumato.accounting import pld

    return pld.epsilon(events, delta=delta)


def _pld_delta(events: Events, epsilon: Exact) -> Fraction:
    from sfumato.accounting import pld

    return pld.delta(events, epsilon=epsilon)


def _rdp_epsilon(events: Events, delta: Fraction) -> Fraction:
    from sfumato.accounting import rdp

    return rdp.epsilon(events, delta=delta)


def _rdp_delta(events: Events, epsilon: Exact) -> Fraction:
    from sfumato.accounting import rdp

    return rdp.delta(events, epsilon=epsilon)


def _equal_steps(events: Events) -> tuple[Approximate, int]:
    found = event_counts(events)
    losses = {loss_of(event) for event in found} or {loss_of(Composed(events=()))}
    if len(losses) > 1:
        raise Unsupported(
            'method="optimal" composes steps of one ε and δ only, and these differ; nothing was accounted. Use "pld".'
        )
    each, own = losses.pop()
    return Approximate(epsilon=each, delta=own), found.total()


def _optimal_epsilon(events: Events, delta: Fraction) -> Fraction:
    step, times = _equal_steps(events)
    return optimal.epsilon(step, times, delta=delta)


def _optimal_delta(events: Events, epsilon: Exact) -> Fraction:
    step, times = _equal_steps(events)
    return optimal.delta(step, times, epsilon=epsilon)


_EPSILON: dict[str, Callable[[Events, Fraction], Fraction]] = {
    "pld": _pld_epsilon,
    "rdp": _rdp_epsilon,
    "zcdp": lambda events, delta: zcdp.epsilon(events, delta=delta),
    "basic": lambda events, delta: _basic(events).epsilon_at(delta),
    "advanced": lambda events, delta: advanced.epsilon(events, delta=delta),
    "optimal": _optimal_epsilon,
}
_DELTA: dict[str, Callable[[Events, Exact], Fraction]] = {
    "pld": _pld_delta,
    "rdp": _rdp_delta,
    "zcdp": lambda events, epsilon: zcdp.delta(events, epsilon=epsilon),
    "basic": lambda events, epsilon: _basic(events).delta_at(epsilon),
    "advanced": lambda events, epsilon: advanced.delta(events, epsilon=epsilon),
    "optimal": _optimal_delta,
}


def _unknown(name: str) -> InvalidInput:
    return InvalidInput(f"method = {name!r} is not one of {', '.join(METHODS)}; nothing was accounted.")
