"""Schemas: the public facts about a table, declared once and read everywhere; never inferred from rows."""

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar  # arguments by name, each of a type of its own

from sfumato.core.deprecation import renamed
from sfumato.core.exact import natural
from sfumato.core.limits import Limit
from sfumato.core.query import check_name
from sfumato.core.suggestion import did_you_mean
from sfumato.core.units import Family, Unit, User, describe
from sfumato.engines.expressions import Type
from sfumato.engines.sources import CellFormat, check_derived
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.tables.column_facts import ColumnFacts, Key
from sfumato.tables.provenance import ProvenanceColumns, provenance_of
from sfumato.tables.schema_file import VERSION, from_toml, read, to_toml

__all__ = ["ColumnFacts", "Schema"]

AS_USUAL = CellFormat()


@renamed(number="n_units")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Schema:
    """The public facts about a table. A table that is declared with a schema has its columns and no others.

    ``unit`` is the column that identifies persons, ``limit`` how much of each counts; ``n_units`` is how many units
    there are, where that is public (only under *replace* can it be used; in a file it is ``number``), and
    ``population`` a public bound on how many there could be, which δ is judged by. ``derived`` is the steward's word
    that each row depends on the rows of one unit only, for data that cannot be shown to be row-wise, such as a view.
    ``cells`` says how values are written in a file of text (CSV, JSON lines, Excel). ``provenance`` names the columns
    that say where a row comes from: ``batch``, ``instrument``, ``site`` and ``step`` of processing.
    Assumes: nothing of this was looked up in the rows. Public: every field.

    >>> region = ColumnFacts(name="region", type=Type.TEXT, keys=("north", "south"))
    >>> visits = Schema(name="visits", edition="2026-10", unit="id", limit=Limit(groups=2, rows_per_group=3),
    ...                 columns=(ColumnFacts(name="id", type=Type.TEXT), region))
    >>> visits.types["id"], visits.keys
    (<Type.TEXT: 'text'>, {'region': ('north', 'south')})
    """

    KIND: ClassVar[str] = "schema"
    VERSION: ClassVar[int] = VERSION
    columns: tuple[ColumnFacts, ...]
    name: str | None = None
    edition: str | None = None
    unit: str | None = None
    limit: Limit | None = None
    n_units: int | None = None
    population: int | None = None
    derived: bool = False
    cells: CellFormat = AS_USUAL
    provenance: ProvenanceColumns = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        names = [column.name for column in self.columns]
        if not names:
            raise InvalidInput("a schema needs at least one column; nothing was done.")
        if len({name.casefold() for name in names}) != len(names):
            raise InvalidInput("two columns have the same name, capital letters aside; nothing was done.")
        for text, what in ((self.name, "name"), (self.edition, "version")):
            if text is not None:
                check_name(text, f"the {what} of a dataset")
        if not isinstance(self.cells, CellFormat):
            raise InvalidInput("the cells of a schema are no CellFormat; nothing was done.")
        _ = self.cell_formats
        object.__setattr__(self, "provenance", provenance_of(self.provenance))
        for field, column in self.provenance:
            if column not in names:
                raise InvalidInput(
                    f"the {field} of rows is declared as {column!r}, which is not one of the columns; nothing was "
                    f"done.{did_you_mean(column, names)}"
                )
        if self.unit is None and (self.limit is not None or self.n_units is not None):
            raise InvalidInput(
                "a limit or a number of persons was declared without the column that identifies persons; nothing was "
                "done. Declare the unit column."
            )
        if self.unit is not None:
            self._check_unit(self.unit)
        check_derived(self.derived)
        for value, what in ((self.n_units, "n_units"), (self.population, "population")):
            if value is not None:
                natural(value, what)
        if self.n_units is not None and self.population is not None and self.n_units > self.population:
            raise InvalidInput("there are more persons than there could be (population); nothing was done.")

    def _check_unit(self, unit: str) -> None:
        found = next((column for column in self.columns if column.name == unit), None)
        if found is None:
            raise InvalidInput(f"the unit column {unit!r} is not one of the columns; nothing was done. Declare it.")
        if found.type not in (Type.TEXT, Type.WHOLE):
            raise InvalidInput(
                f"the unit column {unit!r} must hold text or whole numbers, which compare exactly; nothing was done."
            )

    @classmethod
    def load(cls, path: str | Path) -> "Schema":
        """Read a schema from a TOML file."""
        return read(Path(path), cls)

    @classmethod
    def from_toml(cls, text: str) -> "Schema":
        """Read a schema from TOML text."""
        return from_toml(text, cls)

    def to_toml(self) -> str:
        """Write the schema as TOML; reading it again gives the same schema."""
        limit = self.limit
        parts: dict[str, dict[str, object]] = {
            "dataset": {"name": self.name, "version": self.edition, "derived": self.derived or None},
            "unit": {"column": self.unit, "number": self.n_units, "population": self.population},
            "limit": {} if limit is None else {"groups": limit.groups, "rows_per_group": limit.rows_per_group},
            "provenance": dict(self.provenance),
            **_words(limit),
        }
        return to_toml({**parts, "cells": self.cells.said}, self.columns)

    def save(self, path: str | Path) -> Path:
        """Write the schema to a TOML file."""
        place = Path(path)
        place.write_text(self.to_toml(), encoding="utf-8")
        return place

    def __repr__(self) -> str:
        named = ", ".join(column.name for column in self.columns[:10]) + (", …" if len(self.columns) > 10 else "")
        persons = "" if self.unit is None else f"; persons by {self.unit!r}"
        return f"Schema {self.name!r}: {len(self.columns):,} columns, {named}{persons}"

    @property
    def types(self) -> dict[str, Type]:
        """The type of each column, for a source."""
        return {column.name: column.type for column in self.columns}

    @property
    def cell_formats(self) -> dict[str, CellFormat]:
        """How the values of each column are written in a file of text."""
        return {column.name: (column.cells or CellFormat()).over(self.cells) for column in self.columns}

    @property
    def bounds(self) -> dict[str, tuple[Fraction, Fraction] | tuple[date, date]]:
        """The declared ranges, and of dates and times the periods."""
        return {column.name: column.bounds for column in self.columns if column.bounds is not None}

    @property
    def keys(self) -> dict[str, tuple[Key | date, ...]]:
        """The declared lists of values; those of dates as dates."""
        return {
            column.name: tuple(date.fromisoformat(str(key)) for key in column.keys)
            if column.type in (Type.DATE, Type.TIME)
            else column.keys
            for column in self.columns
            if column.keys
        }

    def declaration(self, unit: Unit) -> dict[str, Any]:
        """What the schema says in the words of ``Vault.table``, for a vault that protects ``unit``.

        A schema about other persons than the vault protects is refused. Under a unit of single rows the limit is left
        out, because a limit on persons would weaken it.
        """
        if self.name is None:
            raise NotDeclared("the schema does not name its dataset; nothing was done. Say name = … under [dataset].")
        persons = isinstance(unit, User | Family)
        if isinstance(unit, User | Family) and self.unit is not None and unit.column != self.unit:
            raise Refused(
                f"the schema identifies persons by {self.unit!r}, and the vault protects {describe(unit)}: these need "
                "not be the same people. Nothing was done. Use one column in both."
            )
        if isinstance(unit, User | Family) and unit.column not in self.types:
            raise InvalidInput(
                f"the vault protects {describe(unit)}, and the schema declares no column {unit.column!r}. "
                f"Nothing was done.{did_you_mean(unit.column, self.types)}"
            )
        return {
            "name": self.name,
            "version": self.edition,
            "limit": self.limit if persons else None,
            "bounds": self.bounds,
            "keys": self.keys,
            "provenance": dict(self.provenance),
            "zones": {column.name: column.zone for column in self.columns if column.zone is not None},
        }


def _words(limit: Limit | None) -> dict[str, dict[str, object]]:
    """The words of a limit with all their forms, each in a part of its own."""
    if limit is None:
        return {}
    nouns = (("limit.row", limit.row), ("limit.person", limit.person))
    return {name: {"one": noun.one, "many": noun.many, "zh": noun.zh} for name, noun in nouns if noun is not None}
