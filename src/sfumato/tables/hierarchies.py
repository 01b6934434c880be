"""Hierarchies of codes: a public list that says which group each code is in, such as the chapter of a diagnosis."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import cbrt
from typing import TYPE_CHECKING

from sfumato.core.suggestion import did_you_mean
from sfumato.engines.expressions import Term, col, when
from sfumato.errors import InvalidInput
from sfumato.synthesis.columns import ListedColumn
from sfumato.synthesis.levels import CodeLevel
from sfumato.tables.keys import Keys, KeyValue, keys_of

if TYPE_CHECKING:
    from sfumato.tables.table import Table

__all__ = ["GroupedCodes", "Hierarchies", "Hierarchy", "given_hierarchies", "hierarchies_of", "weight_of_codes"]

MOST_CODES = 100_000
MOST_WEIGHT = 2**20


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Which group each code of a column is in; a public fact, such as the chapters of a classification of diagnoses.

    ``level`` names the column of groups in the file, else it is called ``<column>_group``. ``rest`` is what rows have
    whose code is too rare to be told from noise, or is not declared; with ``rest=None`` rare codes are drawn alike, and
    every row has a declared code.

    Assumes: the mapping was not read off the data. It may hold codes that do not occur.

    >>> Hierarchy({"I21": "circulatory", "I50": "circulatory", "J18": "respiratory"}, level="chapter").groups
    ('circulatory', 'respiratory')
    """

    group_of: Mapping[KeyValue, str]
    level: str | None = None
    rest: str | None = "other"

    def __post_init__(self) -> None:
        given = self.group_of
        if not isinstance(given, Mapping) or not 1 <= len(given) <= MOST_CODES:
            raise InvalidInput(
                f"a hierarchy maps each code to its group, for 1 to {MOST_CODES:,} codes; nothing was done."
            )
        if any(not isinstance(group, str) or not group for group in given.values()):
            raise InvalidInput("the groups of a hierarchy are texts; nothing was done.")
        if self.rest is not None and (not isinstance(self.rest, str) or self.rest in given):
            raise InvalidInput(
                f"the rest of a hierarchy is a text that is no code and was {self.rest!r}; nothing was done."
            )
        if self.rest is not None and not all(isinstance(code, str) for code in given):
            raise InvalidInput(
                "codes that are no texts stand beside no rest in one column; nothing was done. Say "
                "sf.Hierarchy(mapping, rest=None)."
            )
        object.__setattr__(self, "group_of", dict(given))

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups, in the order in which they are met."""
        return tuple(dict.fromkeys(self.group_of.values()))

    def value(self, column: str) -> Term:
        """The group of a row, computed from its code; missing where the code is in no group."""
        codes: dict[str, list[KeyValue]] = {}
        for code, group in self.group_of.items():
            codes.setdefault(group, []).append(code)
        (first, some), *more = codes.items()
        made: Term = when(col(column).isin(some)).then(first)
        for group, listed in more:
            made = made.when(col(column).isin(listed)).then(group)  # type: ignore[attr-defined]  # a choice goes on
        return made


Hierarchies = Mapping[str, Mapping[KeyValue, str] | Hierarchy]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedCodes:
    """A column with a hierarchy: the groups as a column of the fit, and the keys of both."""

    column: ListedColumn
    keys: Keys
    codes: Keys
    open: tuple[bool, ...]
    within: tuple[int, ...]
    hierarchy: Hierarchy

    def level(self, place: int) -> CodeLevel:
        """The codes, below the column at a place."""
        return CodeLevel(
            name=self.codes.column,
            group=place,
            codes=self.codes.values,  # type: ignore[arg-type]  # texts, numbers or truth values, as was checked
            within=self.within,
            open=self.open,
            rest=self.hierarchy.rest,
        )


def given_hierarchies(given: Hierarchies | None) -> Hierarchies:
    """What was given as hierarchies, none by default; refused where it is no mapping."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidInput("hierarchies maps columns to the groups of their codes; nothing was done.")
    return {} if given is None else given


def hierarchies_of(table: "Table", given: Hierarchies, names: list[str], missing: object) -> dict[str, GroupedCodes]:
    """Hierarchies of columns, checked against what is declared; codes are the declared keys, or all of the mapping."""
    found: dict[str, GroupedCodes] = {}
    for name, each in given.items():
        if name not in names:
            raise InvalidInput(
                f"hierarchies names {name!r}, which is none of the columns {', '.join(names)}; nothing was "
                f"done.{did_you_mean(name, names)}"
            )
        hierarchy = each if isinstance(each, Hierarchy) else Hierarchy(each)
        level = hierarchy.level or f"{name}_group"
        if level in names:
            raise InvalidInput(f"the groups of {name!r} cannot be called {level!r}, as a column is; nothing was done.")
        codes = table.keys.get(name) or keys_of(name, hierarchy.group_of)
        homeless = [code for code in codes.values if code not in hierarchy.group_of]
        if homeless or codes.value is not None:
            raise InvalidInput(
                f"the hierarchy of {name!r} has no group for {', '.join(map(repr, homeless[:5])) or 'computed keys'}; "
                "nothing was done. Give every declared code its group."
            )
        groups = hierarchy.groups
        place = {group: number for number, group in enumerate(groups)}
        listed = set(codes.values)
        unlisted = {group for code, group in hierarchy.group_of.items() if code not in listed}
        found[name] = GroupedCodes(
            column=ListedColumn(name=level, values=groups, missing=name in missing),  # type: ignore[operator]  # a list
            keys=Keys(column=level, values=groups, value=hierarchy.value(name).node),
            codes=codes,
            open=tuple(group in unlisted for group in groups),
            within=tuple(place[hierarchy.group_of[code]] for code in codes.values),  # type: ignore[index]  # as above
            hierarchy=hierarchy,
        )
    return found


def weight_of_codes(cells: int, tables: list[tuple[int, int]]) -> int:
    """The weight of a table of codes beside tables with these cells and weights: by its cells, as theirs are.

    >>> weight_of_codes(1000, [(125, 320), (8, 128)])
    640
    """
    rate = sum(weight / cbrt(size) for size, weight in tables) / len(tables)
    return max(1, min(MOST_WEIGHT, round(rate * cbrt(cells))))
