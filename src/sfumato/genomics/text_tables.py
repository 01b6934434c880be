"""Files of text with columns, read in one go: what does not have its columns is counted and not quoted."""

import csv
import gzip
import io
import re
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from sfumato.errors import InvalidInput

__all__ = ["TextRows", "read_text"]

_GZIP = b"\x1f\x8b"
_LARGEST_BLOCK = (1 << 31) - 1
_FOUL = re.compile(r"^[^\n]*[\udc80-\udcff\r][^\n]*(?:\n|\Z)", re.MULTILINE)
"""A line with bytes that are no UTF-8, or with a second end of line inside."""


class TextRows:
    """Rows of text by column, and how many lines were no rows of the file. Sensitive: all of it."""

    def __init__(self, names: tuple[str, ...], table: pa.Table, broken: int) -> None:
        self.names, self.table, self.broken = names, table, broken

    def column(self, *names: str) -> pa.ChunkedArray | None:
        """The first of these columns that there is, whatever its capital letters; refused where it is there twice."""
        known = [name.casefold() for name in self.names]
        found = next((name.casefold() for name in names if name.casefold() in known), None)
        if found is None:
            return None
        if known.count(found) > 1:
            raise InvalidInput("a column that is needed is in the file twice; nothing was read.")
        return self.table.column(known.index(found))


def read_text(path: str | Path, *, delimiter: str = "\t", marked: bool = False) -> TextRows:
    """Read a file whose header follows lines of comment (``#``), or with ``marked`` is the last of these lines.

    Each line is judged by itself: one with another number of columns, with bytes that are no text, or with a quotation
    mark that opens and does not close is left out and counted, so that it takes no other line with it. Columns keep
    their places. Files that gzip compressed are opened. Refused where there is no header.
    """
    data = Path(path).read_bytes()
    data = _opened(data) if data.startswith(_GZIP) else data
    if data.startswith(b"BCF"):
        raise InvalidInput("this is a binary file of variants; nothing was read. Convert it by bcftools view first.")
    data = data.removeprefix(b"\xef\xbb\xbf")
    at = last = 0
    while data.startswith(b"#", at):
        last, at = at, data.find(b"\n", at) + 1 or len(data)
    at = last + 1 if marked and data.startswith(b"#", last) else at
    if not data[at:].strip():
        raise InvalidInput("the file has no header; nothing was read.")
    head, _, body = data[at:].lstrip(b"\r\n").partition(b"\n")
    names = _header(head.removesuffix(b"\r"), delimiter)
    body, foul = _sound(body, delimiter)
    table, broken = _table(body, len(names), delimiter)
    return TextRows(names, table, foul + broken)


def _opened(data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        raise InvalidInput("the file is compressed and broken; nothing was read.") from None


def _header(line: bytes, delimiter: str) -> tuple[str, ...]:
    try:
        names = next(csv.reader([line.decode()], delimiter=delimiter, strict=True, skipinitialspace=True))
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput("the file is no table of text with a header; nothing was read.") from None
    return tuple(name.strip() for name in names)


def _sound(body: bytes, delimiter: str) -> tuple[bytes, int]:
    """The lines that are rows by themselves, and how many others there were."""
    body = body.replace(b"\r\n", b"\n")
    quoted = delimiter != "\t" and b'"' in body
    if body.isascii() and b"\r" not in body and not quoted:
        return body, 0
    text, foul = _FOUL.subn("", body.decode("utf-8", "surrogateescape"))
    if quoted:
        text, open_ended = _unclosed(delimiter).subn("", text)
        foul += open_ended
    return text.encode(), foul


def _unclosed(delimiter: str) -> re.Pattern[str]:
    """A line whose quotation marks do not stand around whole cells."""
    mark = re.escape(delimiter)
    cell = rf'(?:"(?:[^"\n]|"")*+"|[^"\n{mark}]*+)'
    return re.compile(rf"^(?!{cell}(?:{mark}{cell})*+$)[^\n]*(?:\n|\Z)", re.MULTILINE)


def _table(body: bytes, width: int, delimiter: str) -> tuple[pa.Table, int]:
    """The rows with this number of columns, all of text, and how many had another number."""
    columns = pa.schema([(str(place), pa.string()) for place in range(width)])
    broken: list[int] = []

    def skipped(row: pa.csv.InvalidRow) -> str:
        broken.append(1)
        return "skip"

    if not body.strip():
        return columns.empty_table(), 0
    try:
        table = pa.csv.read_csv(
            io.BytesIO(body),
            read_options=pa.csv.ReadOptions(column_names=columns.names, block_size=min(len(body) + 1, _LARGEST_BLOCK)),
            parse_options=pa.csv.ParseOptions(
                delimiter=delimiter,
                quote_char=False if delimiter == "\t" else '"',
                invalid_row_handler=skipped,
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=columns, strings_can_be_null=False, quoted_strings_can_be_null=False
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        raise InvalidInput("the file is no table of text with a header; nothing was read.") from None
    return table, len(broken)
