"""Numbers over time: how each has changed, and which stand out further than noise and chance explain.

*Trend*: a number has changed where the 95% interval of the difference to the period before leaves 0 out; noise that
both share is counted once. *Alarm*: a number stands out where it is further from the mean of the :data:`BASELINE`
comparable periods before it than √(n² + 9c): n is what the privacy noise in the difference does not pass in
:data:`RARELY` of all cases, by its exact distribution, and c the variance of counting people, as of a Poisson count. A
daily number is compared with the same day of earlier weeks, and no number with one that stood out itself. Both are
post-processing and cost nothing.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination

__all__ = ["BASELINE", "RARELY", "AlarmShown", "Shown", "TrendDirection", "shown_series"]

BASELINE = 8
RARELY = Fraction(9973, 10_000)
"""What a normal variable keeps within three standard deviations."""
LEVEL = Fraction(19, 20)
Number = int | Fraction


class TrendDirection(Enum):
    """How a number compares with the period before."""

    UP = "up"
    DOWN = "down"
    LEVEL = "level"
    FIRST = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmShown:
    """A number that stands out: above or below what was expected, and within what of that it should have been."""

    high: bool
    expected: Fraction
    within: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A number with its 95% interval, its change since the period before, and its alarm where it stands out."""

    name: str
    value: Number
    low: Number
    high: Number
    direction: TrendDirection
    change: tuple[Number, Number, Number] | None
    """The difference to the period before and its interval."""
    alarm: AlarmShown | None


def shown_series(
    series: Sequence[Mapping[str, Figure]], *, counting: Collection[str], daily: bool
) -> list[tuple[Shown, ...]]:
    """The numbers of each period; an empty mapping is a period without a report, and gives none.

    ``counting`` are the columns that count rows or people: others have no alarm, as nobody knows how they vary. What is
    ``daily`` is compared with the same day of earlier weeks.
    """
    known: dict[object, Fraction] = {}
    step = 7 if daily else 1
    forms = [dict(_forms(columns)) for columns in series]
    counts = {name for columns in series for name in _named(columns, counting)}
    quiet: dict[tuple[str, int], list[LinearCombination]] = {}
    found = []
    for place, mine in enumerate(forms):
        before = forms[place - 1] if place else {}
        numbers = []
        for name, form in mine.items():
            low, high = _ends(form, known)
            change = _changed(form, before.get(name), known)
            before_it = quiet.setdefault((name, place % step), [])
            alarm = _alarm(form, before_it[-BASELINE:], known) if name in counts else None
            if alarm is None:
                before_it.append(form)
            numbers.append(
                Shown(
                    name=name,
                    value=_plain(form.value),
                    low=low,
                    high=high,
                    direction=_direction(change),
                    change=change,
                    alarm=alarm,
                )
            )
        found.append(tuple(numbers))
    return found


def _forms(columns: Mapping[str, Figure]) -> Iterator[tuple[str, LinearCombination]]:
    """Every number of a report by its name."""
    for column, figure in columns.items():
        yield from zip(_names(column, figure, alone=len(columns) == 1), figure.forms, strict=True)


def _named(columns: Mapping[str, Figure], wanted: Collection[str]) -> Iterator[str]:
    """The names of the numbers in some columns of a report."""
    for column, figure in columns.items():
        if column in wanted:
            yield from _names(column, figure, alone=len(columns) == 1)


def _names(column: str, figure: Figure, *, alone: bool) -> list[str]:
    """The names of a column's numbers: the group, and the column where there are several or no groups."""
    groups = list(zip(*figure.labels.values(), strict=True)) if figure.labels else [()] * len(figure.forms)
    return [" · ".join([*(str(part) for part in group), *([] if alone and group else [column])]) for group in groups]


def _ends(form: LinearCombination, known: dict[object, Fraction]) -> tuple[Number, Number]:
    margin = _margin(form, known)
    return _plain(form.value - margin), _plain(form.value + margin)


def _margin(form: LinearCombination, known: dict[object, Fraction], level: Fraction = LEVEL) -> Fraction:
    """The margin of a number; worked out once for each shape."""
    if (form.shape, level) not in known:
        known[form.shape, level] = form.margin(level) if form.noises else Fraction(0)
    return known[form.shape, level]


def _changed(
    form: LinearCombination, before: LinearCombination | None, known: dict[object, Fraction]
) -> tuple[Number, Number, Number] | None:
    """The difference to the period before and its interval; None where there is none."""
    if before is None:
        return None
    difference = form.plus(before, Fraction(-1))
    margin = _margin(difference, known)
    return _plain(difference.value), _plain(difference.value - margin), _plain(difference.value + margin)


def _direction(change: tuple[Number, Number, Number] | None) -> TrendDirection:
    if change is None:
        return TrendDirection.FIRST
    _, low, high = change
    return TrendDirection.UP if low > 0 else TrendDirection.DOWN if high < 0 else TrendDirection.LEVEL


def _alarm(
    form: LinearCombination, past: Sequence[LinearCombination], known: dict[object, Fraction]
) -> AlarmShown | None:
    """An alarm, where enough comparable periods came before."""
    if len(past) < BASELINE:
        return None
    share = Fraction(1, len(past))
    expected = sum((one.value for one in past), Fraction(0)) * share
    difference = form
    for one in past:
        difference = difference.plus(one, -share)
    noise = _margin(difference, known, RARELY)
    counting = max(expected, Fraction(1)) * (1 + share)
    within = Fraction(math.sqrt(noise**2 + 9 * counting))
    if abs(difference.value) <= within:
        return None
    return AlarmShown(high=difference.value > 0, expected=expected, within=within)


def _plain(value: Fraction) -> Number:
    return value.numerator if value.denominator == 1 else value
