"""Figures computed from releases: sums over finer periods, and means of such a sum and an own release.

They cost nothing: only releases go in. Each carries the error of all noise in it, and names the releases it is made of.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.governance.periods import Period
from sfumato.governance.plans import FigureSource, Schedule
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.laws import DiscreteLaplace
from sfumato.runner.steps import Ingredient, inside

__all__ = ["Recipe", "Weighted", "computed", "expected_margin"]

ONE = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """A release in a figure and its weight there."""

    of: Ingredient
    weight: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Which releases make up a figure of a period."""

    schedule: Schedule

    def of(self, name: str, period: Period) -> tuple[Weighted, ...]:
        """All releases in the figure, each once, with the weights that the schedule gives them."""
        line = self.schedule.line(name)
        own = Weighted(of=Ingredient(name, period), weight=ONE)
        if line.source is FigureSource.OWN or line.of is None:
            return (own,)
        share = line.own_share if line.source is FigureSource.COMBINED else Fraction(0)
        found = [Weighted(of=own.of, weight=share)] if share else []
        if share < 1:
            finer = self.schedule.line(line.of)
            every = self.schedule.plan.release(line.of).every
            for part in inside(every, period):
                # What the solver weighed is the finer one's own release; where it has none, its figure.
                inner = (
                    self.of(line.of, part)
                    if finer.source is FigureSource.DERIVED
                    else (Weighted(of=Ingredient(line.of, part), weight=ONE),)
                )
                found += [Weighted(of=each.of, weight=(1 - share) * each.weight) for each in inner]
        return tuple(found)


def computed(parts: tuple[Weighted, ...], answer: Callable[[Ingredient], Release]) -> Mapping[str, Figure]:
    """The columns of a figure from the releases that it is made of."""
    total: dict[str, Figure] = {}
    for part in parts:
        for name, column in answer(part.of).columns.items():
            if not isinstance(column, Figure):
                raise InvalidInput(f"{name!r} is not a number that adds up over time; nothing was computed.")
            weighted = column if part.weight == 1 else column * part.weight
            total[name] = total[name] + weighted if name in total else weighted
    return total


def expected_margin(schedule: Schedule, name: str, confidence: Fraction) -> Fraction:
    """The margin that all numbers of a figure will keep together, in the longest of its periods; no data is opened.

    Assumes: a plan by sums of ε, all of whose numbers here are counts.
    """
    plan = schedule.plan
    release, line = plan.release(name), schedule.line(name)

    def law(of: str) -> DiscreteLaplace:
        return DiscreteLaplace(scale=plan.release(of).l1 / schedule.line(of).amount)

    weights = [(name, ONE)]
    if line.source is not FigureSource.OWN and line.of is not None:
        share = line.own_share if line.source is FigureSource.COMBINED else Fraction(0)
        weights = [(name, share)] if share else []
        root = _root(schedule, line.of)
        weights += [(root, 1 - share)] * (line.parts if share < 1 else 0)
    forms = tuple(
        LinearCombination(
            Fraction(0),
            {Noise(f"{place}.{number}", 0, law(of)): weight for place, (of, weight) in enumerate(weights)},
        )
        for number in range(release.numbers)
    )
    figure = Figure(forms=forms, labels={"": tuple(range(release.numbers))}, measure="", sources=())
    ((_, high), *_) = figure.interval(confidence, joint=True, of="data")
    return Fraction(high)


def _root(schedule: Schedule, name: str) -> str:
    line = schedule.line(name)
    return name if line.source is not FigureSource.DERIVED or line.of is None else _root(schedule, line.of)
