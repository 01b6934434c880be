"""Ibis tables: a table of a connection of the steward's, with row-wise steps on it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.engines.dialect import Dialect
from sfumato.engines.dialects import DIALECTS
from sfumato.engines.row_wise import not_row_wise, not_the_stored_unit
from sfumato.engines.sources.frames import Frame
from sfumato.engines.sources.origin import IN_MEMORY, Origin, Settle, is_one_of
from sfumato.engines.sources.relations import table_of
from sfumato.errors import Unsupported

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.operations as ops
    import ibis.expr.types as ir
    from ibis.backends import BaseBackend

__all__ = ["origin_of_table"]

STEPS = ("DatabaseTable", "Project", "Filter", "DropColumns", "DropNull", "FillNull")
# None of these can fail on a row: a step that can (a cast, an overflow, a logarithm of 0) could be aimed at one person,
# and whether the engine stopped would reveal that row. Questions have casts and arithmetic that cannot fail. A day
# that is truncated may be the first of all, or beyond all timestamps.
ROW_WISE = """
Field Literal Alias TryCast Coalesce NullIf IsNull NotNull Greatest Least IfElse SearchedCase SimpleCase
And Or Not Xor Between Equals NotEquals Greater GreaterEqual Less LessEqual IdenticalTo InValues IsNan IsInf
StringContains StringLength StartsWith EndsWith Strip LStrip RStrip Lowercase Uppercase
ExtractYear ExtractQuarter ExtractMonth ExtractDay ExtractDayOfYear ExtractHour ExtractMinute
"""
FUNCTIONS = frozenset(ROW_WISE.split())
# What Ibis holds rows in memory by; it has others, for datasets, whose rows are read when they are asked for.
HOLDERS = (
    ("ibis.formats.pandas", "PandasDataFrameProxy"),
    ("ibis.formats.polars", "PolarsDataFrameProxy"),
    ("ibis.formats.pyarrow", "PyArrowTableProxy"),
)
MICROSECONDS = 6  # digits; with more, not all days have a place


def origin_of_table(table: ir.Table, *, derived: bool = False, unit: tuple[str, ...] = ()) -> Origin:
    """Take over an Ibis table whose rows come each from one row of a table, on an engine that is tested.

    One that is ``derived`` may have any steps: its steward vouches for it. In others, the columns of the ``unit`` are
    the stored ones.
    """
    import ibis.expr.operations as ops
    import ibis.expr.types as ir

    if not isinstance(table, ir.Table):
        raise Unsupported(f"an Ibis {type(table).__name__} is not a source of rows; give a table.")
    node = table.op()
    if isinstance(node, ops.InMemoryTable):
        if not derived:
            _only_ibis(table)
            _only_rows(node)
        return Frame(table.to_pyarrow())
    if not derived:
        _only_row_by_row(node)
        _only_ibis(table)
        known = DIALECTS.get(table.get_backend().name)
        casts = node.find(ops.TryCast)
        if known is not None and any(known.tried_cast_fails(cast.arg.dtype, cast.to) for cast in casts):
            raise not_row_wise("the Ibis table", "has a cast that may fail on a row")
        for name in unit:
            if not _keeps(node, name):
                raise not_the_stored_unit("the Ibis table", name)
    backend = table.get_backend()
    if backend.name not in DIALECTS:
        raise Unsupported(
            f"tables on {backend.name!r} are not read: its rules for null, text and numbers are not tested. Nothing "
            f"was done. Read are {_listed()}; or hand over the rows as an Arrow table."
        )
    return IbisTable(given=table, dialect=DIALECTS[backend.name], derived=derived, unit=unit)


def _only_ibis(table: ir.Table) -> None:
    """Refuse what is cached, and classes of the caller's, which may give other rows than their steps say."""
    import ibis.expr.types as ir

    if type(table) is not ir.Table:
        raise not_row_wise("the Ibis table", f"is a {type(table).__name__}")


def _only_rows(node: ops.Node) -> None:
    """Refuse a table in memory whose rows are not there yet, but come from a dataset, a stream or the caller's code."""
    import ibis.expr.operations as ops

    held = getattr(node.data, "obj", None)
    if type(node) is not ops.InMemoryTable or not is_one_of(node.data, HOLDERS) or not is_one_of(held, IN_MEMORY):
        raise not_row_wise("the Ibis table", f"is made of a {type(held).__name__}, which may be read by a query")


def _only_row_by_row(node: ops.Node) -> None:
    """Refuse every step and every function that is not known to look at one row at a time."""
    import ibis.expr.operations as ops

    steps, functions = ({getattr(ops, name) for name in names} for names in (STEPS, FUNCTIONS))
    for part in node.find(ops.Relation):
        if type(part) not in steps:
            raise not_row_wise("the Ibis table", f"has a step {type(part).__name__}")
    for part in node.find(ops.Value):
        if type(part) not in functions:
            raise not_row_wise("the Ibis table", f"uses {type(part).__name__}")
        for side in _meeting(part):
            kinds = {_met_as(each.dtype) for each in side if isinstance(each, ops.Value) and not each.dtype.is_null()}
            if len(kinds) > 1:
                raise not_row_wise("the Ibis table", f"has a {type(part).__name__} of two types, of which one is cast")


def _meeting(part: ops.Node) -> tuple[tuple[ops.Value, ...], ...]:
    """The values that meet in a function: all of them, but what decides does not meet what comes out."""
    import ibis.expr.operations as ops

    match part:
        case ops.SimpleCase():
            return (part.base, *part.cases), (*part.results, part.default)
        case ops.SearchedCase():
            return part.cases, (*part.results, part.default)
        case ops.IfElse():
            return ((part.true_expr, part.false_null_expr),)
    return (tuple(each for value in part.args for each in (value if isinstance(value, tuple) else (value,))),)


def _met_as(kind: dt.DataType) -> object:
    """What types have in common that meet without a cast that can fail on a row; others meet nothing."""
    if kind.is_timestamp():
        return kind.timezone, (kind.scale or 0) > MICROSECONDS
    if kind.is_integer() or kind.is_floating():
        return float
    alone = kind.is_string() or kind.is_boolean() or kind.is_date() or kind.is_time() or kind.is_uuid()
    return type(kind) if alone else object()


def _keeps(node: ops.Node, name: str) -> bool:
    """Whether a column is the one that is stored under this name, as it is; for a table of listed steps.

    One that is not there at all is for the check of columns to refuse.
    """
    import ibis.expr.operations as ops

    held = name
    if name not in node.schema:
        return True
    while not isinstance(node, ops.DatabaseTable):
        if isinstance(node, ops.FillNull) and (not isinstance(node.replacements, Mapping) or held in node.replacements):
            return False
        if isinstance(node, ops.Project):
            part = node.values[held]
            while isinstance(part, ops.Alias):
                part = part.arg
            if not isinstance(part, ops.Field) or part.rel != node.parent:
                return False
            held = part.name
        node = node.parent
    return held == name


@dataclass(slots=True, kw_only=True, eq=False)
class IbisTable:
    """A table on the steward's own connection, which is as before after each release."""

    given: ir.Table
    dialect: Dialect
    derived: bool = False
    unit: tuple[str, ...] = ()
    label: str = "the Ibis table"
    advice: str = "Check that its connection is open, idle, and has the tables that it names."

    @property
    def engine(self) -> str:
        """The engine that the table lives on."""
        return self.dialect.title

    def state(self) -> object:
        """Nothing tells when a table was written to."""
        return None

    def stored(self, engine: BaseBackend) -> Iterable[Hashable]:
        """The tables that it names."""
        import ibis.expr.operations as ops

        tables = self.given.op().find(ops.DatabaseTable)
        return [known for part in tables for known in self.dialect.stored(engine, _named(part))]

    def place(self) -> Hashable:
        """The connection."""
        return "Ibis", id(self.given.get_backend())

    @property
    def connected(self) -> Hashable:
        """The connection itself, which other tables, and other backends of Ibis, may share."""
        return self.engine, id(self.dialect.connection(self.given.get_backend()))

    @contextmanager
    def session(self) -> Iterator[BaseBackend]:
        """The steward's own connection, in one state where the engine knows such a thing."""
        engine = self.given.get_backend()
        with self.dialect.session(engine):
            yield engine

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """As the engine works them out without reading a row; the tables that it names must be stored ones."""
        if not self.derived:
            self._check_stored(engine)
        return self.dialect.columns(engine, engine.compile(self.given))

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """The table."""
        held = self.held(engine)
        return table_of(engine, f"({engine.compile(self.given)}) AS data", settle(held), held, self.dialect)

    def _check_stored(self, engine: BaseBackend) -> None:
        import ibis.expr.operations as ops

        for part in self.given.op().find(ops.DatabaseTable):
            columns = list(part.schema.names)
            self.dialect.check_stored(engine, _named(part), self.label, unit=self.unit, columns=columns)


def _named(table: ir.Table) -> tuple[str, ...]:
    """The name of a table, as far as it is said."""
    named = (table.namespace.catalog, table.namespace.database, table.name)
    return tuple(each for each in named if each is not None)


def _listed() -> str:
    *most, last = (dialect.title for dialect in DIALECTS.values())
    return f"{', '.join(most)} and {last}"
