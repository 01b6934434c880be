"""Public tables: facts about places, codes or calendars that may be looked up beside private rows."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any  # values of the type that their column says

from sfumato.core.query import Dataset
from sfumato.core.suggestion import did_you_mean
from sfumato.engines.dialect import PublicValue
from sfumato.engines.expressions import Type
from sfumato.engines.sources import check_no_log
from sfumato.errors import InvalidInput, Unsupported
from sfumato.tables.keys import Keys, keys_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PublicTable"]

MOST_ROWS = 10**6
MOST_KEYS = 5 * 10**4  # of a column that is offered to group by


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicTable:
    """A small table that everyone may see. Public: every row.

    Its values are public facts: they are declared keys and bounds of the columns that a join brings along.

    >>> import pyarrow as pa
    >>> rows = pa.table({"hospital": ["A", "B"], "beds": [120, 80]})
    >>> places = PublicTable.of(rows, Dataset(name="places", edition="1"))
    >>> places.keys("hospital", "places.hospital").values, places.bounds("beds")
    (('A', 'B'), (Fraction(80, 1), Fraction(120, 1)))
    """

    dataset: Dataset
    columns: Mapping[str, tuple[Type, tuple[Any, ...]]] = field(repr=False)
    content: str = field(init=False, repr=False)
    """A digest of names, types and rows, in their order. They are public, and so is it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", _content(self.columns))

    def __repr__(self) -> str:
        named = ", ".join(list(self.columns)[:10]) + (", …" if len(self.columns) > 10 else "")
        return f"PublicTable {self.dataset.name!r}, version {self.dataset.edition!r}: {named}"

    @classmethod
    def of(cls, data: object, dataset: Dataset) -> "PublicTable":
        """Read a public table: a Parquet or CSV file, or a data frame."""
        table = _arrow(data)
        if table.num_rows > MOST_ROWS:
            raise InvalidInput(f"a public table may have {MOST_ROWS:,} rows, and this one has more; nothing was done.")
        if len({name.casefold() for name in table.column_names}) < table.num_columns:
            raise InvalidInput(
                "two columns of the public table have one name, capital letters aside; nothing was done. Rename one."
            )
        columns = {name: _column(name, table[name]) for name in table.column_names}
        return cls(dataset=dataset, columns=MappingProxyType(columns))

    @property
    def types(self) -> dict[str, Type]:
        """The type of each column."""
        return {name: kind for name, (kind, _) in self.columns.items()}

    def keys(self, column: str, name: str) -> Keys | None:
        """The values of a column, as keys of one that is called ``name``; None where there are too many, or numbers."""
        kind, values = self.columns[column]
        found = sorted({value for value in values if value is not None})
        if kind is Type.NUMBER or not found or len(found) > MOST_KEYS:
            return None
        return keys_of(name, found)

    def bounds(self, column: str) -> tuple[Fraction, Fraction] | tuple[date, date] | None:
        """The least and the greatest value of a column of finite numbers, or of dates."""
        kind, values = self.columns[column]
        known = [value for value in values if value is not None]
        if kind is Type.DATE and known:
            return min(known), max(known)
        if kind not in (Type.WHOLE, Type.NUMBER) or not known or not all(abs(value) < 2.0**900 for value in known):
            return None
        return Fraction(min(known)), Fraction(max(known))

    def check_unique(self, columns: Sequence[str]) -> None:
        """Refuse to look up by columns that do not tell the rows apart: a private row would become several."""
        unknown = [column for column in columns if column not in self.columns]
        if unknown:
            raise InvalidInput(
                f"the public table {self.dataset.name!r} has no column {unknown[0]!r}; nothing was done. "
                f"It has {', '.join(self.columns)}.{did_you_mean(unknown[0], self.columns)}"
            )
        keys = list(zip(*(self.columns[column][1] for column in columns), strict=True))
        if len(set(keys)) != len(keys):
            raise InvalidInput(
                f"the public table {self.dataset.name!r} has the same {' and '.join(columns)} more than once: a "
                "private row would become several. Nothing was done. Keep one row for each."
            )


def _content(columns: Mapping[str, tuple[Type, tuple[Any, ...]]]) -> str:
    """The first 32 hexadecimal digits of a SHA-256; each part is written with its length, so that none runs over."""
    found = hashlib.sha256()
    for name, (kind, values) in columns.items():
        found.update(f"{len(name)}:{name};{kind.value};{len(values)};".encode("utf-8", "surrogatepass"))
        for start in range(0, len(values), 10_000):
            written = (repr(value) for value in values[start : start + 10_000])
            found.update("".join(f"{len(text)}:{text}" for text in written).encode("utf-8", "surrogatepass"))
    return found.hexdigest()[:32]


def _arrow(data: object) -> "pa.Table":
    import pyarrow as pa

    if isinstance(data, str | Path):
        import pyarrow.csv
        import pyarrow.parquet

        check_no_log(Path(data))
        try:
            return pa.csv.read_csv(data) if str(data).endswith(".csv") else pa.parquet.read_table(data)
        except (OSError, pa.ArrowException):
            raise InvalidInput(f"{data} cannot be read as a Parquet or CSV file; nothing was done.") from None
    try:
        return pa.table(data)
    except (TypeError, ValueError, pa.ArrowException):
        raise InvalidInput(
            f"a public table is a Parquet or CSV file or a data frame, not {type(data).__name__}; nothing was done."
        ) from None


def _column(name: str, column: "pa.ChunkedArray") -> tuple[Type, tuple[PublicValue, ...]]:
    """The type and the values of a column; decimals as the nearest doubles."""
    values = column.to_pylist()
    if any(isinstance(value, Decimal) for value in values):
        values = [None if value is None else float(value) for value in values]
    return _type(name, column.type), tuple(values)


def _type(name: str, dtype: "pa.DataType") -> Type:
    import pyarrow as pa

    kinds = {
        Type.TEXT: pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype),
        Type.WHOLE: pa.types.is_integer(dtype) and dtype != pa.uint64(),
        Type.NUMBER: pa.types.is_floating(dtype) or pa.types.is_decimal(dtype),
        Type.TRUTH: pa.types.is_boolean(dtype),
        Type.DATE: pa.types.is_date(dtype),
    }
    for kind, held in kinds.items():
        if held:
            return kind
    raise Unsupported(f"column {name!r} of a public table holds {dtype}, which cannot be looked up; nothing was done.")
