"""The rows of a source, for tests of sources."""

from typing import Any

from sfumato.core.limits import Limit
from sfumato.engines.counts import Share, bounded_counts
from sfumato.engines.sources import Source

SENSITIVE = "Zaphod-4711"
SHARE = Share(column="id", limit=Limit(groups=1, rows_per_group=1), secret="00")  # noqa: S106


def rows(source: Source) -> list[dict[str, Any]]:
    """All rows, as they are."""
    with source.opened() as table:
        return table.to_pyarrow().to_pylist()


def persons(source: Source) -> int:
    """How many persons an engine tells apart."""
    with source.opened() as table:
        return bounded_counts(table, where=None, keys=(), share=SHARE)[0]
