"""Tiny tables full of corners, the keys that they are counted by, and rich sets of rows to put into them."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import Relation, Unit, family, record, user
from sfumato.engines.counts import KeyColumn, Share
from sfumato.engines.expressions import Expression, col
from sfumato.tables.queries.count import Count, Keys
from tests.laws.neighbours import (
    Neighbours,
    Rows,
    Visit,
    around_couples,
    around_persons,
    around_records,
    fillings,
    windows,
)

MOST = 3  # the largest limit tried, of groups and of rows
LIMITS = [Limit(groups=groups, rows_per_group=rows) for groups in (1, 2, 3) for rows in (1, 2, 3)]
RELATIONS = list(Relation)
UNITS = ["record", "user", "family"]
SECRET = "a secret that every run of a law shares"  # noqa: S105

# Every full row of ``cells`` meets the first three, so the bounds are attained under them.
WHERE: dict[str, Expression | None] = {
    "all": None,
    "elderly": col("age") >= 65,
    "not young": ~(col("age") < 65),
    "one zip or no age": (col("zip") == "ä") | col("age").isnull(),
    "nobody": col("age") > 1000,
}
RICH = ("all", "elderly", "not young")


@dataclass(frozen=True, eq=False, kw_only=True)
class Scenario:
    """Keys to count by, and whether persons are told by text."""

    name: str
    keys: tuple[KeyColumn, ...]
    text: bool

    def count(self, where: Expression | None) -> Count:
        """The declaration."""
        by = tuple(Keys(column=key.column, values=key.values) for key in self.keys)
        return Count(dataset=Dataset(name="visits", edition="1"), where=where, by=by)

    def neighbours(self, unit: str) -> Neighbours:
        """The tables that differ by one unit of this kind."""
        return {"record": self.by_record, "user": self.by_user, "family": self.by_family}[unit]

    def person(self, number: int) -> str | int:
        """An id: text with a letter beyond ASCII, or an extreme whole number."""
        return f"ö{number}" if self.text else (0, 2**63 - 1, -(2**63), -1, 4, 5, 6)[number]

    @cached_property
    def cells(self) -> list[Visit]:
        """One full row for each declared cell."""
        columns = [key.column for key in self.keys]
        values = product(*(key.values for key in self.keys))
        plain = Visit(person=None, zip="ä", ward=1, urgent=True, age=70)
        return [plain._replace(**dict(zip(columns, cell, strict=True))) for cell in values]

    @cached_property
    def strays(self) -> list[Visit]:
        """Rows at the edge of what counts: undeclared and null keys, ages missing and below."""
        row = self.cells[0]
        columns = [key.column for key in self.keys]
        undeclared = [row._replace(zip="Ä")] if "zip" in columns else []
        nulls = [row._replace(**{column: None}) for column in columns]
        return [*undeclared, *nulls, row._replace(age=None), self.cells[-1]._replace(age=10)]

    @cached_property
    def table(self) -> Rows:
        """Three persons, one of them far beyond every limit, and a row of nobody."""
        one, two, three = (self.person(number) for number in range(3))
        everywhere = [cell._replace(person=one) for cell in self.cells for _ in range(2)]
        few = [row._replace(person=two) for row in (self.cells[0], self.cells[-1], self.cells[-1], *self.strays)]
        return (*everywhere, *few, self.cells[0]._replace(person=three), self.cells[0])

    @cached_property
    def odd_sets(self) -> list[Rows]:
        """Rows that count for nothing or little, rows past every limit, and none: a person may own no rows."""
        everything = tuple(cell for cell in self.cells for _ in range(MOST + 1))
        return [*((stray,) for stray in self.strays), tuple(self.strays), everything, (self.cells[0],) * 3 * MOST, ()]

    @cached_property
    def by_record(self) -> Neighbours:
        """One row."""
        return around_records(self.table, [*self.cells, *self.strays])

    @cached_property
    def by_user(self) -> Neighbours:
        """One person."""
        full = fillings(self.cells, groups=MOST, rows=MOST)
        return around_persons(self.table, [*full, *self.odd_sets], newcomer=self.person(5))

    @cached_property
    def by_family(self) -> Neighbours:
        """Two persons."""
        full = windows(self.cells, groups=MOST, rows=MOST)
        newcomers = (self.person(5), self.person(6))
        return around_couples(self.table, [*full, *self.odd_sets[-3:]], newcomers=newcomers)


ZIPS = ("ä", "b'", "区", "")
SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(name="no keys", keys=(), text=True),
        Scenario(name="one value", keys=(KeyColumn(column="zip", values=("ä",)),), text=False),
        Scenario(name="two values", keys=(KeyColumn(column="ward", values=(1, -(2**63))),), text=True),
        Scenario(name="three values", keys=(KeyColumn(column="zip", values=ZIPS[:3]),), text=False),
        Scenario(name="four values", keys=(KeyColumn(column="zip", values=ZIPS),), text=True),
        Scenario(
            name="two by two",
            keys=(KeyColumn(column="zip", values=ZIPS[:2]), KeyColumn(column="urgent", values=(False, True))),
            text=True,
        ),
        Scenario(
            name="three by two",
            keys=(KeyColumn(column="ward", values=(1, 2, 3)), KeyColumn(column="zip", values=ZIPS[1:3])),
            text=False,
        ),
    )
}


def unit_of(kind: str, relation: Relation) -> Unit:
    """The unit of a kind, as a caller would write it."""
    match kind:
        case "record":
            return record(relation=relation)
        case "user":
            return user("person", relation=relation)
    return family(2, "person", relation=relation)


def limit_for(kind: str, limit: Limit) -> Limit | None:
    """Rows have no limit."""
    return None if kind == "record" else limit


def share_for(kind: str, limit: Limit) -> Share | None:
    """What the engine is told to enforce."""
    return None if kind == "record" else Share(column="person", limit=limit, secret=SECRET)
