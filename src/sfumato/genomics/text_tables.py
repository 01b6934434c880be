"""Files of text with columns, read in one go: what does not have its columns is counted and not quoted."""

import gzip
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from sfumato.errors import InvalidInput

__all__ = ["TextRows", "read_text"]

_GZIP = b"\x1f\x8b"


class TextRows:
    """Rows of text by column, and how many lines had another number of columns. Sensitive: all of it."""

    def __init__(self, table: pa.Table, broken: int) -> None:
        self.table, self.broken = table, broken

    def column(self, *names: str) -> pa.ChunkedArray | None:
        """The first of these columns that there is, whatever its capital letters."""
        known = {name.casefold(): name for name in reversed(self.table.column_names)}
        found = next((known[name.casefold()] for name in names if name.casefold() in known), None)
        return None if found is None else self.table[found]


def read_text(path: str | Path, *, delimiter: str = "\t", marked: bool = False) -> TextRows:
    """Read a file whose header follows lines of comment (``#``), or with ``marked`` is the last of these lines.

    Files that gzip compressed are opened. Refused where there is no header.
    """
    data = Path(path).read_bytes()
    data = _opened(data) if data.startswith(_GZIP) else data
    if data.startswith(b"BCF"):
        raise InvalidInput("this is a binary file of variants; nothing was read. Convert it by bcftools view first.")
    at = last = 0
    while data.startswith(b"#", at):
        last, at = at, data.find(b"\n", at) + 1 or len(data)
    at = last + 1 if marked and data.startswith(b"#", last) else at
    broken: list[int] = []
    if not data[at:].strip():
        raise InvalidInput("the file has no header; nothing was read.")

    def skipped(row: pa.csv.InvalidRow) -> str:
        broken.append(1)
        return "skip"

    try:
        table = pa.csv.read_csv(
            io.BytesIO(data[at:]),
            parse_options=pa.csv.ParseOptions(
                delimiter=delimiter,
                quote_char=False if delimiter == "\t" else '"',
                invalid_row_handler=skipped,
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=_as_text(data[at:], delimiter), strings_can_be_null=False, quoted_strings_can_be_null=False
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        raise InvalidInput("the file is no table of text with a header; nothing was read.") from None
    return TextRows(table, len(broken))


def _opened(data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError):
        raise InvalidInput("the file is compressed and broken; nothing was read.") from None


def _as_text(data: bytes, delimiter: str) -> dict[str, pa.DataType]:
    header = data[: data.find(b"\n") if b"\n" in data else len(data)].decode("utf-8-sig", "replace").rstrip("\r")
    return {name.strip('"'): pa.string() for name in header.split(delimiter)}
