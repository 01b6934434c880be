"""Blocks: which whole numbers are added up so that all measures of a question can be read off them.

Measures share what they can. The parts of a value tell its count, sum, mean and variance at once, for the loss of one
of them; the rows without a value are one more part, which tells the count of all rows. What cannot be shared splits
the loss in equal parts, because every block has the same height.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Protocol

from sfumato.engines.expressions import Expression
from sfumato.engines.lattice import Lattice
from sfumato.engines.sufficient_statistics import (
    Everyone,
    Gauge,
    Histogram,
    Persons,
    Powers,
    Products,
    RowIndicator,
    Signed,
    Split,
)
from sfumato.errors import InvalidInput, Refused
from sfumato.tables.clamped import Clamped
from sfumato.tables.contribution import Move, Reach
from sfumato.tables.needs import (
    CountPersons,
    CountRows,
    Need,
    OwnSums,
    PowersOf,
    ProductsOf,
    RowsByBin,
    SplitRows,
    SumOf,
)

__all__ = ["Block", "Key", "NamedNeeds", "block_for", "blocks_of", "sum_weights"]

STEPS = 2**30  # of a lattice, and the height of every row
ROOT = 2**15  # for squares of everyone, whose bound rests on parts that lose no digits


class NamedNeeds(Protocol):
    """What is planned for: something with a name that states the sums it needs."""

    @property
    def name(self) -> str:
        """What it is called in an answer."""
        ...

    @property
    def needs(self) -> tuple[Need, ...]:
        """The sums that it is computed from."""
        ...

    @property
    def of_public_number(self) -> bool:
        """Whether it can be computed for a public number of units, each of which counts once."""
        ...


@dataclass(frozen=True, slots=True)
class Key:
    """What a block is about: a kind, and the condition or the values that it measures."""

    kind: str
    about: tuple[Clamped | Expression | Gauge | Lattice | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A gauge, what it is about, and how far one row moves it."""

    key: Key
    gauge: Gauge | Histogram
    reach: Reach

    @property
    def height(self) -> int:
        """What one row that is full of one part brings; 1 for sums that count from 0."""
        return self.gauge.height

    @property
    def degree(self) -> int:
        """Of the powers or products that its parts are; 1 for all others."""
        return getattr(self.gauge, "degree", 1)

    @property
    def hosts_rows(self) -> bool:
        """Whether the parts of all rows, with or without a value, add up to a count of rows."""
        return isinstance(self.gauge, Split) or (isinstance(self.gauge, Powers) and self.gauge.missing)


def block_for(need: Need, blocks: Sequence[Block]) -> Block:
    """The block that meets a need; for a count of all rows the first that can tell it."""
    match need:
        case CountRows(condition=None):
            hosts = [block for block in blocks if block.hosts_rows]
            return hosts[0] if hosts else _at(blocks, Key("rows", (None,)))
        case CountRows(condition=condition):
            return _at(blocks, Key("rows", (condition,)))
        case CountPersons():
            return _at(blocks, Key("persons"))
        case SplitRows(condition=condition):
            return _at(blocks, Key("split", (condition,)))
        case ProductsOf(first=first, second=second):
            return _at(blocks, Key("products", (first, second)))
        case SumOf(of=of) | PowersOf(of=of):
            return _at(blocks, *(Key(kind, (of,)) for kind in ("everyone", "powers", "signed")))
        case RowsByBin(lattice=lattice):
            return _at(blocks, Key("bins", (lattice,)))
        case OwnSums(gauge=gauge):
            return _at(blocks, Key("own", (gauge,)))


def _at(blocks: Sequence[Block], *keys: Key) -> Block:
    known = {block.key: block for block in blocks}
    return next(known[key] for key in keys if key in known)


def blocks_of(measures: Sequence[NamedNeeds], *, number: int | None = None) -> tuple[Block, ...]:
    """The blocks for some measures; with a public ``number`` of units, every unit counts exactly once.

    Histograms come last, since the engine counts them by themselves. A count of all rows is never read off one: it
    would hold the noise of all bins.
    """
    needs = [need for measure in measures for need in measure.needs]
    if number is not None:
        return _with_everyone(measures, needs)
    splits = [need.condition for need in needs if isinstance(need, SplitRows)]
    sums = [need.of for need in needs if isinstance(need, SumOf)]
    all_rows = CountRows() in needs
    degrees = _degrees(needs)
    if all_rows and sums and not splits and not degrees:
        degrees = {sums[0]: 1}  # a sum that tells the count of rows as well
    height = 1 if all(isinstance(need, CountRows | CountPersons | RowsByBin) for need in needs) else STEPS
    found: dict[Key, Gauge | Histogram] = {}
    for condition in splits:
        found[Key("split", (condition,))] = Split(height=height, condition=condition)
    for of, degree in degrees.items():
        lattice, missing = _lattice(of, STEPS), all_rows and not found
        found[Key("powers", (of,))] = Powers(lattice=lattice, degree=degree, missing=missing)
    if all_rows and not found:
        found[Key("rows", (None,))] = RowIndicator(height=height)
    for of in sums:
        if of not in degrees:
            found[Key("signed", (of,))] = _signed(of)
    stated: dict[Key, Reach] = {}
    for need in needs:
        match need:
            case CountRows() if need.condition is not None:
                found[Key("rows", (need.condition,))] = RowIndicator(height=height, condition=need.condition)
            case CountPersons():
                found[Key("persons")] = Persons(height=height)
            case ProductsOf(first=first, second=second, degree=degree):
                key = Key("products", (first, second))
                degree = max(degree, getattr(found.get(key), "degree", 1))
                found[key] = Products(first=_lattice(first, STEPS), second=_lattice(second, STEPS), degree=degree)
            case OwnSums(gauge=gauge, reach=reach):
                key = Key("own", (gauge,))
                found[key], stated[key] = gauge, reach
    for need in needs:
        if isinstance(need, RowsByBin):
            found[Key("bins", (need.lattice,))] = Histogram(lattice=need.lattice, height=height)
    return tuple(
        Block(key=key, gauge=gauge, reach=stated[key] if key in stated else _reach(gauge))
        for key, gauge in found.items()
    )


def _with_everyone(measures: Sequence[NamedNeeds], needs: Sequence[Need]) -> tuple[Block, ...]:
    found: dict[Key, Gauge] = {}
    for measure in measures:
        if not measure.of_public_number:
            raise Refused(
                f"{measure.name!r} cannot be asked where every unit counts once and their number is public; nothing "
                "was done. Ask for sums, means and variances alone, or leave the number out."
            )
    degrees = _degrees(needs, public=True)
    for need in needs:
        if not isinstance(need, SumOf | PowersOf):
            raise InvalidInput(
                f"{type(need).__name__} cannot be computed for a public number of units; nothing was done."
            )
        degree = degrees.get(need.of, 1)
        lattice = _lattice(need.of, ROOT if degree == 2 else STEPS)
        found[Key("everyone", (need.of,))] = Everyone(lattice=lattice, degree=degree)
    return tuple(Block(key=key, gauge=gauge, reach=_reach(gauge)) for key, gauge in found.items())


def _degrees(needs: Sequence[Need], *, public: bool = False) -> dict[Clamped, int]:
    """The values whose mean is asked, or with degree 2 their variance."""
    found: dict[Clamped, int] = {}
    for need in needs:
        if isinstance(need, PowersOf):
            degree = 2 if need.squares and not public else need.degree
            found[need.of] = max(degree, found.get(need.of, 1))
    return found


def sum_weights(of: Clamped, block: Block) -> list[Fraction]:
    """What each part of a block, counted in rows, brings into the sum of a value; a missing value brings nothing.

    Where every unit counts once, the sum is this above ``of.low`` times their number.
    """
    match block.gauge:
        case Signed(lattice=lattice):
            return [(lattice.high - lattice.low) / lattice.steps]
        case Powers(degree=degree, missing=missing):
            spots = [of.low + of.width * Fraction(place, degree) for place in range(degree + 1)]
            return [*spots, Fraction(0)] if missing else spots
        case Everyone(degree=degree):
            return [of.width * Fraction(place, degree) for place in range(1, degree + 1)]
    raise AssertionError(block)


def _lattice(of: Clamped, steps: int) -> Lattice:
    return Lattice(value=of.value, low=of.low, high=of.high, steps=steps)


def _signed(of: Clamped) -> Signed:
    """A lattice through 0 on which the larger of |low| and |high| is ``STEPS`` steps, widened to whole steps."""
    step = max(abs(of.low), abs(of.high)) / STEPS
    low, high = floor(of.low / step), ceil(of.high / step)
    lattice = Lattice(value=of.value, low=low * step, high=high * step, steps=high - low)
    return Signed(lattice=lattice, zero=-low)


def _reach(gauge: Gauge | Histogram) -> Reach:
    """How far one row moves the parts of a gauge."""
    match gauge:
        case RowIndicator(height=height):
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
        case Histogram(lattice=lattice, height=height):
            return Reach(numbers=lattice.steps + 1, alone=_along(height), met=_across(height))
        case Everyone(lattice=lattice, degree=1):
            return Reach(numbers=1, alone=_along(lattice.steps), met=_along(lattice.steps))
        case Everyone(lattice=lattice, degree=2):
            # On the curve (2t(1 − t), t²) two points are at most 4/3 apart in l1 (t = 1/3 and 1), and √(128/125) in
            # l2 (t = 1/5 and 1).
            height = lattice.steps**2
            met = Move(l1=Fraction(4, 3) * height, l2_squared=Fraction(128, 125) * height**2, linf=height)
            between = "the ends of the longest chords, at 1/3 and at 1/5, lie between the points of most lattices"
            return Reach(numbers=2, alone=_along(height), met=met, loose=between)
    raise InvalidInput(f"there is no bound for a {type(gauge).__name__}; nothing was done.")


def _along(height: int) -> Move:
    """One number moves by at most the height, or several that add up to it."""
    return Move(l1=height, l2_squared=height**2, linf=height)


def _across(height: int) -> Move:
    """From one corner of a simplex to another."""
    return Move(l1=2 * height, l2_squared=2 * height**2, linf=height)
