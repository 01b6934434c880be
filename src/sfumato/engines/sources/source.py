"""The one class that the rest of the library sees: columns before the charge, rows after it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

from sfumato.core.interrupts import attempt
from sfumato.core.stored import Stored, moment
from sfumato.engines.dialects import dialect_of
from sfumato.engines.expressions import Type
from sfumato.engines.sources.cells import CellFormat
from sfumato.engines.sources.columns import settled
from sfumato.engines.sources.origin import Origin
from sfumato.engines.sources.origins import origin_of
from sfumato.engines.zones import check_zone, on_the_wall
from sfumato.errors import EngineFailed, SfumatoError, Unsupported

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    from ibis.backends import BaseBackend

__all__ = ["Source", "check_one_place", "opened_together"]

Made = TypeVar("Made")


_turns: dict[Hashable, AbstractContextManager[bool]] = {}


def _turn_of(origin: Origin) -> AbstractContextManager[bool]:
    """Whose turn it is: one at a time for all tables that are read through one connection of the steward's.

    A connection has one transaction, one result that waits, and one set of settings; two threads would take each
    other's.
    """
    shared = getattr(origin, "connected", None)
    return threading.Lock() if shared is None else _turns.setdefault(shared, threading.RLock())


class Source:
    """Rows of one table on one engine, opened no earlier than they are needed.

    ``columns`` declares names and types; a table then has these columns and no others. Without it they are what the
    data itself says, and a CSV file, which says nothing, is refused. What runs a query when it is read (a view, a lazy
    frame, an expression) must be seen to take stored rows one by one; one that is ``derived`` is vouched for by the
    steward: each of its rows depends on the rows of one protected unit only. ``unit`` names the columns that tell units
    apart: each must be the stored column of that name, which no step has computed or renamed. ``zones`` names the zones
    whose clocks columns of times with a zone are read by. ``cells`` says, by column, how values are written in a file
    of text, and asks for a truth beside each column but texts: where one could not be read.

    Public: column names and types. Sensitive: every row, and how many there are. Guarantee: one opening sees one state
    of the data. A file that changed since it was first opened is refused, and so is a table whose columns changed: its
    types were checked, and stored answers speak of the rows that it had. (Rows that change inside a database cannot be
    noticed; their new state needs a version of its own.)

    >>> import pyarrow as pa
    >>> Source(pa.table({"id": [1, 2], "region": ["north", None]})).columns()
    {'id': <Type.WHOLE: 'whole number'>, 'region': <Type.TEXT: 'text'>}
    """

    def __init__(
        self,
        data: object,
        columns: Mapping[str, Type] | None = None,
        *,
        derived: bool = False,
        unit: Sequence[str] = (),
        zones: Mapping[str, str] | None = None,
        cells: Mapping[str, CellFormat] | None = None,
    ) -> None:
        self._zones = {column: check_zone(column, zone) for column, zone in (zones or {}).items()}
        declared = None if columns is None else dict(columns)
        self._origin = origin_of(data, declared, derived=derived, unit=tuple(unit), cells=cells)
        virtual: Mapping[str, Type] = getattr(self._origin, "virtual", {})
        self._declared = None if declared is None else {**declared, **virtual}
        self.derived = derived
        self._turn = _turn_of(self._origin)
        self._seen: tuple[object, dict[str, Type]] | None = None
        self._since, self._names = moment(), frozenset[str]()

    def __repr__(self) -> str:
        return f"<Source: {self._origin.label} on {self.engine}>"

    @property
    def engine(self) -> str:
        """The engine that reads the rows, as people call it."""
        return self._origin.engine

    @property
    def stored(self) -> Stored:
        """What its stored rows are known by, as far as that was seen when its columns were looked at."""
        return Stored(names=self._names, since=self._since)

    @property
    def integers(self) -> frozenset[str]:
        """Columns that hold whole numbers, as far as that is known before anything is opened.

        By their declared types; of rows in memory by the types that they have.
        """
        if self._declared is not None:
            return frozenset(name for name, kind in self._declared.items() if kind is Type.WHOLE)
        found: frozenset[str] = getattr(self._origin, "integers", frozenset())
        return found

    def columns(self) -> dict[str, Type]:
        """Names and types of the columns, without reading a row; what fails here fails before anything is charged."""
        with self._turn, ExitStack() as stack:
            return self._or_failed(lambda: self._looked_at(self._begun(stack)))

    @contextmanager
    def opened(self) -> Iterator[ir.Table]:
        """The rows as an Ibis table on their engine, for one thread at a time; all is put back at the end."""
        with opened_together([self]) as (table,):
            yield table

    def _begun(self, stack: ExitStack) -> BaseBackend:
        return stack.enter_context(self._origin.session())

    def _looked_at(self, engine: BaseBackend) -> dict[str, Type]:
        held = self._held(engine)
        self._names = frozenset(sha256(repr(each).encode()).hexdigest() for each in self._origin.stored(engine))
        return held

    def _held(self, engine: BaseBackend) -> dict[str, Type]:
        before = self._origin.state()
        return self._settle(self._origin.held(engine), before)

    def _table(self, engine: BaseBackend, stack: ExitStack) -> ir.Table:
        before = self._origin.state()
        table = self._origin.table(engine, lambda held: self._settle(held, before), stack)
        for column, zone in self._zones.items():
            if zone != "UTC" and column in table.columns:
                table = on_the_wall(table, column, zone, dialect_of(table))
        return table

    def _or_failed(self, step: Callable[[], Made]) -> Made:
        """Take a step of the engine. Its own words may quote data: raised outside, the error does not carry them."""

        def taken() -> tuple[Made] | SfumatoError:
            try:
                return (step(),)
            except SfumatoError as ours:
                return ours

        made = attempt(taken)
        if isinstance(made, tuple):
            return made[0]
        if isinstance(made, SfumatoError):
            raise made
        raise EngineFailed(
            f"{self.engine} could not open {self._origin.label}; nothing was read and nothing was spent. "
            f"{self._origin.advice}"
        )

    def _settle(self, held: Mapping[str, dt.DataType], before: object) -> dict[str, Type]:
        """Check the columns against what was declared, and against what was seen earlier.

        ``before`` is the state before they were looked at: whatever changed meanwhile is noticed.
        """
        if self.engine != "DuckDB" and any(zone != "UTC" for zone in self._zones.values()):
            raise Unsupported(
                f"on {self.engine} times with a zone are read by the clock of UTC only; nothing was read and nothing "
                "was spent. Declare the zone 'UTC', or store the times without a zone."
            )
        types = settled(held, self._declared, self._origin.label, self._zones)
        if self._seen is None:
            self._seen = before, types
        self._unchanged()
        if types != self._seen[1]:
            raise EngineFailed(
                f"the columns of {self._origin.label} have changed since it was first opened; nothing was released. "
                "Declare its new state as a new version."
            )
        return types

    def _unchanged(self) -> None:
        if self._seen is not None and self._origin.state() != self._seen[0]:
            raise EngineFailed(
                f"{self._origin.label} has changed since it was first opened; nothing was released. "
                "Declare its new state as a new version."
            )


def check_one_place(sources: Sequence[Source]) -> None:
    """Refuse sources that no one engine reads, and that can therefore not be joined; nothing is opened."""
    first, *others = sources
    if any(other._origin.place() != first._origin.place() for other in others):
        raise Unsupported(
            "the tables do not lie in one place, such as one database, or files and frames, and cannot be joined where "
            "they are; nothing was read and nothing was spent. Bring them together first."
        )


@contextmanager
def opened_together(sources: Sequence[Source]) -> Iterator[tuple[ir.Table, ...]]:
    """The rows of several sources in one session of one engine, all in the same state, so that they can be joined.

    Files and frames share the embedded engine; tables of a database must be of the same one. A source that is named
    twice gives the same table twice.
    """
    check_one_place(sources)
    first = sources[0]
    with ExitStack() as stack:
        for turn in sorted({source._turn for source in sources}, key=id):  # in one order: nobody waits for each other
            stack.enter_context(turn)
        engine = first._or_failed(lambda: first._begun(stack))
        tables = {source: _opened(source, engine, stack) for source in sources}
        yield tuple(tables[source] for source in sources)
        for source in sources:
            source._unchanged()


def _opened(source: Source, engine: BaseBackend, stack: ExitStack) -> ir.Table:
    return source._or_failed(lambda: source._table(engine, stack))
