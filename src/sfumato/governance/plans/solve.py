"""From a plan to its schedule: least amounts, what may be derived, the split, and what binds where none fits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

from sfumato.accounting.filters import ZCDPFilter
from sfumato.core.budget import Budget
from sfumato.errors import BudgetExceeded, InvalidInput, Refused
from sfumato.governance.periods import parts
from sfumato.governance.plans import combine, shortfall
from sfumato.governance.plans.plan import Accounting, Aim, Fixed, Plan, PlannedRelease
from sfumato.governance.plans.prices import Price, floor_of, spread
from sfumato.governance.plans.schedule import Compared, FigureSource, Schedule, ScheduledLine
from sfumato.governance.plans.split import fill, root_share, shaved

__all__ = ["solve"]

CLOSED = "closed form"
SEARCHED = "constrained optimisation"
LEAST = "least amounts"


def solve(
    plan: Plan, *, levels: Mapping[str, Budget] | None = None, prices: Mapping[str, Price] | None = None
) -> Schedule:
    """Find the amounts of a plan, or refuse with the constraint that binds, the numbers, and what would make it fit.

    ``levels`` are what accounts above the plan have left, by name: the smallest of them and the plan's own cap binds.
    ``prices`` give the least amount of a release by a function of one's own, such as a table's ``epsilon_for``.
    Guarantee: exact amounts whose sum never exceeds any level. Public: everything; no data is opened, nothing is spent.

    >>> from sfumato.core.units import user
    >>> from sfumato.governance.periods import Cadence
    >>> releases = (PlannedRelease(name="daily", every=Cadence.DAILY, l1=1),
    ...             PlannedRelease(name="monthly", every=Cadence.MONTHLY, l1=1, weight=Fraction(64)))
    >>> year = Plan(name="board", year=2026, unit=user("patient_id", relation="add/remove"),
    ...             cap=Budget(epsilon=8), releases=releases, aim=Aim.LEAST_VARIANCE)
    >>> print(solve(year))
    board 2026: ε = 7.99998 of 8 (the plan's own cap); closed form
      daily: 365 released, ε = 0.0193704 each, ε = 7.070196 a year
      monthly: 12 released, ε = 0.0774818 each, ε = 0.9297816 a year
    """
    task = _Task.of(plan, levels or {}, prices or {})
    ways = [task.tried(frozenset(derived)) for derived in task.choices()]
    fitting = [way for way in ways if way.value is not None]
    if not fitting:
        raise BudgetExceeded(str(shortfall.explain(plan, task.cap, task.binding, _cheapest(ways), task.prices)))
    best = min(fitting, key=lambda way: (_value(way), -len(way.derived)))  # equal: derive, and release less
    compared = [Compared(way=_kind(way), derived=way.derived, value=way.value) for way in ways]
    if plan.aim is Aim.LEAST_VARIANCE and len(ways) > 1 and ways[0].least < task.cap:
        mixed = task.mixed([way.amounts for way in fitting])
        compared.append(Compared(way=FigureSource.COMBINED, derived=tuple(sorted(task.sums)), value=mixed.value))
        best = min(best, mixed, key=_value)
    return Schedule(
        plan=plan,
        lines=tuple(task.line(release, best) for release in plan.releases),
        cap=task.cap,
        binding=task.binding,
        method=best.method,
        compared=tuple(compared),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One way to meet the plan: what is derived, the least amounts, the amounts, and how good it is."""

    derived: tuple[str, ...]
    combined: bool
    floors: tuple[Fraction, ...]
    amounts: tuple[Fraction, ...]
    least: Fraction
    value: Fraction | None
    method: str


def _value(way: _Way) -> Fraction:
    if way.value is None:
        raise InvalidInput("a way that does not fit has no value; nothing was planned.")
    return way.value


def _kind(way: _Way) -> FigureSource:
    return FigureSource.DERIVED if way.derived else FigureSource.OWN


def _cheapest(ways: list[_Way]) -> shortfall.LeastCost:
    way = min(ways, key=lambda way: way.least)
    return shortfall.LeastCost(derived=way.derived, amounts=way.floors, total=way.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """A plan with its cap in the plan's own currency, and the least amount that each figure asks of each source."""

    plan: Plan
    cap: Fraction
    binding: str
    prices: Mapping[str, Price]
    power: int

    @classmethod
    def of(cls, plan: Plan, levels: Mapping[str, Budget], prices: Mapping[str, Price]) -> "_Task":
        for name in prices:
            plan.release(name)
        caps = {"the plan's own cap": _currency(plan, plan.cap)}
        for name, left in levels.items():
            caps[f"what {name!r} has left"] = _currency(plan, left)
        binding = min(caps, key=lambda name: caps[name])
        power = 2 if plan.accounting is Accounting.BASIC else 1
        return cls(plan=plan, cap=caps[binding], binding=binding, prices=prices, power=power)

    @property
    def sums(self) -> list[str]:
        """What may be derived: sums of finer releases whose amount nobody fixed or priced by a function."""
        return [
            release.name
            for release in self.plan.releases
            if release.sums is not None and not isinstance(release.wanted, Fixed) and release.name not in self.prices
        ]

    def choices(self) -> Iterator[tuple[str, ...]]:
        """Every set of figures that could be derived, the empty one first."""
        names = self.sums
        for size in range(len(names) + 1):
            yield from combinations(names, size)

    def tried(self, derived: frozenset[str]) -> _Way:
        """One choice of what is derived, met as well as it can be."""
        plan = self.plan
        places = {release.name: place for place, release in enumerate(plan.releases)}
        floors = [Fraction(0)] * len(places)
        for release in plan.releases:
            root = plan.root(release, derived)
            place = places[root.name]
            floors[place] = max(floors[place], self._floor(release, root))
        for release in plan.releases:
            if isinstance(release.wanted, Fixed) and self._floor(release, release) < floors[places[release.name]]:
                return self._way(derived, floors, None)  # what is derived from it would need more than was fixed
        times = self._times(derived)
        least = _total(times, floors)
        if least > self.cap:
            return self._way(derived, floors, None)
        if plan.aim is Aim.LEAST_COST:
            return self._way(derived, floors, floors, value=least, method=LEAST)
        free = [
            place
            for place, release in enumerate(plan.releases)
            if times[place] and not isinstance(release.wanted, Fixed)
        ]
        shares = self._shares(derived)
        held = _total([0 if place in free else times[place] for place in range(len(times))], floors)
        amounts = list(floors)
        if free and held < self.cap:
            filled = fill(
                [shares[place] for place in free],
                [times[place] for place in free],
                [floors[place] for place in free],
                self.cap - held,
            )
            for place, amount in zip(free, shaved(filled, [floors[place] for place in free]), strict=True):
                amounts[place] = amount
        if any(times[place] and not amount for place, amount in enumerate(amounts)):
            return self._way(derived, floors, None)  # nothing is left for a release
        return self._way(derived, floors, amounts, value=self._worth(derived, amounts), method=CLOSED)

    def mixed(self, starts: list[tuple[Fraction, ...]]) -> _Way:
        """All sums combined with their own release, where an optimiser has found how much to give to each."""
        times = self._times(frozenset())
        floors = [self._floor(release, release) for release in self.plan.releases]  # its own release keeps its target
        even = tuple(self.cap / (len(times) * count) for count in times)
        figures = self._figures()
        fixed = [place for place, release in enumerate(self.plan.releases) if isinstance(release.wanted, Fixed)]
        amounts = combine.least_variance(
            figures, times, floors, self.cap, power=self.power, starts=[*starts, even], held=frozenset(fixed)
        )
        short = shaved(amounts, floors)
        return _Way(
            derived=(),
            combined=True,
            floors=tuple(floors),
            amounts=short,
            least=_total(times, floors),
            value=combine.objective(figures, short, self.power),
            method=SEARCHED,
        )

    def line(self, release: PlannedRelease, way: _Way) -> ScheduledLine:
        """The line of a release in a schedule."""
        plan, place = self.plan, self.plan.releases.index(release)
        derived = frozenset(way.derived)
        amount = way.amounts[place]
        source, of, pieces, own = FigureSource.OWN, None, 1, Fraction(1)
        if release.name in derived:
            root = plan.root(release, derived)
            source, of, pieces, own, amount = (
                FigureSource.DERIVED,
                root.name,
                self._pieces(release, root),
                Fraction(0),
                amount * 0,
            )
        elif way.combined and release.name in self.sums:
            finer = plan.release(str(release.sums))
            figure = self._figures()[place]
            whole = combine.precision(figure, way.amounts, self.power)
            alone = combine.precision(
                combine.CombinedFigure(counts=figure.counts, sources=figure.sources[:1]), way.amounts, self.power
            )
            of, pieces, own = finer.name, self._pieces(release, finer), alone / whole
            source = FigureSource.COMBINED if amount else FigureSource.DERIVED
        return ScheduledLine(
            name=release.name,
            source=source,
            periods=plan.periods(release),
            charged=plan.charged(release) if source is not FigureSource.DERIVED else 0,
            amount=amount,
            of=of,
            parts=pieces,
            own_share=own.limit_denominator(10**9),
        )

    def _way(
        self,
        derived: frozenset[str],
        floors: list[Fraction],
        amounts: list[Fraction] | None,
        *,
        value: Fraction | None = None,
        method: str = LEAST,
    ) -> _Way:
        return _Way(
            derived=tuple(sorted(derived)),
            combined=False,
            floors=tuple(floors),
            amounts=tuple(floors if amounts is None else amounts),
            least=_total(self._times(derived), floors),
            value=value,
            method=method,
        )

    def _times(self, derived: frozenset[str]) -> list[int]:
        """How often one unit pays for each release; never for a derived one."""
        return [0 if release.name in derived else self.plan.charged(release) for release in self.plan.releases]

    def _pieces(self, release: PlannedRelease, root: PlannedRelease) -> int:
        if release.name == root.name:
            return 1
        count = parts(release.every, root.every, self.plan.year)
        if count is None:
            raise Refused(f"{root.name!r} does not fill {release.name!r}; nothing was planned.")
        return count

    def _floor(self, release: PlannedRelease, root: PlannedRelease) -> Fraction:
        price = self.prices.get(release.name)
        return _floor(release, root, self.plan.accounting, self._pieces(release, root), price)

    def _spread(self, root: PlannedRelease) -> Fraction:
        """The variance of a release at an amount of 1, to the power of the plan."""
        if isinstance(root.wanted, Fixed) and self.plan.accounting is Accounting.ZCDP:
            return 2 * root.l1**2 / root.wanted.epsilon**2 * self._floor(root, root)  # Laplace noise, whatever ρ is
        return spread(root, self.plan.accounting)

    def _worth(self, derived: frozenset[str], amounts: list[Fraction]) -> Fraction:
        """The weighted sum of variances, or the largest weighted variance."""
        plan, total, worst = self.plan, Fraction(0), Fraction(0)
        for release in plan.releases:
            root = plan.root(release, derived)
            amount = amounts[plan.releases.index(root)]
            variance = self._pieces(release, root) * self._spread(root) / amount**self.power
            total += plan.periods(release) * release.weight * variance
            worst = max(worst, release.weight * variance)
        return total if plan.aim is Aim.LEAST_VARIANCE else worst

    def _shares(self, derived: frozenset[str]) -> list[Fraction]:
        """The closed form: what each source gets is proportional to this.

        Least variance: Σ c_i·s_i/x_i^p under Σ m_i·x_i ≤ E has x_i ∝ (c_i·s_i/m_i)^(1/(p + 1)), where c_i counts the
        periods, weights and parts of all figures that rest on source i. Least worst: w·s/x^p is equal for all, so
        x ∝ (w·s)^(1/p).
        """
        plan = self.plan
        counts = [Fraction(0)] * len(plan.releases)
        for release in plan.releases:
            root = plan.root(release, derived)
            place = plan.releases.index(root)
            load = release.weight * self._pieces(release, root)
            if plan.aim is Aim.LEAST_VARIANCE:
                counts[place] += plan.periods(release) * load / plan.charged(root)
            else:
                counts[place] = max(counts[place], load)
        power = Fraction(1, self.power + 1 if plan.aim is Aim.LEAST_VARIANCE else self.power)
        return [
            root_share(count * self._spread(release), power) if count else Fraction(0)
            for count, release in zip(counts, plan.releases, strict=True)
        ]

    def _figures(self) -> list[combine.CombinedFigure]:
        plan = self.plan
        figures = []
        for place, release in enumerate(plan.releases):
            sources = [(place, self._spread(release))]
            if release.name in self.sums:
                finer = plan.release(str(release.sums))
                pieces = self._pieces(release, finer)
                sources.append((plan.releases.index(finer), pieces * self._spread(finer)))
            figures.append(
                combine.CombinedFigure(counts=plan.periods(release) * release.weight, sources=tuple(sources))
            )
        return figures


@lru_cache(maxsize=1024)
def _floor(
    release: PlannedRelease, root: PlannedRelease, accounting: Accounting, pieces: int, price: Price | None
) -> Fraction:
    return floor_of(release, root, accounting, parts=pieces, price=price)


def _currency(plan: Plan, budget: Budget) -> Fraction:
    return budget.epsilon if plan.accounting is Accounting.BASIC else _rho(budget)


@lru_cache(maxsize=1024)
def _rho(budget: Budget) -> Fraction:
    return ZCDPFilter.within(budget).rho if budget.delta and budget.epsilon else Fraction(0)


def _total(times: list[int], amounts: list[Fraction]) -> Fraction:
    return sum((count * amount for count, amount in zip(times, amounts, strict=True)), Fraction(0))
