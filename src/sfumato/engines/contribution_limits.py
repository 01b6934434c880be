"""Which rows count: those that meet the condition, lie in a cell, and are of a group that is kept of their person.

At most ``groups`` groups of a person are kept, those with the least mark. A mark is worked out from the person's id,
the group's own key and the secret, so other people's rows never decide what is kept, and the bound holds for every
secret and for any marks. Why marks are made of whole numbers: docs/decisions/0012-plan-of-bounded-totals.md
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from sfumato.core.limits import Limit
from sfumato.engines.compile import predicate, value
from sfumato.engines.dialect import Dialect, PublicValue
from sfumato.engines.dialects import dialect_of
from sfumato.engines.expressions import Cast, Expression, Named, Type, Value, columns_of
from sfumato.engines.key_places import KeyValue, is_placed
from sfumato.engines.key_places import place as key_place
from sfumato.engines.keyed_hash import md5
from sfumato.engines.operands import whole
from sfumato.engines.public_rows import public_rows

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["Kept", "KeyColumn", "KeyValue", "Share", "kept_rows"]

TYPES = {str: Type.TEXT, int: Type.WHOLE, bool: Type.TRUTH, date: Type.DATE}
PRIME = 2**31 - 1  # products of two smaller numbers fit 64 bits on every engine
SECOND = 2**31 - 19  # the next prime below: few ids of 64 bits have both remainders in common
FEW = 16  # up to this many groups, rows beyond a person's reach are dropped before they are ranked


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    """A column to group by and the public list of its values.

    ``value`` computes it where it is not a column of the table. Rows with any other value do not count, or with
    ``other`` they make a last group of their own.
    """

    column: str
    values: tuple[KeyValue, ...]
    value: Value | None = None
    other: bool = False

    @property
    def size(self) -> int:
        """How many groups it makes."""
        return len(self.values) + self.other

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the table that it needs."""
        return frozenset([self.column]) if self.value is None else columns_of(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How much of each person counts: the column that identifies persons, the limit, and the secret of the marks.

    ``single`` says that a person has one row at most by how the rows were made, so that nothing needs to be kept back.
    """

    column: str
    limit: Limit
    secret: str
    single: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The rows that count, with the columns that were asked for and, under names of their own, these:"""

    rows: ir.Table
    cell: str
    person: str
    world: str
    values: Mapping[Value, str]
    loose: bool
    """Whether rows that lie in no cell are still there, with null for one; only without a share."""


def kept_rows(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    share: Share | None,
    needed: Iterable[str] = (),
    values: Sequence[Value] = (),
    world: str | None = None,
) -> Kept:
    """The rows that count, each with the number of its cell in the product of ``keys``, the last key fastest.

    ``needed`` names columns to keep, ``values`` what is worked out of each row beside them.

    Guarantee: with a share, the rows of a person lie in at most ``groups`` cells, which depend on that person's rows
    and the secret alone. ``world`` names a column that tells several datasets in one table apart; each is treated as if
    it were alone. The marks do not see it.
    """
    cells = prod(key.size for key in keys)
    all_groups = share is None or share.single or share.limit.groups >= cells
    plan = _Plan(table, keys, share, world, marked=not all_groups)
    made = {each: plan.name(f"value{place}") for place, each in enumerate(dict.fromkeys(values))}
    rows = plan.begun(table if where is None else table.filter(predicate(where, table)), needed, made)
    found = plan.in_cells(rows) if all_groups else plan.few_groups(rows)
    return Kept(
        rows=found,
        cell=plan.name("cell"),
        person=plan.name("person"),
        world=plan.name("world"),
        values=made,
        loose=share is None and plan.narrows,
    )


class _Plan:
    """One question on one engine, with names that no column of the table has; ``marked``, groups are chosen by marks.

    Marks of keys are looked up, so the keys are; without marks the places of some keys are worked out instead.
    """

    def __init__(
        self, table: ir.Table, keys: Sequence[KeyColumn], share: Share | None, world: str | None, *, marked: bool
    ) -> None:
        self.keys, self.share, self.world, self.marked = keys, share, world, marked
        self.beside, self.dialect = table, dialect_of(table)
        self.prefix = "of_"
        while any(column.casefold().startswith(self.prefix) for column in table.columns):
            self.prefix += "_"
        placed = [not marked and is_placed(key.value, key.values, self.dialect) for key in keys]
        self.placed = {place: key for place, key in enumerate(keys) if placed[place]}
        self.looked_up = {place: key for place, key in enumerate(keys) if not placed[place]}

    def name(self, of: str) -> str:
        return self.prefix + of

    @property
    def narrows(self) -> bool:
        """Whether a key that is placed can have none of its values, so that its row is in no cell."""
        return any(not key.other for key in self.placed.values())

    def begun(self, rows: ir.Table, raw: Iterable[str], values: Mapping[Value, str]) -> ir.Table:
        """The columns that are needed, keys and person among them; rows of nobody are gone.

        So are rows of persons that lie in no cell by a key that is placed. Without persons these are left to whoever
        adds up by cell: to drop them here, the engine would work the place of each row out twice.
        """
        made = {name: value(each, rows) for each, name in values.items()}
        made |= {self.name(f"key{place}"): self._key(key, rows) for place, key in self.looked_up.items()}
        if self.share is not None:
            made[self.name("person")] = rows[self.share.column]
        if self.world is not None:
            made[self.name("world")] = rows[self.world]
        cell = self.name("cell")
        made[cell] = whole(0)
        for place, key in self.placed.items():
            found = key_place(key.value, partial(self._key, key, rows), key.values, rows)
            made[cell] += (found.fill_null(whole(len(key.values))) if key.other else found) * whole(self._stride(place))
        rows = rows.select(*(rows[column] for column in sorted(raw)), **made)
        there = [] if self.share is None else [rows[self.name("person")].notnull()]
        there += [rows[cell].notnull()] if self.share is not None and self.narrows else []
        return rows.filter(there) if there else rows

    def _key(self, key: KeyColumn, rows: ir.Table) -> ir.Value:
        days = isinstance(key.values[0], date)  # of a time its day
        if key.value is None and not days:
            return rows[key.column]
        node = key.value or Named(column=key.column)
        return value(Cast(part=node, to=Type.DATE) if days else node, rows)

    def _stride(self, place: int) -> int:
        """How far apart the cells of two neighbouring keys are."""
        return prod(key.size for key in self.keys[place + 1 :])

    def in_cells(self, rows: ir.Table) -> ir.Table:
        """The number of each row's cell; where groups are marked, also the weight and the slot of its group."""
        cell = self.name("cell")
        if self.marked:
            rows = rows.mutate(**{self.name("weight"): whole(1), self.name("slot"): whole(0)})
        for place, key in self.looked_up.items():
            code = self.name(f"code{place}")
            names = [self.name(f"{what}{place}") for what in ("weight", "slot")] if self.marked else []
            public = self._public(key, place)
            rows = (rows.left_join if key.other else rows.inner_join)(public, self.name(f"key{place}"))
            found = {name: rows[name] for name in (code, *names)}
            if key.other:
                last = [len(key.values), *self._marks(place, None)][: len(found)]
                found = {name: rows[name].fill_null(whole(at)) for name, at in zip(found, last, strict=True)}
            made = {cell: rows[cell] + found[code] * whole(self._stride(place))}
            if self.marked:
                weight, slot = self.name("weight"), self.name("slot")
                made[weight] = rows[weight] * found[names[0]] % whole(PRIME)
                made[slot] = rows[slot] + found[names[1]]
            rows = rows.mutate(**made).drop(*found)
        return rows

    def few_groups(self, rows: ir.Table) -> ir.Table:
        """The rows of the groups that are kept of each person.

        Ranking alone decides. Before it, rows beyond a person's reach may be dropped, and they cannot rank: a reach is
        the greatest of the least marks of several lots of groups, and so has at least as many groups below it.
        """
        import ibis

        cell, mark, person = self.name("cell"), self.name("mark"), self.name("person")
        side = [] if self.world is None else [self.name("world")]
        groups = 1 if self.share is None else self.share.limit.groups
        if groups <= FEW and self.dialect.sieves:
            only = [*side, person, *(self.name(f"key{place}") for place in range(len(self.keys))), cell]
            reach = self._reach(self._marked(rows.select(*only)), groups, side)
            rows = self.in_cells(rows).inner_join(reach, [*side, person])
            rows = rows.mutate(**{mark: self._mark(rows[self.name("own")], rows)})
            rows = rows.filter(rows[mark] <= rows[self.name("reach")])
        else:
            rows = self._marked(rows)
        window = ibis.window(group_by=[*side, person], order_by=[mark, cell])
        rows = rows.mutate(**{mark: ibis.dense_rank().over(window)})
        return rows.filter(rows[mark] < whole(groups))

    def _marked(self, rows: ir.Table) -> ir.Table:
        """The rows in cells, each with the mark of its person and its group."""
        rows = self.in_cells(rows)
        rows = rows.mutate(**{self.name("own"): self._own(rows[self.name("person")])})
        rows = self.dialect.worked_out(rows)
        rows = rows.mutate(**{self.name("mark"): self._mark(rows[self.name("own")], rows)})
        return self.dialect.worked_out(rows).drop(self.name("own"))

    def _reach(self, rows: ir.Table, groups: int, side: Sequence[str]) -> ir.Table:
        """For each person the mark up to which at least ``groups`` groups lie, if the person has that many."""
        import ibis

        person, past = self.name("person"), whole(PRIME)
        slot, mark = rows[self.name("slot")] % whole(groups), rows[self.name("mark")]
        least = {f"least{lot}": ibis.ifelse(slot == whole(lot), mark, past).min() for lot in range(groups)}
        found = rows.group_by([*side, person]).aggregate(**least)
        furthest = ibis.greatest(*(found[name] for name in least)) if groups > 1 else found["least0"]
        return found.select(*side, person, **{self.name("own"): self._own(found[person]), self.name("reach"): furthest})

    def _mark(self, own: ir.Value, rows: ir.Table) -> ir.Value:
        """A person's number and a group's weight, mixed: below ``PRIME``, and nothing on the way beyond 64 bits."""
        shift = _number(self._secret, "shift") % PRIME
        mixed = (own * rows[self.name("weight")] + whole(shift)) % whole(PRIME)
        return mixed * mixed % whole(PRIME)

    def _own(self, person: ir.Value) -> ir.Value:
        """The number of a person: of whole numbers a line of two remainders, of text the head of its keyed md5.

        With one remainder alone all ids that are equal modulo it, such as those of a system that counts in steps of
        it, would keep the same groups. Both products and the start stay below 2⁶³.
        """
        if person.type().is_integer():
            slope, other = (1 + _number(self._secret, name) % (PRIME - 1) for name in ("slope", "other"))
            start, number = _number(self._secret, "start") % PRIME, person.cast("int64")
            line = number % whole(PRIME) * whole(slope) + number % whole(SECOND) * whole(other)
            return (line + whole(start)) % whole(PRIME)
        return _head(f"{len(self._secret)}:{self._secret}", person, self.dialect)

    def _public(self, key: KeyColumn, place: int) -> ir.Table:
        columns: dict[str, tuple[Type, Sequence[PublicValue]]] = {
            self.name(f"key{place}"): (TYPES[type(key.values[0])], key.values),
            self.name(f"code{place}"): (Type.WHOLE, range(len(key.values))),
        }
        if self.marked:
            marks = [self._marks(place, key_value) for key_value in key.values]
            columns[self.name(f"weight{place}")] = (Type.WHOLE, [weight for weight, _ in marks])
            columns[self.name(f"slot{place}")] = (Type.WHOLE, [slot for _, slot in marks])
        return public_rows(self.beside, columns)

    def _marks(self, place: int, key: KeyValue | None) -> tuple[int, int]:
        """The weight and the slot of a key; None is every key that is not declared."""
        text = f"{place};{type(key).__name__};{key}"
        number = _number(self._secret, text)
        return 1 + number % (PRIME - 1), number // PRIME % (2**20)

    @property
    def _secret(self) -> str:
        return "" if self.share is None else self.share.secret


def _number(secret: str, text: str) -> int:
    """A whole number of 120 bits from a secret and a text, in Python."""
    digest = hashlib.md5(f"{len(secret)}:{secret}{text}".encode(), usedforsecurity=False).hexdigest()
    return int(digest[:30], 16)


def _head(secret: str, text: ir.Value, dialect: Dialect) -> ir.Value:
    """The first 28 bits of the md5 of a secret and a text, as a whole number; the same on every engine."""
    import ibis

    return dialect.number_of(md5(ibis.literal(secret) + text).substr(0, 7))
