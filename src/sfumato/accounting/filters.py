"""Filters: whether one more release still fits, valid when each release is chosen after seeing the ones before.

There is none for privacy loss distributions: their composition holds for lists that are fixed beforehand, and an
outcome-dependent choice reaches more δ (X-09). Proof: docs/proofs/filters.md
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sfumato.accounting import rdp, zcdp
from sfumato.core.budget import Budget
from sfumato.core.events import PrivacyEvent
from sfumato.core.exact import Exact, decimal_up, fraction_text, non_negative, positive, rational
from sfumato.core.guarantees import RDP, ZCDP
from sfumato.core.search import around_decimal
from sfumato.errors import BudgetExceeded, InvalidInput, NotDeclared, Refused

__all__ = ["BasicFilter", "RDPFilter", "ZCDPFilter", "open_filter"]

LEAST = Fraction(1, 10**24)
DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicFilter:
    """Admit releases while the sums of their ε and δ stay within the budget; equality is admitted.

    Guarantee: whatever is admitted, however adaptively chosen, is together (ε, δ)-DP for the budget's ε and δ. With
    δ = 0 this is the pure filter. A refusal changes nothing: filters are values, :meth:`after` returns a new one.

    >>> tenth, account = Budget(epsilon=0.1), BasicFilter(budget=Budget(epsilon=1))
    >>> for _ in range(10):
    ...     account = account.after(tenth, "demo")
    >>> account.admits(tenth), account.left
    (False, Budget(epsilon='0'))
    """

    budget: Budget
    spent: Budget = field(default_factory=Budget.none)

    @property
    def left(self) -> Budget:
        """What may still be asked for."""
        return self.budget - self.spent

    def admits(self, cost: Budget) -> bool:
        """Whether this cost still fits."""
        return self.budget.covers(self.spent + cost)

    def after(self, cost: Budget, account: str) -> "BasicFilter":
        """The filter once this cost is charged, or a refusal with the numbers."""
        if not self.admits(cost):
            raise BudgetExceeded(
                f"{account!r} has {self.left} left; this release asks for {cost}.\n"
                "Nothing was read and nothing was spent.\n"
                f"Ask for at most {self.left}, or have whoever answers for the budget raise it."
            )
        return BasicFilter(budget=self.budget, spent=self.spent + cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZCDPFilter:
    """Admit events while the sum of their ρ stays within ``rho``; equality is admitted.

    Guarantee: whatever is admitted, each event and its ρ chosen after seeing all outputs before it, is together
    ρ-zCDP (Feldman and Zrnic 2021, at every order), so (ε, δ)-DP by the conversion of :class:`ZCDP`.

    >>> from sfumato.core.events import Gaussian
    >>> account = ZCDPFilter.within(Budget(epsilon=1, delta=1e-6))
    >>> step = Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(1000))
    >>> admitted = 0
    >>> while account.admits(step):
    ...     account, admitted = account.after(step, "demo"), admitted + 1
    >>> admitted, account.guarantee(1e-6).epsilon <= 1
    (48, True)
    """

    rho: Fraction
    spent: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", non_negative(self.rho, "rho"))

    @classmethod
    def within(cls, budget: Budget) -> "ZCDPFilter":
        """The largest ρ, to nine digits and rounded down, whose ε at the budget's δ is within the budget's ε."""
        room = positive(budget.delta, "delta")
        return cls(rho=_largest(lambda rho: ZCDP(rho=rho).epsilon_at(room) <= budget.epsilon))

    @property
    def left(self) -> Fraction:
        """The ρ that may still be asked for."""
        return self.rho - self.spent

    def guarantee(self, delta: Exact) -> Budget:
        """The (ε, δ) guarantee of the whole filter, however it was used."""
        return Budget(epsilon=ZCDP(rho=self.rho).epsilon_at(delta), delta=delta)

    def admits(self, event: PrivacyEvent) -> bool:
        """Whether this event still fits."""
        return self.spent + _rho(event) <= self.rho

    def after(self, event: PrivacyEvent, account: str) -> "ZCDPFilter":
        """The filter once this event is charged, or a refusal with the numbers."""
        if not self.admits(event):
            raise _exceeded(account, "ρ", self.left, _rho(event))
        return replace(self, spent=self.spent + _rho(event))


@dataclass(frozen=True, slots=True, kw_only=True)
class RDPFilter:
    """Admit events while the sum of their Rényi losses at one order stays within ``loss``; equality is admitted.

    Guarantee: whatever is admitted, however adaptively chosen, has together a Rényi loss of at most ``loss`` at this
    order (Feldman and Zrnic 2021). The order is fixed beforehand: to pick in the end the order that turned
    out best would not be covered.

    >>> from sfumato.core.events import Gaussian
    >>> account = RDPFilter.within(Budget(epsilon=1, delta=1e-6), order=20)
    >>> account.admits(Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(100)))
    True
    """

    order: Fraction
    loss: Fraction
    spent: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.order <= 1:
            raise InvalidInput(f"a Rényi order lies above 1, and {self.order} was given; nothing was done.")
        object.__setattr__(self, "loss", non_negative(self.loss, "loss"))

    @classmethod
    def within(cls, budget: Budget, *, order: Exact) -> "RDPFilter":
        """The largest loss at this order whose ε at the budget's δ is within the budget's ε."""
        chosen, room = rational(order, "order"), positive(budget.delta, "delta")

        def fits(loss: Fraction) -> bool:
            return RDP(curve=((chosen, loss),)).epsilon_at(room) <= budget.epsilon

        return cls(order=chosen, loss=_largest(fits))

    @property
    def left(self) -> Fraction:
        """The loss at this order that may still be asked for."""
        return self.loss - self.spent

    def guarantee(self, delta: Exact) -> Budget:
        """The (ε, δ) guarantee of the whole filter, however it was used."""
        return Budget(epsilon=RDP(curve=((self.order, self.loss),)).epsilon_at(delta), delta=delta)

    def admits(self, event: PrivacyEvent) -> bool:
        """Whether this event still fits."""
        return self.spent + self._cost(event) <= self.loss

    def after(self, event: PrivacyEvent, account: str) -> "RDPFilter":
        """The filter once this event is charged, or a refusal with the numbers."""
        if not self.admits(event):
            raise _exceeded(account, f"Rényi loss of order {self.order}", self.left, self._cost(event))
        return replace(self, spent=self.spent + self._cost(event))

    def _cost(self, event: PrivacyEvent) -> Fraction:
        curve, own = rdp.compose(event, orders=[self.order])
        _no_delta(own)
        ((_, loss),) = curve.curve
        return loss


def open_filter(budget: Budget, *, method: str, order: Exact | None = None) -> BasicFilter | ZCDPFilter | RDPFilter:
    """A filter for a budget by the name of its accountant; those that hold only for fixed plans are refused.

    >>> open_filter(Budget(epsilon=1), method="basic").left
    Budget(epsilon='1')
    """
    match method:
        case "basic":
            return BasicFilter(budget=budget)
        case "zcdp":
            return ZCDPFilter.within(budget)
        case "rdp":
            if order is None:
                raise NotDeclared("a Rényi filter keeps to one order; none was given. Pass order=…, such as 20.")
            return RDPFilter.within(budget, order=order)
        case "pld" | "advanced" | "optimal":
            raise Refused(
                f"{method!r} holds for lists of events that are fixed beforehand. Releases chosen on the way can reach "
                'more δ than it shows, so it makes no filter. Use method="zcdp", "rdp" or "basic".'
            )
    raise InvalidInput(f'method = {method!r} makes no filter; nothing was done. Use "basic", "zcdp" or "rdp".')


def _rho(event: PrivacyEvent) -> Fraction:
    total = zcdp.compose(event)
    _no_delta(total.delta)
    return total.rho


def _no_delta(own: Fraction) -> None:
    if own:
        raise Refused(
            f"this filter holds no δ, and the event brings δ = {decimal_up(own)}; nothing was charged. "
            "Charge it to a BasicFilter, or set δ aside and state the event as pure."
        )


def _exceeded(account: str, what: str, left: Fraction, asked: Fraction) -> BudgetExceeded:
    return BudgetExceeded(
        f"{account!r} has {what} = {fraction_text(left)} left; this release asks for {fraction_text(asked)}.\n"
        "Nothing was read and nothing was spent.\n"
        "Ask for less, or have whoever answers for the budget raise it."
    )


def _largest(fits: Callable[[Fraction], bool]) -> Fraction:
    """The largest decimal of nine digits that fits; 0 where not even 1e-24 does."""
    if not fits(LEAST):
        return Fraction(0)
    return around_decimal(lambda number: fits(number) - 0.5, digits=DIGITS)[0]
