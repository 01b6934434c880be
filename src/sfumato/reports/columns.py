"""The columns of a release as readers see them: numbers with their 95% intervals, rounded for their margin.

Worked out once for a release, because words, tables and pictures all ask for them.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import isfinite
from typing import TYPE_CHECKING, cast

from sfumato.core.description import Description, MeasuredColumn
from sfumato.core.exact import decimal_up
from sfumato.core.release import Release
from sfumato.core.rounding import rounded, short
from sfumato.core.statement import Statement
from sfumato.core.suggestion import did_you_mean
from sfumato.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    from sfumato.inference.derived import Derived

__all__ = [
    "CONFIDENCE",
    "AnswerColumn",
    "columns_of",
    "described",
    "drawable",
    "magnitude",
    "one_of",
    "picked",
    "plain",
    "shared_margins",
    "widest_at_once",
]

CONFIDENCE = Fraction(19, 20)
NOTHING = "—"
Number = int | float | Fraction


@dataclass(frozen=True)
class AnswerColumn:
    """One column: its numbers, and their intervals where these can be worked out here.

    ``ends`` are the intervals that readers are shown: those for the population where the column estimates one
    (``quality`` then says how far they can be relied on), else those for these data. ``data_ends`` are the latter where
    they differ.
    ``measured`` is None where the numbers are those that were drawn, as for a count. ``ends`` is None where NumPy,
    which most intervals need, is not installed, and where values were chosen and not measured.
    """

    name: str
    measured: MeasuredColumn | None
    figure: "Derived | None"
    values: tuple[Number, ...]
    ends: tuple[tuple[Number, Number], ...] | None
    data_ends: tuple[tuple[Number, Number], ...] | None = None
    quality: str | None = None

    @property
    def sampled(self) -> bool:
        """Whether its intervals are for a population: sampling and noise together."""
        return self.quality is not None

    @property
    def chosen(self) -> bool:
        """Whether its values were chosen and not measured: then they have no interval, and may be names."""
        return self.figure is not None and not self.figure.measured

    @property
    def rank(self) -> int | None:
        """How many rows a chosen value can be from its place, with 95% confidence; None where that means nothing."""
        return getattr(self.figure, "rank_margin", None)

    @property
    def named(self) -> bool:
        """Whether its values are names: chosen, with no place among numbers."""
        return self.chosen and self.rank is None

    @property
    def computed(self) -> bool:
        """Whether a view made it of other columns."""
        return getattr(self.figure, "origin", self.name) is None

    @property
    def counts(self) -> bool:
        """Whether it counts rows or persons."""
        if self.chosen:
            return False
        return not self.computed if self.measured is None else self.measured.counts

    @cached_property
    def whole(self) -> bool:
        """Whether all its numbers and their ends are whole numbers."""
        ends = [end for pair in self.ends or () for end in pair]
        return all(isinstance(number, int) for number in (*self.values, *ends))

    @cached_property
    def halves(self) -> tuple[Fraction | None, ...]:
        """How far the interval of each number reaches, to its farther side; None where anything is possible."""
        return self._reaches(self.ends)

    @cached_property
    def margins(self) -> tuple[Fraction | None, ...]:
        """The same for the intervals of these data: what the noise alone does."""
        return self._reaches(self.ends if self.data_ends is None else self.data_ends)

    def _reaches(self, ends: tuple[tuple[Number, Number], ...] | None) -> tuple[Fraction | None, ...]:
        least, most = _possible(self.measured)
        found: list[Fraction | None] = []
        for value, (low, high) in zip(self.values, ends or (), strict=ends is not None):
            known = isfinite(value) and isfinite(low) and isfinite(high) and not (low <= least and high >= most)
            found.append(Fraction(max(high - value, value - low)) if known else None)
        return tuple(found)

    @cached_property
    def told(self) -> list[Fraction]:
        """The margins of the numbers that have one."""
        return [half for half in self.margins if half is not None]

    @property
    def open(self) -> int:
        """For how many numbers the noise leaves every possible value open."""
        return len(self.margins) - len(self.told)

    @property
    def shared(self) -> Fraction | None:
        """The one margin of all numbers, where they have one; one number has its own."""
        from sfumato.inference.figure import Figure

        if self.open or not self.margins:
            return None
        same = len(self.margins) == 1 or self.figure is None or isinstance(self.figure, Figure)
        return self.margins[0] if same and len(set(self.margins)) == 1 else None

    def text(self, place: int) -> str:
        """One number, rounded to the nearest digit that its margin makes worth reading; a name as it is."""
        value = self.values[place]
        if self.chosen:
            return short(value)
        found = self._rounded(place)
        return found[0] if found is not None else short(value) if math.isfinite(value) else NOTHING

    def interval(self, place: int) -> tuple[str, str] | None:
        """Both ends of its interval, rounded outward; None where they are open or cannot be worked out here."""
        found = self._rounded(place)
        return None if found is None else found[1:]

    def _rounded(self, place: int) -> tuple[str, str, str] | None:
        if self.ends is None:
            return None
        return rounded(self.values[place], *self.ends[place], whole=self.measured is not None and self.measured.counts)


@lru_cache(maxsize=8)
def described(said: Statement) -> Description:
    """What the query of a statement says of its answer."""
    if not hasattr(said.query, "describe"):
        raise Unsupported(f"there is no text yet for a {said.query.KIND}; nothing was made.")
    return said.query.describe(said)


@lru_cache(maxsize=8)
def columns_of(release: Release) -> tuple[AnswerColumn, ...]:
    """The columns of a release, in the order in which they were asked for."""
    if release.measure is not None:
        ends = tuple(release.interval(CONFIDENCE))
        return (AnswerColumn(name=release.measure, measured=None, figure=None, values=release.values, ends=ends),)
    known = described(release.statement).measured
    found = []
    for name, figure in cast("dict[str, Derived]", release.columns).items():
        data = _ends(figure, of="data")
        sampled = _ends(figure, of="population") if data is not None and figure.estimates_population else None
        column = AnswerColumn(
            name=name,
            measured=known.get(getattr(figure, "origin", name) or ""),
            figure=figure,
            values=tuple(figure.values),
            ends=sampled or data,
            data_ends=data,
            quality=figure.quality if sampled else None,
        )
        found.append(column)
    return tuple(found)


def shared_margins(release: Release) -> tuple[Fraction, Fraction] | None:
    """The margin of each number and of all at once, where there is one column and its numbers have one margin."""
    said = release.statement
    if release.measure is not None:
        numbers = len(said.values)
        return Fraction(said.law.margin(CONFIDENCE)), Fraction(said.law.margin(CONFIDENCE, numbers=numbers))
    first, *others = columns_of(release)
    each = None if others else first.shared
    if each is None:
        return None
    if first.figure is None or len(first.values) == 1:
        return each, each
    (_, high), value = first.figure.interval(CONFIDENCE, joint=True, of="data")[0], first.values[0]
    return each, max(each, Fraction(high - value))


def widest_at_once(release: Release) -> Fraction | None:
    """Within what all numbers of the first column lie at once, whichever has the widest margin; None without any."""
    first = columns_of(release)[0]
    if first.chosen or first.figure is None or not first.values:
        return None
    ends = zip(first.values, first.figure.interval(CONFIDENCE, joint=True, of="data"), strict=True)
    return Fraction(max(max(high - value, value - low) for value, (low, high) in ends))


def picked(release: Release, column: str | None) -> tuple[AnswerColumn, ...]:
    """The column of this name, or all; an unknown name is refused."""
    found = columns_of(release)
    if column is None:
        return found
    chosen = tuple(each for each in found if each.name == column)
    if not chosen:
        raise InvalidInput(
            f"this release has no column {column!r}; it has {', '.join(each.name for each in found)}. "
            f"Nothing was drawn.{did_you_mean(column, (each.name for each in found))}"
        )
    return chosen


def drawable(release: Release, column: str | None) -> tuple[AnswerColumn, ...]:
    """The columns to draw with their error; what was chosen and not measured is refused, as it has none."""
    found = picked(release, column)
    named = [each.name for each in found if each.chosen]
    if named:
        ranked = any(each.chosen and each.rank is not None for each in found)
        how = "by the exponential mechanism" if ranked else "and not measured"
        raise Unsupported(f"{', '.join(named)}: chosen {how}, so there is no error to draw; nothing was drawn.")
    return found


def one_of(release: Release, column: str | None) -> AnswerColumn:
    """The column of this name, or the first."""
    return drawable(release, column)[0]


def magnitude(size: Fraction, digits: int = 3) -> str:
    """The size of an error, rounded up to a number of digits unless it is whole.

    >>> magnitude(Fraction(12)), magnitude(Fraction(143, 1001)), magnitude(Fraction(35413401, 10))
    ('12', '0.143', '3,550,000')
    """
    if size.denominator == 1 and size < 10**9:
        return f"{size.numerator:,}"
    short = decimal_up(size, digits)
    whole, point, rest = short.partition(".")
    return f"{int(whole):,}{point}{rest}" if whole.isdigit() and "e" not in rest else short


def _ends(figure: "Derived", *, of: str) -> tuple[tuple[Number, Number], ...] | None:
    if not figure.measured:
        return None
    try:
        return tuple(figure.interval(CONFIDENCE, of=of))
    except ImportError:  # an inversion needs NumPy, and words must come without it
        return None


def _possible(measured: MeasuredColumn | None) -> tuple[float, float]:
    """What a column can be at all, a little narrower against rounding; an interval of all of it says nothing."""
    if measured is None or measured.low is None or measured.high is None:
        return -math.inf, math.inf
    low, high = float(measured.low), float(measured.high)
    slack = (high - low) * 1e-9
    return low + slack, high - slack


def plain(value: float | Fraction) -> float | None:
    """A number for a drawing; None where there is none."""
    return float(value) if math.isfinite(value) else None
