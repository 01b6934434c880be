"""Windows of time: a budget for each window, and the loss that adds up over a life.

A window does not refill anything that a person has lost. What a new window brings is new entries, (person, period)
pairs that nobody has released anything about, or people who were not there before. Who is there in several windows has
lost what they took together, and that figure is always computed beside the windows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, date
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.days import check_days, day_of
from sfumato.core.documents import LEFT_OUT
from sfumato.core.exact import natural
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
        check_days((self.first, self.last))

    @property
    def days(self) -> tuple[date, date]:
        """The first and the last day."""
        return day_of(self.first), day_of(self.last)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStanding:
    """How the windows stand: what each one lost, and what a person has lost over a lifetime.

    ``lifetime`` is the loss of a person with data in at most ``most_windows`` windows, where that was declared; else
    that of one who was there all along. ``all_along`` always is the latter.
    """

    windows: tuple[tuple[str, Budget], ...]
    lifetime: Budget
    all_along: Budget
    most_windows: int | None = None

    @property
    def words(self) -> str:
        """What a person has lost, in one sentence."""
        always = f"who was there all along has lost {self.all_along}"
        if self.most_windows is None:
            return f"A person {always}: windows do not give anything back."
        several = f"{self.most_windows} window{'s' if self.most_windows > 1 else ''}"
        return f"A person with data in at most {several} has lost at most {self.lifetime}; one {always}."

    def __str__(self) -> str:
        return "\n".join([*(f"{label}: {spent}" for label, spent in self.windows), self.words])


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindows:
    """A budget for each window of time, beside the loss of a lifetime.

    Guarantee, whatever the unit: every window that a release reads is charged its whole cost, and loses at most
    ``cap``. What that says of a person depends on the unit.

    *An event unit*, a (person, period) entry of one ``stretch``, lies in one window and loses at most ``cap``. That is
    *not* a guarantee for the person: :meth:`standing` states the lifetime loss, by group privacy over the entries that
    each release read and basic composition over the releases.

    *Any other unit* (person, row, family, node, client …) can have data in several windows. It loses at most what all
    releases cost together, which ``lifetime`` bounds. Where it has data in at most ``most_windows`` windows, it loses
    at most ``most_windows`` times ``cap``. A ``lifetime`` that is stated beside that must cover it.

    Assumes: charges state all days whose data were read, and an entry is all that one person did in one period.
    ``most_windows`` is a fact about people that the steward declares, as of a panel that everybody leaves after five
    quarters; nothing here can see it. Proof: docs/proofs/time_windows.md

    >>> from sfumato.core.units import user
    >>> panel = TimeWindows(unit=user("person", relation="add/remove"), every=Cadence.QUARTERLY,
    ...                     cap=Budget(epsilon=1), most_windows=2)
    >>> charges = [WindowCharge(first=f"2026-0{m}-01", last=f"2026-0{m}-28", cost=Budget(epsilon=1)) for m in (1, 4, 7)]
    >>> print(panel.standing(charges))
    2026-Q1: ε = 1
    2026-Q2: ε = 1
    2026-Q3: ε = 1
    A person with data in at most 2 windows has lost at most ε = 2; one who was there all along has lost ε = 3.
    """

    KIND: ClassVar[str] = "policy.time_windows"
    VERSION: ClassVar[int] = 1
    unit: Unit
    every: Cadence
    cap: Budget
    stretch: Cadence | None = field(default=None, metadata={LEFT_OUT: True})
    """How long one entry of an event unit is; other units have none."""
    lifetime: Budget | None = None
    most_windows: int | None = field(default=None, metadata={LEFT_OUT: True})
    """In how many windows one unit can have data, where that is declared; an entry lies in one."""

    def __post_init__(self) -> None:
        if self.unit.relation is not Relation.ADD_REMOVE:
            raise Refused(
                f"under replace {'an entry' if isinstance(self.unit, Event) else 'a unit'} may leave one window and "
                "enter another, so that two windows are lost; no window was opened. Use a unit under add/remove."
            )
        if self.cap.epsilon <= 0:
            raise NotDeclared("a window needs a cap above 0; no window was opened. Declare one.")
        if isinstance(self.unit, Event):
            self._check_entries()
        else:
            self._check_persons()

    def _check_entries(self) -> None:
        """Refuse entries that no window holds."""
        if self.stretch is None:
            raise NotDeclared(
                "an event unit needs stretch, how long a (person, period) entry is; no window was opened. Declare it."
            )
        if self.most_windows is not None:
            raise InvalidInput("an entry lies in one window; no window was opened. Leave most_windows out.")
        if any(parts(self.every, self.stretch, year) is None for year in (COMMON_YEAR, LEAP_YEAR)):
            raise Refused(
                f"a {self.stretch.value} entry can lie in two {self.every.value} windows, and would be charged to one; "
                "no window was opened. Use windows that such entries fill, or shorter entries."
            )

    def _check_persons(self) -> None:
        """Refuse a lifetime that the windows do not keep."""
        if self.stretch is not None:
            raise InvalidInput(
                f"{describe(self.unit)} is protected in all periods at once, and has no entries; no window was opened. "
                "Leave stretch out, or protect (person, period) entries with an event unit and say so."
            )
        if self.most_windows is None:
            return
        natural(self.most_windows, "most_windows", least=1, most=MOST_PERIODS)
        most = _times(self.cap, self.most_windows)
        if most.delta == 1:
            raise Refused(
                f"{self.most_windows} windows of {self.cap} together guarantee a person nothing; no window was opened. "
                "Declare a smaller δ for each."
            )
        if self.lifetime is not None and not self.lifetime.covers(most):
            raise Refused(
                f"in {self.most_windows} windows of {self.cap} a person can lose {most}, and {self.lifetime} is the "
                "most for a lifetime; no window was opened. Declare a smaller cap for each, or a higher lifetime."
            )

    @property
    def lifetime_cap(self) -> Budget | None:
        """The most that a person loses over a lifetime; None where nothing bounds it."""
        return self.lifetime if self.most_windows is None else _times(self.cap, self.most_windows)

    @property
    def summed_lifetime(self) -> Budget | None:
        """The cap on the sum of all charges of a life; None where the caps of the windows bound a life."""
        return self.lifetime if self.most_windows is None else None

    def windows(self, charge: WindowCharge) -> tuple[Period, ...]:
        """The windows that a charge counts in: all whose days it read."""
        return _read(self.every, charge)

    def entries(self, charge: WindowCharge) -> int:
        """How many (person, period) entries of one person a charge can have read; another unit is read once."""
        return 1 if self.stretch is None else len(_read(self.stretch, charge))

    def standing(self, charges: Iterable[WindowCharge]) -> WindowStanding:
        """What each window and a whole life have lost, exactly in ε, δ rounded up."""
        spent: dict[str, Budget] = {}
        life = Budget.none()
        for charge in charges:
            read = self.windows(charge)
            for window in read:
                spent[window.label] = spent.get(window.label, Budget.none()) + charge.cost
            life += grouped(charge.cost, self.entries(charge))
        return self.stood(spent.items(), all_along=life)

    def stood(
        self, spent: Iterable[tuple[str, Budget]], *, all_along: Budget, unopened: Budget | None = None
    ) -> WindowStanding:
        """The standing of windows with these losses; those that are not named have lost ``unopened``, or nothing.

        Who has data in at most ``most_windows`` windows lost by no release that read none of them, so at most the sum
        of the largest losses of that many windows; and nobody lost more than all releases cost.
        """
        windows = tuple(sorted(spent))
        if self.most_windows is None:
            return WindowStanding(windows=windows, lifetime=all_along, all_along=all_along)
        losses = [loss for _, loss in windows]
        if unopened is not None:
            losses += [unopened] * self.most_windows
        epsilon = sum(sorted((loss.epsilon for loss in losses), reverse=True)[: self.most_windows], start=Fraction(0))
        delta = sum(sorted((loss.delta for loss in losses), reverse=True)[: self.most_windows], start=Fraction(0))
        lifetime = Budget(epsilon=min(epsilon, all_along.epsilon), delta=min(delta, all_along.delta))
        return WindowStanding(windows=windows, lifetime=lifetime, all_along=all_along, most_windows=self.most_windows)

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
        who = "who was there all along" if self.most_windows is None else f"in {self.most_windows} windows"
        if self.lifetime is not None and not self.lifetime.covers(after.lifetime):
            raise BudgetExceeded(
                f"a person {who} would have lost {after.lifetime}, and {self.lifetime} is the most "
                "for a lifetime.\nNothing was read and nothing was spent.\n"
                "No window helps here: only a decision of the board can raise the lifetime cap."
            )
        return after


def _times(cap: Budget, times: int) -> Budget:
    """What several windows of a cap can lose together."""
    return Budget(epsilon=cap.epsilon * times, delta=min(Fraction(1), cap.delta * times))


def _read(cadence: Cadence, charge: WindowCharge) -> tuple[Period, ...]:
    first, last = charge.days
    if last.year == MAXYEAR:
        raise InvalidInput(f"windows of the year {MAXYEAR} have no end in the calendar; nothing was charged.")
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
