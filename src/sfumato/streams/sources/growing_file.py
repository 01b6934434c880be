"""A file that grows by a line an event: CSV with a header, or JSON lines."""

import csv
import json
import os
import threading
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self

from sfumato.errors import InvalidInput, Refused
from sfumato.streams.clock import Arrival
from sfumato.streams.sources.columns import Columns
from sfumato.streams.sources.one_poll import one_poll

__all__ = ["GrowingFile"]

CHUNK = 2**20
LONGEST = 2**20  # bytes of a line; a longer one is dropped
WIDEST = 2**17  # characters of a field of CSV; a row with a longer one is dropped
ROOM = LONGEST + len(BOM_UTF8)  # of a part of a line that may still be none too long
ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


class GrowingFile:
    """The events of a file, each read once, as its lines are finished; a part of a line waits for the rest.

    One line is one event. A line that is no row, or whose row lacks a column, makes an event that is dropped, without a
    word; so does one of more than 2^20 bytes or, in CSV, with a field of more than 2^17 characters. Which lines count
    depends on each line alone, and not on the others or on when it was written. A file that is not there yet has no
    events yet. The columns of a CSV file are those of its first line.

    A file that is ``complete`` is read once, and its last line counts also where nothing ends it.

    A file that became shorter is refused, since nobody can tell what was read twice. So is another file of its
    name, unless it ``rotates``: then the old one is read to its end and the new one from its start, and you say that
    the new one holds no line of the old one.

    Sensitive: the lines. Public: the path, the columns.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "visits.csv"
    >>> written = path.write_text("patient,at\\np17,2026-01-01T10:30:00Z\\np99,2026-01-")
    >>> with GrowingFile(path, Columns(time="at", person="patient")) as file:
    ...     [event.person for event in file.poll()]
    ['p17']
    """

    def __init__(
        self,
        path: str | Path,
        columns: Columns,
        *,
        kind: str | None = None,
        rotates: bool = False,
        complete: bool = False,
    ) -> None:
        if rotates and complete:
            raise InvalidInput("a file that is complete does not rotate; nothing was read. Leave one of the two out.")
        self._path, self._columns, self._rotates, self._complete = Path(path), columns, rotates, complete
        found = ENDINGS.get(self._path.suffix.lower()) if kind is None else kind
        if found not in ENDINGS.values():
            raise InvalidInput(
                f"{self._path.name} is read as CSV or as JSON lines; nothing was read. Say kind='csv' or kind='jsonl'."
            )
        self._kind, self._closed, self._turn = found, False, threading.Lock()
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self) -> None:
        self._file: BinaryIO | None = None
        self._at, self._part, self._skipping, self._first = 0, b"", False, True
        self._header: list[str] | None = None

    def check_columns(self) -> None:
        """Look at the first line of a CSV file, if there is one, for the columns that it names; no row is read."""
        if self._kind == "csv" and self._opened() is not None:
            with self._path.open("rb") as file:
                first = file.readline(ROOM + 1)
            if first.endswith(b"\n") or len(first) > ROOM or (self._complete and first):
                self._named(first.removesuffix(b"\n").removeprefix(BOM_UTF8))

    def poll(self) -> Iterator[Arrival]:
        """The events of the lines that were finished since the last time; one poll at a time."""
        with one_poll(self._turn, self._path.name):
            if self._complete and self._at:
                return  # it was read
            while (file := self._opened()) is not None:
                yield from self._new(file)
                if not self._was_replaced(file):
                    return
                yield from self._new(file)  # what was written between reading its end and looking at its name
                file.close()
                self._begin()

    def close(self) -> None:
        """Close the file for good: opened again, it would be read from its start."""
        self._closed = True
        if self._file is not None:
            self._file.close()

    def _opened(self) -> BinaryIO | None:
        if self._closed:
            raise Refused(f"{self._path.name} was closed; nothing was read. Make another one, and an inbox with it.")
        if self._file is None:
            try:
                self._file = self._path.open("rb")
            except FileNotFoundError:
                return None
            except OSError as wrong:
                raise InvalidInput(
                    f"{self._path.name} cannot be read: {wrong.strerror}. Nothing was released."
                ) from None
        return self._file

    def _was_replaced(self, file: BinaryIO) -> bool:
        """Whether another file has this name now; one that became shorter is refused."""
        try:
            named = os.stat(self._path)
        except FileNotFoundError:
            return False
        held = os.fstat(file.fileno())
        if held.st_size < self._at:
            raise Refused(
                f"{self._path.name} has become shorter, so it is unknown which of its lines were read; nothing "
                "more was released. Let it grow only, or rotate it under another name and say rotates=True."
            )
        if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino):
            return False
        if not self._rotates:
            raise Refused(
                f"{self._path.name} is another file than before; nothing more was released. If its lines are new ones, "
                "say rotates=True."
            )
        return True

    def _new(self, file: BinaryIO) -> Iterator[Arrival]:
        while chunk := file.read(CHUNK):
            self._at += len(chunk)
            *lines, self._part = (self._part + chunk).split(b"\n")
            yield from self._events(lines)
            if len(self._part) > ROOM:  # too long already, however it goes on
                self._part, self._skipping = b"", True
        if self._complete and (self._part or self._skipping):
            last, self._part = self._part, b""
            yield from self._events([last])

    def _events(self, lines: list[bytes]) -> Iterator[Arrival]:
        """The events of finished lines; whether a line counts is decided by its own bytes, however they were read."""
        for line in lines:
            own = b"" if self._skipping else line
            own = own.removeprefix(BOM_UTF8) if self._first else own  # the mark belongs to the file
            self._first = self._skipping = False
            if self._kind == "csv" and self._header is None:
                self._header = self._named(own)
            elif len(own) <= LONGEST and (event := self._event(own)) is not None:
                yield event

    def _event(self, line: bytes) -> Arrival | None:
        try:
            text = line.decode("utf-8").removesuffix("\r")
            row = json.loads(text) if self._header is None else self._row(text, self._header)
        except (ValueError, RecursionError, csv.Error):
            return None
        return self._columns.event(row) if isinstance(row, dict) else None

    def _row(self, text: str, header: list[str]) -> dict[str, str] | None:
        fields = next(csv.reader([text], strict=True), [])
        if len(text) > WIDEST and any(len(field) > WIDEST for field in fields):
            return None  # as with the limit that the reader has by itself, which others can set for the whole process
        return dict(zip(header, fields, strict=True))

    def _named(self, line: bytes) -> list[str]:
        try:
            text = line.decode("utf-8", "replace").removesuffix("\r") if len(line) <= LONGEST else ""
            fields = next(csv.reader([text]), [])
        except csv.Error:
            fields = []
        header = [name.strip() for name in fields]
        missing = [name for name in self._columns.names if header.count(name) != 1]
        if missing:
            raise InvalidInput(
                f"the first line of {self._path.name} must name column {', '.join(missing)} once; nothing was released."
            )
        return header
