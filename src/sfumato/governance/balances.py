"""Balances: a cap, what counts against it, and the filter that decides whether a charge still fits.

Sums of ε and δ decide unless a filter was chosen when the balance was opened: zCDP (the sum of ρ), or Rényi at one
order (the sum of losses there). There is none by privacy loss distributions, which hold only for plans that were
fixed beforehand (docs/proofs/filters.md).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.accounting.filter_cost import filter_cost, reading
from sfumato.accounting.filters import BasicFilter, RDPFilter, ZCDPFilter
from sfumato.core import enclosures
from sfumato.core.budget import Budget
from sfumato.core.events import PrivacyEvent
from sfumato.core.exact import decimal_down, decimal_up, fraction_text
from sfumato.core.statement import Account
from sfumato.core.units import Unit
from sfumato.errors import BudgetExceeded, InvalidInput, Refused, Unsupported

__all__ = ["Balance", "check_together"]

LONGEST = 24
_NOTHING = Fraction(0)
DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """A cap and what counts against it.

    Guarantee: if every charge that counts was admitted, all of them together, however adaptively chosen, are within
    ``cap``. The sums of ε and δ are always kept, as the figure for an audit. They decide where neither ``rho``, the cap
    of a zCDP filter, nor ``loss``, the cap of a Rényi filter at ``order``, is set.
    """

    name: str
    unit: Unit
    cap: Budget
    rho: Fraction | None = None
    order: Fraction | None = None
    loss: Fraction | None = None
    epsilon_spent: Fraction = Fraction(0)
    delta_spent: Fraction = Fraction(0)
    rho_spent: Fraction = Fraction(0)
    loss_spent: Fraction = Fraction(0)
    charges: int = 0

    @property
    def method(self) -> str:
        """The filter that decides: ``basic``, ``zcdp`` or ``rdp``."""
        return "basic" if self.filter_cap is None else "zcdp" if self.order is None else "rdp"

    @property
    def filter_cap(self) -> Fraction | None:
        """The most ρ, or Rényi loss at the order, that the filter admits; None where sums decide."""
        return self.rho if self.order is None else self.loss

    @property
    def filter_spent(self) -> Fraction | None:
        """What counts against that."""
        if self.filter_cap is None:
            return None
        return self.rho_spent if self.order is None else self.loss_spent

    @property
    def filter_left(self) -> Fraction | None:
        """What the filter still admits; nothing where a recovered gap used it up."""
        if self.filter_cap is None or self.filter_spent is None:
            return None
        return max(Fraction(0), self.filter_cap - self.filter_spent)

    @property
    def spent(self) -> Budget:
        """What counts as spent, in the terms of the filter that decides: a filter's loss is read at the cap's δ."""
        if self.filter_spent is None:
            return Budget(epsilon=self.epsilon_spent, delta=min(Fraction(1), self.delta_spent))
        return reading(self.filter_spent, self.order, self.cap.delta)

    @property
    def left(self) -> Budget:
        """What may still be asked for, as ε and δ; nothing where a recovered gap went beyond the cap.

        Of a balance with a filter: the largest ε, rounded down, of one release without a δ that is sure to fit. Noise
        with a ρ of its own, such as Gaussian noise, is judged by that and not by this figure.
        """
        if self.filter_left is None:
            spent = self.spent
            return self.cap - spent if self.cap.covers(spent) else Budget.none()
        # An ε has ρ = ε²/2, and a Rényi loss of at most α·ε²/2 and of at most ε.
        steepness = 1 if self.order is None else self.order
        most = enclosures.sqrt(2 * self.filter_left / steepness).low
        if self.order is not None:
            most = max(most, self.filter_left)
        return Budget(epsilon=Fraction(decimal_down(most, DIGITS)))

    def account(self, name: str, ledger: str) -> Account:
        """How the balance stands, as releases state it."""
        return Account(
            name=name,
            ledger=ledger,
            budget=self.cap,
            spent=self.spent,
            releases=self.charges,
            method=self.method,
            order=self.order,
            filter_cap=self.filter_cap,
            filter_spent=self.filter_spent,
        )

    def lost(self, event: PrivacyEvent | None) -> Fraction | None:
        """What an event counts against the filter, None where sums decide; what the filter cannot hold is refused."""
        if self.filter_cap is None:
            return None
        if event is None:
            raise self._untold()
        try:
            return filter_cost(event, self.order)
        except Unsupported:
            raise self._untold() from None
        except Refused as refusal:
            raise Refused(f"{self.name!r} is kept by a {self._filter} filter. {refusal}") from None

    def admit(self, cost: Budget, loss: Fraction | None) -> None:
        """Refuse a charge that does not fit, with the numbers; equality fits."""
        if self.filter_cap is None or self.filter_left is None:
            if self._fits(cost):
                return
            if not self.cap.covers(Budget(epsilon=self.epsilon_spent, delta=min(Fraction(1), self.delta_spent))):
                raise self._exceeded("nothing", str(cost), self._beyond)  # a recovered gap went beyond the cap
            BasicFilter(budget=self.cap, spent=self.spent).after(cost, self.name)
        elif loss is None:
            raise self._untold()
        elif loss > self.filter_left:
            left = _written(self.filter_left, up=False)
            most = f" Without a δ, one of {self.left} fits." if self.left.epsilon else ""
            raise self._exceeded(f"{self._what} {left}", f"{self._what} {_written(loss, up=True)}", most)

    def moved(self, cost: Budget, loss: Fraction | None, *, times: int, charges: int) -> "Balance":
        """The balance with a charge entered (``times=1``) or given back (``times=-1``)."""
        lost = _NOTHING if loss is None or self.filter_cap is None else loss
        return Balance(  # each field by its name: several times as fast as a general replace
            name=self.name,
            unit=self.unit,
            cap=self.cap,
            rho=self.rho,
            order=self.order,
            loss=self.loss,
            epsilon_spent=_sum(self.epsilon_spent, times, cost.epsilon),
            delta_spent=_sum(self.delta_spent, times, cost.delta) if cost.delta else self.delta_spent,
            rho_spent=_sum(self.rho_spent, times, lost) if lost and self.order is None else self.rho_spent,
            loss_spent=self.loss_spent if not lost or self.order is None else _sum(self.loss_spent, times, lost),
            charges=self.charges + charges,
        )

    def exhausted(self) -> "Balance":
        """The balance with nothing left."""
        left = Budget(
            epsilon=max(Fraction(0), self.cap.epsilon - self.epsilon_spent),
            delta=max(Fraction(0), self.cap.delta - self.delta_spent),
        )
        return self.used_up(left)

    def used_up(self, gap: Budget) -> "Balance":
        """The balance with a gap of lost entries charged: nobody knows what they lost, so a filter is used up."""
        return self.moved(gap, self.filter_left, times=1, charges=0)

    def raised(self, amount: Budget) -> "Balance":
        """The balance with a cap that is higher by ``amount``; the cap of its filter is worked out again.

        Guarantee: nothing is lowered, and the same amounts in the same order give the same caps on every machine.

        >>> from sfumato.core.units import user
        >>> small = Balance(name="x", unit=user("id", relation="replace"), cap=Budget(epsilon=1, delta=1e-6))
        >>> small.raised(Budget(epsilon="1/2")).cap.epsilon
        Fraction(3, 2)
        """
        if amount.epsilon == 0 and amount.delta == 0:
            raise InvalidInput(f"a raise of {self.name!r} by nothing changes nothing; nothing was changed.")
        if self.cap.delta + amount.delta >= 1:
            raise InvalidInput(f"{self.name!r} would have a δ of 1, which guarantees nothing; nothing was changed.")
        cap = self.cap + amount
        if self.rho is not None:
            return replace(self, cap=cap, rho=max(self.rho, ZCDPFilter.within(cap).rho))
        if self.order is not None and self.loss is not None:
            return replace(self, cap=cap, loss=max(self.loss, RDPFilter.within(cap, order=self.order).loss))
        return replace(self, cap=cap)

    def _fits(self, cost: Budget) -> bool:
        """Whether sums stay within the cap: then the rest of a refusal need not be worked out."""
        if not _within(self.epsilon_spent, cost.epsilon, self.cap.epsilon):
            return False
        return self.cap.delta == 1 or _within(self.delta_spent, cost.delta, self.cap.delta)

    @property
    def _filter(self) -> str:
        return "zCDP" if self.order is None else f"Rényi (order {fraction_text(self.order)})"

    @property
    def _what(self) -> str:
        return "ρ" if self.order is None else f"Rényi loss of order {fraction_text(self.order)}"

    @property
    def _beyond(self) -> str:
        """How far sums are beyond the cap, and the way out: what was lost cannot be told from what was spent."""
        over = {
            "ε": max(_NOTHING, self.epsilon_spent - self.cap.epsilon),
            "δ": max(_NOTHING, self.delta_spent - self.cap.delta),
        }
        amounts = " and ".join(f"{name} {_written(amount, up=True)}" for name, amount in over.items() if amount)
        words = f" It is {amounts} beyond its cap, by a recovery after entries were lost or by a corrected price"
        if not over["ε"]:
            left = _written(self.cap.epsilon - self.epsilon_spent, up=False)
            words += f"; its δ is used up and its ε is not ({left} is left)"
        return f"{words}. It is open again once it is raised by that much: sfumato budget request"

    def _untold(self) -> Refused:
        return Refused(
            f"{self.name!r} is kept by a {self._filter} filter, and this release states no {self._what}. Nothing was "
            "read and nothing was spent. Ask with a mechanism that has one, or charge an account that is kept by sums, "
            "or a vault whose budget is one of ε and δ."
        )

    def _exceeded(self, left: str, asked: str, most: str = "") -> BudgetExceeded:
        return BudgetExceeded(
            f"{self.name!r} has {left} left; this release asks for {asked}.\n"
            "Nothing was read and nothing was spent.\n"
            f"Ask for less, or have whoever answers for the budget raise it.{most}"
        )


def check_together(draws: Iterable[tuple[Balance, Budget, Fraction | None]]) -> None:
    """Refuse what is drawn on balances where it does not fit all together, by their names; changes nothing.

    >>> from sfumato.core.units import user
    >>> small = Balance(name="x", unit=user("id", relation="replace"), cap=Budget(epsilon=1))
    >>> check_together([(small, Budget(epsilon="1/2"), None), (small, Budget(epsilon="1/2"), None)])
    """
    found: dict[str, tuple[Balance, Budget, Fraction | None]] = {}
    for balance, cost, loss in draws:
        _, drawn, lost = found.get(balance.name, (balance, Budget.none(), None))
        whole = Budget(epsilon=drawn.epsilon + cost.epsilon, delta=min(Fraction(1), drawn.delta + cost.delta))
        found[balance.name] = balance, whole, lost if loss is None else (lost or _NOTHING) + loss
    for balance, cost, loss in found.values():
        balance.admit(cost, loss)


def _sum(amount: Fraction, times: int, more: Fraction) -> Fraction:
    """The sum; most of what is added to a balance is zero, and exact sums take their time."""
    if not more:
        return amount
    if times != 1:
        return amount + times * more
    # The levels of an account have often lost the same, and are charged the same one after the other.
    known, added, total = _LAST_SUM[0]
    if known is not amount or added is not more:
        total = amount + more
        _LAST_SUM[0] = amount, more, total
    return total


_LAST_SUM: list[tuple[Fraction, Fraction, Fraction]] = [(_NOTHING, _NOTHING, _NOTHING)]


def _within(spent: Fraction, more: Fraction, cap: Fraction) -> bool:
    """Whether ``spent + more <= cap``, by whole numbers, which is several times as fast."""
    top, bottom = spent.as_integer_ratio()
    added, bits = more.as_integer_ratio()
    most, parts = cap.as_integer_ratio()
    if added:
        top, bottom = top * bits + added * bottom, bottom * bits
    return top * parts <= most * bottom


def _written(amount: Fraction, *, up: bool) -> str:
    exact = fraction_text(amount)
    if len(exact) <= LONGEST:
        return f"= {exact}"
    return f"≤ {decimal_up(amount)}" if up else f"≥ {decimal_down(amount)}"
