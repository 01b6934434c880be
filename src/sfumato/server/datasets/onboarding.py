"""Onboarding a file or a table: a draft from names and types of columns, filled in by a steward; no row is shown."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path

from sfumato.core.exact import rational
from sfumato.core.limits import Limit
from sfumato.engines.expressions import Type
from sfumato.engines.sources import Source
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.server.identity.secrets import new_secret
from sfumato.tables.column_facts import ColumnFacts, Key
from sfumato.tables.schema import Schema
from sfumato.tables.schema_draft import draft
from sfumato.tables.schema_file import WORDS

__all__ = ["ENDINGS", "DraftColumn", "check_table", "columns_of", "drafted", "new_place", "place_of", "schema_of"]

ENDINGS = (".csv.gz", ".csv", ".parquet", ".jsonl", ".feather", ".xlsx", ".dta", ".sav")
NAMED = re.compile(r"file-[A-Za-z0-9_-]{43}(\.[a-z]{3,7}){1,2}")
MOST_COLUMNS = 500
TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftColumn:
    """A column as a form shows it: what is known of it, as text."""

    name: str
    kind: str
    keys: str = ""
    low: str = ""
    high: str = ""
    used: bool = True
    person: bool = False


def new_place(folder: Path, name: str) -> Path:
    """Where an uploaded file is kept: a name of its own with the ending of the one that was sent, and no more of it."""
    ending = next((ending for ending in ENDINGS if name.lower().endswith(ending)), None)
    if ending is None:
        raise InvalidInput(f"files that can be read here end with {', '.join(ENDINGS)}; nothing was kept.")
    return folder / f"file-{new_secret()}{ending}"


def place_of(folder: Path, name: str) -> Path:
    """The file of an earlier upload, by the name that it was given."""
    if not NAMED.fullmatch(name) or not (folder / name).is_file():
        raise NotDeclared("this upload is not here any more; nothing was declared. Upload the file again.")
    return folder / name


def drafted(place: Path | str, like: Schema | None = None) -> tuple[DraftColumn, ...]:
    """The columns of a file or table, by its head, with what an earlier version declared of them. Reads no row."""
    text = draft(place)
    found = Schema.from_toml(text)
    person = re.search(r'^# column = "((?:[^"\\]|\\.)*)"', text, re.MULTILINE)
    likely = None if person is None else person[1]
    known = {} if like is None else {column.name: column for column in like.columns}
    unit = likely if like is None else like.unit
    if len(found.columns) > MOST_COLUMNS:
        raise InvalidInput(f"a form shows {MOST_COLUMNS} columns at most; use sfumato schema draft for wider files.")
    return tuple(
        _shown(known.get(column.name, column), used=like is None or column.name in known, unit=unit)
        for column in found.columns
    )


def check_table(address: str, schema: Schema) -> None:
    """Refuse a table of a database that is a view, or whose columns are not those of its schema; reads no row."""
    Source(address, schema.types, unit=() if schema.unit is None else (schema.unit,)).columns()


def schema_of(
    columns: Sequence[DraftColumn],
    *,
    name: str,
    edition: str,
    groups: str,
    rows_per_group: str,
    population: str = "",
) -> Schema:
    """The schema that a form states; what is wrong is said with the name of the column, never with a value."""
    used = [column for column in columns if column.used]
    persons = [column.name for column in used if column.person]
    if len(persons) != 1:
        raise NotDeclared("say which one column identifies persons; nothing was declared.")
    return Schema(
        name=name.strip(),
        edition=edition.strip(),
        unit=persons[0],
        limit=Limit(groups=_whole(groups, "groups"), rows_per_group=_whole(rows_per_group, "rows in each group")),
        population=_whole(population, "the number of people at most") if population.strip() else None,
        columns=tuple(map(_facts, used)),
    )


def columns_of(said: Mapping[str, str], count: int) -> tuple[DraftColumn, ...]:
    """The columns of a form, whose fields are numbered."""
    return tuple(
        DraftColumn(
            name=said.get(f"name-{place}", ""),
            kind=said.get(f"kind-{place}", ""),
            keys=said.get(f"keys-{place}", ""),
            low=said.get(f"low-{place}", ""),
            high=said.get(f"high-{place}", ""),
            used=f"used-{place}" in said,
            person=said.get("person") == str(place),
        )
        for place in range(min(count, MOST_COLUMNS))
    )


def _shown(column: ColumnFacts, *, used: bool, unit: str | None) -> DraftColumn:
    low, high = ("", "") if column.bounds is None else map(_written, column.bounds)
    kind = next(word for word, known in WORDS.items() if known is column.type)
    keys = "\n".join(str(key).lower() if isinstance(key, bool) else str(key) for key in column.keys)
    return DraftColumn(
        name=column.name, kind=kind, keys=keys, low=low, high=high, used=used, person=column.name == unit
    )


def _facts(column: DraftColumn) -> ColumnFacts:
    kind = WORDS.get(column.kind)
    if kind is None:
        raise InvalidInput(f"the type of {column.name!r} is not one of {', '.join(WORDS)}; nothing was declared.")
    given = [line.strip() for line in column.keys.replace(",", "\n").splitlines() if line.strip()]
    ends = column.low.strip(), column.high.strip()
    if bool(ends[0]) is not bool(ends[1]):
        raise InvalidInput(f"bounds of {column.name!r} are a lowest and a highest value; nothing was declared.")
    return ColumnFacts(
        name=column.name,
        type=kind,
        keys=tuple(_key(text, kind, place, column.name) for place, text in enumerate(given, 1)),
        bounds=None if not ends[0] else _bounds(*ends, kind=kind, name=column.name),
    )


def _key(text: str, kind: Type, place: int, name: str) -> Key:
    try:
        return int(text) if kind is Type.WHOLE else TRUTHS[text.lower()] if kind is Type.TRUTH else text
    except (ValueError, KeyError):
        raise InvalidInput(f"key {place} of {name!r} is not of its type; nothing was declared.") from None


def _bounds(low: str, high: str, *, kind: Type, name: str) -> tuple[Fraction, Fraction] | tuple[date, date]:
    try:
        if kind in (Type.DATE, Type.TIME):
            return date.fromisoformat(low), date.fromisoformat(high)
        return rational(low.strip(), "low"), rational(high.strip(), "high")
    except (ValueError, InvalidInput):
        raise InvalidInput(
            f"the bounds of {name!r} are two numbers such as 0 and 120, or two days such as 2026-01-31; nothing was "
            "declared."
        ) from None


def _whole(text: str, what: str) -> int:
    if not text.strip().isdecimal() or len(text.strip()) > 15:
        raise InvalidInput(f"{what} is a whole number from 1; nothing was declared.")
    return int(text)


def _written(end: Fraction | date) -> str:
    if isinstance(end, date):
        return end.isoformat()
    return str(end.numerator) if end.denominator == 1 else str(float(end))
