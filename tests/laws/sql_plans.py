"""A question in SQL as parts of which two texts are made: what this product is asked, and what DuckDB is."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

# ruff: noqa: S608 - the texts are put together on purpose, and nothing here protects anyone


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: in our SQL, in DuckDB's, what it is where there is no row, and whether it is exact."""

    text: str
    theirs: str
    empty: str
    exact: bool
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """What is grouped by, and the values that are declared; None where they follow and none may be left out."""

    text: str
    values: tuple[Any, ...] | None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One question, as parts of which both texts are made."""

    before: str
    origin: str
    where: str
    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]
    shown: tuple[str, ...]
    having: str
    order: str
    cut: str
    traits: frozenset[str]
    by_place: bool = False

    @cached_property
    def text(self) -> str:
        """What this product is asked."""
        given = [each.text for each in self.aggregates]
        columns = [f"{key.text} AS k{place}" for place, key in enumerate(self.keys)]
        columns += [f"{_filled(one, given)} AS s{place}" for place, one in enumerate(self.shown)]
        groups = ", ".join(str(place + 1) if self.by_place else f"k{place}" for place in range(len(self.keys)))
        return " ".join(
            part
            for part in (
                f"{self.before}SELECT {', '.join(columns)} FROM {self.origin}",
                f"WHERE {self.where}" if self.where else "",
                f"GROUP BY {groups}" if groups else "",
                f"HAVING {_filled(self.having, given)}" if self.having else "",
                f"ORDER BY {_filled(self.order, given)}" if self.order else "",
                self.cut,
            )
            if part
        )

    def theirs(self, labels: dict[str, list[Any]]) -> str:
        """What DuckDB is asked: the same, with a row for each of the declared groups, also for those without rows."""
        names = [f"k{place}" for place in range(len(self.keys))]
        given = [f"a{place}" for place in range(len(self.aggregates))]
        columns = [f"{_key(key.text)} AS {name}" for key, name in zip(self.keys, names, strict=True)]
        columns += [f"{each.theirs} AS {name}" for each, name in zip(self.aggregates, given, strict=True)]
        base = f"SELECT {', '.join(columns)} FROM {self.origin}{' WHERE ' + self.where if self.where else ''}"
        base += f" GROUP BY {', '.join(names)}" if names else ""
        filled = [
            f"COALESCE({name}, {each.empty}) AS {name}" for each, name in zip(self.aggregates, given, strict=True)
        ]
        lists = [f"(SELECT UNNEST([{', '.join(map(_literal, labels[name]))}]) AS {name}) AS l{name}" for name in names]
        beside = " CROSS JOIN ".join(lists)
        full = f"SELECT {', '.join([*(f'l{name}.{name} AS {name}' for name in names), *filled])} FROM "
        on = " AND ".join(f"l{name}.{name} = base.{name}" for name in names)
        full += f"{beside} LEFT JOIN base ON {on}" if names else "base"
        shown = [*names, *(f"{_filled(one, given)} AS s{place}" for place, one in enumerate(self.shown))]
        text = f"{self.before}{', ' if self.before else 'WITH '}base AS ({base}), answer AS ({full}) "
        text += f"SELECT {', '.join(shown)} FROM answer"
        text += f" WHERE {_filled(self.having, given)}" if self.having else ""
        text += f" ORDER BY {_filled(self.order, given)}" if self.order else ""
        return _translated(f"{text} {self.cut}")


def _filled(template: str, given: list[str]) -> str:
    return re.sub(r"\{(\d)\}", lambda found: given[int(found[1])], template)


def _key(text: str) -> str:
    """A key that is a date, as its text."""
    return f"CAST({text} AS TEXT)" if text.startswith("DATE_TRUNC") else text


def _literal(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _translated(text: str) -> str:
    """What DuckDB calls otherwise: dates of DATE_TRUNC, texts that are no number, the second of several."""
    text = re.sub(r"DATE_TRUNC\(('\w+'), ([\w.]+)\)", r"CAST(DATE_TRUNC(\1, \2) AS DATE)", text)
    text = re.sub(r"CAST\(([\w.]+code) AS BIGINT\)", r"TRY_CAST(\1 AS BIGINT)", text)
    return re.sub(r"NTH_VALUE\(([\w.]+), 2\)", r"list_sort(list(\1) FILTER (WHERE \1 IS NOT NULL))[2]", text)
