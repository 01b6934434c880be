"""How a budget is allotted, when spending stops, and what a window of time does and does not give back.

Everything here is arithmetic on declarations: exact, without data, without a store. A ledger applies it under its lock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.exact import natural, probability
from sfumato.errors import BudgetExceeded, InvalidInput, NotDeclared

__all__ = ["Allotment", "BaseAndReserve", "Policy", "Proportional", "Unlock"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """What one account gets of a cap."""

    KIND: ClassVar[str] = "policy.allotment"
    VERSION: ClassVar[int] = 1
    account: str
    budget: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportional:
    """Each account gets a share in proportion to the releases it plans.

    Guarantee: the shares are exact and sum to the cap, in ε and in δ.

    >>> rule = Proportional(planned=(("epidemiology", 2), ("oncology", 1)))
    >>> [str(share.budget) for share in rule.allot(Budget(epsilon=1))]
    ['ε = 2/3', 'ε = 1/3']
    """

    KIND: ClassVar[str] = "policy.proportional"
    VERSION: ClassVar[int] = 1
    planned: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        _distinct([name for name, _ in self.planned])
        for name, count in self.planned:
            natural(count, f"the planned releases of {name!r}", least=0)
        if not sum(count for _, count in self.planned):
            raise NotDeclared("no account plans a release, so nothing can be shared out; nothing was allotted.")

    def allot(self, cap: Budget) -> tuple[Allotment, ...]:
        """The share of every account."""
        total = sum(count for _, count in self.planned)
        return tuple(Allotment(account=name, budget=_part(cap, Fraction(count, total))) for name, count in self.planned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlock:
    """A part of the reserve that the board gave to an account, with the number of its decision."""

    KIND: ClassVar[str] = "policy.unlock"
    VERSION: ClassVar[int] = 1
    account: str
    budget: Budget
    decision: int

    def __post_init__(self) -> None:
        natural(self.decision, "decision", least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseAndReserve:
    """Each account gets a base share, and the rest is a reserve that only the board unlocks.

    Guarantee: base shares and reserve sum to the cap exactly; unlocked parts never exceed the reserve.
    Assumes: whoever calls hands over only those ``unlocks`` for which the board's approval is on record
    (:meth:`sfumato.governance.minutes.Minutes.unlocks` returns exactly those).

    >>> rule = BaseAndReserve(base=(("epidemiology", Fraction(1, 2)), ("oncology", Fraction(1, 4))))
    >>> rule.reserve, str(rule.reserved(Budget(epsilon=8))), str(rule.allowed("oncology", Budget(epsilon=8), ()))
    (Fraction(1, 4), 'ε = 2', 'ε = 2')
    """

    KIND: ClassVar[str] = "policy.base_and_reserve"
    VERSION: ClassVar[int] = 1
    base: tuple[tuple[str, Fraction], ...]

    def __post_init__(self) -> None:
        _distinct([name for name, _ in self.base])
        shares = tuple((name, probability(share, f"the base share of {name!r}")) for name, share in self.base)
        object.__setattr__(self, "base", shares)
        if self.reserve < 0:
            raise InvalidInput(f"the base shares sum to {1 - self.reserve}, above 1; nothing was allotted.")

    @property
    def reserve(self) -> Fraction:
        """The share that nobody has yet."""
        return 1 - sum((share for _, share in self.base), Fraction(0))

    def reserved(self, cap: Budget) -> Budget:
        """The whole reserve, unlocked or not."""
        return _part(cap, self.reserve)

    def allot(self, cap: Budget) -> tuple[Allotment, ...]:
        """The base share of every account, without the reserve."""
        return tuple(Allotment(account=name, budget=_part(cap, share)) for name, share in self.base)

    def locked(self, cap: Budget, unlocks: Sequence[Unlock]) -> Budget:
        """What of the reserve nobody has unlocked yet; refused where more was unlocked than there is."""
        if len({unlock.decision for unlock in unlocks}) != len(unlocks):
            raise InvalidInput("one decision of the board is counted twice; nothing was allotted.")
        given = sum((unlock.budget for unlock in unlocks), start=Budget.none())
        reserve = self.reserved(cap)
        if not reserve.covers(given):
            raise BudgetExceeded(
                f"the reserve holds {reserve}; {given} would be unlocked. Nothing was unlocked and nothing was spent.\n"
                "Ask for less, or have the board raise the cap."
            )
        return reserve - given

    def allowed(self, account: str, cap: Budget, unlocks: Sequence[Unlock]) -> Budget:
        """What an account may spend in all: its base and what the board unlocked for it."""
        self.locked(cap, unlocks)
        own = [share.budget for share in self.allot(cap) if share.account == account]
        if not own:
            raise NotDeclared(f"{account!r} has no base share; nothing was spent. Declare one, of 0 if need be.")
        return sum((unlock.budget for unlock in unlocks if unlock.account == account), start=own[0])

    def admit(self, account: str, cost: Budget, *, cap: Budget, spent: Budget, unlocks: Sequence[Unlock]) -> None:
        """Refuse a cost beyond base and unlocked reserve, and say that the board can unlock more if it can."""
        allowed = self.allowed(account, cap, unlocks)
        if allowed.covers(spent + cost):
            return
        locked = self.locked(cap, unlocks)
        raise BudgetExceeded(
            f"{account!r} may spend {allowed} and has spent {spent}; this release asks for {cost}.\n"
            "Nothing was read and nothing was spent.\n"
            f"The reserve still holds {locked}, and only the board unlocks it: request that, or ask for less."
        )


Policy = Proportional | BaseAndReserve


def _part(cap: Budget, share: Fraction) -> Budget:
    return Budget(epsilon=cap.epsilon * share, delta=cap.delta * share)


def _distinct(names: list[str]) -> None:
    if not names or len(set(names)) != len(names) or not all(isinstance(name, str) and name for name in names):
        raise InvalidInput("a policy needs accounts, each named once; nothing was allotted.")
