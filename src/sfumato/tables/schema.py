"""Schemas: the public facts about a table, declared once and read everywhere; never inferred from rows."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

from sfumato.core.exact import Exact, natural, rational
from sfumato.core.limits import Limit
from sfumato.core.query import check_name
from sfumato.core.units import Family, Unit, User, describe
from sfumato.engines.expressions import Type
from sfumato.engines.sources import check_derived
from sfumato.errors import InvalidInput, NotDeclared, Refused

__all__ = ["ColumnFacts", "Schema"]

Key = str | int | bool
MOST_KEYS = 10**6
EXAMPLES = {
    Type.TEXT: "texts",
    Type.WHOLE: "whole numbers of 64 bits",
    Type.TRUTH: "true and false",
    Type.DATE: "dates such as 2026-01-31",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """What is publicly known about a column: its type, the range of its values, the list of its values.

    Keys of a column of dates are held as texts, such as ``2026-01-31``.

    >>> ColumnFacts(name="sbp", type=Type.WHOLE, bounds=(80, 220)).bounds
    (Fraction(80, 1), Fraction(220, 1))
    """

    KIND: ClassVar[str] = "schema.column"
    VERSION: ClassVar[int] = 1
    name: str
    type: Type
    bounds: tuple[Fraction, Fraction] | None = None
    keys: tuple[Key, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name, "the name of a column")
        if not isinstance(self.type, Type) or self.type is Type.OTHER:
            raise InvalidInput(
                f"column {self.name!r} must be declared text, whole, number, truth or date; nothing was done."
            )
        if self.bounds is not None:
            object.__setattr__(self, "bounds", self._range(*self.bounds))
        object.__setattr__(self, "keys", self._listed())

    def _range(self, lower: Exact, upper: Exact) -> tuple[Fraction, Fraction]:
        if self.type not in (Type.WHOLE, Type.NUMBER):
            raise InvalidInput(
                f"column {self.name!r} holds {self.type.value}s, which have no bounds; nothing was done. "
                "Bounds are for whole numbers and numbers."
            )
        low, high = rational(lower, f"lower bound of {self.name!r}"), rational(upper, f"upper bound of {self.name!r}")
        if low > high:
            raise InvalidInput(
                f"the bounds of {self.name!r} are the wrong way round: {low} is above {high}. Nothing was done. "
                "Give (low, high)."
            )
        if self.type is Type.WHOLE and (low.denominator > 1 or high.denominator > 1):
            raise InvalidInput(
                f"the bounds of {self.name!r} must be whole numbers, as its values are; nothing was done."
            )
        if max(abs(low), abs(high)) >= (2**63 if self.type is Type.WHOLE else 2**1000):
            raise InvalidInput(f"the bounds of {self.name!r} are beyond what a column can hold; nothing was done.")
        return low, high

    def _listed(self) -> tuple[Key, ...]:
        if not self.keys:
            return ()
        if self.type is Type.NUMBER:
            raise InvalidInput(
                f"column {self.name!r} holds numbers, which cannot be listed as keys: they do not compare exactly. "
                "Nothing was done. Declare it whole, or cut it into bins in the question."
            )
        if len(self.keys) > MOST_KEYS:
            raise InvalidInput(
                f"column {self.name!r} lists {len(self.keys):,} keys, more than {MOST_KEYS:,}; nothing was done. "
                "Group by something coarser."
            )
        given: tuple[Any, ...] = self.keys  # dates are taken too, and held as text
        keys: list[Any] = [key.isoformat() if type(key) is date and self.type is Type.DATE else key for key in given]
        seen: set[Any] = set()
        for place, key in enumerate(keys, 1):
            if not _storable(key, self.type):
                raise InvalidInput(
                    f"key {place} of column {self.name!r} is not of its type; nothing was done. Its keys are "
                    f"{EXAMPLES[self.type]}."
                )
            if key in seen:
                raise InvalidInput(
                    f"key {place} of column {self.name!r} is listed already; nothing was done. List each value once."
                )
            seen.add(key)
        return tuple(keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The public facts about a table. A table that is declared with a schema has its columns and no others.

    ``unit`` is the column that tells persons apart, ``limit`` how much of each counts; ``number`` is how many units
    there are, where that is public (only under *replace* can it be used), and ``population`` a public bound on how many
    there could be, which δ is judged by. ``derived`` is the steward's word that each row depends on the rows of one
    unit only, for data that cannot be shown to be row-wise, such as a view. Assumes: nothing of this was looked up
    in the rows. Public: every field.

    >>> region = ColumnFacts(name="region", type=Type.TEXT, keys=("north", "south"))
    >>> visits = Schema(name="visits", edition="2026-10", unit="id", limit=Limit(groups=2, rows_per_group=3),
    ...                 columns=(ColumnFacts(name="id", type=Type.TEXT), region))
    >>> visits.types["id"], visits.keys
    (<Type.TEXT: 'text'>, {'region': ('north', 'south')})
    """

    KIND: ClassVar[str] = "schema"
    VERSION: ClassVar[int] = 1
    columns: tuple[ColumnFacts, ...]
    name: str | None = None
    edition: str | None = None
    unit: str | None = None
    limit: Limit | None = None
    number: int | None = None
    population: int | None = None
    derived: bool = False

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
        if self.unit is None and (self.limit is not None or self.number is not None):
            raise InvalidInput(
                "a limit or a number of persons was declared without the column that tells persons apart; nothing was "
                "done. Declare the unit column."
            )
        if self.unit is not None:
            self._check_unit(self.unit)
        check_derived(self.derived)
        for value, what in ((self.number, "number"), (self.population, "population")):
            if value is not None:
                natural(value, what)
        if self.number is not None and self.population is not None and self.number > self.population:
            raise InvalidInput("there are more persons (number) than there could be (population); nothing was done.")

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
        from sfumato.tables.schema_file import read

        return read(Path(path))

    @classmethod
    def from_toml(cls, text: str) -> "Schema":
        """Read a schema from TOML text."""
        from sfumato.tables.schema_file import from_toml

        return from_toml(text)

    def to_toml(self) -> str:
        """Write the schema as TOML; reading it again gives the same schema."""
        from sfumato.tables.schema_file import to_toml

        return to_toml(self)

    def save(self, path: str | Path) -> Path:
        """Write the schema to a TOML file."""
        place = Path(path)
        place.write_text(self.to_toml(), encoding="utf-8")
        return place

    @property
    def types(self) -> dict[str, Type]:
        """The type of each column, for a source."""
        return {column.name: column.type for column in self.columns}

    @property
    def bounds(self) -> dict[str, tuple[Fraction, Fraction]]:
        """The declared ranges."""
        return {column.name: column.bounds for column in self.columns if column.bounds is not None}

    @property
    def keys(self) -> dict[str, tuple[Key | date, ...]]:
        """The declared lists of values; those of dates as dates."""
        return {
            column.name: tuple(date.fromisoformat(str(key)) for key in column.keys)
            if column.type is Type.DATE
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
                f"the schema tells persons apart by {self.unit!r}, and the vault protects {describe(unit)}: these need "
                "not be the same people. Nothing was done. Use one column in both."
            )
        if isinstance(unit, User | Family) and unit.column not in self.types:
            raise InvalidInput(
                f"the vault protects {describe(unit)}, and the schema declares no column {unit.column!r}. "
                "Nothing was done."
            )
        return {
            "name": self.name,
            "version": self.edition,
            "limit": self.limit if persons else None,
            "bounds": self.bounds,
            "keys": self.keys,
        }


def _storable(key: object, kind: Type) -> bool:
    """Whether a column of this type can hold the key."""
    match kind:
        case Type.TRUTH:
            return isinstance(key, bool)
        case Type.WHOLE:
            return type(key) is int and -(2**63) <= key < 2**63
        case Type.TEXT:
            return isinstance(key, str) and not any("\ud800" <= sign <= "\udfff" for sign in key)
    with suppress(ValueError):
        return isinstance(key, str) and date.fromisoformat(key).isoformat() == key
    return False
