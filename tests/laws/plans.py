"""The count of every world of a set of neighbours: by the engine's own plan, and by hand in plain Python."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from sfumato.engines.counts import KeyColumn, Share, rows_by_cell
from sfumato.engines.expressions import Expression
from tests.engines.truth import holds
from tests.laws.neighbours import Neighbours, Plan, Rows, Visit


def by_engine(*, where: Expression | None, keys: Sequence[KeyColumn], share: Share | None) -> Plan:
    """What the release of a count runs: one grouped query over all worlds."""

    @cache
    def plan(around: Neighbours) -> np.ndarray:
        found = rows_by_cell(loaded(around), where=where, keys=keys, share=share, world="world")
        return matrix(found, around, cells=prod(len(key.values) for key in keys))

    return plan


def by_hand(*, where: Expression | None, keys: Sequence[KeyColumn], share: Share | None) -> Plan:
    """The same counts, without an engine."""

    @cache
    def plan(around: Neighbours) -> np.ndarray:
        one = tuple(keys)
        return np.array([count_by_hand(world, where=where, keys=one, share=share) for world in around.worlds])

    return plan


def count_by_hand(
    table: Rows, *, where: Expression | None, keys: Sequence[KeyColumn], share: Share | None
) -> list[int]:
    """Clip each person's rows in each group, keep the groups with the least keyed hash, add up."""
    counts = dict.fromkeys(product(*(key.values for key in keys)), 0)
    place = {cell: number for number, cell in enumerate(counts)}
    shares: dict[str | int, Counter[tuple[object, ...]]] = {}
    for row in table:
        cell = tuple(getattr(row, key.column) for key in keys)
        if cell not in counts or (where is not None and not holds(where, row._asdict())):
            continue
        if share is None:
            counts[cell] += 1
        elif row.person is not None:
            shares.setdefault(row.person, Counter())[cell] += 1
    for person, rows in shares.items():
        assert share is not None
        ranked = sorted(rows, key=lambda cell: (mark(share.secret, person, *cell), place[cell]))
        for cell in ranked[: share.limit.groups]:
            counts[cell] += min(rows[cell], share.limit.rows_per_group)
    return list(counts.values())


PRIME, SECOND = 2**31 - 1, 2**31 - 19


def mark(secret: str, person: str | int, *keys: object) -> int:
    """What orders a person's groups: the person's number times their weights, moved and squared modulo a prime."""
    weight = 1
    for place, key in enumerate(keys):
        weight = weight * (1 + _number(secret, f"{place};{type(key).__name__};{key}") % (PRIME - 1)) % PRIME
    if isinstance(person, int):
        slope, other = (1 + _number(secret, name) % (PRIME - 1) for name in ("slope", "other"))
        line = _remainder(person) * slope + _remainder(person, SECOND) * other
        own = _remainder(line + _number(secret, "start") % PRIME)
    else:
        own = int(hashlib.md5(f"{len(secret)}:{secret}{person}".encode(), usedforsecurity=False).hexdigest()[:7], 16)
    mixed = _remainder(own * weight + _number(secret, "shift") % PRIME)
    return mixed * mixed % PRIME


def _number(secret: str, text: str) -> int:
    return int(hashlib.md5(f"{len(secret)}:{secret}{text}".encode(), usedforsecurity=False).hexdigest()[:30], 16)


def _remainder(number: int, by: int = PRIME) -> int:
    """As engines take it: towards 0."""
    return number % by if number >= 0 else -(-number % by)


def keyed_hash(secret: str, *parts: object) -> str:
    """The hash that orders a person's groups: of text that tells its parts apart, the same on every engine."""
    texts = [_written(part) for part in parts[:-1]]
    texts.append(f"t{parts[-1]}" if isinstance(parts[-1], str) else _written(parts[-1]))
    text = f"{len(secret)}:{secret}" + "".join(texts)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:12]


def _written(part: object) -> str:
    match part:
        case str():
            return f"t{len(part)}:{part}"
        case bool():
            return "y" if part else "n"
        case int():
            return f"w{part};"
        case date():
            return f"d{part.isoformat()};"
    raise AssertionError(part)


# --------------------------------------------------------------------------------------------- inside the engine


@cache
def engine() -> Any:
    """One embedded engine for all laws."""
    import ibis

    return ibis.duckdb.connect()


@cache
def loaded(around: Neighbours) -> Any:
    """All worlds in one table of the engine, told apart by ``world``."""
    rows = [(world, *row) for world, table in enumerate(around.worlds) for row in table]
    return load(rows, f"worlds{id(around)}")


def load(rows: Iterable[tuple[int, *tuple[object, ...]]], name: str) -> Any:
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) or [() for _ in range(1 + len(Visit._fields))]
    text = any(isinstance(person, str) for person in columns[1])
    types = [pa.int64(), pa.string() if text else pa.int64(), pa.string(), pa.int64(), pa.bool_(), pa.int64()]
    frame = pa.table(
        {
            column: pa.array(values, kind)
            for column, values, kind in zip(("world", *Visit._fields), columns, types, strict=True)
        }
    )
    return engine().create_table(name, frame, overwrite=True)


def matrix(found: Any, around: Neighbours, *, cells: int) -> np.ndarray:
    """Rows (world, cell, total) of the engine as one row of counts for each world."""
    totals = found.to_pyarrow()
    counts = np.zeros((len(around.worlds), cells), dtype=np.int64)
    counts[totals["world"].to_numpy(), totals["cell"].to_numpy()] = totals["total"].to_numpy()
    return counts
