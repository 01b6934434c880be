"""Edge lists as plain text: the ends of an edge on a line, separated by blanks; lines that start with # or % are
skipped.

The form in which public collections of networks are handed around, plain or as gzip. Sensitive: every line.
"""

import gzip
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from sfumato.engines.expressions import Type
from sfumato.errors import EngineFailed, InvalidInput

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["check_text", "columns_of_text", "is_text_list"]

Names: TypeAlias = "NDArray[np.int64] | pa.Array"  # whole numbers, or texts
ENDINGS = (".txt", ".edges", ".edgelist")
PACKED = b"\x1f\x8b"  # how gzip begins
COMMENTS = (b"#", b"%")
WHOLE = re.compile(rb"[+-]?[0-9]{1,18}")
NUMBER = re.compile(rb"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?")


def is_text_list(data: object) -> bool:
    """Whether this names a plain edge list, by the ending of its name.

    >>> is_text_list("contacts.txt"), is_text_list("contacts.txt.gz"), is_text_list("contacts.csv")
    (True, True, False)
    """
    if not isinstance(data, str | Path) or "://" in str(data):
        return False
    name = Path(data).name.lower()
    return name.removesuffix(".gz").endswith(ENDINGS)


def check_text(path: Path) -> None:
    """Refuse a file that is not there, or that is packed although its name does not say so, or the other way round.

    Looks at its first two bytes, and at no line.
    """
    if not path.is_file():
        raise EngineFailed(
            f"there is no file {path.name!r} at the place given; nothing was read and nothing was spent. "
            "Check the path that the graph was declared with."
        )
    with path.open("rb") as file:
        packed = file.read(2) == PACKED
    if packed is not _is_packed(path):
        raise InvalidInput(
            f"{path.name!r} is {'' if packed else 'not '}packed with gzip, and its name says otherwise; nothing was "
            "read and nothing was spent. Give it its right ending, .txt or .txt.gz."
        )


def columns_of_text(path: Path, kind: Type, *, weighted: bool) -> "tuple[Names, Names, NDArray[np.float64] | None]":
    """The first two entries of each line as names, and the third as a weight; called after the charge and never shown.

    A line without two names of the right kind does not count, whatever stands in other lines; a third entry that is no
    number makes a weight that does not count.
    """
    import numpy as np

    weights = array("d") if weighted else None
    head, tail = _whole(path, weights) if kind is Type.WHOLE else _texts(path, weights)
    return head, tail, None if weights is None else np.frombuffer(weights, dtype=np.float64)


def _whole(path: Path, weights: "array[float] | None") -> "tuple[Names, Names]":
    import numpy as np

    whole = WHOLE.fullmatch
    head, tail = array("q"), array("q")
    for entries in _lines(path):
        if whole(entries[0]) and whole(entries[1]):
            head.append(int(entries[0]))
            tail.append(int(entries[1]))
            if weights is not None:
                weights.append(_weight(entries))
    return np.frombuffer(head, dtype=np.int64), np.frombuffer(tail, dtype=np.int64)


def _texts(path: Path, weights: "array[float] | None") -> "tuple[Names, Names]":
    import pyarrow as pa

    head: list[str] = []
    tail: list[str] = []
    for entries in _lines(path):
        try:
            ends = entries[0].decode(), entries[1].decode()
        except UnicodeDecodeError:  # such a name can be nobody's
            continue
        head.append(ends[0])
        tail.append(ends[1])
        if weights is not None:
            weights.append(_weight(entries))
    return pa.array(head, pa.large_string()), pa.array(tail, pa.large_string())


def _lines(path: Path) -> Iterator[list[bytes]]:
    """The entries of each line that has at least two."""
    with gzip.open(path, "rb") if _is_packed(path) else path.open("rb") as file:
        for line in file:
            entries = line.split()
            if len(entries) > 1 and not entries[0].startswith(COMMENTS):
                yield entries


def _weight(entries: list[bytes]) -> float:
    return float(entries[2]) if len(entries) > 2 and NUMBER.fullmatch(entries[2]) else float("nan")


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"
