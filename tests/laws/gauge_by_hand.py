"""Gauges worked out in plain Python: a second statement of what each adds up of a row and keeps of a person."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

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
from tests.engines.truth import Cell, holds, value_of

ROOM = 2.0**-40


def of_row(gauge: Gauge | Histogram, row: Mapping[str, Cell]) -> list[int]:
    """What is summed of a row."""
    match gauge:
        case RowIndicator(height=height, condition=condition):
            return [height if condition is None or holds(condition, row) else 0]
        case Split(height=height, condition=condition):
            return [height, 0] if holds(condition, row) else [0, height]
        case Powers(lattice=lattice, degree=degree, missing=missing):
            place = place_of(lattice, row)
            gone = [0 if place is not None else gauge.height] if missing else []
            return [*_bernstein(lattice, degree, place), *gone]
        case Products(first=first, second=second, degree=degree, dropped=dropped):
            ones = _bernstein(first, degree, place_of(first, row))
            twos = _bernstein(second, degree, place_of(second, row))
            return [one * two >> dropped for one, two in product(ones, twos)]
        case Signed(lattice=lattice, zero=zero):
            place = place_of(lattice, row)
            return [0 if place is None else place - zero]
        case Persons():
            return [1]
        case Everyone(lattice=lattice):
            place = place_of(lattice, row)
            return [lattice.steps // 2 if place is None else place, 1]
        case Histogram(lattice=lattice, height=height):
            place = place_of(lattice, row)
            return [height if at == place else 0 for at in range(lattice.steps + 1)]
    raise AssertionError(gauge)


def of_record(gauge: Gauge | Histogram, row: list[int]) -> list[int]:
    """The parts of a row that is protected by itself."""
    match gauge:
        case Persons(height=height):
            return [row[0] * height]
        case Everyone(lattice=lattice, degree=degree):
            return _bernstein(lattice, degree, row[0])[1:]
    return row


def of_person(gauge: Gauge | Histogram, sums: Sequence[int], rows: int) -> list[int]:
    """The parts of a person in one group."""
    match gauge:
        case Persons(height=height):
            return [height * min(sums[0], 1)]
        case Signed(low=low, high=high):
            return [max(min(sums[0], rows * high), rows * low)]
        case Everyone(lattice=lattice, degree=degree):
            mean = math.floor(float(sums[0]) / float(sums[1]))
            return _bernstein(lattice, degree, max(0, min(mean, lattice.steps)))[1:]
        case Histogram(height=height):  # rows count until there are enough, here those of the first bins
            before = [sum(sums[:at]) for at in range(len(sums))]
            return [max(0, min(part, rows * height - taken)) for part, taken in zip(sums, before, strict=True)]
    most = rows * gauge.height
    if sum(sums) <= most:
        return list(sums)
    if len(sums) == 1:
        return [most]
    share = (most * (1 - ROOM)) / float(sum(sums))
    return [math.floor(float(part) * share) for part in sums]


def place_of(lattice: Lattice, row: Mapping[str, Cell]) -> int | None:
    """The lattice point of a row, with the same doubles as the engine."""
    found: Any = value_of(lattice.value, row)
    if found is None:
        return None
    low, high = float(lattice.low), float(lattice.high)
    scale = float(lattice.steps / (lattice.high - lattice.low))
    inside = min(max(float(found), low), high)
    return int(min(max(math.floor((inside - low) * scale + 0.5), 0), lattice.steps))


def _bernstein(lattice: Lattice, degree: int, place: int | None) -> list[int]:
    if place is None:
        return [0] * (degree + 1)
    rest, dropped = lattice.steps - place, max(0, (lattice.steps**degree).bit_length() - 31)
    if degree == 2 and dropped:
        low, high = rest**2 >> dropped, place**2 >> dropped
        return [low, (lattice.steps**2 >> dropped) - low - high, high]
    return [math.comb(degree, power) * place**power * rest ** (degree - power) for power in range(degree + 1)]
