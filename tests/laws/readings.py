"""Tiny tables of readings: numbers at, between and beyond their bounds, missing ones, keys that are not declared.

Lattices are coarse here, so that the rows reach every bound exactly.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, cycle
from math import inf, nan, prod
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sfumato.engines.bounded import KeyColumn, Share, totals_by_cell
from sfumato.engines.expressions import Expression, Term, col
from sfumato.engines.lattice import Lattice
from sfumato.engines.sufficient_statistics import (
    Everyone,
    Gauge,
    Persons,
    Powers,
    Products,
    RowIndicator,
    Signed,
    Split,
)
from tests.laws.neighbours import Neighbours, around_couples, around_persons, around_records
from tests.laws.plans import engine

MOST = 3


class Reading(NamedTuple):
    """One row."""

    person: str | None
    zip: str | None
    x: float | None
    y: float | None
    good: bool | None


SCHEMA = pa.schema(
    [
        ("world", pa.int64()),
        ("person", pa.string()),
        ("zip", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("good", pa.bool_()),
    ]
)
Some = tuple[Reading, ...]

# Both values run from -1 to 3. Each row is a corner of some gauge, or at the edge of what counts.
LOW, HIGH = Fraction(-1), Fraction(3)
KINDS = [
    Reading(person=None, zip=None, x=-1.0, y=-1.0, good=False),
    Reading(person=None, zip=None, x=3.0, y=3.0, good=True),
    Reading(person=None, zip=None, x=inf, y=-inf, good=True),
    Reading(person=None, zip=None, x=-7.0, y=1e300, good=None),
    Reading(person=None, zip=None, x=1.0, y=-0.2, good=True),  # the middle
    Reading(person=None, zip=None, x=None, y=nan, good=False),
]
BOTH = (KINDS[0], KINDS[1])
ODD = [
    Reading(person=None, zip=None, x=-0.0, y=0.0, good=True),
    Reading(person=None, zip=None, x=nan, y=2.2, good=None),
    Reading(person=None, zip=None, x=-inf, y=None, good=True),
    Reading(
        person=None, zip=None, x=Fraction(1, 3).__float__(), y=5e-324, good=False
    ),  # where the l1 bound of a curve is
]


def lattice(name: str | Term, steps: int, low: Fraction = LOW, high: Fraction = HIGH) -> Lattice:
    """A column on a lattice of so many steps."""
    return Lattice(value=(col(name) if isinstance(name, str) else name).node, low=low, high=high, steps=steps)


MET = col("good") == True  # noqa: E712
GAUGES: dict[str, Gauge] = {
    "rows": RowIndicator(height=1),
    "good rows": RowIndicator(height=4, condition=MET),
    "split": Split(height=4, condition=MET),
    "powers of degree 1": Powers(lattice=lattice("x", 4), degree=1),
    "powers of degree 1, with missing": Powers(lattice=lattice("y", 4), degree=1, missing=True),
    "powers of degree 2": Powers(lattice=lattice("x", 4), degree=2),
    "powers of degree 2, with missing": Powers(lattice=lattice(col("x") - col("y"), 4), degree=2, missing=True),
    "products of degree 1": Products(first=lattice("x", 4), second=lattice("y", 4), degree=1),
    "products of degree 2": Products(first=lattice("x", 2), second=lattice("y", 2), degree=2),
    "products that lose digits": Products(first=lattice("x", 2**20), second=lattice("y", 2**20), degree=1),
    "both signs": Signed(lattice=lattice("x", 4), zero=1),
    "not negative": Signed(lattice=lattice("x", 3, Fraction(0), Fraction(3)), zero=0),
    "positive": Signed(lattice=lattice("y", 2, Fraction(1), Fraction(3)), zero=-1),
    "negative": Signed(lattice=lattice("y", 4, Fraction(-5), Fraction(-1)), zero=5),
    "persons": Persons(height=4),
}
# These count every unit once, and are for one cell under replace alone.
EVERYONE: dict[str, Gauge] = {
    "everyone, degree 1": Everyone(lattice=lattice("x", 4), degree=1),
    "everyone, degree 2": Everyone(lattice=lattice("x", 15, Fraction(0), Fraction(3)), degree=2),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Layout:
    """Keys to group by, and a row for each of their cells."""

    name: str
    keys: tuple[KeyColumn, ...]
    zips: tuple[str | None, ...]

    @property
    def cells(self) -> int:
        """How many there are."""
        return prod(key.size for key in self.keys)

    def neighbours(self, kind: str) -> Neighbours:
        """The tables that differ by one unit of this kind."""
        return {"record": self.by_record, "user": self.by_user, "family": self.by_family}[kind]

    def fillings(self, *, groups: int, kinds: list[tuple[Reading, ...]], counts: tuple[int, ...]) -> list[Some]:
        """Each choice of up to ``groups`` cells, with so many rows in each: of one kind, or of several in turn."""
        choices = chain.from_iterable(combinations(self.zips, several) for several in range(1, groups + 1))
        return [
            tuple(
                row._replace(zip=place) for place, row in zip(choice, cycle(turn), strict=False) for _ in range(count)
            )
            for choice in choices
            for turn in kinds
            for count in counts
            if len(turn) <= len(choice)
        ]

    @cached_property
    def strays(self) -> list[Reading]:
        """Rows whose key is not declared, or not there."""
        return [KINDS[1]._replace(zip=place) for place in ("Ä", "elsewhere", None)]

    @cached_property
    def mixed(self) -> list[Some]:
        """Rows of many kinds in one person, fewer and more than every limit; and none at all."""
        every = [kind._replace(zip=place) for kind in (*KINDS, *ODD) for place in self.zips]
        few = [tuple(kind._replace(zip=self.zips[0]) for kind in two) for two in combinations((*KINDS, *ODD), 2)]
        return [*few, tuple(every), tuple(every) * 2, tuple(self.strays), ()]

    @cached_property
    def table(self) -> Some:
        """Two persons, and a row of nobody."""
        one = [row._replace(person="ö0") for row in self.mixed[-4]]
        two = [KINDS[4]._replace(person="1", zip=place) for place in self.zips]
        return (*one, *two, KINDS[1]._replace(zip=self.zips[0]))

    @cached_property
    def by_record(self) -> Neighbours:
        """One row."""
        rows = [kind._replace(zip=place) for kind in (*KINDS, *ODD) for place in self.zips]
        return around_records(self.table[-4:], [*rows, *self.strays])

    @cached_property
    def by_user(self) -> Neighbours:
        """One person."""
        full = self.fillings(groups=MOST, kinds=[*((kind,) for kind in KINDS), BOTH, BOTH[::-1]], counts=(1, 2, 3))
        return around_persons(self.table, [*full, *self.mixed], newcomer="2")

    @cached_property
    def by_family(self) -> Neighbours:
        """Two persons."""
        full = self.fillings(groups=2, kinds=[(kind,) for kind in KINDS[:4]], counts=(2,))
        return around_couples(self.table, [*full[:: 1 + len(full) // 30], *self.mixed[-4:]], newcomers=("2", "3"))


ZIPS = ("ä", "b'", "区")
LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout(name="no keys", keys=(), zips=("ä",)),
        Layout(name="two keys", keys=(KeyColumn(column="zip", values=ZIPS[:2]),), zips=ZIPS[:2]),
        Layout(name="two keys and the rest", keys=(KeyColumn(column="zip", values=ZIPS[:2], other=True),), zips=ZIPS),
        Layout(
            name="a computed key",
            keys=(KeyColumn(column="size", value=col("zip").length().node, values=(1, 2)),),
            zips=("ä", "b'"),
        ),
    )
}


def load(around: Neighbours, name: str) -> Any:
    """All worlds in one table of the embedded engine, told apart by ``world``."""
    engine().con.register(name, frame(around))
    return engine().table(name)


def frame(around: Neighbours) -> pa.Table:
    """All worlds as rows."""
    rows = [(world, *row) for world, table in enumerate(around.worlds) for row in table]
    columns = list(zip(*rows, strict=True)) or [() for _ in SCHEMA]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


def totals(
    table: Any,
    *,
    worlds: int,
    where: Expression | None,
    keys: tuple[KeyColumn, ...],
    share: Share | None,
    gauges: list[Gauge],
) -> np.ndarray:
    """The exact numbers of each world in the order of an answer: worlds × (parts · cells)."""
    found = totals_by_cell(table, where=where, keys=keys, share=share, gauges=gauges, world="world")
    return laid_out(found.to_pyarrow(), worlds=worlds, cells=prod(key.size for key in keys))


class Escaped(AssertionError):
    """An engine answered with a cell that is not part of the question."""


def laid_out(found: pa.Table, *, worlds: int, cells: int) -> np.ndarray:
    """Rows (world, cell, part0, …) as one row of numbers for each world, part after part."""
    parts = [name for name in found.column_names if name.startswith("part")]
    places = found["cell"].to_pylist()
    if any(place is None or not 0 <= place < cells for place in places):
        raise Escaped(f"a cell outside the {cells} that were asked for")
    numbers = np.zeros((worlds, len(parts), cells), dtype=np.int64)
    for part, name in enumerate(parts):
        numbers[found["world"].to_numpy(), part, places] = found[name].cast(pa.int64()).to_numpy()
    return numbers.reshape(worlds, -1)
