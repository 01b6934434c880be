"""Reads the public record of a city's hired bicycles: how many rides began in each hour.

*Bike Sharing* (Fanaee-T and Gama, 2013, UCI Machine Learning Repository, CC BY 4.0): Washington, D.C., 2011 and 2012;
3,292,679 rides, without a word on who rode. The data is public and no part of this package.
"""

import csv
import gzip
from datetime import datetime
from pathlib import Path

from sfumato.errors import InvalidInput

__all__ = ["DAYS", "FILE", "FIRST", "days"]

FILE = "hour.csv.gz"
FIRST = datetime(2011, 1, 1)  # the days of the city
DAYS = 731


def days(path: str | Path) -> dict[str, list[int]]:
    """The rides of each day by ``casual`` and ``registered`` riders, from the hours of a file such as ``hour.csv.gz``.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / FILE
    >>> _ = path.write_bytes(gzip.compress(b"dteday,hr,casual,registered\\n1/2/2011,0,3,13\\n1/2/2011,1,8,32\\n"))
    >>> {rider: rides[:3] for rider, rides in days(path).items()}
    {'casual': [0, 11, 0], 'registered': [0, 45, 0]}
    """
    if not Path(path).is_file():
        raise InvalidInput(f"{path} is not there; nothing was read. Put {FILE} of the dataset there.")
    found = {"casual": [0] * DAYS, "registered": [0] * DAYS}
    with gzip.open(path, "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            day = (datetime.strptime(row["dteday"], "%m/%d/%Y") - FIRST).days
            for rider, rides in found.items():
                rides[day] += int(row[rider])
    return found
