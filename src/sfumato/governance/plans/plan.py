"""What an institution plans to release in a year, and how accurate it wants to be: declarations, no data, no solver."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.exact import natural, positive
from sfumato.core.units import Event, Relation, Unit
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.governance.periods import Cadence, parts, periods, touched, year_of
from sfumato.laws.margins import level_of

__all__ = ["Accounting", "Aim", "Fixed", "Margin", "MeanError", "Plan", "PlannedRelease"]

MOST_RELEASES = 40
MOST_SUMS = 8  # each may be released or derived, and all choices are compared


class Accounting(Enum):
    """How the charges of a plan add up: Laplace noise and a sum of ε, or Gaussian noise and a sum of ρ."""

    BASIC = "basic"
    ZCDP = "zcdp"


class Aim(Enum):
    """What a plan makes small: its cost, the weighted sum of all variances, or the worst weighted deviation."""

    LEAST_COST = "least cost"
    LEAST_VARIANCE = "least variance"
    LEAST_WORST = "least worst error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """All numbers of a release within ±margin of the exact ones, with this confidence, counting privacy noise only."""

    KIND: ClassVar[str] = "plan.margin"
    VERSION: ClassVar[int] = 1
    margin: int
    confidence: Fraction

    def __post_init__(self) -> None:
        natural(self.margin, "margin")
        object.__setattr__(self, "confidence", level_of(self.confidence))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanError:
    """A mean absolute error of at most so much."""

    KIND: ClassVar[str] = "plan.mean_error"
    VERSION: ClassVar[int] = 1
    error: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", positive(self.error, "error"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Exactly this ε for each release."""

    KIND: ClassVar[str] = "plan.fixed"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", Budget.asked(epsilon=self.epsilon).epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRelease:
    """A figure that is released once in every period.

    ``l1`` (and ``l2_squared`` for Gaussian noise) is how far one protected unit moves one release, for the unit of the
    plan and with its limits enforced. ``numbers`` is how many numbers one release holds. ``weight`` says how much its
    error counts. ``sums`` names a finer release of which this one is the plain sum over time: true of numbers of events
    that are clipped alike, never of distinct persons. ``question`` says what is asked of which data, as whoever carries
    the plan out writes it: part of the plan's digest, so that a decision on the plan is one on its questions.

    >>> PlannedRelease(name="visits a day", every=Cadence.DAILY, l1=1).l1
    Fraction(1, 1)
    """

    KIND: ClassVar[str] = "plan.release"
    VERSION: ClassVar[int] = 1
    name: str
    every: Cadence
    l1: Fraction
    l2_squared: Fraction | None = None
    numbers: int = 1
    wanted: Margin | MeanError | Fixed | None = None
    weight: Fraction = Fraction(1)
    sums: str | None = None
    question: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidInput("a planned release needs a name; nothing was planned.")
        object.__setattr__(self, "l1", positive(self.l1, "l1"))
        object.__setattr__(self, "weight", positive(self.weight, "weight"))
        if self.l2_squared is not None:
            object.__setattr__(self, "l2_squared", positive(self.l2_squared, "l2 squared"))
        natural(self.numbers, "numbers", most=10**9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The releases of one year, the cap that they share, whom it protects, and what is to be made small.

    Guarantee: :meth:`charged` is how often one protected unit pays for a release in the year: once per period for
    every unit but an event, which lies in one period (two under replace), or in as many as its ``stretch`` touches.
    Assumes: ``stretch`` is what one (person, time) entry of an event unit covers; None says that it is one instant.

    >>> from sfumato.core.units import event, user
    >>> daily = PlannedRelease(name="visits", every=Cadence.DAILY, l1=1, wanted=Fixed(epsilon=Fraction(1, 100)))
    >>> def year(unit):
    ...     cap = Budget(epsilon=4)
    ...     return Plan(name="board", year=2026, unit=unit, cap=cap, releases=(daily,), aim=Aim.LEAST_COST)
    >>> [year(unit).charged(daily) for unit in (user("patient_id", relation="add/remove"), event(relation="replace"))]
    [365, 2]
    """

    KIND: ClassVar[str] = "plan"
    VERSION: ClassVar[int] = 1
    name: str
    year: int
    unit: Unit
    cap: Budget
    releases: tuple[PlannedRelease, ...]
    aim: Aim
    accounting: Accounting = Accounting.BASIC
    stretch: Cadence | None = None

    def __post_init__(self) -> None:
        year_of(self.year)
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidInput("a plan needs a name; nothing was planned.")
        object.__setattr__(self, "releases", tuple(self.releases))
        natural(len(self.releases), "the number of planned releases", most=MOST_RELEASES)
        names = [release.name for release in self.releases]
        if len(set(names)) != len(names):
            raise InvalidInput("two releases of the plan have one name; nothing was planned. Give each its own.")
        self._check_cap()
        self._check_sums()
        if self.stretch is not None and not isinstance(self.unit, Event):
            raise InvalidInput("stretch belongs to an event unit, a (person, time) entry; nothing was planned.")
        if self.aim is Aim.LEAST_COST:
            for release in self.releases:
                if release.wanted is None:
                    raise NotDeclared(
                        f"{release.name!r} states no accuracy, so its least cost is not defined; nothing was planned. "
                        'Give it a margin, a mean error or a fixed ε, or plan for "least variance".'
                    )

    def _check_cap(self) -> None:
        if self.cap.epsilon <= 0:
            raise NotDeclared(f"the plan {self.name!r} has no cap above 0; nothing was planned. Declare one.")
        if self.accounting is Accounting.ZCDP:
            if self.cap.delta == 0:
                raise NotDeclared("zCDP needs a cap with δ above 0; nothing was planned. Declare delta=….")
            for release in self.releases:
                if release.l2_squared is None and not isinstance(release.wanted, Fixed):
                    raise NotDeclared(
                        f"{release.name!r} would get Gaussian noise and has no l2 bound; nothing was planned. "
                        "Declare l2_squared=…"
                    )

    def _check_sums(self) -> None:
        sums = [release for release in self.releases if release.sums is not None]
        natural(len(sums), "the number of releases that are sums of finer ones", least=0, most=MOST_SUMS)
        for release in sums:
            finer = self.release(str(release.sums))
            if parts(release.every, finer.every, self.year) in (None, 1):
                raise Refused(
                    f"{release.name!r} ({release.every.value}) cannot be the sum of {finer.name!r} "
                    f"({finer.every.value}): those periods do not fill it. Nothing was planned. "
                    "Days fill everything, months fill quarters and years, weeks fill nothing."
                )
            if release.numbers != finer.numbers:
                raise InvalidInput(
                    f"{release.name!r} holds {release.numbers} number(s) and {finer.name!r} {finer.numbers}; "
                    "one cannot be the sum of the other, and nothing was planned."
                )

    def release(self, name: str) -> PlannedRelease:
        """The planned release of a name."""
        for release in self.releases:
            if release.name == name:
                return release
        raise InvalidInput(f"the plan {self.name!r} has no release named {name!r}; nothing was planned.")

    def periods(self, release: PlannedRelease) -> int:
        """How often it is released in the year."""
        return len(periods(release.every, self.year))

    def charged(self, release: PlannedRelease) -> int:
        """How many of the year's releases one protected unit can move, and so pays for."""
        count = self.periods(release)
        if not isinstance(self.unit, Event):
            return count
        places = (
            1 if self.unit.relation is Relation.ADD_REMOVE else 2
        )  # replace: it leaves one place and enters another
        return min(count, places * touched(release.every, self.stretch, self.year))

    def root(self, release: PlannedRelease, derived: Iterable[str]) -> PlannedRelease:
        """The release with noise of its own that a derived one is made of."""
        names = set(derived)
        while release.name in names:
            release = self.release(str(release.sums))
        return release
