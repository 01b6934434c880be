"""The TOML form of a schema: strict to read, with the place of what is wrong; the same again when written and read."""

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from sfumato.core.exact import natural
from sfumato.core.foreign import TomlTable
from sfumato.core.limits import Limit, Noun
from sfumato.engines.expressions import Type
from sfumato.engines.sources import CellFormat
from sfumato.errors import InvalidInput, SfumatoError, Unsupported
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.provenance import FIELDS, provenance_of

__all__ = ["VERSION", "WORDS", "from_toml", "name_of", "read", "text_of", "to_toml"]

WORDS = {
    "text": Type.TEXT,
    "whole": Type.WHOLE,
    "number": Type.NUMBER,
    "truth": Type.TRUTH,
    "date": Type.DATE,
    "time": Type.TIME,
}
Made = TypeVar("Made")
VERSION = 1
PARTS = {"kind", "version", "dataset", "unit", "limit", "cells", "provenance", "columns"}
CELLS = {"decimal", "thousands", "date", "true", "false", "missing", "trim"}


def read(path: Path, schema: Callable[..., Made]) -> Made:
    """Read a schema from a file; what is wrong is said with its name."""
    try:
        text = path.read_text("utf-8")
    except OSError as wrong:
        raise InvalidInput(f"the schema {path.name!r} could not be read: {wrong.strerror or 'no such file'}.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"the schema {path.name!r} is not a text in UTF-8; it was not read.") from None
    try:
        return from_toml(text, schema)
    except SfumatoError as wrong:
        raise type(wrong)(f"{path.name}: {wrong}") from None


def from_toml(text: str, schema: Callable[..., Made]) -> Made:
    """Read a schema from TOML, and make it of its facts.

    >>> body = 'kind = "schema"\\nversion = 1\\n[columns.age]\\ntype = "whole"\\nbounds = [0, 120]'
    >>> from_toml(body, dict)["columns"][0].bounds
    (Fraction(0, 1), Fraction(120, 1))
    """
    try:
        body = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as wrong:
        raise InvalidInput(f"this is not TOML: {wrong}. The schema was not read.") from None
    except RecursionError:
        raise InvalidInput("the TOML is nested too deep; the schema was not read.") from None
    _known(body, "the file", PARTS)
    _version(body)
    dataset = _part(body, "dataset", {"name", "version", "derived"})
    unit = _part(body, "unit", {"column", "number", "population"})
    limit = _part(body, "limit", {"groups", "rows_per_group", "row", "person"})
    if limit and not {"groups", "rows_per_group"} <= limit.keys():
        raise InvalidInput("limit needs both groups and rows_per_group; the schema was not read.")
    words = {name: _noun(said) for name, said in limit.items()}
    columns = _table(body, "columns")
    return _made(
        "the schema",
        lambda: schema(
            name=_text(dataset, "name", "dataset"),
            edition=_text(dataset, "version", "dataset"),
            unit=_text(unit, "column", "unit"),
            limit=_made("limit", lambda: Limit(**words)) if limit else None,  # type: ignore[arg-type]  # which checks each
            n_units=_counted(unit, "number"),
            population=unit.get("population"),
            derived=dataset.get("derived", False),
            cells=_cells(_part(body, "cells", CELLS), "cells"),
            provenance=_made("provenance", lambda: provenance_of(_part(body, "provenance", set(FIELDS)))),
            columns=tuple(_column(name, _table(columns, name, "columns.")) for name in columns),
        ),
    )


def _noun(said: object) -> object:
    """A word for rows or persons that is said as a table, {one = "child", many = "children", zh = "名儿童"}."""
    if not isinstance(said, dict):
        return said
    _known(said, "limit", {"one", "many", "zh"})
    if not {"one", "many"} <= said.keys():
        raise InvalidInput("a word in limit needs both one and many; the schema was not read.")
    return Noun(**said)


def _version(body: TomlTable) -> None:
    if body.get("kind") != "schema":
        raise InvalidInput('kind = "schema" is missing: this is another kind of file, and was not read.')
    version = body.get("version")
    if type(version) is not int or version < 1:
        raise InvalidInput("version must be a whole number, such as version = 1; the schema was not read.")
    if version > VERSION:
        raise Unsupported(
            f"version = {version} is newer than this code, which reads up to {VERSION}; the schema was not "
            "read. Update sfumato."
        )


def _column(name: str, facts: TomlTable) -> ColumnFacts:
    place = f"columns.{name}"
    _known(facts, place, {"type", "bounds", "keys", "zone", "cells"})
    if not isinstance(facts.get("type"), str) or facts["type"] not in WORDS:
        raise InvalidInput(f"{place}.type must be one of {', '.join(WORDS)}; the schema was not read.")
    kind = WORDS[facts["type"]]
    bounds, keys = facts.get("bounds"), facts.get("keys")
    if bounds is not None and (not isinstance(bounds, list) or len(bounds) != 2):
        raise InvalidInput(
            f"{place}.bounds must be two numbers, such as [0, 120], or two days; the schema was not read."
        )
    if keys is not None and (not isinstance(keys, list) or not keys):
        raise InvalidInput(f"{place}.keys must be a list with at least one value; the schema was not read.")
    return _made(
        place,
        lambda: ColumnFacts(
            name=name,
            type=kind,
            bounds=None if bounds is None else (bounds[0], bounds[1]),
            keys=tuple(keys or ()),
            zone=_text(facts, "zone", place),
            cells=_cells(_part(facts, "cells", CELLS), f"{place}.cells") if "cells" in facts else None,
        ),
    )


def _cells(facts: TomlTable, place: str) -> CellFormat:
    """How values are written."""
    for name in ("decimal", "thousands", "date"):
        _text(facts, name, place)
    return _made(place, lambda: CellFormat(**facts))


def _made(place: str, make: Callable[[], Made]) -> Made:
    """Make something, and say where the words stand that do not allow it."""
    try:
        return make()
    except SfumatoError as wrong:
        raise type(wrong)(f"{place}: {wrong}") from None


def _part(body: TomlTable, name: str, known: set[str]) -> TomlTable:
    part = _table(body, name) if name in body else {}
    _known(part, name, known)
    return part


def _table(body: TomlTable, name: str, above: str = "") -> TomlTable:
    found = body.get(name)
    if not isinstance(found, dict):
        raise InvalidInput(f"{above}{name} must be a table, such as [{above}{name}]; the schema was not read.")
    return found


def _known(body: TomlTable, place: str, known: Iterable[str]) -> None:
    for name in body:
        if name not in known:
            raise InvalidInput(
                f"{place} has an unknown field {name!r}; the schema was not read. Known are {', '.join(sorted(known))}."
            )


def _counted(body: TomlTable, name: str) -> int | None:
    value = body.get(name)
    return None if value is None else natural(value, name)


def _text(body: TomlTable, name: str, place: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f'{place}.{name} must be a text in quotes, such as "visits"; the schema was not read.')
    return value


# ---------------------------------------------------------------------------------------------------------- writing


def to_toml(parts: Mapping[str, TomlTable], columns: Iterable[ColumnFacts]) -> str:
    """Write the parts of a schema and the facts about its columns as TOML; a fact that is None is left out."""
    lines = ['kind = "schema"', f"version = {VERSION}"]
    for name, facts in parts.items():
        lines += _written(name, facts)
    words = {kind: word for word, kind in WORDS.items()}
    for column in columns:
        keys = (
            [date.fromisoformat(str(key)) for key in column.keys]
            if column.type in (Type.DATE, Type.TIME)
            else column.keys
        )
        facts = {
            "type": words[column.type],
            "zone": column.zone,
            "bounds": None if column.bounds is None else list(column.bounds),
            "keys": keys or None,
        }
        lines += _written(f"columns.{name_of(column.name)}", facts)
        if column.cells is not None:
            lines += _written(f"columns.{name_of(column.name)}.cells", column.cells.said)
    return "\n".join(lines) + "\n"


def _written(place: str, facts: TomlTable) -> list[str]:
    given = {name: value for name, value in facts.items() if value is not None}
    return ["", f"[{place}]", *(f"{name} = {text_of(value)}" for name, value in given.items())] if given else []


def name_of(name: str) -> str:
    """A name as TOML writes it."""
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else text_of(name)


def text_of(value: object) -> str:
    r"""A value as TOML writes it.

    >>> text_of(["a\n", 1, True, Fraction(1, 2), Fraction(1, 3)])
    '["a\\n", 1, true, 0.5, "1/3"]'
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Fraction():
            return _number(value)
        case datetime():
            raise InvalidInput("a schema holds no times; nothing was written.")
        case date():
            return value.isoformat()
        case list() | tuple():
            return f"[{', '.join(map(text_of, value))}]"
        case str():
            # JSON's escapes are TOML's, but for DEL, which TOML wants spelt out, and for signs beyond 16 bits.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    raise InvalidInput(f"a {type(value).__name__} cannot be written into a schema; nothing was written.")


def _number(value: Fraction) -> str:
    """A rational as a whole number, a decimal that ends, or a fraction in quotes."""
    if value.denominator == 1:
        return str(value.numerator)
    places = next((places for places in range(1, 40) if (value * 10**places).denominator == 1), None)
    if places is None:
        return f'"{value}"'
    digits = f"{abs(value.numerator) * 10**places // value.denominator:0{places + 1}d}"
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
