"""Relations of a database as Ibis tables: the settled columns, cast and compared bytewise, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.engines.dialects import Dialect
from sfumato.engines.expressions import Type
from sfumato.engines.operands import DTYPES
from sfumato.engines.sources.columns import projection
from sfumato.engines.sources.origins import Settle

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["columns_in", "relation_in", "table_of"]


def columns_in(engine: Any, query: str) -> dict[str, Any]:
    """Names and Ibis types of a query of DuckDB or Spark, as the engine works them out without reading a row."""
    if engine.name == Dialect.DUCKDB.value:  # not by Ibis, which calls what DuckDB has deprecated
        described = engine.raw_sql(f"DESCRIBE {query}").fetchall()
        return {name: engine.compiler.type_mapper.from_string(kind) for name, kind, *_ in described}
    import ibis

    found = dict(engine.sql(query).schema().items())
    # Ibis does not tell Spark's moments in time, whose day hangs on a zone, from times without a zone.
    moments = [field.name for field in engine.raw_sql(query).schema if field.dataType.typeName() == "timestamp"]
    return found | dict.fromkeys(moments, ibis.dtype("timestamp('UTC')"))


def relation_in(engine: Any, relation: str, settle: Settle, dialect: Dialect) -> ir.Table:
    """The settled columns of a relation."""
    held = columns_in(engine, f"SELECT * FROM {relation}")  # noqa: S608 - the relation is quoted
    return table_of(engine, relation, settle(held), held, dialect)


def table_of(
    engine: Any, relation: str, types: Mapping[str, Type], held: Mapping[str, Any], dialect: Dialect
) -> ir.Table:
    """These columns of a relation. The schema is given and not asked for: PostgreSQL would need a view to tell it."""
    schema = {name: DTYPES[kind] for name, kind in types.items() if kind is not Type.OTHER}
    return engine.sql(projection(types, held, relation, dialect), schema=schema)
