"""Reads the public record of a student community: who sent a message to whom, and when.

*CollegeMsg* (Panzarasa, Opsahl and Carley, 2009; SNAP Datasets, Leskovec and Krevl, 2014): 59,835 messages between
1,899 students of the University of California, Irvine, over 194 days of 2004. The data is public and no part of this
package.
"""

import gzip
from pathlib import Path
from typing import NamedTuple

from sfumato.errors import InvalidInput

__all__ = ["DAYS", "FILE", "Message", "read"]

FILE = "CollegeMsg.txt.gz"
DAYS = 194


class Message(NamedTuple):
    """An edge with a time: who, to whom, on which day from 0."""

    sender: int
    recipient: int
    day: int


def read(path: str | Path) -> list[Message]:
    """The messages in their order; days are 24 hours each, from the first message on.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / FILE
    >>> _ = path.write_bytes(gzip.compress(b"1 2 1082040961\\n3 4 1082155839\\n"))
    >>> read(path)[1]
    Message(sender=3, recipient=4, day=1)
    """
    if not Path(path).is_file():
        raise InvalidInput(f"{path} is not there; nothing was read. Put {FILE} of the dataset there.")
    with gzip.open(path, "rt") as lines:
        rows = [tuple(map(int, line.split())) for line in lines]
    return [Message(sender, recipient, (time - rows[0][2]) // 86_400) for sender, recipient, time in rows]
