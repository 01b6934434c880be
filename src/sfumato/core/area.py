"""An area: what a vault needs of one kind of data. It knows tables, graphs and streams by the same few words."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeGuard, TypeVar

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Query, ReleasedQuery
from sfumato.core.stored import Stored

__all__ = ["Area"]

Asked = TypeVar("Asked", contravariant=True)


class Area(Protocol[Asked]):
    """Declared data of one kind, and how its queries are answered. Nothing here charges; the vault does."""

    def answers(self, query: Query) -> TypeGuard[ReleasedQuery]:
        """Whether this query is one of this area; told by its exact class, since a subclass could say anything."""
        ...

    def check(self, query: Asked) -> None:
        """Refuse a query with foreign parts, or about data that is not declared; reads nothing."""
        ...

    def limit(self, query: Asked) -> Limit | None:
        """How much of each person counts in the data that is asked."""
        ...

    def private(self, query: Asked) -> Sequence[Dataset]:
        """The private datasets that a query reads."""
        ...

    def derived(self, query: Asked) -> Sequence[Dataset]:
        """Those of them of which the steward vouches that each row depends on the rows of one unit only."""
        ...

    def check_fit(self, query: Asked) -> None:
        """Refuse a query that does not fit the names and types of the data; no row is read."""
        ...

    def stored(self, query: Asked) -> Mapping[Dataset, Stored]:
        """What the private datasets that a query reads are known by, once they were checked."""
        ...

    def read(self, query: Asked) -> Any:
        """Read the data, after the charge. Sensitive: the result is exact and must meet noise before anyone sees it."""
        ...
