"""From releases to files of rows: the rows themselves, and further files whose tables are drawn anew.

A further file costs nothing: it is made of the same releases. Its tables are the measured ones with noise drawn again
from the known noise distribution and, for statements about a population, people drawn again, so that files differ from
each other as much as they differ from the truth.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.core.release import Release
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.inference.population import design_of
from sfumato.studies.draws import CellNoise, generator_of
from sfumato.synthesis.columns import BinnedColumn, SyntheticColumn, in_order
from sfumato.synthesis.levels import CodeLevel
from sfumato.synthesis.making import Made, made_rows, nothing_forbidden
from sfumato.synthesis.measured import Codes, Layout, MeasuredTable, one_way, total_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MOST_ROWS", "TOLD_APART", "Forbidden", "ReleasedTable", "RowMaking"]

MOST_ROWS = 10**8
LEAST_SIGMA = 0.05
"""Of noise, in rows, that a fit goes by: rows are whole, and nearer than this is no use to it."""
TOLD_APART = Fraction(1, 2)
"""With this probability no code that nobody has is taken for one that somebody has."""
FILE_STOP = 0.3
"""The χ² at which the fit of a further file stops: lower than for the rows themselves. A fit that stops early is nearer
to the truth on average, and to one side of it; between files, that side does not show."""

Forbidden = tuple[int, int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ReleasedTable:
    """Where the counts of one table stand in a release."""

    columns: tuple[int, ...]
    release: Release
    places: NDArray[np.int64]
    """The places of its cells among the numbers of the release, shaped as the table."""
    weight: int = 1

    @property
    def noise(self) -> CellNoise:
        """Of each count, in rows."""
        return CellNoise.of(self.release.statement.law, float(self.weight))

    @property
    def measured(self) -> MeasuredTable:
        """The noisy counts, in rows."""
        said = self.release.statement
        own = [said.values[place] for place in self.places.ravel().tolist()]
        counts = np.array(own, dtype=float).reshape(self.places.shape) / self.weight
        sigma = float(said.law.variance) ** 0.5 / self.weight
        return MeasuredTable(columns=self.columns, counts=counts, sigma=max(sigma, LEAST_SIGMA))

    def form(self, place: int) -> LinearCombination:
        """One of its counts with the noise in it; ``place`` is one of ``places``."""
        said, height = self.release.statement, Fraction(1, self.weight)
        return LinearCombination(said.values[place] * height, {Noise(said.identifier, place, said.law): height})


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class RowMaking:
    """All that rows are made of. Public: every field; releases and declarations, and no data."""

    columns: tuple[SyntheticColumn, ...]
    tables: tuple[ReleasedTable, ...]
    rows: int | None
    """How many rows a file has; None for the noisy number."""
    forbidden: tuple[Forbidden, ...] = ()
    ordered: tuple[tuple[int, int], ...] = ()
    levels: tuple[tuple[CodeLevel, ReleasedTable], ...] = ()
    """Codes below columns of groups, each with the table of its counts: drawn within the fitted groups."""

    @property
    def layout(self) -> Layout:
        """The columns side by side."""
        return Layout(tuple(column.size for column in self.columns))

    @property
    def measured(self) -> list[MeasuredTable]:
        """The tables, each set of columns once."""
        return merged([table.measured for table in self.tables])

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Of the releases, each once."""
        return tuple(dict.fromkeys(table.release.statement.identifier for table in self.tables))

    def first(self) -> tuple["pa.Table", Made]:
        """The rows: the same each time, for the generator is seeded from the releases."""
        codes = [table.measured.counts for _, table in self.levels]
        return self._made(self.measured, codes, generator_of(*self.identifiers), None)

    def file(self, number: int, start: Codes, *, sampling: bool) -> "pa.Table":
        """A further file, the same each time; ``start`` are rows from which people are drawn again."""
        random = generator_of(*self.identifiers, f"file {number}, {'population' if sampling else 'data'}")
        people = max(1, min(round(total_of(self.measured)), MOST_ROWS))
        times = random.multinomial(people, np.full(len(start), 1 / len(start))) if sampling else None
        drawn = [
            replace(each, counts=each.counts + table.noise.draw(random, each.counts.shape))
            for table, each in ((table, table.measured) for table in self.tables)
        ]
        tables = merged(drawn)
        said = self.tables[0].release.statement
        alike = design_of(said.unit, said.limit, across=True).rows  # of one person: then sampling is that much more
        if times is not None:
            shift: NDArray[np.float64] = (times.astype(np.float64) - people / len(start)) * alike**0.5
            tables = [replace(each, counts=np.add(each.counts, counted(start, each, shift))) for each in tables]
        codes = []
        for _, table in self.levels:
            counts = table.measured.counts
            spread = np.sqrt(np.maximum(counts, 0.0) * alike) if sampling else 0.0
            codes.append(
                counts + table.noise.draw(random, counts.shape) + spread * random.standard_normal(counts.shape)
            )
        return self._made(tables, codes, random, FILE_STOP)[0]

    def codes(self) -> Codes:
        """The cells of the first file."""
        return made_rows(
            self.measured, self.layout, self._number(self.measured), self.allowed(), generator_of(*self.identifiers)
        ).codes

    def allowed(self) -> NDArray[np.bool_]:
        """For each two cells whether they may occur in one row."""
        layout = self.layout
        allowed = nothing_forbidden(layout)
        for one, two, cells in self.forbidden:
            for first, second in cells:
                here, there = layout.starts[one] + first, layout.starts[two] + second
                allowed[here, there] = allowed[there, here] = False
        return allowed

    def _number(self, tables: Sequence[MeasuredTable]) -> int:
        return max(1, min(round(total_of(tables)), MOST_ROWS)) if self.rows is None else self.rows

    def _made(
        self,
        tables: Sequence[MeasuredTable],
        codes: Sequence[NDArray[np.float64]],
        random: np.random.Generator,
        stop: float | None,
    ) -> tuple["pa.Table", Made]:
        import pyarrow as pa

        found = made_rows(tables, self.layout, self._number(tables), self.allowed(), random, stop=stop)
        drawn = {
            place: column.drawn(found.codes[:, place], random)
            for place, column in enumerate(self.columns)
            if isinstance(column, BinnedColumn)
        }
        in_order(self.columns, found.codes, drawn, self.ordered)
        arrays = [column.arrow(found.codes[:, place], drawn.get(place)) for place, column in enumerate(self.columns)]
        arrays += self._codes(tables, codes, found, random)
        names = [*(column.name for column in self.columns), *(level.name for level, _ in self.levels)]
        return pa.table(arrays, names=names), found

    def _codes(
        self,
        tables: Sequence[MeasuredTable],
        counts: Sequence[NDArray[np.float64]],
        found: Made,
        random: np.random.Generator,
    ) -> "list[pa.Array]":
        """A code of its group for each row; codes that noise alone may have counted are taken together."""
        layout = self.layout
        shares, total = one_way(tables, layout), total_of(tables)
        drawn = []
        for (level, table), each in zip(self.levels, counts, strict=True):
            law = table.release.statement.law
            reached = float(law.margin(TOLD_APART, numbers=level.cells)) / table.weight
            within = shares[layout.parts[level.group]][: level.groups] * total
            drawn.append(level.drawn(found.codes[:, level.group], level.shares(each[:-1], reached, within), random))
        return drawn


def merged(tables: Sequence[MeasuredTable]) -> list[MeasuredTable]:
    """Tables of the same columns as one, each count the mean with most weight on the least noise.

    >>> one, two = (MeasuredTable(columns=(0,), counts=np.array([n]), sigma=s) for n, s in ((8.0, 1.0), (2.0, 2.0)))
    >>> merged([one, two])[0].counts.tolist(), round(merged([one, two])[0].sigma, 3)
    ([6.8], 0.894)
    """
    same: dict[tuple[int, ...], list[MeasuredTable]] = {}
    for table in tables:
        same.setdefault(table.columns, []).append(table)
    found = []
    for columns, some in same.items():
        if len(some) == 1:
            found.append(some[0])
            continue
        weights = [table.sigma**-2 for table in some]
        counts = np.average([table.counts for table in some], axis=0, weights=weights)
        found.append(MeasuredTable(columns=columns, counts=counts, sigma=sum(weights) ** -0.5))
    return found


def counted(rows: Codes, table: MeasuredTable, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often the rows lie in each cell of a table, each with its own weight."""
    cells = np.ravel_multi_index(list(rows[:, table.columns].T), table.counts.shape)
    found = np.bincount(cells, weights=times, minlength=table.counts.size).astype(np.float64)
    return found.reshape(table.counts.shape)
