"""Gauges: what of each row is added up, as whole numbers, and how much of it a person may bring into one group.

A gauge turns a row into one or several whole numbers, its *parts*. Those of most gauges are not negative and add up to
``height`` at most, so that a row moves all parts together by no more than one of them alone; a value is measured by
how far it is above its low bound and how far below its high one. A person's sums in a group are held to what
``rows`` rows could bring. Proof: docs/proofs/bounded_totals.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sfumato.engines.compile import predicate
from sfumato.engines.expressions import Expression, columns_of
from sfumato.engines.lattice import Lattice
from sfumato.engines.operands import double, whole

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = [
    "Everyone",
    "Gauge",
    "Histogram",
    "Persons",
    "Powers",
    "Products",
    "RowIndicator",
    "RowLayers",
    "Signed",
    "Split",
]

ROOM = 2.0**-40  # what a scaled share gives away, so that rounding of doubles cannot carry it above the limit
Columns = list["ir.Value"]
Places = Mapping[Lattice, "ir.Value"]


class Gauge(Protocol):
    """What is added up of each row, and how a person's sums are held to a number of rows."""

    @property
    def height(self) -> int:
        """What one row that is full of one part brings, by which estimates divide; 1 for sums that count from 0."""
        ...

    @property
    def lattices(self) -> tuple[Lattice, ...]:
        """The values that it measures."""
        ...

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the table that it needs."""
        ...

    def of_row(self, table: ir.Table, places: Places) -> Columns:
        """Whole numbers of each row, never null: what is summed first. ``places`` holds where each value lies."""
        ...

    def of_record(self, row: Columns) -> Columns:
        """The parts of one row, where rows are protected one by one."""
        ...

    def of_person(self, sums: Columns, rows: int) -> Columns:
        """The parts of one person in one group, from the sums over the rows."""
        ...


class _Measured:
    """The columns of a gauge follow from its values and its condition."""

    __slots__ = ()
    if TYPE_CHECKING:  # some state it, others work it out

        @property
        def lattices(self) -> tuple[Lattice, ...]: ...

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the table that it needs."""
        of_values = (columns_of(lattice.value) for lattice in self.lattices)
        condition = getattr(self, "condition", None)
        return frozenset[str]().union(*of_values, frozenset() if condition is None else columns_of(condition))


class _Simplex(_Measured):
    """Parts that are not negative and add up to at most ``height`` a row; a person's are scaled down to the limit."""

    __slots__ = ()
    if TYPE_CHECKING:  # some state it, others work it out

        @property
        def height(self) -> int: ...

    def of_record(self, row: Columns) -> Columns:
        return row

    def of_person(self, sums: Columns, rows: int) -> Columns:
        import ibis

        most = rows * self.height
        if len(sums) == 1:
            return [ibis.least(sums[0], whole(most))]
        together = _sum(sums)
        share = double(most * (1 - ROOM)) / together.cast("float64")
        scaled = [(part.cast("float64") * share).floor().cast("int64") for part in sums]
        return [ibis.ifelse(together > whole(most), less, part) for part, less in zip(sums, scaled, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowIndicator(_Simplex):
    """``height`` for each row that meets a condition."""

    height: int
    condition: Expression | None = None

    @property
    def lattices(self) -> tuple[Lattice, ...]:
        """None."""
        return ()

    def of_row(self, table: ir.Table, places: Places) -> Columns:
        """One part."""
        return [_if(table, self.condition, self.height)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(_Simplex):
    """``height`` for each row: into the first part where it meets the condition, else into the second."""

    height: int
    condition: Expression

    @property
    def lattices(self) -> tuple[Lattice, ...]:
        """None."""
        return ()

    def of_row(self, table: ir.Table, places: Places) -> Columns:
        """Two parts."""
        import ibis

        met = predicate(self.condition, table)
        return [ibis.ifelse(met, whole(self.height), whole(0)), ibis.ifelse(met, whole(0), whole(self.height))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Powers(_Simplex):
    """The Bernstein parts of a value: of degree 1 how far it is above low and below high; of degree 2 their products.

    Rows whose value is missing count as nothing, or with ``missing`` as a part of their own.
    """

    lattice: Lattice
    degree: int
    missing: bool = False

    @property
    def height(self) -> int:
        """What the parts of one row add up to."""
        return bernstein_height(self.lattice.steps, self.degree)

    @property
    def lattices(self) -> tuple[Lattice, ...]:
        """The one value."""
        return (self.lattice,)

    def of_row(self, table: ir.Table, places: Places) -> Columns:
        """``degree`` + 1 parts, and one more for what is missing."""
        import ibis

        place = places[self.lattice]
        parts = [_present(place, part) for part in bernstein(self.lattice.steps, self.degree)]
        if self.missing:
            parts.append(ibis.ifelse(place.isnull(), whole(self.height), whole(0)))
        return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Products(_Simplex):
    """The products of the Bernstein parts of two values, which together tell means, variances and covariance.

    Rows in which either is missing count as nothing. Products beyond 2^30 lose their last binary digits.
    """

    first: Lattice
    second: Lattice
    degree: int

    @property
    def height(self) -> int:
        """What the parts of one row add up to at most."""
        return int(self._product >> self.dropped)

    @property
    def dropped(self) -> int:
        """How many binary digits of each product are dropped."""
        return _beyond(self._product)

    @property
    def _product(self) -> int:
        return bernstein_height(self.first.steps, self.degree) * bernstein_height(self.second.steps, self.degree)

    @property
    def lattices(self) -> tuple[Lattice, ...]:
        """Both values."""
        return (self.first, self.second)

    def of_row(self, table: ir.Table, places: Places) -> Columns:
        """(``degree`` + 1)² parts, the second value running fastest."""
        one, two = places[self.first], places[self.second]
        ones = [_present(one, part) for part in bernstein(self.first.steps, self.degree)]
        twos = [_present(two, part) for part in bernstein(self.second.steps, self.degree)]
        return [(a * b) >> self.dropped if self.dropped else a * b for a in ones for b in twos]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed(_Measured):
    """A value counted from 0 in both directions, in whole multiples of a step."""

    lattice: Lattice
    zero: int
    """The lattice point that 0 is at; it may lie outside."""

    @property
    def height(self) -> int:
        """1: it counts in steps, and what a step is worth is known by the lattice."""
        return 1

    @property
    def low(self) -> int:
        """The least that one row brings, or 0."""
        return min(0, -self.zero)

    @property
    def high(self) -> int:
        """The most that one row brings, or 0."""
        return max(0, self.lattice.steps - self.zero)

    @property
    def lattices(self) -> tuple[Lattice, ...]:
        """The one value."""
        return (self.lattice,)

    def of_row(self, table: ir.Table, places: Places) -> Columns:
        """One part, which may be negative."""
        return [_present(places[self.lattice], lambda place: place - whole(self.zero))]

    def of_record(self, row: Columns) -> Columns:
        """As it is."""
        return row

    def of_person(self, sums: Columns, rows: int) -> Columns:
        """Clipped at both ends."""
        import ibis

        return [ibis.greatest(ibis.least(sums[0], whole(rows * self.high)), whole(rows * self.low))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Persons(_Measured):
    """``height`` for each person with a row in the group, however many rows that are."""

    height: int

    @property
    def lattices(self) -> tuple[Lattice, ...]:
        """None."""
        return ()

    def of_row(self, table: ir.Table, places: Places) -> Columns:
        """One for each row."""
        return [_if(table, None, 1)]

    def of_record(self, row: Columns) -> Columns:
        """Rows that are protected one by one are persons of one row."""
        return [row[0] * whole(self.height)]

    def of_person(self, sums: Columns, rows: int) -> Columns:
        """Once."""
        import ibis

        return [ibis.least(sums[0], whole(1)) * whole(self.height)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayers(_Measured):
    """A person's rows in a group in two layers: ``lower`` for each within the limit, ``upper`` for each up to ``most``.

    Guarantee: a person moves the first part by at most ``lower`` times the limit, and the second, which is 0 unless the
    first is full, by at most ``upper`` times what ``most`` is above the limit.
    """

    lower: int
    upper: int
    most: int

    @property
    def height(self) -> int:
        """It counts from 0."""
        return 1

    @property
    def lattices(self) -> tuple[Lattice, ...]:
        """None."""
        return ()

    def of_row(self, table: ir.Table, places: Places) -> Columns:
        """One for each row."""
        return [_if(table, None, 1)]

    def of_record(self, row: Columns) -> Columns:
        """Rows that are protected one by one are all within."""
        return [row[0] * whole(self.lower), row[0] * whole(0)]

    def of_person(self, sums: Columns, rows: int) -> Columns:
        """Rows within the limit, and those above it."""
        import ibis

        within = ibis.least(sums[0], whole(rows))
        return [within * whole(self.lower), (ibis.least(sums[0], whole(self.most)) - within) * whole(self.upper)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Everyone(_Measured):
    """The Bernstein parts of a value but the first, for every unit exactly once; what is missing lies in the middle.

    A person's value is the mean of the rows. Where the number of units is public, the first part follows from it.
    """

    lattice: Lattice
    degree: int

    @property
    def height(self) -> int:
        """What the parts of one unit add up to, with the first."""
        return bernstein_height(self.lattice.steps, self.degree)

    @property
    def lattices(self) -> tuple[Lattice, ...]:
        """The one value."""
        return (self.lattice,)

    def of_row(self, table: ir.Table, places: Places) -> Columns:
        """The lattice point, and one."""
        return [places[self.lattice].fill_null(whole(self.lattice.steps // 2)), _if(table, None, 1)]

    def of_record(self, row: Columns) -> Columns:
        """Of the row's own value."""
        return [part(row[0]) for part in bernstein(self.lattice.steps, self.degree)[1:]]

    def of_person(self, sums: Columns, rows: int) -> Columns:
        """Of the mean, which is held to the lattice."""
        import ibis

        mean = (sums[0].cast("float64") / sums[1].cast("float64")).floor().cast("int64")
        held = ibis.greatest(ibis.least(mean, whole(self.lattice.steps)), whole(0))
        return [part(held) for part in bernstein(self.lattice.steps, self.degree)[1:]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """``height`` for each row, in the part of the lattice point that its value is nearest to.

    It has hundreds of parts, of which a row fills one. So it is no :class:`Gauge`, with a column for each part, and is
    counted by :func:`~sfumato.engines.quantile_counts.bounded_histogram`: of a person at most as many rows count in a
    group as the limit says. Rows whose value is missing do not count.
    """

    lattice: Lattice
    height: int


def bernstein(steps: int, degree: int) -> list[Callable[[ir.Value], ir.Value]]:
    """The parts of a lattice point that are not negative and add up to the height, the lowest first.

    Squares beyond 2^30 lose their last binary digits, and the part between takes what they lose. So a mean that is read
    off the parts is as fine as the lattice, with squares as without.

    >>> [part(3) for part in bernstein(10, 1)], [part(3) for part in bernstein(10, 2)]
    ([7, 3], [49, 42, 9])
    >>> [part(2**29 + 1) for part in bernstein(2**30, 2)]
    [268435455, 536870912, 268435457]
    """
    if degree == 1:
        return [lambda place: steps - place, lambda place: place]
    height, dropped = bernstein_height(steps, degree), _beyond(steps * steps)

    def low(place: ir.Value) -> ir.Value:
        square = (steps - place) * (steps - place)
        return square >> dropped if dropped else square

    def high(place: ir.Value) -> ir.Value:
        square = place * place
        return square >> dropped if dropped else square

    if not dropped:
        return [low, lambda place: place * (steps - place) * 2, high]
    return [low, lambda place: height - low(place) - high(place), high]


def bernstein_height(steps: int, degree: int) -> int:
    """What the parts of a lattice point add up to: the steps, or their square without the digits that are dropped.

    >>> bernstein_height(2**40, 1) == 2**40, bernstein_height(10, 2), bernstein_height(2**30, 2) == 2**30
    (True, 100, True)
    """
    return steps if degree == 1 else steps * steps >> _beyond(steps * steps)


def _beyond(height: int) -> int:
    """How many binary digits a height has beyond those of 2^30."""
    return max(0, height.bit_length() - 31)


def _present(place: ir.Value, part: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """A part of a lattice point; 0 where that is missing."""
    return part(place).fill_null(whole(0))


def _if(table: ir.Table, condition: Expression | None, height: int) -> ir.Value:
    import ibis

    if condition is None:
        return ibis.literal(height, type="int64")
    return ibis.ifelse(predicate(condition, table), whole(height), whole(0))


def _sum(parts: Sequence[ir.Value]) -> ir.Value:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
