"""Tables: what can be asked of rows about people."""

from sfumato.tables.keys import Keys
from sfumato.tables.measures import MEASURES
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count
from sfumato.tables.table import Table

__all__ = ["QUERIES", "Aggregate", "Count", "Keys", "Table"]

QUERIES = (Count, Aggregate, Keys, *MEASURES)
