"""The search over rows: values are exchanged, one column of some rows at a time, until the tables are those of the fit.

Rows that are drawn miss their tables by the luck of the draw, which for a file is one more error. Rows of a batch move
together, and too many would move into one cell: each moves with the chance that leaves as many as the cell lacks.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.synthesis.bound_columns import BoundColumns, sites_of
from sfumato.synthesis.measured import Codes, Layout, Reals

__all__ = ["searched"]

PASSES = 2
BATCH = 400
MOST_BATCHES = 150
GAIN = 1e-6
UNMEASURED = np.float32(0.1)
"""What a pair of columns that was not measured counts beside one that was: it yields, and is not forgotten."""
FORBIDDEN = np.float32(1e6)
Wide = NDArray[np.int64]


def searched(
    rows: Codes,
    pairs: Reals,
    allowed: NDArray[np.bool_],
    layout: Layout,
    random: np.random.Generator,
    triples: Mapping[tuple[int, ...], Reals] | None = None,
    measured: NDArray[np.bool_] | None = None,
    *,
    columns: Sequence[int] | None = None,
) -> Codes:
    """Rows whose tables are nearer to ``pairs``, a symmetric matrix of shares; no move makes them worse by itself.

    ``triples`` are the tables of three columns that are met as well, as shares. ``measured`` says which pairs of
    columns were, by default all; the others yield to them. ``columns`` are those whose values may be exchanged, by
    default all.
    """
    found = rows.copy()
    if measured is None:
        measured = np.ones((len(layout.sizes), len(layout.sizes)), dtype=np.bool_)
    state = _State(found, pairs, allowed, layout, triples or {}, measured)
    movable = frozenset(range(len(layout.sizes)) if columns is None else columns)
    sites = [site for site in sites_of(pairs, found, layout) if movable.issuperset(site.columns)]
    batches = max(1, min(len(found) // BATCH, MOST_BATCHES))
    for _ in range(PASSES):
        for some in np.array_split(random.permutation(len(found)), batches):
            batch = found[some]
            for place in random.permutation(len(sites)):
                if len(sites[place].columns) == 1:
                    state.move(batch, sites[place].columns[0], random)
                else:
                    state.move_together(batch, sites[place], random)
            found[some] = batch
    return found


class _State:
    """By how many rows each cell of each table has too many; rows are moved in place."""

    def __init__(
        self,
        rows: Codes,
        pairs: Reals,
        allowed: NDArray[np.bool_],
        layout: Layout,
        triples: Mapping[tuple[int, ...], Reals],
        measured: NDArray[np.bool_],
    ) -> None:
        self.layout, self.allowed, self.measured = layout, allowed, measured
        number = np.float32(len(rows))
        self.excess = layout.pair_counts(rows) - pairs * number
        self.flat = self.excess.reshape(-1)
        self.threes = _Threes(rows, layout, triples)

    def move(self, batch: Codes, column: int, random: np.random.Generator) -> None:
        """Give rows of a batch other values of one column, where that brings the tables nearer."""
        layout = self.layout
        part, size = layout.parts[column], layout.sizes[column]
        own = np.ascontiguousarray(self.excess[:, part])
        distance = np.abs(own)
        comes = np.abs(own + 1) - distance
        comes[~self.allowed[:, part]] = FORBIDDEN
        goes = np.abs(own - 1) - distance
        each, old = np.arange(len(batch)), batch[:, column].astype(np.int64)
        others = [other for other in range(len(layout.sizes)) if other != column]
        cells = (layout.starts[:-1] + batch)[:, others]
        cost = np.zeros((len(batch), size), dtype=np.float32)
        freed = np.zeros(len(batch), dtype=np.float32)
        for place, other in enumerate(others):
            if self.measured[column, other]:
                cost += comes.take(cells[:, place], axis=0)
                freed += goes[cells[:, place], old]
            else:
                cost += UNMEASURED * comes.take(cells[:, place], axis=0)
                freed += UNMEASURED * goes[cells[:, place], old]
        three, theirs = self.threes.along(column), self.threes.beside(batch, column)
        comes = np.abs(three + 1) - np.abs(three)
        for place in range(theirs.shape[1]):
            cost += comes.take(theirs[:, place], axis=0)
        here = three[theirs, old[:, None]]
        freed += (np.abs(here - 1) - np.abs(here)).sum(axis=1)
        cost[each, old] = -freed
        new = cost.argmin(axis=1)
        movers = np.flatnonzero(cost[each, new] + freed < -GAIN)
        if not len(movers):
            return
        beside = cells[movers] * size
        into, out = beside + new[movers, None], beside + old[movers, None]
        flat = own.ravel()
        known = self.measured[column, others]
        chance = _chance(flat, into[:, known], out[:, known]) if known.any() else np.ones(len(movers))
        beside = theirs[movers] * size
        into_three, out_of_three = beside + new[movers, None], beside + old[movers, None]
        if beside.size:
            chance = np.minimum(chance, _chance(three.ravel(), into_three, out_of_three))
        go = random.random(len(movers)) < chance
        batch[movers[go], column] = new[movers[go]]
        shifted = _change(into[go], out[go], own.shape)
        self.excess[:, part] += shifted
        self.excess[part, :] += shifted.T
        self.threes.shift(column, _change(into_three[go], out_of_three[go], three.shape))

    def move_together(self, batch: Codes, site: BoundColumns, random: np.random.Generator) -> None:
        """Give rows of a batch another combination of several columns, where that brings the tables nearer."""
        each, tables = np.arange(len(batch)), self._touched(batch, site)
        cost = np.zeros((len(batch), len(site.cells)), dtype=np.float32)
        for excess, new, old, weight in tables:
            far, here = excess[new], excess[old][:, None]
            gain = np.abs(far + 1) - np.abs(far) + np.abs(here - 1) - np.abs(here)
            cost += np.where(new == old[:, None], np.float32(0), weight * gain)
            if excess is self.flat:
                cost += np.where(self.allowed.reshape(-1)[new], np.float32(0), FORBIDDEN)
        best = cost.argmin(axis=1)
        movers = np.flatnonzero(cost[each, best] < -GAIN)
        if not len(movers):
            return
        chance = np.ones(len(movers))
        moved = [(excess, new[movers, best[movers]], old[movers]) for excess, new, old, _ in tables]
        for excess, after, before in moved:
            some = after != before
            chance[some] = np.minimum(chance[some], _chance(excess, after[some, None], before[some, None]))
        go = random.random(len(movers)) < chance
        batch[movers[go][:, None], list(site.columns)] = site.cells[best[movers[go]]]
        for excess, after, before in moved:
            _shift(excess, after[go], before[go])
            if excess is self.flat:
                _shift(excess, self._mirrored(after[go]), self._mirrored(before[go]))

    def _touched(self, batch: Codes, site: BoundColumns) -> list[tuple[Reals, Wide, Wide, np.float32]]:
        """Every table with a column of the site: excess, cells of rows after each change and before it, and weight."""
        starts, width, found = self.layout.starts, self.layout.width, []
        own = {column: site.cells[:, place].astype(np.int64) for place, column in enumerate(site.columns)}
        for one in range(len(self.layout.sizes)):
            for two in range(one + 1, len(self.layout.sizes)):
                if one in own or two in own:
                    first, second = (
                        own[c][None] if c in own else batch[:, c, None].astype(np.int64) for c in (one, two)
                    )
                    new = (starts[one] + first) * width + starts[two] + second
                    old = (starts[one] + batch[:, one]) * width + starts[two] + batch[:, two]
                    weight = np.float32(1) if self.measured[one, two] else UNMEASURED
                    found.append((self.flat, np.broadcast_to(new, (len(batch), len(site.cells))), old, weight))
        for columns, excess in self.threes.tables:
            if any(column in own for column in columns):
                shape = [self.layout.sizes[column] for column in columns]
                parts = [own[c][None] if c in own else batch[:, c, None].astype(np.int64) for c in columns]
                new = np.ravel_multi_index(np.broadcast_arrays(*parts), shape)
                old = np.ravel_multi_index([batch[:, c] for c in columns], shape)
                found.append((excess, np.broadcast_to(new, (len(batch), len(site.cells))), old, np.float32(1)))
        return found

    def _mirrored(self, places: Wide) -> Wide:
        """The same pairs on the other side of the diagonal."""
        first, second = np.divmod(places, self.layout.width)
        found: Wide = second * self.layout.width + first
        return found


class _Threes:
    """By how many rows each cell of each table of three has too many, all tables in one row of numbers.

    For each column the places of its tables stand one below the other, a value of the column beside the next: then all
    tables that a move touches are read and changed at once, however many there are.
    """

    def __init__(self, rows: Codes, layout: Layout, triples: Mapping[tuple[int, ...], Reals]) -> None:
        self.sizes = np.array(layout.sizes, dtype=np.int64)
        self.excess: Reals = np.zeros(sum(shares.size for shares in triples.values()), dtype=np.float32)
        self.tables: list[tuple[tuple[int, ...], Reals]] = []
        places: list[list[Wide]] = [[np.zeros((0, size), dtype=np.int64)] for size in layout.sizes]
        others: list[list[tuple[int, int, int]]] = [[] for _ in layout.sizes]
        first = 0
        for columns, shares in triples.items():
            cells = np.ravel_multi_index([rows[:, column] for column in columns], shares.shape)
            own = self.excess[first : first + shares.size]
            own += np.bincount(cells, minlength=shares.size) - shares.ravel() * np.float32(len(rows))
            self.tables.append((columns, own))
            numbered = np.arange(first, first + shares.size).reshape(shares.shape)
            for axis, column in enumerate(columns):
                one, two = (other for other in columns if other != column)
                others[column].append((one, two, sum(map(len, places[column]))))
                places[column].append(np.moveaxis(numbered, axis, 2).reshape(-1, layout.sizes[column]))
            first += shares.size
        self.places = [np.concatenate(some) for some in places]
        self.others = [np.array(some, dtype=np.int64).reshape(-1, 3).T for some in others]

    def along(self, column: int) -> Reals:
        """The numbers of all tables with a column: for each two values beside it a row of its values."""
        found: Reals = self.excess[self.places[column]]
        return found

    def beside(self, batch: Codes, column: int) -> Wide:
        """For each row of a batch which rows of :meth:`along` it has a part in, one of each table."""
        one, two, first = self.others[column]
        found: Wide = batch[:, one] * self.sizes[two] + batch[:, two] + first
        return found

    def shift(self, column: int, change: Reals) -> None:
        """Add to the numbers of :meth:`along`."""
        self.excess[self.places[column]] += change


def _chance(excess: Reals, into: Wide, out: Wide) -> NDArray[np.float64]:
    """With which chance each row moves: cells have room for what they lack, and spare what they have too much."""
    room = _fewest(np.maximum(1, -excess[into]), into, len(excess))
    spare = _fewest(np.maximum(1, excess[out]), out, len(excess))
    found: NDArray[np.float64] = np.minimum(room, spare)
    return found


def _fewest(rows: Reals, cells: Wide, number: int) -> NDArray[np.float64]:
    """The least share of a row's cells: what a cell has for each of those that want it."""
    times = np.bincount(cells.ravel(), minlength=number)
    found: NDArray[np.float64] = (rows / times[cells]).min(axis=1)
    return found


def _shift(excess: Reals, into: Wide, out: Wide) -> None:
    np.add.at(excess, into, np.float32(1))
    np.subtract.at(excess, out, np.float32(1))


def _change(into: Wide, out: Wide, shape: tuple[int, ...]) -> Reals:
    """By how many rows each cell has more."""
    number = prod(shape)
    change = np.bincount(into.ravel(), minlength=number) - np.bincount(out.ravel(), minlength=number)
    return change.reshape(shape).astype(np.float32)
