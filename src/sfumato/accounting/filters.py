"""Filters: whether one more release still fits, valid when each release is chosen after seeing the ones before."""

from dataclasses import dataclass, field

from sfumato.core.budget import Budget
from sfumato.errors import BudgetExceeded

__all__ = ["BasicFilter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicFilter:
    """Admit releases while the sums of their ε and δ stay within the budget; equality is admitted.

    Guarantee: whatever is admitted, however adaptively chosen, is together (ε, δ)-DP for the budget's ε and δ. With
    δ = 0 this is the pure filter. A refusal changes nothing: filters are values, :meth:`after` returns a new one.

    >>> tenth, account = Budget(epsilon=0.1), BasicFilter(budget=Budget(epsilon=1))
    >>> for _ in range(10):
    ...     account = account.after(tenth, "demo")
    >>> account.admits(tenth), account.left
    (False, Budget(epsilon=Fraction(0, 1), delta=Fraction(0, 1)))
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
