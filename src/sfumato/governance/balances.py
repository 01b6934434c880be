"""Balances: a cap, what counts against it, and the filter that decides whether a charge still fits."""

from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.accounting.filters import BasicFilter
from sfumato.core.budget import Budget
from sfumato.core.exact import fraction_text
from sfumato.core.guarantees import ZCDP
from sfumato.core.units import Unit
from sfumato.errors import BudgetExceeded, Refused

__all__ = ["Balance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """A cap and what counts against it. The sums of ε and δ are always kept; with ``rho`` a zCDP filter decides."""

    name: str
    unit: Unit
    cap: Budget
    rho: Fraction | None
    epsilon_spent: Fraction = Fraction(0)
    delta_spent: Fraction = Fraction(0)
    rho_spent: Fraction = Fraction(0)
    charges: int = 0

    @property
    def spent(self) -> Budget:
        """What counts as spent, in the terms of the filter that decides."""
        if self.rho is None:
            return Budget(epsilon=self.epsilon_spent, delta=min(Fraction(1), self.delta_spent))
        if self.rho_spent == 0:
            return Budget.none()
        room = self.cap.delta
        return Budget(epsilon=ZCDP(rho=self.rho_spent).epsilon_at(room), delta=room)

    @property
    def left(self) -> Budget:
        """What may still be asked for, as ε and δ; nothing where a recovered gap went beyond the cap."""
        spent = self.spent
        room = Fraction(0) if self.rho is not None else max(Fraction(0), self.cap.delta - spent.delta)
        return Budget(epsilon=max(Fraction(0), self.cap.epsilon - spent.epsilon), delta=room)

    def admit(self, cost: Budget, rho: Fraction | None) -> None:
        """Refuse a charge that does not fit, with the numbers; equality fits."""
        if self.rho is None:
            if not self.cap.covers(Budget(epsilon=self.epsilon_spent, delta=min(Fraction(1), self.delta_spent))):
                raise self._exceeded("nothing", str(cost))  # a recovered gap went beyond the cap
            BasicFilter(budget=self.cap, spent=self.spent).after(cost, self.name)
        elif rho is None:
            raise Refused(
                f"{self.name!r} is kept by a zCDP filter, and this release states no ρ. Nothing was read and nothing "
                "was spent. Ask with a mechanism that has one, or charge an account that is kept by sums."
            )
        elif self.rho_spent + rho > self.rho:
            left = max(Fraction(0), self.rho - self.rho_spent)
            raise self._exceeded(f"ρ = {fraction_text(left)}", f"ρ = {fraction_text(rho)}")

    def moved(self, cost: Budget, rho: Fraction | None, *, times: int, charges: int) -> "Balance":
        """The balance with a charge entered (``times=1``) or given back (``times=-1``)."""
        return replace(
            self,
            epsilon_spent=self.epsilon_spent + times * cost.epsilon,
            delta_spent=self.delta_spent + times * cost.delta,
            rho_spent=self.rho_spent + times * (rho if self.rho is not None and rho is not None else 0),
            charges=self.charges + charges,
        )

    def _exceeded(self, left: str, asked: str) -> BudgetExceeded:
        return BudgetExceeded(
            f"{self.name!r} has {left} left; this release asks for {asked}.\n"
            "Nothing was read and nothing was spent.\n"
            "Ask for less, or have whoever answers for the budget raise it."
        )
