"""Tables, views and frames of Spark, read in the steward's session; its settings are put back afterwards."""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any  # a session or a frame of Spark, which may not be installed

from sfumato.engines.dialects.spark import SPARK, our_settings
from sfumato.engines.sources.origin import Settle
from sfumato.engines.sources.relations import relation_in
from sfumato.engines.spark_plans import check_spark_frame

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    from ibis.backends import BaseBackend

__all__ = ["SparkTable"]


@dataclass(slots=True, kw_only=True, eq=False)
class SparkTable:
    """A table of a session, or a frame; its plan is given a name for the time of a release."""

    given: Any
    name: tuple[str, ...]
    derived: bool = False
    unit: tuple[str, ...] = ()
    engine: str = "Spark"
    advice: str = "Check that the session is running and has such a table or view."

    @property
    def label(self) -> str:
        """The name of the table."""
        return f"table {'.'.join(self.name)!r}" if self.name else "the Spark frame"

    def state(self) -> object:
        """Nothing tells when a table was written to."""
        return None

    def stored(self, engine: BaseBackend) -> Iterable[Hashable]:
        """The table by its whole name; of a frame, nothing."""
        return SPARK.stored(engine, self.name) if self.name else ()

    def place(self) -> Hashable:
        """The session."""
        return self.engine, id(self._spark)

    @property
    def connected(self) -> Hashable:
        """Whose settings are ours while it is read: the session, which other tables may share."""
        return "Spark", id(self._spark)

    @contextmanager
    def session(self) -> Iterator[BaseBackend]:
        """The steward's session under our settings. Spark knows no state of many tables; each query reads them once."""
        import ibis

        with our_settings(self._spark):
            yield ibis.pyspark.connect(self._spark)

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """As Spark works them out without running anything; the plan must take stored rows one by one."""
        with ExitStack() as until:
            return SPARK.columns(engine, f"SELECT * FROM {self._relation(until)}")  # noqa: S608 - quoted

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """The table, whose plan has a name until the stack is closed."""
        return relation_in(engine, self._relation(until), settle, SPARK)

    @property
    def _spark(self) -> Any:
        return self.given if self.name else self.given.sparkSession

    def _relation(self, until: ExitStack) -> str:
        """A name for the very plan that was checked: what the table is called may mean another one a moment later.

        Above it stands what nobody can know before, so that Spark has no answer of a question on it in its cache.
        """
        frame = self._frame()
        if not self.derived:
            check_spark_frame(frame, self.label, unit=self.unit)
        view, new = f"sfumato_{secrets.token_hex(8)}", secrets.token_hex(16)
        frame.where(f"'{new}' = '{new}'").createTempView(view)
        until.callback(self._spark.catalog.dropTempView, view)
        return SPARK.quoted(view)

    def _frame(self) -> Any:
        """The frame, or the table as it is now."""
        if not self.name:
            return self.given
        return self._spark.table(".".join(SPARK.quoted(part) for part in self.name))
