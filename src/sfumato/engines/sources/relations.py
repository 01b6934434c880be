"""Relations of a database as Ibis tables: the settled columns, cast and compared bytewise, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sfumato.engines.dialect import Dialect
from sfumato.engines.expressions import Type
from sfumato.engines.operands import DTYPES
from sfumato.engines.sources.columns import projection
from sfumato.engines.sources.origin import Settle

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    from ibis.backends import BaseBackend

__all__ = ["relation_in", "table_of"]


def relation_in(engine: BaseBackend, relation: str, settle: Settle, dialect: Dialect) -> ir.Table:
    """The settled columns of a relation."""
    held = dialect.columns(engine, f"SELECT * FROM {relation}")  # noqa: S608 - the relation is quoted
    return table_of(engine, relation, settle(held), held, dialect)


def table_of(
    engine: BaseBackend, relation: str, types: Mapping[str, Type], held: Mapping[str, dt.DataType], dialect: Dialect
) -> ir.Table:
    """These columns of a relation. The schema is given and not asked for: PostgreSQL would need a view to tell it."""
    schema = {name: DTYPES[kind] for name, kind in types.items() if kind is not Type.OTHER}
    return engine.sql(projection(types, held, relation, dialect), schema=schema)
