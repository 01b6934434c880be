"""Ibis tables: a table of a connection of the steward's, with row-wise steps on it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.engines.dialects import Dialect
from sfumato.engines.sources.duckdb_tables import usual_settings
from sfumato.engines.sources.frames import Frame
from sfumato.engines.sources.origins import Origin, Settle
from sfumato.engines.sources.postgres_tables import columns_of_query, reading
from sfumato.engines.sources.relations import columns_in, table_of
from sfumato.engines.sources.spark_tables import our_settings
from sfumato.errors import Refused, Unsupported

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["origin_of_table"]

ENGINES = {Dialect.DUCKDB: "DuckDB", Dialect.POSTGRES: "PostgreSQL", Dialect.SPARK: "Spark"}


def origin_of_table(table: Any) -> Origin:
    """Take over an Ibis table whose rows come each from one row of a table, on an engine that is tested."""
    import ibis.expr.operations as ops
    import ibis.expr.types as ir

    if not isinstance(table, ir.Table):
        raise Unsupported(f"an Ibis {type(table).__name__} is not a source of rows; give a table.")
    node = table.op()
    if isinstance(node, ops.InMemoryTable):
        return Frame(table.to_pyarrow())
    _only_row_by_row(node)
    backend = table.get_backend()
    if backend.name not in {dialect.value for dialect in Dialect}:
        raise Unsupported(
            f"tables on {backend.name!r} are not read: its rules for null, text and numbers are not tested. Nothing "
            "was done. Read are DuckDB, PostgreSQL and Spark; or hand over the rows as an Arrow table."
        )
    return IbisTable(given=table, dialect=Dialect(backend.name))


def _only_row_by_row(node: Any) -> None:
    """Refuse steps in which one person's rows decide about another's: the guarantee would be weaker than it seems."""
    import ibis.expr.operations as ops

    tables = (ops.DatabaseTable, ops.SQLQueryResult, ops.Project, ops.Filter, ops.DropColumns, ops.DropNull)
    for part in node.find(ops.Relation):
        if not isinstance(part, (*tables, ops.FillNull)):
            raise Refused(
                f"the Ibis table has a step {type(part).__name__}, in which rows of several persons can meet or rows "
                "of its own appear; one person could move others. Nothing was done. Give a table with row-wise steps "
                "(select, mutate, filter), or store the result and declare that, if its rows are to be protected."
            )
    mixing = (ops.Analytic, ops.Reduction, ops.WindowFunction, ops.Impure, ops.ScalarUDF, ops.Subquery, ops.Unnest)
    for part in node.find(mixing):
        raise Refused(
            f"the Ibis table uses {type(part).__name__}, which is not a function of one row; nothing was done. "
            "Give a table with row-wise steps alone."
        )


@dataclass(slots=True, kw_only=True, eq=False)
class IbisTable:
    """A table on the steward's own connection, which is as before after each release."""

    given: Any
    dialect: Dialect
    label: str = "the Ibis table"
    advice: str = "Check that its connection is open, idle, and has the tables that it names."

    @property
    def engine(self) -> str:
        """The engine that the table lives on."""
        return ENGINES[self.dialect]

    def state(self) -> object:
        """Nothing tells when a table was written to."""
        return None

    def place(self) -> Hashable:
        """The connection."""
        return "Ibis", id(self.given.get_backend())

    @contextmanager
    def session(self) -> Iterator[Any]:
        """The steward's own connection, in one state where the engine knows such a thing."""
        engine = self.given.get_backend()
        with ExitStack() as stack:
            match self.dialect:
                case Dialect.POSTGRES:
                    stack.enter_context(reading(engine.con))
                case Dialect.SPARK:
                    stack.enter_context(our_settings(engine._session))
                case Dialect.DUCKDB:
                    usual_settings(engine.con)
                    stack.enter_context(_begun(engine.con))
            yield engine

    def held(self, engine: Any) -> dict[str, Any]:
        """As the engine works them out without reading a row."""
        query = engine.compile(self.given)
        return columns_of_query(engine.con, query) if self.dialect is Dialect.POSTGRES else columns_in(engine, query)

    def table(self, engine: Any, settle: Settle, until: ExitStack) -> ir.Table:
        """The table."""
        held = self.held(engine)
        return table_of(engine, f"({engine.compile(self.given)}) AS data", settle(held), held, self.dialect)


@contextmanager
def _begun(connection: Any) -> Iterator[None]:
    """One transaction, which sees one state; where the steward has begun one already, it is used and left open."""
    # A failed BEGIN would spoil the steward's transaction. Outside of one, each statement has a number of its own.
    first, second = (connection.execute("SELECT txid_current()").fetchone() for _ in range(2))
    ours = first != second
    if ours:
        connection.execute("BEGIN TRANSACTION READ ONLY")
    try:
        yield
    finally:
        if ours:
            connection.execute("ROLLBACK")
