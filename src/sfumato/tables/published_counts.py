"""Counts that were released before, as tables that synthetic rows are fitted to: at no cost, for they are public."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sfumato.core.certificate import signed_text
from sfumato.core.documents import encode
from sfumato.core.release import Release
from sfumato.core.signature import signature_holds
from sfumato.errors import InvalidInput
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, RoundedGaussian
from sfumato.synthesis.columns import SyntheticColumn
from sfumato.tables.keys import Keys
from sfumato.tables.queries.count import Count

if TYPE_CHECKING:
    from sfumato.synthesis.row_making import ReleasedTable
    from sfumato.tables.table import Table

__all__ = ["published_counts"]

WIDEST = 3
HOW = "Nothing was done. Give releases of table.group_by(…).count() with the declared keys of the columns."


def published_counts(
    table: "Table", columns: Sequence[SyntheticColumn], keys: Sequence[Keys], given: Iterable[object]
) -> "tuple[ReleasedTable, ...]":
    """The counts of these releases as tables of the columns, each release once.

    Guarantee: what is handed in was released, so that rows fitted to it cost nothing. Refused: counts of other data, of
    another version, under another unit, limit or condition, and with cells that are not those of the columns.
    """
    if isinstance(given, Release | str) or not isinstance(given, Iterable):
        raise InvalidInput(f"consistent_with is a list of releases. {HOW}")
    found: dict[str, ReleasedTable] = {}
    for release in given:
        if not isinstance(release, Release):
            raise InvalidInput(f"consistent_with lists a {type(release).__name__}, which is no release. {HOW}")
        found[release.statement.identifier] = _one(table, columns, keys, release)
    return tuple(found.values())


def _one(table: "Table", columns: Sequence[SyntheticColumn], keys: Sequence[Keys], release: Release) -> "ReleasedTable":
    import numpy as np

    from sfumato.synthesis.row_making import ReleasedTable

    said = release.statement
    query = said.query
    if not isinstance(query, Count) or not 1 <= len(query.by) <= WIDEST:
        raise InvalidInput(f"consistent_with takes counts of rows by one to {WIDEST} columns. {HOW}")
    if said.dataset != table.dataset:
        raise InvalidInput(
            f"a release in consistent_with is about {said.dataset.name!r}, version {said.dataset.edition!r}, and the "
            f"rows are of {table.dataset.name!r}, version {table.dataset.edition!r}. {HOW}"
        )
    if not _of_this_vault(table, release):
        raise InvalidInput(
            f"a release in consistent_with is not signed by this vault, and its counts may be of other people. {HOW}"
        )
    asked = table._question(query).preview(epsilon=1)  # of the same question today: its unit and its limit
    if said.unit != asked.unit or said.limit != asked.limit or release.limit_cuts():
        raise InvalidInput(
            "a release in consistent_with counts other rows: it has another unit or limit, or its limit lets fewer "
            f"rows of a person in than there may be. {HOW}"
        )
    if query.where != table.predicate or query.joins != table.joins:
        raise InvalidInput(f"a release in consistent_with has another condition or other joins than the rows. {HOW}")
    if not isinstance(said.law, DiscreteLaplace | DiscreteGaussian | RoundedGaussian):
        raise InvalidInput(f"the noise of a release in consistent_with is not of a kind that a fit can use. {HOW}")
    names = [column.name for column in columns]
    order = []
    for each in query.by:
        place = names.index(each.column) if each.column in names else None
        same = place is not None and (each.values, each.value) == (keys[place].values, keys[place].value)
        if place is None or not same or (each.other is not None) != columns[place].missing:
            raise InvalidInput(
                f"a release in consistent_with counts by {each.column!r}, and the rows do not have that column with "
                f"the same cells: the same keys in the same order, and a rest where missing= names it. {HOW}"
            )
        order.append(place)
    places = np.arange(query.size).reshape([columns[place].size for place in order])
    sorted_axes = sorted(range(len(order)), key=order.__getitem__)
    return ReleasedTable(columns=tuple(sorted(order)), release=release, places=places.transpose(sorted_axes))


def _of_this_vault(table: "Table", release: Release) -> bool:
    """Whether a release has the signature of the vault that the table is in, over what it states."""
    gate = table._gate
    notary = getattr(gate, "notary", None)
    key = getattr(gate, "public_key", None) if notary is None else notary.key.public_text
    document = release.certificate.document
    said = document["signature"]
    return (
        isinstance(said, dict)
        and key is not None
        and said["key"] == key
        and document["statement"] == encode(release.statement)
        and signature_holds(str(key), str(said["value"]), signed_text(document))
    )
