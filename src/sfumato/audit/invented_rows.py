"""Rows that are invented from a declaration alone, and neighbours among them.

They follow what is declared, and depart from it where data do: values outside the bounds, keys that nobody declared,
values that are missing, rows without a person. No file is opened. Ordinary generators draw them: they protect nobody.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.limits import Limit
from sfumato.core.units import Family, Record, Relation, User
from sfumato.engines.expressions import Date, Type
from sfumato.tables.column_facts import ColumnFacts

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from sfumato.tables.table import Table

    Places = npt.NDArray[np.int64]

__all__ = ["InventedWorlds", "Protected", "ends", "facts_of", "invented_rows", "invented_worlds"]

Protected = Record | User | Family
Cell = str | int | float | bool | date | datetime

BLOCKS, IN_BLOCK = 10, 8  # rows of a block differ in their keys, and often in nothing else
MISSING, ROWLESS = 0.06, 0.15
UNITS, NEWCOMERS, NOBODYS = 10, 2, 3
MOST_ROWS, MOST_GROUPS, MOST_KEYS = 2_000, 8, 12
DAY = timedelta(days=1)
KINDS: dict[type, Type] = {str: Type.TEXT, int: Type.WHOLE, bool: Type.TRUTH, Date: Type.DATE}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InventedWorlds:
    """Small invented tables side by side, told apart by the column ``world``, and which of them are neighbours."""

    rows: "pa.Table"
    world: str
    worlds: int
    pairs: tuple[tuple[int, int], ...]

    def alone(self, world: int) -> "pa.Table":
        """One of the tables, as a file would have it."""
        import pyarrow.compute as pc

        return self.rows.filter(pc.equal(self.rows[self.world], world)).drop_columns([self.world])


def facts_of(table: "Table", unit: Protected) -> tuple[ColumnFacts, ...]:
    """The columns that a table declares something of, and that of the person; nothing is opened.

    Where a table does not say the type of a column, it follows from its keys or bounds; a period is that of dates.

    >>> from sfumato.core.units import user
    >>> from sfumato.demo.clinic import visits
    >>> [fact.name for fact in facts_of(visits(), user("patient", relation="add/remove"))]
    ['sex', 'hospital', 'age', 'sbp', 'patient']
    """
    found = []
    for name in dict.fromkeys([*table.keys, *table.bounds]):
        keys, bounds = table.keys.get(name), table.bounds.get(name)
        if keys is not None and type(keys.values[0]) in KINDS:
            kind = KINDS[type(keys.values[0])]
            listed = tuple(each.day.isoformat() if isinstance(each, Date) else each for each in keys.values)
            fits = bounds is not None and kind in ((Type.DATE,) if isinstance(bounds[0], date) else (Type.WHOLE,))
            found.append(ColumnFacts(name=name, type=kind, keys=listed, bounds=bounds if fits else None))  # type: ignore[arg-type]  # no times: their kind is not among these
        elif bounds is not None:
            number = Type.WHOLE if name in table.integers else Type.NUMBER
            kind = Type.DATE if isinstance(bounds[0], date) else number
            found.append(ColumnFacts(name=name, type=kind, bounds=bounds))
    if isinstance(unit, User | Family):
        found = [fact for fact in found if fact.name != unit.column]
        person = Type.WHOLE if unit.column in table.integers else Type.TEXT
        found.append(ColumnFacts(name=unit.column, type=person))
    return tuple(found)


def ends(fact: ColumnFacts) -> tuple[Fraction, Fraction] | None:
    """The bounds of a column of numbers, if it has any."""
    if fact.bounds is None:
        return None
    low, high = fact.bounds
    return None if isinstance(low, date) or isinstance(high, date) else (low, high)


def invented_rows(facts: Sequence[ColumnFacts], chance: np.random.Generator) -> "pa.Table":
    """A pool of rows without persons, which those of all worlds are taken from.

    >>> sex = ColumnFacts(name="sex", type=Type.TEXT, keys=("F", "M"))
    >>> rows = invented_rows([sex], np.random.default_rng(1))
    >>> sorted(set(rows["sex"].drop_null().to_pylist()))
    ['F', 'M', 'undeclared']
    """
    import pyarrow as pa

    columns = {}
    for fact in facts:
        values = _values(fact, chance)
        places = chance.integers(len(values), size=BLOCKS * IN_BLOCK)
        if not fact.keys:
            alike = np.repeat(chance.integers(len(values), size=BLOCKS), IN_BLOCK)
            places = np.where(chance.random(len(places)) < 0.8, alike, places)
        places = np.where(chance.random(len(places)) < MISSING, len(values), places)
        columns[fact.name] = pa.array([*values, None], _arrow(fact)).take(pa.array(places))
    return pa.table(columns)


def _arrow(fact: ColumnFacts) -> "pa.DataType":
    import pyarrow as pa

    if fact.type is Type.TIME:
        return pa.timestamp("us", tz=None if fact.zone is None else "UTC")
    kinds = {Type.TEXT: pa.string(), Type.WHOLE: pa.int64(), Type.NUMBER: pa.float64(), Type.TRUTH: pa.bool_()}
    return kinds.get(fact.type, pa.date32())


def _values(fact: ColumnFacts, chance: np.random.Generator) -> list[Cell]:
    """What a column may hold; both ends of a range come more often than what lies outside."""
    found: list[Cell] = []
    if fact.keys:
        some = chance.choice(len(fact.keys), size=min(MOST_KEYS, len(fact.keys)), replace=False)
        chosen = [fact.keys[place] for place in sorted(some.tolist())]
        found += [_in_time(key, fact.type) for key in chosen] * 2 + _undeclared(fact)
    if (bounds := ends(fact)) is not None:
        found += _numbers(*bounds, whole=fact.type is Type.WHOLE)
    elif fact.bounds is not None:
        first, last = (each for each in fact.bounds if isinstance(each, date))
        days = [first, last, first, last, _later(first, -1), _later(last, 1)]
        found += [_in_time(day.isoformat(), fact.type) for day in days]
    plain: dict[Type, list[Cell]] = {
        Type.TEXT: ["one", "another", ""],
        Type.WHOLE: [0, 1, -7],
        Type.NUMBER: [0.0, 1.5, -7.25],
        Type.TRUTH: [True, False],
        Type.DATE: [date(2024, 2, 29), date(2025, 1, 1)],
        Type.TIME: [datetime(2024, 2, 29, 23, 59), datetime(2025, 1, 1)],
    }
    return found or plain[fact.type]


def _numbers(low: Fraction, high: Fraction, *, whole: bool) -> list[Cell]:
    beyond = max(high - low, Fraction(1))
    found = [low, high, low, high, (low + high) / 2, low - beyond, high + beyond]
    if whole:
        return [min(max(int(each), -(2**63)), 2**63 - 1) for each in found]
    return [*(float(each) for each in found), float("nan")]


def _undeclared(fact: ColumnFacts) -> list[Cell]:
    match fact.type:
        case Type.TEXT:
            return ["undeclared" if "undeclared" not in fact.keys else max(map(str, fact.keys)) + "_"]
        case Type.WHOLE:
            numbers = [int(key) for key in fact.keys]
            return [max(numbers) + 1 if max(numbers) < 2**63 - 1 else 0]
        case Type.DATE | Type.TIME:
            last = _later(date.fromisoformat(max(map(str, fact.keys))), 1)
            return [_in_time(last.isoformat(), fact.type)]
    return []


def _later(day: date, days: int) -> date:
    return date.fromordinal(min(max(day.toordinal() + days, 1), date.max.toordinal()))


def _in_time(key: str | int | bool, kind: Type) -> Cell:  # noqa: FBT001 - a key may be a truth
    """A key or day as a column of this type holds it."""
    match kind:
        case Type.DATE:
            return date.fromisoformat(str(key))
        case Type.TIME:
            return datetime.fromisoformat(f"{key}T12:00:00")
        case Type.TEXT:
            return str(key)
    return key


def invented_worlds(
    pool: "pa.Table", unit: Protected, limit: Limit | None, person: Type, chance: np.random.Generator
) -> InventedWorlds:
    """A table of a few units, and its neighbours by brute force: without each of them, or with others in its place.

    Persons often have as many rows as the limit lets count, and sometimes more.
    """
    import pyarrow as pa

    size = unit.size if isinstance(unit, Family) else 1
    first = [_person(unit, limit, chance) for _ in range(UNITS * size)]
    tables, pairs = [list(range(len(first)))], []
    everyone = list(first)
    for place in range(UNITS):
        rest = [number for number in tables[0] if number // size != place]
        if unit.relation is Relation.ADD_REMOVE:
            pairs.append((0, len(tables)))
            tables.append(rest)
            continue
        for newcomer in range(NEWCOMERS):
            tables.append([*rest, *range(len(everyone), len(everyone) + size)])
            everyone += [_person(unit, limit, chance) for _ in range(size)]
            pairs += [(before, len(tables) - 1) for before in (0, *range(len(tables) - 1 - newcomer, len(tables) - 1))]
    nobodys = chance.integers(pool.num_rows, size=NOBODYS)
    owners = [np.concatenate([*(np.full(len(everyone[it]), it) for it in table), [-1] * NOBODYS]) for table in tables]
    places = [np.concatenate([*(everyone[it] for it in table), nobodys]) for table in tables]
    rows = pool.take(pa.array(np.concatenate(places).astype(np.int64)))
    if isinstance(unit, User | Family):
        rows = _owned(rows, unit.column, person, np.concatenate(owners).astype(np.int64))
    world = "world"
    while world in rows.column_names:
        world += "_"
    numbers = np.repeat(np.arange(len(tables)), [len(each) for each in places])
    return InventedWorlds(
        rows=rows.append_column(world, pa.array(numbers, pa.int64())),
        world=world,
        worlds=len(tables),
        pairs=tuple(pairs),
    )


def _person(unit: Protected, limit: Limit | None, chance: np.random.Generator) -> "Places":
    """Which rows of the pool a person has; each several times."""
    if isinstance(unit, Record) or limit is None:
        return chance.integers(BLOCKS * IN_BLOCK, size=1)
    if chance.random() < ROWLESS:
        return np.zeros(0, dtype=np.int64)
    groups = min(limit.groups, MOST_GROUPS)
    several = int(chance.integers(groups, 2 * groups + 2)) if chance.random() < 0.7 else 1
    block = int(chance.integers(BLOCKS)) * IN_BLOCK
    rows = block + chance.integers(IN_BLOCK, size=several)
    if chance.random() < 0.3:
        rows = chance.integers(BLOCKS * IN_BLOCK, size=several)
    full = min(limit.rows_per_group, max(1, MOST_ROWS // several))
    return np.repeat(rows, full if chance.random() < 0.7 else int(chance.integers(1, full + 2)))


def _owned(rows: "pa.Table", column: str, person: Type, owners: "Places") -> "pa.Table":
    """The rows with the column of persons; -1 is nobody."""
    import pyarrow as pa

    numbers = pa.array(owners, pa.int64(), mask=owners < 0)
    held = numbers if person is Type.WHOLE else numbers.cast(pa.string())
    if column in rows.column_names:
        rows = rows.drop_columns([column])
    return rows.append_column(column, held)
