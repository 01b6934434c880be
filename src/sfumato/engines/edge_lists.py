"""Edge lists: some columns of a source as they are, for what no engine can add up. Sensitive: every row."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.engines.sources import Source

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["columns_in_memory"]


def columns_in_memory(source: Source, columns: Sequence[str]) -> "pa.Table":
    """These columns with all their rows, in no particular order; called after the charge and never shown."""
    with source.opened() as table:
        return table.select(*dict.fromkeys(columns)).to_pyarrow()
