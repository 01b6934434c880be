"""Rows as a file that names the release they are of."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.release import Release
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["write_parquet"]


def write_parquet(rows: "pa.Table", release: Release, path: str | Path, *, before: Sequence[Release] = ()) -> Path:
    """Write rows as Parquet, with the identifier of the release that they are of in the metadata of the file.

    ``before`` are other releases that the rows are a function of.
    """
    from pyarrow import parquet

    target = Path(path)
    named = {**(rows.schema.metadata or {}), b"sfumato.release": release.statement.identifier.encode()}
    if before:
        named[b"sfumato.releases_before"] = ",".join(each.statement.identifier for each in before).encode()
    try:
        parquet.write_table(rows.replace_schema_metadata(named), target)
    except OSError as wrong:
        raise InvalidInput(
            f"{target} cannot be written: {wrong.strerror or type(wrong).__name__}. The rows were not written. "
            "Choose another path."
        ) from None
    return target
