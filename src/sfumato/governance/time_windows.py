"""Windows of time: a budget for each window, for units that live in one, and the loss that adds up over a life.

A window does not refill anything that a person has lost. What a new window brings is new entries, (person, period)
pairs that nobody has released anything about. The person behind them has lost what all windows took together, and
that figure is always computed beside the windows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.guarantees import Approximate
from sfumato.core.units import Event, Relation, Unit, describe
from sfumato.errors import BudgetExceeded, InvalidInput, NotDeclared, Refused
from sfumato.governance.periods import Cadence, Period, parts, period_of

__all__ = ["TimeWindows", "WindowCharge", "WindowStanding", "grouped"]

COMMON_YEAR, LEAP_YEAR = 2026, 2028
MOST_PERIODS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCharge:
    """One release: its cost, and the first and last day of the data that it read, look-back and corrections included.

    Days are ISO text (2026-01-31), as in a document.
    """

    KIND: ClassVar[str] = "policy.window_charge"
    VERSION: ClassVar[int] = 1
    first: str
    last: str
    cost: Budget

    def __post_init__(self) -> None:
        if self.days[0] > self.days[1]:
            raise InvalidInput(f"a charge that reads from {self.first} to {self.last} reads nothing; nothing was done.")

    @property
    def days(self) -> tuple[date, date]:
        """The first and the last day."""
        return _day(self.first), _day(self.last)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStanding:
    """How the windows stand: what each one lost, and what a person who was present all along lost."""

    windows: tuple[tuple[str, Budget], ...]
    lifetime: Budget

    def __str__(self) -> str:
        rows = [f"{label}: {spent}" for label, spent in self.windows]
        rows.append(f"A person who was there all along has lost {self.lifetime}: windows do not give anything back.")
        return "\n".join(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindows:
    """A budget for each window of time, for an event unit that is a (person, period) entry lying in one window.

    Guarantee: every window that a release reads is charged its whole cost, so one (person, period) entry loses at most
    ``cap``. That is *not* a guarantee for the person: :meth:`standing` states the lifetime loss, by group privacy over
    the entries that each release read and basic composition over the releases.
    Assumes: an entry is all that one person did in one period of ``stretch``; charges state all days that were read.

    >>> from sfumato.core.units import event
    >>> months = TimeWindows(unit=event(relation="add/remove"), stretch=Cadence.MONTHLY,
    ...                      every=Cadence.MONTHLY, cap=Budget(epsilon=1))
    >>> charges = [WindowCharge(first=f"2026-0{m}-01", last=f"2026-0{m}-28", cost=Budget(epsilon=1)) for m in (1, 2, 3)]
    >>> print(months.standing(charges))
    2026-01: ε = 1
    2026-02: ε = 1
    2026-03: ε = 1
    A person who was there all along has lost ε = 3: windows do not give anything back.
    """

    KIND: ClassVar[str] = "policy.time_windows"
    VERSION: ClassVar[int] = 1
    unit: Unit
    stretch: Cadence
    every: Cadence
    cap: Budget
    lifetime: Budget | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.unit, Event):
            raise Refused(
                f"a budget for each window needs a unit that lies in one window, and {describe(self.unit)} does not: "
                "its loss adds up over all of them, and a new month gives nothing back. No window was opened. "
                "Use one cap for the whole time, or protect (person, period) entries with an event unit and say so."
            )
        if self.unit.relation is not Relation.ADD_REMOVE:
            raise Refused(
                "under replace an entry may leave one window and enter another, so that two windows are lost; "
                "no window was opened. Use an event unit under add/remove."
            )
        if self.cap.epsilon <= 0:
            raise NotDeclared("a window needs a cap above 0; no window was opened. Declare one.")
        if any(parts(self.every, self.stretch, year) is None for year in (COMMON_YEAR, LEAP_YEAR)):
            raise Refused(
                f"a {self.stretch.value} entry can lie in two {self.every.value} windows, and would be charged to one; "
                "no window was opened. Use windows that such entries fill, or shorter entries."
            )

    def windows(self, charge: WindowCharge) -> tuple[Period, ...]:
        """The windows that a charge counts in: all whose days it read."""
        return _read(self.every, charge)

    def entries(self, charge: WindowCharge) -> int:
        """How many (person, period) entries of one person a charge can have read."""
        return len(_read(self.stretch, charge))

    def standing(self, charges: Iterable[WindowCharge]) -> WindowStanding:
        """What each window and a whole life have lost, exactly in ε, δ rounded up."""
        spent: dict[str, Budget] = {}
        life = Budget.none()
        for charge in charges:
            read = self.windows(charge)
            for window in read:
                spent[window.label] = spent.get(window.label, Budget.none()) + charge.cost
            life += grouped(charge.cost, self.entries(charge))
        return WindowStanding(windows=tuple(sorted(spent.items())), lifetime=life)

    def admit(self, charges: Sequence[WindowCharge], charge: WindowCharge) -> WindowStanding:
        """How things stand with one charge more, or a refusal that names the window, or the lifetime, that is short."""
        before, after = self.standing(charges), self.standing([*charges, charge])
        spent = dict(before.windows)
        for window in self.windows(charge):
            there = spent.get(window.label, Budget.none())
            if not self.cap.covers(there + charge.cost):
                raise BudgetExceeded(
                    f"the window {window.label} has {self.cap - there} left; this release reads it and asks for "
                    f"{charge.cost}.\nNothing was read and nothing was spent.\n"
                    "Ask for less, read fewer windows, or request a raise from the board."
                )
        if self.lifetime is not None and not self.lifetime.covers(after.lifetime):
            raise BudgetExceeded(
                f"a person who was there all along would have lost {after.lifetime}, and {self.lifetime} is the most "
                "for a lifetime.\nNothing was read and nothing was spent.\n"
                "No window helps here: only a decision of the board can raise the lifetime cap."
            )
        return after


def _read(cadence: Cadence, charge: WindowCharge) -> tuple[Period, ...]:
    first, last = charge.days
    found = [period_of(cadence, first)]
    while found[-1].last < last:
        if len(found) >= MOST_PERIODS:
            raise InvalidInput(f"one release reads more than {MOST_PERIODS} periods; nothing was charged.")
        found.append(period_of(cadence, date.fromordinal(found[-1].last.toordinal() + 1)))
    return tuple(found)


def grouped(cost: Budget, size: int) -> Budget:
    """What a person with ``size`` entries loses by a release that reads them all, by group privacy."""
    whole = Approximate(epsilon=cost.epsilon, delta=cost.delta).group(size)
    return Budget(epsilon=whole.epsilon, delta=min(Fraction(1), whole.delta))


def _day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except (TypeError, ValueError):
        raise InvalidInput(f"{text!r} is not a day; nothing was done. Write it as 2026-01-31.") from None
    if day.isoformat() != text:
        raise InvalidInput(f"{text!r} is not a day in its one form; nothing was done. Write it as 2026-01-31.")
    return day
