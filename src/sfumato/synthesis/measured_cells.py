"""Counts, shares and means of cells that were measured: straight from the release, with its noise distribution."""

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.core.suggestion import did_you_mean
from sfumato.errors import InvalidInput
from sfumato.inference.derived import joined
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.inference.ratio import Ratio
from sfumato.synthesis.columns import ListedColumn, SyntheticColumn
from sfumato.synthesis.row_making import ReleasedTable, RowMaking

if TYPE_CHECKING:
    from sfumato.core.release import Release

__all__ = ["measured_count", "measured_mean", "measured_share"]

FINE = 10**6  # parts of which the weights of tables are whole numbers
Where = Mapping[str, object]


def measured_count(making: RowMaking, where: Where) -> Figure:
    """How many rows of the data have these values, from all measured tables that have their columns."""
    chosen = _chosen(making, where)
    tables = _tables_with(making, chosen)
    form = _added(tables, chosen, making)
    return Figure(forms=(form,), labels={}, measure="count", sources=_sources(tables))


def measured_share(making: RowMaking, of: Where, where: Where) -> Ratio:
    """The share of rows with the values ``of`` among those with the values ``where``."""
    under = _chosen(making, where)
    over = _chosen(making, of)
    for place, cells in under.items():
        over[place] = over[place] & cells if place in over else cells
    tables = _tables_with(making, over)
    return Ratio(
        over=(_added(tables, over, making),),
        under=(_added(tables, under, making),),
        labels={},
        measure="share",
        sources=_sources(tables),
        within=(0.0, 1.0),
    )


def measured_mean(making: RowMaking, column: str, where: Where) -> Ratio:
    """The mean of a column of whole numbers that were each counted; rows without a value are left out."""
    place = _place(making, column)
    numbers = _numbers(making.columns[place])
    chosen = _chosen(making, where)
    known = np.array([number is not None for number in numbers])
    chosen[place] = chosen[place] & known if place in chosen else known
    tables = _tables_with(making, chosen)
    values = {place: [Fraction(0) if number is None else number for number in numbers]}
    held = [number for number in numbers if number is not None]
    return Ratio(
        over=(_added(tables, chosen, making, values),),
        under=(_added(tables, chosen, making),),
        labels={},
        measure="mean",
        sources=_sources(tables),
        within=(float(min(held)), float(max(held))),
    )


def _sources(tables: Sequence[ReleasedTable]) -> "tuple[Release, ...]":
    found: tuple[Release, ...] = ()
    for table in tables:
        found = joined(found, (table.release,))
    return found


def _tables_with(making: RowMaking, chosen: Iterable[int]) -> list[ReleasedTable]:
    wanted = set(chosen)
    found = [table for table in making.tables if wanted <= set(table.columns)]
    if not found:
        names = ", ".join(making.columns[place].name for place in sorted(wanted))
        raise InvalidInput(
            f"{names} were not measured together, and no interval follows from the noise alone; nothing was computed. "
            "Estimate it from several files, made.files(5).estimate(…), which says that it rests on the model; or name "
            "these columns in a workload."
        )
    return found


def _added(
    tables: Sequence[ReleasedTable],
    chosen: Mapping[int, NDArray[np.bool_]],
    making: RowMaking,
    values: Mapping[int, Sequence[Fraction]] | None = None,
) -> LinearCombination:
    """The chosen cells of each table added up, and of these sums the mean with most weight on the least noise."""
    sizes = making.layout.sizes
    parts, precisions = [], []
    for table in tables:
        masks = [chosen.get(column, np.ones(sizes[column], dtype=np.bool_)) for column in table.columns]
        cells = np.stack(np.meshgrid(*map(np.flatnonzero, masks), indexing="ij"), axis=-1).reshape(-1, len(masks))
        noise = table.noise.variance
        precisions.append(1 / (noise * max(table.places.size, 1)))  # alike for every sum: a part and its whole agree
        parts.append((table, cells))
    weights = [max(1, round(FINE * each / math.fsum(precisions))) for each in precisions]
    value = Fraction(0)
    noises: dict[Noise, Fraction] = {}
    for (table, cells), weight in zip(parts, weights, strict=True):
        share = Fraction(weight, sum(weights))
        for cell in cells:
            times = share
            for column, code in zip(table.columns, cell, strict=True):
                if values is not None and column in values:
                    times *= values[column][int(code)]
            form = table.form(int(table.places[tuple(cell)]))
            value += times * form.value
            for noise_of, height in form.noises.items():
                noises[noise_of] = noises.get(noise_of, Fraction(0)) + times * height
    return LinearCombination(value, {noise: height for noise, height in noises.items() if height})


def _place(making: RowMaking, name: object) -> int:
    names = [column.name for column in making.columns]
    if name not in names:
        raise InvalidInput(
            f"{name!r} is none of the columns {', '.join(names)}; nothing was computed.{did_you_mean(str(name), names)}"
        )
    return names.index(str(name))


def _chosen(making: RowMaking, where: Where) -> dict[int, NDArray[np.bool_]]:
    if not isinstance(where, Mapping):
        raise InvalidInput("conditions map columns to values, {'sex': 'F', 'age': (18, 45)}; nothing was computed.")
    found = {}
    for name, value in where.items():
        place = _place(making, name)
        found[place] = _cells(making.columns[place], value)
    return found


def _cells(column: SyntheticColumn, value: object) -> NDArray[np.bool_]:
    """The cells that a value, a list of values, or for bins a pair of edges stands for."""
    if isinstance(column, ListedColumn):
        known = [*column.values, *([None] if column.missing else [])]
        asked = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
        if not asked or any(not any(_same(each, other) for other in known) for each in asked):
            raise InvalidInput(f"a value that {column.name!r} does not have was asked for; nothing was computed.")
        return np.array([any(_same(each, other) for each in asked) for other in known])
    chosen = np.zeros(column.size, dtype=np.bool_)
    if value is None and column.missing:
        chosen[-1] = True
        return chosen
    edges: list[object] = [_plain(edge) for edge in column.edges]
    ends = [_day(end) for end in value] if isinstance(value, list | tuple) and len(value) == 2 else []
    if len(ends) != 2 or any(end not in edges for end in ends) or edges.index(ends[0]) >= edges.index(ends[1]):
        raise InvalidInput(
            f"{column.name!r} has bins, and a condition on it is a pair of their edges, the lower one first; nothing "
            f"was computed. The edges are {', '.join(map(str, edges))}{' as ordinals of days' if column.days else ''}."
        )
    chosen[edges.index(ends[0]) : edges.index(ends[1])] = True
    return chosen


def _numbers(column: SyntheticColumn) -> list[Fraction | None]:
    """The number that each value is; None where there is no value."""
    if not isinstance(column, ListedColumn):
        ends = [column.ends(cell) for cell in range(column.bins)]
        if any(low != high for low, high in ends):
            raise InvalidInput(
                f"which values lie inside the bins of {column.name!r} was not measured, and counts of bins do not tell "
                "its mean; nothing was computed. Ask the table itself for the mean, or take made.files(…).estimate(…), "
                "whose files have values drawn evenly inside bins."
            )
        return [*(Fraction(low) for low, _ in ends), *([None] * column.missing)]
    if any(isinstance(value, str) or not isinstance(value, int) for value in column.values):
        raise InvalidInput(f"{column.name!r} holds no numbers, and has no mean; nothing was computed.")
    return [*(Fraction(value) for value in column.values if isinstance(value, int)), *([None] * column.missing)]


def _same(one: object, two: object) -> bool:
    return type(one) is type(two) and one == two


def _plain(edge: Fraction) -> int | float:
    return int(edge) if edge.denominator == 1 else float(edge)


def _day(end: object) -> object:
    from datetime import date

    if isinstance(end, date):
        return end.toordinal()
    return _plain(end) if isinstance(end, Fraction) else end
