"""What a plan comes to: for each release where it comes from, what it charges and how large its error will be."""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.events import DiscreteLaplace, Gaussian
from sfumato.core.exact import Exact, decimal_up
from sfumato.core.guarantees import ZCDP
from sfumato.governance.plans.plan import Accounting, Fixed, Plan, PlannedRelease
from sfumato.governance.plans.prices import law_at, scale_at

__all__ = ["Compared", "FigureSource", "Schedule", "ScheduledLine"]


class FigureSource(Enum):
    """Where a figure comes from."""

    OWN = "released"
    DERIVED = "derived"
    COMBINED = "combined"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledLine:
    """One release of a plan.

    ``amount`` is what each release of this name charges (ε, or ρ in a plan that adds up ρ), 0 for a derived one;
    ``charged`` is how many of them one protected unit pays for. ``parts`` of the releases named by ``of`` make up a
    derived figure. ``own_share`` is the weight of its own release in a combined figure, 1 for any other that has one.
    """

    KIND: ClassVar[str] = "plan.line"
    VERSION: ClassVar[int] = 1
    name: str
    source: FigureSource
    periods: int
    charged: int
    amount: Fraction
    of: str | None
    parts: int
    own_share: Fraction

    @property
    def total(self) -> Fraction:
        """What the year's releases of this name charge one protected unit together."""
        return self.charged * self.amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One way to meet a plan that was weighed: which figures are derived or combined, and what it comes to.

    ``value`` is the total cost for the aim of least cost, else the weighted sum of variances or the worst weighted
    variance; None where the way does not fit the cap.
    """

    KIND: ClassVar[str] = "plan.compared"
    VERSION: ClassVar[int] = 1
    way: FigureSource
    derived: tuple[str, ...]
    value: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A plan with an amount for every release.

    Guarantee: the exact sum of all charges is at most ``cap``, the amount at the level named by ``binding``; by basic
    composition of ε, or of ρ. :meth:`tight` shows a smaller figure for the same plan; what is charged is this.

    ``method`` says how the amounts were found, ``compared`` which ways were weighed against one another.
    """

    KIND: ClassVar[str] = "plan.schedule"
    VERSION: ClassVar[int] = 1
    plan: Plan
    lines: tuple[ScheduledLine, ...]
    cap: Fraction
    binding: str
    method: str
    compared: tuple[Compared, ...]

    @property
    def total(self) -> Fraction:
        """Σ charged·amount, exactly, in ε or ρ."""
        return sum((line.total for line in self.lines), Fraction(0))

    @property
    def left(self) -> Fraction:
        """What the plan leaves of the cap."""
        return self.cap - self.total

    @property
    def guarantee(self) -> Budget:
        """The (ε, δ) guarantee of the whole plan for one protected unit."""
        if self.plan.accounting is Accounting.BASIC:
            return Budget(epsilon=self.total)
        delta = self.plan.cap.delta
        return Budget(epsilon=ZCDP(rho=self.total).epsilon_at(delta), delta=delta)

    def events(self) -> tuple[DiscreteLaplace | Gaussian, ...]:
        """Every release that one protected unit can move, as an accountant reads it."""
        found: list[DiscreteLaplace | Gaussian] = []
        for line in self.lines:
            if line.source is FigureSource.DERIVED:
                continue
            release, amount, accounting = self._noisy(line)
            scale = scale_at(release, amount, accounting)
            if accounting is Accounting.BASIC:
                found += [DiscreteLaplace(l1=release.l1, scale=scale)] * line.charged
            elif release.l2_squared is not None:
                found += [Gaussian(l2_squared=release.l2_squared, sigma_squared=scale**2)] * line.charged
        return tuple(found)

    def tight(self, delta: Exact) -> Fraction:
        """The ε of the whole plan at a δ by its privacy loss distribution, rounded up: a figure to show, not to charge.

        Guarantee: holds while the plan is carried out as it stands. It is fixed beforehand; once a release is added,
        left out or changed because of an answer, only :attr:`guarantee` holds. Needs NumPy and SciPy.
        """
        from sfumato import accounting

        return accounting.epsilon(self.events(), delta=delta)

    def line(self, name: str) -> ScheduledLine:
        """The line of a release."""
        self.plan.release(name)
        return next(line for line in self.lines if line.name == name)

    def noise(self, name: str) -> tuple[str, Fraction]:
        """The noise of a release that charges, and its scale: ("laplace", b) or ("gaussian", σ)."""
        release, amount, accounting = self._noisy(self.line(name))
        return ("laplace" if accounting is Accounting.BASIC else "gaussian"), scale_at(release, amount, accounting)

    def margin(self, name: str, confidence: Exact = Fraction(19, 20)) -> int | Fraction:
        """The margin that all numbers of one release keep with this confidence, counting privacy noise only.

        For a combined figure it is the smaller margin of its two sources: a bound of what can be had, not the best.
        """
        line, release = self.line(name), self.plan.release(name)
        margins = []
        if line.source is not FigureSource.DERIVED:
            own, amount, accounting = self._noisy(line)
            margins.append(law_at(own, amount, accounting).margin(confidence, numbers=release.numbers))
        if line.of is not None:
            root, amount, accounting = self._noisy(self.line(line.of))
            law = law_at(root, amount, accounting, parts=line.parts)
            margins.append(law.margin(confidence, numbers=release.numbers))
        return min(margins)

    def _noisy(self, line: ScheduledLine) -> tuple[PlannedRelease, Fraction, Accounting]:
        """The release, the amount and the accounting in which its noise is Laplace or Gaussian."""
        release = self.plan.release(line.name)
        if isinstance(release.wanted, Fixed):
            return release, release.wanted.epsilon, Accounting.BASIC
        return release, line.amount, self.plan.accounting

    def __str__(self) -> str:
        letter = "ε" if self.plan.accounting is Accounting.BASIC else "ρ"
        rows = []
        for line in self.lines:
            if line.source is FigureSource.DERIVED:
                rows.append(f"  {line.name}: {line.periods} derived, each a sum of {line.parts} of {line.of!r}, free")
            else:
                also = f", combined with {line.parts} of {line.of!r}" if line.source is FigureSource.COMBINED else ""
                rows.append(
                    f"  {line.name}: {line.periods} released, {letter} = {decimal_up(line.amount, 9)} each, "
                    f"{letter} = {decimal_up(line.total, 9)} a year{also}"
                )
        top = f"{self.plan.name} {self.plan.year}: {letter} = {decimal_up(self.total, 6)} of {decimal_up(self.cap, 6)}"
        return "\n".join([f"{top} ({self.binding}); {self.method}", *rows])
