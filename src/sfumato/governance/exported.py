"""A record as lines of JSON: each entry with its number, digests and signature, one row a line."""

import json
from collections.abc import Iterator
from pathlib import Path

from sfumato.core.documents import canonical, parse
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.governance.entries import Row

__all__ = ["document_of", "line_of", "read_line", "rows_of"]


def line_of(row: Row) -> str:
    """A row as a line, the text of its entry as it was hashed."""
    text = f'{{"number":{row.number},"previous":"{row.previous}","digest":"{row.digest}","nonce":"{row.nonce}",'
    return text + f'"head":{json.dumps(row.head, ensure_ascii=False)},"entry":{row.body}}}'


def document_of(row: Row) -> dict[str, object]:
    """The same as values of JSON."""
    said = {"number": row.number, "previous": row.previous, "digest": row.digest, "nonce": row.nonce}
    return said | {"head": row.head, "entry": parse(row.body)}


def read_line(line: str, file: Path, number: int) -> Row:
    """A line as a row; the text of its entry is taken as it stands, because it was hashed so."""
    try:
        whole = parse(line)
        shape = {"number": int, "previous": str, "digest": str, "entry": dict}
        signed = shape | {"nonce": str, "head": str}
        kinds = {name: type(value) for name, value in whole.items()} if isinstance(whole, dict) else {}
        if not isinstance(whole, dict) or kinds not in (shape, signed):
            raise InvalidInput("another shape")
        entry = whole["entry"]
        body, kind = canonical(entry), str(entry.get("kind")) if isinstance(entry, dict) else ""
        texts = (str(whole.get(name, "")) for name in ("previous", "digest", "nonce", "head"))
        return Row(int(str(whole["number"])), kind, body, *texts)
    except SfumatoError:
        raise InvalidInput(
            f"{file}: line {number} is not an entry of a ledger; nothing was verified. Get one: sfumato ledger export"
        ) from None


def rows_of(file: Path) -> Iterator[Row]:
    """The rows of an export, in order; a file that is none is refused with the line."""
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                yield read_line(line, file, number)
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not an export of a ledger; nothing was read from it.") from None
