"""The same laws on PostgreSQL: every number of every world is the one that the embedded engine found.

The laws of quantiles, joins and found keys are checked on those numbers, so they hold here as well.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.limits import Limit
from sfumato.engines.bounded import KeyColumn
from sfumato.engines.counts import rows_by_cell
from sfumato.engines.joined import joined
from sfumato.engines.partition_selection import persons_by_key
from sfumato.engines.public_rows import public_rows
from sfumato.engines.quantile_counts import rows_by_value
from sfumato.engines.totals import brought_out
from sfumato.tables.public import PublicTable
from tests.engines.loading import in_postgres
from tests.laws import test_join_neighbours as joins
from tests.laws import test_quantile_query_neighbours as quantiles
from tests.laws.neighbours import Neighbours, Visit
from tests.laws.plans import loaded
from tests.laws.scenarios import share_for

pytestmark = pytest.mark.no_cover  # thousands of worlds: measuring coverage would double their time

KINDS = ["user", "family"]
MOST_KINDS = ["record", "user", pytest.param("family", marks=pytest.mark.long)]
TYPES = [pa.int64(), pa.string(), pa.string(), pa.int64(), pa.bool_(), pa.int64()]


@contextmanager
def on_postgres(around: Neighbours, url: str, name: str) -> Iterator[Any]:
    """All worlds in one table of the server."""
    rows = [(world, *row) for world, table in enumerate(around.worlds) for row in table]
    columns = zip(("world", *Visit._fields), zip(*rows, strict=True), TYPES, strict=True)
    frame = pa.table({column: pa.array(values, kind) for column, values, kind in columns})
    with in_postgres(url, frame, name).opened() as table:
        yield table


def by_world(found: Any, *, worlds: int, cells: int) -> np.ndarray:
    totals = brought_out(found)
    counts = np.zeros((worlds, cells), dtype=np.int64)
    counts[totals["world"], totals["cell"]] = totals["total"]
    return counts


@pytest.mark.long
@pytest.mark.parametrize("kind", MOST_KINDS)
def test_rows_by_value_are_the_same_in_every_world(kind: str, postgres_url: str) -> None:
    around = quantiles.around(kind)
    limits = quantiles.LIMITS[:1] if kind == "record" else quantiles.LIMITS
    with on_postgres(around, postgres_url, f"values_{kind}") as table:
        for name, limit in product(quantiles.BY, limits):
            keys = tuple(KeyColumn(column=it.column, values=it.values) for it in quantiles.BY[name])
            asked: dict[str, Any] = {"where": None, "keys": keys, "share": share_for(kind, limit)}
            found = brought_out(rows_by_value(table, lattice=quantiles.LATTICE, world="world", **asked))
            held = np.zeros_like(quantiles.counts(name, kind, limit))
            held[found["world"], found["cell"], found["value"]] = found["total"]
            assert (held == quantiles.counts(name, kind, limit)).all()
            assert held.any()


@pytest.mark.long
@pytest.mark.parametrize("kind", MOST_KINDS[1:])
def test_joined_rows_are_counted_the_same_in_every_world(kind: str, postgres_url: str) -> None:
    around = joins.around_labs(kind)
    with on_postgres(around, postgres_url, f"joined_{kind}") as table:
        for name, on in product(("no keys", "theirs"), (joins.ON_PERSON, joins.ON_PERSON_AND_PLACE)):
            keys, limit = joins.KEYS[name][1], Limit(groups=2, rows_per_group=2)
            visits, labs = table.filter(table.urgent), table.filter(~table.urgent)
            beside = joined(visits, labs, on=[("world", "world"), *on], named="labs")
            found = rows_by_cell(beside, where=None, keys=keys, share=share_for(kind, limit), world="world")
            here = by_world(found, worlds=len(around.worlds), cells=3 if keys else 1)
            embedded = joins.counted(lambda some, on=on: joins.beside_labs(some, on), keys, kind, limit)(around)
            assert (here == embedded).all()
            assert here.any()


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["record", *KINDS])
def test_rows_beside_a_public_table_are_counted_the_same_in_every_world(kind: str, postgres_url: str) -> None:
    around, limit = joins.around_hospitals(kind), Limit(groups=1, rows_per_group=2)
    public = PublicTable.of(pa.table(joins.PUBLIC), joins.HOSPITALS)
    with on_postgres(around, postgres_url, f"hospitals_{kind}") as table:
        beside = joined(table, public_rows(table, public.columns), on=[("zip", "zip")], named="hospitals")
        found = rows_by_cell(beside, where=None, keys=joins.BY_REGION, share=share_for(kind, limit), world="world")
        here = by_world(found, worlds=len(around.worlds), cells=2)
    assert (here == joins.counted(joins.beside_hospitals, joins.BY_REGION, kind, limit)(around)).all()
    assert here.any()


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["record", *KINDS])
def test_found_keys_are_the_same_in_every_world(kind: str, postgres_url: str) -> None:
    around, limit = quantiles.around(kind), Limit(groups=2, rows_per_group=1)
    asked: dict[str, Any] = {"where": None, "columns": ["zip", "age"], "share": share_for(kind, limit)}
    with on_postgres(around, postgres_url, f"found_{kind}") as table:
        here = persons_by_key(table, world="world", **asked)
    assert here == persons_by_key(loaded(around), world="world", **asked)
    assert list(here) == sorted(here)
