"""Why a plan does not fit: the constraint that binds, by how much, and what would make it fit."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.core.exact import decimal_up
from sfumato.core.search import least_whole
from sfumato.governance.periods import parts
from sfumato.governance.plans.plan import Accounting, Fixed, Margin, MeanError, Plan, PlannedRelease
from sfumato.governance.plans.prices import Price, floor_of, law_at

__all__ = ["LeastCost", "Remedy", "Shortfall", "explain"]

MOST_WIDENING = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastCost:
    """The cheapest way to meet all targets of a plan: what is derived, the least amounts, and their sum."""

    derived: tuple[str, ...]
    amounts: tuple[Fraction, ...]
    total: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """The margin at which one release would fit by itself, with every other one as it stands."""

    name: str
    margin: int | Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """What a plan needs and what there is.

    ``widened`` is the least whole percentage to which all margins and mean errors would have to grow for it to fit;
    None where fixed amounts alone, or prices given as functions, are too much.
    """

    plan: str
    letter: str
    needed: Fraction
    cap: Fraction
    binding: str
    largest: str
    largest_total: Fraction
    widened: int | None
    remedies: tuple[Remedy, ...]

    def __str__(self) -> str:
        lines = [
            f"the plan {self.plan!r} needs at least {self.letter} = {_short(self.needed)} in its year, and "
            f"{self.binding} is {self.letter} = {_short(self.cap)}.",
            "Nothing was planned and nothing was spent.",
            f"The largest part is {self.largest!r} with {self.letter} = {_short(self.largest_total)}.",
            "It would fit with",
            f"- a cap of {self.letter} = {_short(self.needed)}, which is for the board to decide;",
        ]
        lines += [
            f"- or a margin of ±{decimal_up(Fraction(remedy.margin))} for {remedy.name!r} alone;"
            for remedy in self.remedies
        ]
        if self.widened is not None:
            lines.append(f"- or all margins {decimal_up(Fraction(self.widened, 100), 9)} times as wide;")
        lines.append("- or fewer periods, or coarser figures that are derived from finer ones (sums=…).")
        return "\n".join(lines)


def explain(plan: Plan, cap: Fraction, binding: str, least: LeastCost, prices: Mapping[str, Price]) -> Shortfall:
    """Put the numbers together for a plan whose least amounts are above the cap."""
    derived = set(least.derived)
    totals = {
        release.name: plan.charged(release) * amount
        for release, amount in zip(plan.releases, least.amounts, strict=True)
        if release.name not in derived
    }
    largest = max(totals, key=lambda name: totals[name])
    remedies = []
    for release in plan.releases:
        room = cap - (least.total - totals.get(release.name, Fraction(0)))
        rests = any(plan.root(other, derived) == release for other in plan.releases if other.name in derived)
        free = isinstance(release.wanted, Margin) and release.name in totals and release.name not in prices
        if free and room > 0 and not rests and isinstance(release.wanted, Margin):
            law = law_at(release, room / plan.charged(release), plan.accounting)
            margin = law.margin(release.wanted.confidence, numbers=release.numbers)
            remedies.append(Remedy(name=release.name, margin=margin))
    return Shortfall(
        plan=plan.name,
        letter="ε" if plan.accounting is Accounting.BASIC else "ρ",
        needed=least.total,
        cap=cap,
        binding=binding,
        largest=largest,
        largest_total=totals[largest],
        widened=_widened(plan, cap, derived, prices),
        remedies=tuple(remedies),
    )


def _widened(plan: Plan, cap: Fraction, derived: set[str], prices: Mapping[str, Price]) -> int | None:
    def excess(percent: int) -> float:
        need = _needed(plan, derived, prices, Fraction(max(percent, 100), 100))
        return math.inf if cap <= 0 else float(need / cap - 1) or 0.0

    if cap <= 0 or _needed(plan, derived, prices, Fraction(MOST_WIDENING)) > cap:
        return None
    return least_whole(lambda percent: excess(percent), near=200)


def _needed(plan: Plan, derived: set[str], prices: Mapping[str, Price], factor: Fraction) -> Fraction:
    amounts: dict[str, Fraction] = {}
    for release in plan.releases:
        root = plan.root(release, derived)
        pieces = 1 if root == release else parts(release.every, root.every, plan.year) or 1
        wider = _wider(release, factor)
        least = floor_of(wider, root, plan.accounting, parts=pieces, price=prices.get(release.name))
        amounts[root.name] = max(amounts.get(root.name, Fraction(0)), least)
    return sum((plan.charged(plan.release(name)) * amount for name, amount in amounts.items()), Fraction(0))


def _wider(release: PlannedRelease, factor: Fraction) -> PlannedRelease:
    match release.wanted:
        case Margin(margin=margin):
            return replace(release, wanted=replace(release.wanted, margin=math.floor(margin * factor)))
        case MeanError(error=error):
            return replace(release, wanted=replace(release.wanted, error=error * factor))
        case Fixed() | None:
            return release


def _short(amount: Fraction) -> str:
    return decimal_up(amount, 9)
