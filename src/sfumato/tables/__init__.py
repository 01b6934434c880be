"""Tables: what can be asked of rows about people."""

import warnings
from typing import Any

from sfumato.core.data_kind import DataKind
from sfumato.engines.expressions import EXPRESSIONS
from sfumato.tables.clamped import Clamped
from sfumato.tables.keys import Keys
from sfumato.tables.measures import MEASURES
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.contributions import Contributions
from sfumato.tables.queries.count import Count
from sfumato.tables.queries.gram import GramMatrix
from sfumato.tables.queries.layered_count import LayeredCount
from sfumato.tables.queries.limit_suggestion import LimitSuggestion
from sfumato.tables.queries.magnitudes import Magnitudes
from sfumato.tables.queries.marginals import Marginals
from sfumato.tables.queries.partition_selection import PartitionSelection
from sfumato.tables.queries.quantiles import Quantiles
from sfumato.tables.queries.spline_counts import SplineCounts
from sfumato.tables.queries.top import TopGroups
from sfumato.tables.queries.weighted_marginals import WeightedMarginals
from sfumato.tables.question_parts import STEPS, TABLE_QUERIES
from sfumato.tables.table import Table

__all__ = [
    "KIND",
    "QUERIES",
    "Aggregate",
    "Contributions",
    "Count",
    "GramMatrix",
    "Keys",
    "LayeredCount",
    "LimitSuggestion",
    "Magnitudes",
    "Marginals",
    "PartitionSelection",
    "Quantiles",
    "SplineCounts",
    "Table",
    "TopGroups",
    "WeightedMarginals",
]

QUERIES: tuple[type, ...] = (*TABLE_QUERIES, *STEPS, Keys, Clamped, *MEASURES)

KIND = DataKind(
    name="tables",
    declarations=(*QUERIES, *EXPRESSIONS),
    messages="sfumato.tables",
    plots={},
    store="sfumato.tables.store:TableStore",
)


def __getattr__(name: str) -> Any:  # whatever a module has under a name
    """A name of earlier versions."""
    if name != "FoundKeys":
        raise AttributeError(f"module 'sfumato.tables' has no attribute {name!r}")
    said = "sfumato.tables.FoundKeys is now sfumato.tables.PartitionSelection"
    warnings.warn(said, DeprecationWarning, stacklevel=2)
    return PartitionSelection
