"""Reads the public record of one office: for each minute, whether somebody was there.

*Occupancy Detection* (Candanedo and Feldheim, 2016, UCI Machine Learning Repository, CC BY 4.0): 20,560 minutes in
February 2015, in three files with gaps between them. The data is public and no part of this package.
"""

import gzip
from datetime import datetime, timedelta
from pathlib import Path

from sfumato.errors import InvalidInput

__all__ = ["DAYS", "FILES", "FIRST", "hours"]

FILES = ("datatest.txt.gz", "datatraining.txt.gz", "datatest2.txt.gz")
FIRST = datetime(2015, 2, 2)  # the time of the office, as its sensors wrote it
DAYS = 17


def hours(folder: str | Path) -> list[int]:
    """In how many minutes of each hour somebody was there: 24 numbers a day for 17 days, from Monday, 2 February 2015.

    Minutes that the sensors missed count 0.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in FILES:
    ...     _ = (folder / name).write_bytes(gzip.compress(b'"date","Occupancy"\\n"1","2015-02-02 14:19:59",1\\n'))
    >>> hours(folder)[13:16]
    [0, 3, 0]
    """
    found = [0] * (DAYS * 24)
    for name in FILES:
        path = Path(folder) / name
        if not path.is_file():
            raise InvalidInput(f"{path} is not there; nothing was read. Put the three files of the dataset there.")
        with gzip.open(path, "rt") as lines:
            next(lines)
            for line in lines:
                _, written, *_, present = line.replace('"', "").strip().split(",")
                minute = datetime.fromisoformat(written) + timedelta(seconds=30)  # to the nearest minute
                found[int((minute - FIRST).total_seconds()) // 3600] += int(present)
    return found
