"""Cells: how values are written in a file of text, and how they are read by the embedded engine.

How cells are written is declared, never guessed: a guess would let one person's row change what everybody's rows mean.
A cell that is not written so is missing; it never stops the engine, for that would reveal one row. Whether a cell could
not be read is a truth value of its row, beside the others: it can be asked for like any column, for its price.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import ClassVar

from sfumato.engines.dialects.duckdb import DUCKDB
from sfumato.engines.expressions import Type
from sfumato.errors import InvalidInput

__all__ = ["PLAIN", "CellFormat", "could_not_be_read", "read_as", "unreadable_name"]

DECIMALS = (".", ",")
THOUSANDS = (",", ".", " ", "'", "’", "_", "\u00a0", "\u202f", "\u2009")
BLANKS = " \t\r\n\u00a0\u2007\u202f\u3000"
LONGEST, MOST_WORDS = 100, 100
PARTS = {"YYYY": "([0-9]{4})", "MM": "([0-9]{2})", "M": "([0-9]{1,2})", "DD": "([0-9]{2})", "D": "([0-9]{1,2})"}
TOKENS = re.compile("YYYY|MM|M|DD|D|[^A-Za-z0-9]")
UNREADABLE = "unreadable."


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFormat:
    """How values are written in a file of text; what is not said here is as usual. Public: every field.

    ``decimal`` is the sign before the decimals, ``thousands`` the one between groups of three digits. ``date`` is
    written with YYYY, MM or M, and DD or D. ``true``, ``false`` and ``missing`` are words; capital letters do not
    matter in the first two. ``trim`` takes blanks off both ends of a cell.

    >>> CellFormat(decimal=",", date="DD.MM.YYYY", true=("ja",), false=("nein",)).date
    'DD.MM.YYYY'
    """

    KIND: ClassVar[str] = "cells"
    VERSION: ClassVar[int] = 1
    decimal: str | None = None
    thousands: str | None = None
    date: str | None = None
    true: tuple[str, ...] | None = None
    false: tuple[str, ...] | None = None
    missing: tuple[str, ...] | None = None
    trim: bool | None = None

    def __post_init__(self) -> None:
        for name in ("true", "false", "missing"):
            words = getattr(self, name)
            if words is not None:
                object.__setattr__(self, name, _words(words, name))
        if self.decimal is not None and self.decimal not in DECIMALS:
            raise InvalidInput("the decimal mark of cells is '.' or ','; nothing was done.")
        if self.thousands is not None and self.thousands not in ("", *THOUSANDS):
            raise InvalidInput(
                "the thousands mark of cells is one of , . ' ’ _ or a blank, or nothing (''); nothing was done."
            )
        if self.thousands and self.thousands == (self.decimal or "."):
            raise InvalidInput(
                f"the thousands mark {self.thousands!r} would also be the decimal mark; nothing was done. "
                "Say decimal = ',' beside it, or leave it out."
            )
        if self.date is not None:
            _date_pattern(self.date)
        both = {word.lower() for word in self.true or ()} & {word.lower() for word in self.false or ()}
        if both:
            raise InvalidInput("one word cannot mean both true and false; nothing was done. Say it once.")
        if self.trim is not None and not isinstance(self.trim, bool):
            raise InvalidInput("trim is True or False; nothing was done.")

    def over(self, other: CellFormat) -> CellFormat:
        """What is said here, and where nothing is said, what the other says.

        >>> CellFormat(decimal=",").over(CellFormat(decimal=".", trim=True))
        CellFormat(decimal=',', thousands=None, date=None, true=None, false=None, missing=None, trim=True)
        """
        said = {part.name: getattr(self, part.name) for part in fields(self)}
        return CellFormat(**{name: getattr(other, name) if value is None else value for name, value in said.items()})

    @property
    def said(self) -> dict[str, object]:
        """The fields that say something, as a schema file writes them."""
        found = ((part.name, getattr(self, part.name)) for part in fields(self))
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found if value is not None}


PLAIN = CellFormat()


def unreadable_name(column: str) -> str:
    """What the truth is called that says where a cell of a column could not be read.

    >>> unreadable_name("sbp")
    'unreadable.sbp'
    """
    return UNREADABLE + column


def read_as(kind: Type, cell: str, form: CellFormat = PLAIN, *, usual: Mapping[Type, str]) -> str:
    """SQL of DuckDB that reads a quoted cell of text as a type; null where it cannot be. It never fails.

    ``usual`` says how a cell of each type is written where nothing else is declared.
    """
    text = _told(cell, form, kind)
    if kind is Type.TEXT:
        return text
    match kind:
        case Type.DATE if form.date is not None:
            pattern, order = _date_pattern(form.date)
            year, month, day = (f"regexp_extract({text}, {_quoted(pattern)}, {order[part]})" for part in "YMD")
            made = f"{year} || '-' || lpad({month}, 2, '0') || '-' || lpad({day}, 2, '0')"
            return _guarded(text, pattern, f"TRY_CAST({made} AS DATE)")
        case Type.TRUTH if form.true is not None or form.false is not None:
            said = {"true": form.true or ("true", "1"), "false": form.false or ("false", "0")}
            cases = (f"WHEN lower({text}) IN ({_list(words)}) THEN {truth}" for truth, words in said.items())
            return f"CASE {' '.join(cases)} END"
        case Type.WHOLE if form.thousands:
            return _guarded(text, f"[+-]?{_digits(form, '{1,19}')}", _cast(_without(text, form), kind))
        case Type.NUMBER if form.thousands or form.decimal == ",":
            point = "[,]" if form.decimal == "," else "[.]"
            digits = _digits(form, "+")
            pattern = (
                f"[+-]?({digits}({point}[0-9]*)?|{point}[0-9]+)([eE][+-]?[0-9]{{1,5}})?|[nN][aA][nN]|[+-]?[iI][nN][fF]"
            )
            plain = _without(text, form)
            return _guarded(text, pattern, _cast(f"replace({plain}, ',', '.')" if point == "[,]" else plain, kind))
    return _guarded(text, usual[kind], _cast(text, kind))


def could_not_be_read(kind: Type, cell: str, form: CellFormat = PLAIN, *, usual: Mapping[Type, str]) -> str:
    """SQL of DuckDB: whether a cell holds something, and that cannot be read as the type; never null, never failing."""
    text = _told(cell, form, kind)
    return f"({text} IS NOT NULL AND {text} <> '' AND {read_as(kind, cell, form, usual=usual)} IS NULL)"


def _told(cell: str, form: CellFormat, kind: Type) -> str:
    """The cell without blanks around it, and null where a word says that it is missing."""
    text = cell
    if form.trim:
        text = f"trim({cell}, {_quoted(BLANKS)})"
        if kind is Type.TEXT:  # a quoted empty cell is an empty text, and one of blanks is missing
            text = f"CASE WHEN {cell} = '' THEN '' ELSE nullif({text}, '') END"
    if form.missing:
        text = f"CASE WHEN {text} IN ({_list(form.missing, fold=False)}) THEN NULL ELSE {text} END"
    return text if text == cell else f"({text})"


def _digits(form: CellFormat, many: str) -> str:
    """Digits in a row, or in groups of three with a mark between."""
    if not form.thousands:
        return f"[0-9]{many}"
    return f"([0-9]{{1,3}}([{form.thousands}][0-9]{{3}})+|[0-9]{many})"


def _without(text: str, form: CellFormat) -> str:
    return f"replace({text}, {_quoted(form.thousands)}, '')" if form.thousands else text


def _guarded(text: str, pattern: str, read: str) -> str:
    return f"CASE WHEN regexp_full_match({text}, {_quoted(pattern)}) THEN {read} END"


def _cast(text: str, kind: Type) -> str:
    return f"TRY_CAST({text} AS {DUCKDB.sql_name(kind)})"


def _quoted(text: str) -> str:
    """A constant of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _list(words: Iterable[str], *, fold: bool = True) -> str:
    return ", ".join(_quoted(word.lower() if fold else word) for word in words)


def _words(words: object, name: str) -> tuple[str, ...]:
    given = [words] if isinstance(words, str) else list(words) if isinstance(words, list | tuple) else []
    fine = all(isinstance(word, str) and 0 < len(word) <= LONGEST and word.isprintable() for word in given)
    if not given or not fine or len(given) > MOST_WORDS:
        raise InvalidInput(f"{name} lists the words that mean it, such as ('yes', 'y'); nothing was done.")
    return tuple(given)


def _date_pattern(form: str) -> tuple[str, dict[str, int]]:
    """A pattern of a date, and which of its groups is the year, the month and the day.

    >>> _date_pattern("DD.MM.YYYY")
    ('([0-9]{2})[.]([0-9]{2})[.]([0-9]{4})', {'D': 1, 'M': 2, 'Y': 3})
    """
    tokens = TOKENS.findall(form) if isinstance(form, str) else []
    parts = [token for token in tokens if token in PARTS]
    order = {part[0]: place for place, part in enumerate(parts, 1)}
    close = any(token in ("M", "D") and after in PARTS for token, after in pairwise(tokens))
    if not tokens or "".join(tokens) != form or len(parts) != 3 or set(order) != set("YMD") or close:
        raise InvalidInput(
            "the form of dates is written with YYYY, MM (or M) and DD (or D), each once, and signs between them, such "
            "as 'DD.MM.YYYY'; nothing was done."
        )
    signs = (PARTS.get(token) or f"[{_escaped(token)}]" for token in tokens)
    return "".join(signs), order


def _escaped(sign: str) -> str:
    return f"\\{sign}" if sign in "]^-[\\" else sign
