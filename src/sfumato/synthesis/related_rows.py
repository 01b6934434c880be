"""From noisy tables of persons and their rows to both kinds of rows. A function of the release alone.

Persons are made first, each with a number of rows. Then every row of a person is drawn given the person and, where a
column follows itself, the row before: the first rows of all persons from one fit, all later ones from another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.synthesis.making import made_rows, nothing_forbidden
from sfumato.synthesis.measured import LEAST_SHARE, Codes, Layout, MeasuredTable, one_way
from sfumato.synthesis.mixture import Mixture, fitted
from sfumato.synthesis.row_search import searched

__all__ = ["ChildShape", "MadeChild", "MadeFamily", "RelatedShape", "made_family"]

CHUNK = 16_384
Tables = Mapping[tuple[int, ...], MeasuredTable]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildShape:
    """The rows below persons: the cells of each of their columns, how many rows there can be, what follows itself."""

    sizes: tuple[int, ...]
    most: int
    follow: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedShape:
    """Where everything stands: columns of persons, the number of rows in each child, then the columns of each row.

    In the tables each column of a row has one cell more, the last, for persons without such a row.

    >>> shape = RelatedShape(persons=(2, 3), children=(ChildShape(sizes=(4, 5), most=2),))
    >>> shape.number(0), shape.place(0, 2, 1), shape.sizes
    (2, 6, (2, 3, 3, 5, 6, 5, 6))
    """

    persons: tuple[int, ...]
    children: tuple[ChildShape, ...]

    @property
    def top(self) -> int:
        """How many columns a person has, numbers of rows among them."""
        return len(self.persons) + len(self.children)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The cells of all columns, as they are measured."""
        below = [size + 1 for child in self.children for _ in range(child.most) for size in child.sizes]
        return (*self.persons, *(child.most + 1 for child in self.children), *below)

    def number(self, child: int) -> int:
        """The column that says how many rows a person has in a child."""
        return len(self.persons) + child

    def place(self, child: int, row: int, column: int) -> int:
        """The column of a row, which are counted from 1."""
        before = sum(each.most * len(each.sizes) for each in self.children[:child])
        return self.top + before + (row - 1) * len(self.children[child].sizes) + column


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class MadeChild:
    """Rows of persons: whose each is, its number among that person's rows from 1 on, and the cells of its columns."""

    owner: NDArray[np.int64]
    number: NDArray[np.int64]
    codes: Codes
    misfits: tuple[float, ...]
    """χ² over the number of cells: of the fit of first rows, and of the one of later rows."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class MadeFamily:
    """Persons as cells of their columns, and their rows."""

    persons: Codes
    children: tuple[MadeChild, ...]
    misfit: float | None


def made_family(
    tables: Sequence[MeasuredTable], shape: RelatedShape, persons: int, total: float, random: np.random.Generator
) -> MadeFamily:
    """Persons whose tables are near the measured ones, and rows of theirs; ``total`` is the noisy number of persons."""
    upper = [table for table in tables if table.columns[-1] < shape.top]
    layout = Layout(shape.sizes[: shape.top])
    top = made_rows(upper, layout, persons, nothing_forbidden(layout), random)
    codes = top.codes[random.permutation(persons)]
    known = {table.columns: table for table in tables}
    scale = max(total, 1.0) / max(persons, 1)
    children = tuple(_child(known, shape, child, codes, scale, random) for child in range(len(shape.children)))
    return MadeFamily(persons=codes[:, : len(shape.persons)], children=children, misfit=top.misfit)


def _child(
    tables: Tables, shape: RelatedShape, child: int, top: Codes, scale: float, random: np.random.Generator
) -> MadeChild:
    held, numbers = shape.children[child], top[:, shape.number(child)]
    fixed = [*range(len(shape.persons)), shape.number(child)]
    rows, misfits = list[tuple[NDArray[np.int64], int, Codes]](), list[float]()
    before: Codes | None = None
    later: Mixture | None = None
    for number in range(1, held.most + 1):
        who = np.flatnonzero(numbers >= number)
        if not len(who):
            break
        beside = top[np.ix_(who, fixed)]
        if not _goes_together(tables, shape, child):
            drawn = _alone(tables, shape, child, number, before, who, random)
        elif number == 1:
            drawn, misfit = _first(tables, shape, child, beside, scale, random)
            misfits.append(misfit)
        else:
            assert before is not None  # noqa: S101 - of the row before
            beside = np.concatenate([beside, before[who][:, list(held.follow)]], axis=1)
            if later is None:
                later = _later(tables, shape, child, beside, scale, random)
                misfits.append(later.misfit)
            drawn = _given(later, beside, random)
        before = np.zeros((len(top), len(held.sizes)), dtype=np.int32) if before is None else before
        before[who] = drawn
        rows.append((who, number, drawn))
    if not rows:
        nobody = np.zeros(0, dtype=np.int64)
        return MadeChild(owner=nobody, number=nobody, codes=np.zeros((0, len(held.sizes)), np.int32), misfits=())
    owner = np.concatenate([who for who, _, _ in rows])
    place = np.concatenate([np.full(len(who), number) for who, number, _ in rows])
    order = np.lexsort((place, owner))
    codes = np.concatenate([drawn for _, _, drawn in rows])
    return MadeChild(owner=owner[order], number=place[order], codes=codes[order], misfits=tuple(misfits))


def _goes_together(tables: Tables, shape: RelatedShape, child: int) -> bool:
    """Whether it was measured how a row goes with its person."""
    first = shape.place(child, 1, 0)
    return any(len(columns) == 2 and columns[0] < shape.top and columns[1] == first for columns in tables)


def _first(
    tables: Tables, shape: RelatedShape, child: int, beside: Codes, scale: float, random: np.random.Generator
) -> tuple[Codes, float]:
    """The first rows of persons, from one fit."""
    held = shape.children[child]
    own = _own_tables(tables, shape, child, (1,))
    layout = _layout(shape, child, followed=False)
    near = float(np.median([table.sigma for table in own]))
    mixture = fitted([*own, *_drawn_tables(beside, np.ones(len(beside)), layout, near, scale)], layout, random)
    wide = beside.shape[1]
    codes = np.concatenate([beside, _given(mixture, beside, random)], axis=1)
    movable = range(wide, wide + len(held.sizes))
    codes = searched(codes, mixture.pairs, nothing_forbidden(layout), layout, random, columns=movable)
    return codes[:, wide:], mixture.misfit


def _later(
    tables: Tables, shape: RelatedShape, child: int, second: Codes, scale: float, random: np.random.Generator
) -> Mixture:
    """One fit for all rows but the first: their tables are added up over the numbers of rows.

    How the row before goes with the person is known of second rows, each of which stands for all later ones.
    """
    own = _own_tables(tables, shape, child, range(2, shape.children[child].most + 1))
    layout = _layout(shape, child, followed=True)
    near = float(np.median([table.sigma for table in own]))
    more = (second[:, len(shape.persons)] - 1).astype(float)
    return fitted([*own, *_drawn_tables(second, more, layout, near, scale)], layout, random)


def _layout(shape: RelatedShape, child: int, *, followed: bool) -> Layout:
    """Columns of a fit: of the person, the number of rows, what is followed in the row before, and the row itself."""
    held = shape.children[child]
    before = [held.sizes[column] for column in held.follow] if followed else []
    return Layout((*shape.persons, held.most + 1, *before, *held.sizes))


def _own_tables(tables: Tables, shape: RelatedShape, child: int, rows: Sequence[int]) -> list[MeasuredTable]:
    """The tables of some rows, added up, in the columns of their fit; persons without such a row are left out."""
    held, persons = shape.children[child], len(shape.persons)
    follows = held.follow if rows[0] > 1 else ()
    start = persons + 1 + len(follows)
    found: dict[tuple[int, ...], list[MeasuredTable]] = {}
    for row in rows:
        for column in range(len(held.sizes)):
            here, own = shape.place(child, row, column), start + column
            for above in (*range(persons), shape.number(child)):
                measured = tables.get((above, here))
                if measured is not None:
                    counts = measured.counts[:, :-1].copy()
                    if above == shape.number(child):
                        counts[:row] = 0  # who has fewer rows has none here
                    place = persons if above == shape.number(child) else above
                    found.setdefault((place, own), []).append(_like(measured, (place, own), counts))
            for other in range(column + 1, len(held.sizes)):
                measured = tables.get((here, shape.place(child, row, other)))
                if measured is not None:
                    pair = (own, start + other)
                    found.setdefault(pair, []).append(_like(measured, pair, measured.counts[:-1, :-1]))
            if row > 1 and column in follows:
                measured = tables.get((shape.place(child, row - 1, column), here))
                if measured is not None:
                    pair = (persons + 1 + follows.index(column), own)
                    found.setdefault(pair, []).append(_like(measured, pair, measured.counts[:-1, :-1]))
    return [
        MeasuredTable(
            columns=pair,
            counts=np.sum([each.counts for each in some], axis=0),
            sigma=float(np.sqrt(sum(each.sigma**2 for each in some))),
        )
        for pair, some in found.items()
    ]


def _like(measured: MeasuredTable, columns: tuple[int, ...], counts: NDArray[np.float64]) -> MeasuredTable:
    return MeasuredTable(columns=columns, counts=counts, sigma=measured.sigma)


def _drawn_tables(
    codes: Codes, weights: NDArray[np.float64], layout: Layout, near: float, scale: float
) -> list[MeasuredTable]:
    """Pairs of the columns that are drawn already, as many as in the data: the fit must know how they go together."""
    found = []
    for one in range(codes.shape[1]):
        for two in range(one + 1, codes.shape[1]):
            shape = (layout.sizes[one], layout.sizes[two])
            cells = codes[:, one].astype(np.int64) * shape[1] + codes[:, two]
            counts = np.bincount(cells, weights=weights, minlength=shape[0] * shape[1]).reshape(shape)
            found.append(MeasuredTable(columns=(one, two), counts=(counts * scale).astype(np.float64), sigma=near))
    return found


def _given(mixture: Mixture, beside: Codes, random: np.random.Generator) -> Codes:
    """The other columns of rows whose first ones are known: of a component by its chance for these, then of it."""
    layout, wide = mixture.layout, beside.shape[1]
    chances = np.log(np.maximum(mixture.shares, np.float32(LEAST_SHARE)))
    found = np.empty((len(beside), len(layout.sizes) - wide), dtype=np.int32)
    for first in range(0, len(beside), CHUNK):
        some = beside[first : first + CHUNK]
        weights = np.zeros((len(some), len(mixture.shares)), dtype=np.float32)
        for column in range(wide):
            weights += chances[:, layout.starts[column] + some[:, column]].T
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
        which = _picked(weights, random)
        for column in range(wide, len(layout.sizes)):
            own = mixture.shares[:, layout.parts[column]][which]
            found[first : first + CHUNK, column - wide] = _picked(own, random)
    return found


def _picked(weights: NDArray[np.float32], random: np.random.Generator) -> NDArray[np.int64]:
    """One place of each row, by its weights."""
    rising = np.cumsum(weights, axis=1)
    drawn = random.random(len(weights), dtype=np.float32)[:, None] * rising[:, -1:]
    found: NDArray[np.int64] = np.minimum((drawn >= rising).sum(axis=1), weights.shape[1] - 1)
    return found


def _alone(
    tables: Tables,
    shape: RelatedShape,
    child: int,
    number: int,
    before: Codes | None,
    who: NDArray[np.int64],
    random: np.random.Generator,
) -> Codes:
    """Rows whose columns were measured by themselves, or after the row before alone."""
    held = shape.children[child]
    found = np.empty((len(who), len(held.sizes)), dtype=np.int32)
    rows = (1,) if number == 1 else range(2, held.most + 1)
    for column, size in enumerate(held.sizes):
        if number > 1 and column in held.follow and before is not None:
            steps = [tables[shape.place(child, row - 1, column), shape.place(child, row, column)] for row in rows]
            counts = np.maximum(np.sum([each.counts[:-1, :-1] for each in steps], axis=0), 0) + LEAST_SHARE
            found[:, column] = _picked(counts[before[who, column]].astype(np.float32), random)
            continue
        alone = [tables.get((shape.place(child, row, column),)) for row in rows]
        counts = np.sum([each.counts[:-1] for each in alone if each is not None], axis=0)
        table = MeasuredTable(columns=(0,), counts=counts, sigma=1.0)
        shares = one_way([table], Layout((size,))).astype(np.float32)
        found[:, column] = _picked(np.broadcast_to(shares, (len(who), size)), random)
    return found
