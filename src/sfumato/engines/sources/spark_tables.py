"""Tables, views and frames of Spark, read in the steward's session; its settings are put back afterwards."""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.engines.dialects import Dialect
from sfumato.engines.sources.catalogues import spark_stored
from sfumato.engines.sources.columns import quoted
from sfumato.engines.sources.origins import Settle
from sfumato.engines.sources.relations import columns_in, relation_in
from sfumato.engines.sources.spark_plans import check_spark_frame
from sfumato.errors import Refused

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["SparkTable", "our_settings"]

# What changes the meaning of a query. With ANSI mode off an overflow wraps round; with substitution on, a constant that
# looks like ${...} is replaced. Ibis sets the last two itself.
SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    # No row, and no file, may be passed over, fail, or be opened only because of what other rows hold.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.orc.filterPushdown": "false",
    # That all rows of a person lie in one file is not believed: where they do not, one person would count as two.
    "spark.sql.sources.bucketing.enabled": "false",
    "spark.sql.sources.v2.bucketing.enabled": "false",
    "spark.sql.optimizer.metadataOnly": "false",
    # Columns are read by their names, as the types that their files state.
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",  # it warns of what failed, in the engine's words
}
# Of PySpark: they write what failed, with its value, to the errors of this process.
LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


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

    def stored(self, engine: Any) -> Iterable[Hashable]:
        """The table by its whole name; of a frame, nothing."""
        return spark_stored(self._spark, self.name) if self.name else ()

    def place(self) -> Hashable:
        """The session."""
        return self.engine, id(self._spark)

    @property
    def connected(self) -> Hashable:
        """Whose settings are ours while it is read: the session, which other tables may share."""
        return "Spark", id(self._spark)

    @contextmanager
    def session(self) -> Iterator[Any]:
        """The steward's session under our settings. Spark knows no state of many tables; each query reads them once."""
        import ibis

        with our_settings(self._spark):
            yield ibis.pyspark.connect(self._spark)

    def held(self, engine: Any) -> dict[str, Any]:
        """As Spark works them out without running anything; the plan must take stored rows one by one."""
        with ExitStack() as until:
            return columns_in(engine, f"SELECT * FROM {self._relation(until)}")  # noqa: S608 - quoted

    def table(self, engine: Any, settle: Settle, until: ExitStack) -> ir.Table:
        """The table, whose plan has a name until the stack is closed."""
        return relation_in(engine, self._relation(until), settle, Dialect.SPARK)

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
        return quoted(view, Dialect.SPARK)

    def _frame(self) -> Any:
        """The frame, or the table as it is now."""
        if not self.name:
            return self.given
        return self._spark.table(".".join(quoted(part, Dialect.SPARK) for part in self.name))


@contextmanager
def our_settings(session: Any) -> Iterator[None]:
    """Settings under which a query means what is tested, by Spark's own functions, and tells nobody what failed."""
    _check_functions(session)
    before = {name: session.conf.get(name, None) for name in SETTINGS}
    try:
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
        with _silenced():
            yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)


def _check_functions(session: Any) -> None:
    """Refuse a session in which a name of a built-in function means another: it would be given ids and our secret."""
    inner = getattr(session, "_jsparkSession", None)
    if inner is None:
        raise Refused(
            "the functions of a session of Spark Connect cannot be looked into; nothing was read and nothing was "
            "spent. Use a session on the driver."
        )
    own = session._jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin().functionBuilders().toSet()
    other = own.diff(inner.sessionState().functionRegistry().functionBuilders().toSet())
    if other.size():
        raise Refused(
            f"the session has put a function of its own in the place of {other.head()._1().funcName()}, which Spark "
            "has built in: it would see the rows of a question. Nothing was read and nothing was spent. Use a session "
            "without it: spark.newSession()."
        )


@contextmanager
def _silenced() -> Iterator[None]:
    """Silence what PySpark logs of a query that failed."""
    from pyspark.logger import PySparkLogger

    def never(_: object) -> bool:
        return False

    loggers = [PySparkLogger.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addFilter(never)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(never)
