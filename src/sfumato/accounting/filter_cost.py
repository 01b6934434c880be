"""What a filter charges for an event, and the guarantee of its loss; without NumPy unless the event is a sample."""

from fractions import Fraction

from sfumato.accounting import rdp, zcdp
from sfumato.core.budget import Budget
from sfumato.core.events import PrivacyEvent
from sfumato.core.exact import decimal_up
from sfumato.core.guarantees import RDP, ZCDP
from sfumato.errors import Refused

__all__ = ["filter_cost", "reading"]

SHORT = 10**12
"""Losses with a denominator up to this are charged exactly."""

SPARE = 1 + Fraction(1, 2**40)
"""What a longer loss is raised by first: more than floats of another machine can differ, so that none finds more."""

DIGITS = 12


def filter_cost(event: PrivacyEvent, order: Fraction | None) -> Fraction:
    """The ρ of an event, or with ``order`` its Rényi loss there: exactly where that is short, else rounded up.

    Guarantee: at least the loss of the event, so that a sum of what was charged bounds the sum of losses. An event with
    a δ of its own is refused: these filters hold none.

    >>> from sfumato.core.events import DiscreteGaussian
    >>> step = DiscreteGaussian(l2_squared=Fraction(1), sigma_squared=Fraction(100))
    >>> filter_cost(step, None), filter_cost(step, Fraction(20))
    (Fraction(1, 200), Fraction(1, 10))
    """
    if order is None:
        total = zcdp.compose(event)
        loss, own = total.rho, total.delta
    else:
        curve, own = rdp.compose(event, orders=[order])
        ((_, loss),) = curve.curve
    if own:
        raise Refused(
            f"this release brings δ = {decimal_up(own)}, and a filter by ρ or by a Rényi loss holds none. "
            "Nothing was read and nothing was spent. Ask with noise that has no δ of its own, such as Gaussian "
            "noise, or charge an account that is kept by sums, or a vault whose budget is one of ε and δ."
        )
    return loss if loss.denominator <= SHORT else Fraction(decimal_up(loss * SPARE, DIGITS))


def reading(loss: Fraction, order: Fraction | None, delta: Fraction) -> Budget:
    """The ε at a δ of a loss of ρ, or with ``order`` of a Rényi loss there; the same number on every machine.

    >>> reading(Fraction(1, 2), None, Fraction(1, 10**5)).epsilon < Fraction(473, 100)
    True
    """
    if loss == 0:
        return Budget.none()
    guarantee = ZCDP(rho=loss) if order is None else RDP(curve=((order, loss),))
    return Budget(epsilon=guarantee.epsilon_at(delta), delta=delta)
