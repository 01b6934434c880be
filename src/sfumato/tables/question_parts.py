"""The questions about tables, and the parts that they may be made of."""

import dataclasses
from fractions import Fraction
from types import NoneType
from typing import get_args

from sfumato.core.query import Dataset
from sfumato.engines.expressions import EXPRESSIONS, Operator, Part, Side, Sign, Type, Unit
from sfumato.engines.person_values import Fold, PersonValue
from sfumato.errors import Unsupported
from sfumato.tables.clamped import Clamped
from sfumato.tables.joins import Join
from sfumato.tables.keys import Keys
from sfumato.tables.measures import MEASURES
from sfumato.tables.persons import PerPerson, PersonJoin
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

__all__ = ["STEPS", "TABLE_QUERIES", "TableQuery", "check_parts"]

TableQuery = (
    Count
    | Aggregate
    | Quantiles
    | PartitionSelection
    | TopGroups
    | Marginals
    | Contributions
    | LimitSuggestion
    | Magnitudes
    | LayeredCount
    | GramMatrix
    | SplineCounts
    | WeightedMarginals
)
TABLE_QUERIES: tuple[type[TableQuery], ...] = get_args(TableQuery)
STEPS = (Join, PerPerson, PersonJoin, PersonValue)
PARTS = frozenset((*TABLE_QUERIES, Dataset, *STEPS, Keys, Clamped, *MEASURES, *EXPRESSIONS))
PLAIN = frozenset((str, int, bool, Fraction, NoneType, Operator, Part, Side, Sign, Type, Unit, Fold))


def check_parts(part: object) -> None:
    """Refuse a query with a part that is not of exactly the class it seems to be.

    A subclass of a key list could say that it has one value and have many, or a text that it equals any other.
    """
    if type(part) is tuple:
        if not set(map(type, part)) <= PLAIN:
            for inner in part:
                check_parts(inner)
    elif type(part) in PARTS:
        for field in dataclasses.fields(part):  # type: ignore[arg-type]  # all PARTS are dataclasses
            check_parts(getattr(part, field.name))
    elif type(part) not in PLAIN:
        raise Unsupported(
            f"this vault cannot answer a question with a {type(part).__name__} in it; nothing was read and nothing was "
            "spent. Make questions with the methods of a table."
        )
