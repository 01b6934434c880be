"""Reads the public record of ten electricity meters: what a household used in each half-hour.

*Smart-Grid Smart-City Customer Trial* (Australian Government, data.gov.au), ten households of New South Wales as the R
package gravitas has them. The data is public and no part of this package.
"""

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["FILE", "FIRST", "WEEKS", "half_hours"]

FILE = "smart_meter10.parquet"
FIRST = datetime(2013, 2, 13)  # the time of the meters; from here on all ten are there
WEEKS = 52
HALF = timedelta(minutes=30)


def half_hours(path: str | Path) -> "dict[str, npt.NDArray[np.int64]]":
    """The watt-hours of each household, a row a week and a column for each of its 336 half-hours.

    52 weeks from 13 February 2013; a reading that is missing counts 0.

    >>> import tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> path = Path(tempfile.mkdtemp()) / FILE
    >>> pq.write_table(pa.table({"customer_id": ["a"], "reading_datetime": [datetime(2013, 2, 13, 1)],
    ...                          "general_supply_kwh": [0.141]}), path)
    >>> half_hours(path)["a"][0, :4].tolist()
    [0, 0, 141, 0]
    """
    import numpy as np
    import pyarrow.parquet as pq

    if not Path(path).is_file():
        raise InvalidInput(f"{path} is not there; nothing was read. Put {FILE} of the dataset there.")
    last = FIRST + timedelta(weeks=WEEKS)
    table = pq.read_table(path, filters=[("reading_datetime", ">=", FIRST), ("reading_datetime", "<", last)])
    since = table["reading_datetime"].to_numpy().astype("datetime64[s]") - np.datetime64(FIRST, "s")
    place = since // np.timedelta64(HALF)
    used = np.rint(table["general_supply_kwh"].to_numpy() * 1000).astype(np.int64)
    household = table["customer_id"].to_numpy(zero_copy_only=False)
    found = {}
    for name in sorted(set(household.tolist())):
        own = household == name
        found[name] = np.bincount(place[own], weights=used[own], minlength=WEEKS * 336).astype(np.int64)
    return {name: each.reshape(WEEKS, 336) for name, each in found.items()}
