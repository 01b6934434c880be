"""Blocks: which whole numbers are added up so that all measures of a question can be read off them.

Measures share what they can. The parts of a value tell its count, sum, mean and variance at once, for the loss of one
of them; the rows without a value are one more part, which tells the count of all rows. What cannot be shared splits
the loss in equal parts, because every block has the same height.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from sfumato.engines.expressions import Expression
from sfumato.engines.gauges import Everyone, Gauge, Persons, Powers, Products, Rows, Signed, Split
from sfumato.engines.lattice import Lattice
from sfumato.errors import InvalidInput, Refused
from sfumato.tables.contribution import Move, Reach
from sfumato.tables.measures import (
    Association,
    Average,
    Measure,
    PersonCount,
    Proportion,
    Quotient,
    Ranged,
    RowCount,
    Total,
    Variation,
)

__all__ = ["Block", "Key", "blocks_of", "key_of"]

STEPS = 2**30  # of a lattice; 2^15 for squares and products, so that every row has the same height
ROOT = 2**15


@dataclass(frozen=True, slots=True)
class Key:
    """What a block is about: a kind, and the condition or the values that it measures."""

    kind: str
    about: tuple[Ranged | Expression | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A gauge, what it is about, and how far one row moves it."""

    key: Key
    gauge: Gauge
    reach: Reach

    @property
    def height(self) -> int:
        """What one row that is full of one part brings; 1 for sums that count from 0."""
        return getattr(self.gauge, "height", 1)

    @property
    def hosts_rows(self) -> bool:
        """Whether the parts of all rows, with or without a value, add up to a count of rows."""
        return isinstance(self.gauge, Split) or (isinstance(self.gauge, Powers) and self.gauge.missing)


def key_of(measure: Measure, blocks: Sequence[Block]) -> Key:
    """The block that a measure is read off; for a count of all rows the first that can tell it."""
    known = {block.key for block in blocks}
    match measure:
        case RowCount(condition=None):
            return next((block.key for block in blocks if block.hosts_rows), Key("rows", (None,)))
        case RowCount(condition=condition):
            return Key("rows", (condition,))
        case PersonCount():
            return Key("persons")
        case Proportion(condition=condition):
            return Key("split", (condition,))
        case Association(first=first, second=second):
            return Key("products", (first, second))
        case Total(of=of) | Average(of=of) | Variation(of=of):
            return next(
                key for key in (Key("everyone", (of,)), Key("powers", (of,)), Key("signed", (of,))) if key in known
            )
    raise AssertionError(measure)


def blocks_of(measures: Sequence[Measure], *, number: int | None = None) -> tuple[Block, ...]:
    """The blocks for some measures; with a public ``number`` of units, every unit counts exactly once."""
    if number is not None:
        return _with_everyone(measures)
    splits = [measure.condition for measure in measures if isinstance(measure, Proportion)]
    sums = [of for measure in measures for of in _summed(measure)]
    all_rows = any(isinstance(measure, RowCount) and measure.condition is None for measure in measures)
    degrees = _degrees(measures)
    if all_rows and sums and not splits and not degrees:
        degrees = {sums[0]: 1}  # a sum that tells the count of rows as well
    whole = all(isinstance(measure, RowCount | PersonCount) for measure in measures)
    height = 1 if whole else STEPS
    found: dict[Key, Gauge] = {}
    for condition in splits:
        found[Key("split", (condition,))] = Split(height=height, condition=condition)
    for of, degree in degrees.items():
        lattice, missing = _lattice(of, ROOT if degree == 2 else STEPS), all_rows and not found
        found[Key("powers", (of,))] = Powers(lattice=lattice, degree=degree, missing=missing)
    if all_rows and not found:
        found[Key("rows", (None,))] = Rows(height=height)
    for of in sums:
        if of not in degrees:
            found[Key("signed", (of,))] = _signed(of)
    for measure in measures:
        match measure:
            case RowCount() if measure.condition is not None:
                found[Key("rows", (measure.condition,))] = Rows(height=height, condition=measure.condition)
            case PersonCount():
                found[Key("persons")] = Persons(height=height)
            case Association(first=first, second=second, scaled=scaled):
                key = Key("products", (first, second))
                degree = max(2 if scaled else 1, getattr(found.get(key), "degree", 1))
                found[key] = Products(first=_lattice(first, ROOT), second=_lattice(second, ROOT), degree=degree)
    return tuple(Block(key=key, gauge=gauge, reach=_reach(gauge)) for key, gauge in found.items())


def _with_everyone(measures: Sequence[Measure]) -> tuple[Block, ...]:
    found: dict[Key, Gauge] = {}
    for measure in measures:
        if not isinstance(measure, Total | Average | Variation):
            raise Refused(
                f"{measure.name!r} cannot be asked where every unit counts once and their number is public; nothing "
                "was done. Ask for sums, means and variances alone, or leave the number out."
            )
        key = Key("everyone", (measure.of,))
        degree = _degrees(measures).get(measure.of, 1)
        found[key] = Everyone(lattice=_lattice(measure.of, ROOT if degree == 2 else STEPS), degree=degree)
    return tuple(Block(key=key, gauge=gauge, reach=_reach(gauge)) for key, gauge in found.items())


def _summed(measure: Measure) -> list[Ranged]:
    match measure:
        case Total(of=of):
            return [of]
        case Quotient(over=over, under=under):
            return [over, under]
    return []


def _degrees(measures: Sequence[Measure]) -> dict[Ranged, int]:
    """The values whose mean is asked, or with degree 2 their variance."""
    found: dict[Ranged, int] = {}
    for measure in measures:
        if isinstance(measure, Average | Variation):
            degree = 2 if isinstance(measure, Variation) else 1
            found[measure.of] = max(degree, found.get(measure.of, 1))
    return found


def _lattice(of: Ranged, steps: int) -> Lattice:
    return Lattice(value=of.value, low=of.low, high=of.high, steps=steps)


def _signed(of: Ranged) -> Signed:
    """A lattice through 0 on which the larger of |low| and |high| is ``STEPS`` steps, widened to whole steps."""
    step = max(abs(of.low), abs(of.high)) / STEPS
    low, high = floor(of.low / step), ceil(of.high / step)
    lattice = Lattice(value=of.value, low=low * step, high=high * step, steps=high - low)
    return Signed(lattice=lattice, zero=-low)


def _reach(gauge: Gauge) -> Reach:
    """How far one row moves the parts of a gauge."""
    match gauge:
        case Rows(height=height):
            return Reach(numbers=1, alone=_along(height), met=_along(height))
        case Persons(height=height):
            return Reach(numbers=1, alone=_along(height), met=_along(height), once=True)
        case Signed(low=low, high=high):
            return Reach(numbers=1, alone=_along(max(-low, high)), met=_along(high - low))
        case Split(height=height):
            return Reach(numbers=2, alone=_along(height), met=_across(height))
        case Powers(height=height, degree=degree, missing=missing):
            return Reach(numbers=degree + 1 + missing, alone=_along(height), met=_across(height))
        case Products(height=height, degree=degree):
            return Reach(numbers=(degree + 1) ** 2, alone=_along(height), met=_across(height))
        case Everyone(lattice=lattice, degree=1):
            return Reach(numbers=1, alone=_along(lattice.steps), met=_along(lattice.steps))
        case Everyone(lattice=lattice, degree=2):
            # On the curve (2t(1 − t), t²) two points are at most 4/3 apart in l1 (t = 1/3 and 1), and √(128/125) in
            # l2 (t = 1/5 and 1).
            height = lattice.steps**2
            met = Move(l1=Fraction(4, 3) * height, l2_squared=Fraction(128, 125) * height**2, linf=height)
            return Reach(numbers=2, alone=_along(height), met=met)
    raise InvalidInput(f"there is no bound for a {type(gauge).__name__}; nothing was done.")


def _along(height: int) -> Move:
    """One number moves by at most the height, or several that add up to it."""
    return Move(l1=height, l2_squared=height**2, linf=height)


def _across(height: int) -> Move:
    """From one corner of a simplex to another."""
    return Move(l1=2 * height, l2_squared=2 * height**2, linf=height)
