"""Tables: what can be asked of rows about people."""

from sfumato.core.data_kind import DataKind
from sfumato.engines.expressions import EXPRESSIONS
from sfumato.tables.clamped import Clamped
from sfumato.tables.joins import Join
from sfumato.tables.keys import Keys
from sfumato.tables.measures import MEASURES
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count
from sfumato.tables.queries.found_keys import FoundKeys
from sfumato.tables.queries.marginals import Marginals
from sfumato.tables.queries.quantiles import Quantiles
from sfumato.tables.queries.top import TopGroups
from sfumato.tables.table import Table

__all__ = ["KIND", "QUERIES", "Aggregate", "Count", "FoundKeys", "Keys", "Marginals", "Quantiles", "Table", "TopGroups"]

QUERIES = (Count, Aggregate, Quantiles, FoundKeys, TopGroups, Marginals, Join, Keys, Clamped, *MEASURES)

KIND = DataKind(
    name="tables",
    declarations=(*QUERIES, *EXPRESSIONS),
    messages="sfumato.tables",
    plots={},
    store="sfumato.tables.store:TableStore",
)
