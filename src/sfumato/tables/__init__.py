"""Tables: what can be asked of rows about people."""

from sfumato.tables.queries.count import Count, Keys
from sfumato.tables.table import Table

__all__ = ["QUERIES", "Count", "Keys", "Table"]

QUERIES = (Count, Keys)
