"""Tables as CSV files, which spreadsheets open: numbers stay numbers, and no text becomes a formula."""

from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["harmless_cell", "write_csv"]

STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def harmless_cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula: an apostrophe goes before a sign that would start one.

    >>> harmless_cell("=HYPERLINK(A1)"), harmless_cell("north")
    ("'=HYPERLINK(A1)", 'north')
    """
    return f"'{text}" if text.startswith(STARTS) else text


def write_csv(table: "pa.Table", path: str | Path) -> Path:
    """Write a table as CSV in UTF-8, in place of an earlier file of that name, and return the path.

    Names of columns and texts go through :func:`harmless_cell`; numbers, truth values and dates are left as they are.
    """
    import pyarrow as pa
    from pyarrow import csv

    target = Path(path)
    columns = [
        pa.array([None if cell is None else harmless_cell(cell) for cell in column.to_pylist()], column.type)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else column
        for column in table.columns
    ]
    try:
        csv.write_csv(pa.table(columns, names=[harmless_cell(name) for name in table.column_names]), target)
    except OSError as wrong:
        raise InvalidInput(
            f"{target} cannot be written: {wrong.strerror or type(wrong).__name__}. The table was not written. Choose "
            "another path."
        ) from None
    return target
