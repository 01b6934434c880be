"""From noisy tables to rows: fit, draw, keep the declared rules, search. A function of the release alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.synthesis.bound_columns import in_step, parted_rows_rejoined, sharpened
from sfumato.synthesis.gibbs import gibbs_rows
from sfumato.synthesis.measured import Codes, Layout, MeasuredTable, Reals, one_way, total_of
from sfumato.synthesis.mixture import Mixture, fitted
from sfumato.synthesis.row_search import searched

__all__ = ["Made", "made_rows", "nothing_forbidden"]

ROUNDS = 30
CLOSE = 3.0
"""Rows of the log-linear model are taken unless they miss the pairs this many times as far as rows of the mixture."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Made:
    """Rows as cells of their columns, and how the fit went; no misfit where columns are independent of each other."""

    codes: Codes
    misfit: float | None
    distance: float | None
    """Mean total variation between the pairs of the rows and those of the fit."""
    pairs: NDArray[np.float32] | None = None
    """The pairs of the fit, as a symmetric matrix of shares."""
    distances: tuple[float | None, ...] = ()
    """Of each measured table of two columns or more: its total variation from what the rows were brought to."""


def nothing_forbidden(layout: Layout) -> NDArray[np.bool_]:
    """For each two cells whether they may occur in one row: all may."""
    return np.ones((layout.width, layout.width), dtype=np.bool_)


def made_rows(
    tables: Sequence[MeasuredTable],
    layout: Layout,
    rows: int,
    allowed: NDArray[np.bool_],
    random: np.random.Generator,
    *,
    stop: float | None = None,
) -> Made:
    """Rows whose tables are near the measured ones; of columns that were measured alone each by itself.

    ``stop`` is the χ² at which the fit stops, in place of its own rule.
    """
    shares = one_way(tables, layout)
    if all(len(table.columns) == 1 for table in tables):
        codes = np.stack([_dealt(shares[part], rows, random) for part in layout.parts], axis=1)
        return Made(codes=_kept(codes, allowed, shares, layout, random), misfit=None, distance=None)
    mixture = fitted(tables, layout, random, stop=stop)
    pairs, three = _aims(tables, mixture, allowed, layout)
    codes = mixture.draw(rows, random)
    if all(len(table.columns) < 3 for table in tables):
        chained = gibbs_rows(mixture.draw(max(rows, 1), random), pairs, allowed, layout, rows, random)
        if _distance(chained, pairs, layout) <= CLOSE * _distance(codes, pairs, layout):
            codes = chained
    else:
        codes = parted_rows_rejoined(codes, pairs, layout, random)
    measured = _measured_pairs(tables, layout)
    codes = searched(_kept(codes, allowed, shares, layout, random), pairs, allowed, layout, random, three, measured)
    return Made(
        codes=codes,
        misfit=mixture.misfit,
        distance=_distance(codes, pairs, layout),
        distances=tuple(_away(codes, table, pairs, three, layout) for table in tables),
        pairs=pairs,
    )


def _aims(
    tables: Sequence[MeasuredTable], mixture: Mixture, allowed: NDArray[np.bool_], layout: Layout
) -> tuple[Reals, dict[tuple[int, ...], Reals]]:
    """The tables that rows are brought to: the fitted ones, nearer to the measured ones where the fit is too coarse.

    A table whose χ² for each cell is 1 or less is explained by noise. Of one with more, as large a share of what was
    left is taken up as is not noise: 1 − 1/χ², as James and Stein have it.
    """
    total = max(total_of(tables), 1.0)
    pairs = mixture.pairs
    three: dict[tuple[int, ...], Reals] = {}
    for table in tables:
        if len(table.columns) < 2:
            continue
        fit = mixture.table(table.columns)
        left = table.counts / total - fit
        chi = float((left**2).sum()) * (total / table.sigma) ** 2 / left.size
        nearer = np.maximum(fit + (1 - 1 / max(chi, 1.0)) * left, 0)
        if chi > 1 and nearer.sum() > 0:
            fit = (nearer / nearer.sum()).astype(np.float32)
        if len(table.columns) == 3:
            three[table.columns] = fit
        else:
            one, two = (layout.parts[column] for column in table.columns)
            pairs[one, two], pairs[two, one] = fit, fit.T
    sharp = sharpened(pairs, tables, layout, total)
    return np.where(allowed, sharp, np.float32(0)), in_step(three, sharp, layout)


def _measured_pairs(tables: Sequence[MeasuredTable], layout: Layout) -> NDArray[np.bool_]:
    """For each two columns whether a table has both."""
    found = np.zeros((len(layout.sizes), len(layout.sizes)), dtype=np.bool_)
    for table in tables:
        found[np.ix_(table.columns, table.columns)] = True
    return found


def _away(
    codes: Codes, table: MeasuredTable, pairs: Reals, three: Mapping[tuple[int, ...], Reals], layout: Layout
) -> float | None:
    """The total variation between a table of the rows and what they were brought to; None of one column."""
    if len(table.columns) == 1:
        return None
    shape = table.counts.shape
    counts = np.bincount(np.ravel_multi_index(list(codes[:, table.columns].T), shape), minlength=table.counts.size)
    one, two = (layout.parts[column] for column in table.columns[:2])
    aim = three[table.columns] if len(table.columns) == 3 else pairs[one, two]
    return float(np.abs(counts.reshape(shape) / max(len(codes), 1) - aim).sum()) / 2


def _dealt(shares: NDArray[np.float64], rows: int, random: np.random.Generator) -> Codes:
    """Values in proportion to their shares, up to one row each, in random order."""
    edges = np.rint(np.cumsum(shares) * rows).astype(np.int64)
    edges[-1] = rows
    return random.permutation(np.repeat(np.arange(len(shares), dtype=np.int32), np.diff(edges, prepend=0)))


def _distance(codes: Codes, pairs: NDArray[np.float32], layout: Layout) -> float:
    wide = len(layout.sizes)
    away = np.abs(layout.pair_counts(codes) / np.float32(max(len(codes), 1)) - pairs)
    for part in layout.parts:
        away[part, part] = 0
    return float(away.sum()) / 2 / (wide * (wide - 1))


def _kept(
    codes: Codes,
    allowed: NDArray[np.bool_],
    shares: NDArray[np.float64],
    layout: Layout,
    random: np.random.Generator,
) -> Codes:
    """The same rows with the declared rules kept: columns of a row that breaks one are drawn anew.

    What is left after some rounds, if anything, takes the place of a row that keeps them.
    """
    if allowed.all():
        return codes
    for _ in range(ROUNDS):
        wrong = np.flatnonzero(_broken(codes, allowed, layout))
        if not len(wrong):
            return codes
        for column in random.permutation(len(layout.sizes)):
            part, some = layout.parts[column], codes[wrong]
            fits = np.ones((len(wrong), layout.sizes[column]), dtype=np.bool_)
            for other in range(len(layout.sizes)):
                if other != column:
                    fits &= allowed[layout.starts[other] + some[:, other], part]
            chances = np.cumsum(fits * shares[part], axis=1)
            any_fits = chances[:, -1] > 0
            drawn = random.random(len(wrong))[:, None] * chances[:, -1:]
            new = np.minimum((drawn >= chances).sum(axis=1), layout.sizes[column] - 1)
            stays = fits[np.arange(len(wrong)), some[:, column]]
            codes[wrong, column] = np.where(any_fits & ~stays, new, some[:, column])
    broken = _broken(codes, allowed, layout)
    if broken.all():
        raise InvalidInput(
            "no row was found that keeps all declared rules; no rows were made. The release stands and is not charged "
            "again: ask with fewer or other rules."
        )
    codes[broken] = codes[random.choice(np.flatnonzero(~broken), int(broken.sum()))]
    return codes


def _broken(codes: Codes, allowed: NDArray[np.bool_], layout: Layout) -> NDArray[np.bool_]:
    """Which rows hold two cells that must not occur together."""
    broken = np.zeros(len(codes), dtype=np.bool_)
    for one in range(len(layout.sizes)):
        for two in range(one + 1, len(layout.sizes)):
            may = allowed[layout.parts[one], layout.parts[two]]
            if not may.all():
                broken |= ~may[codes[:, one], codes[:, two]]
    return broken
