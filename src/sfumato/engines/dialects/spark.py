"""Spark, read in the steward's session; its settings are put back afterwards."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any  # a session of Spark, which may not be installed

from sfumato.engines.dialect import Dialect, PublicColumns, builtin, doubled
from sfumato.engines.expressions import Side, Type, Unit
from sfumato.engines.operands import FIRST_DAY, whole
from sfumato.engines.public_text import table_from_text
from sfumato.engines.row_wise import not_row_wise
from sfumato.engines.spark_plans import check_spark_frame
from sfumato.errors import Refused

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend

__all__ = ["SPARK", "our_settings"]

NAMES = {
    Type.TEXT: "STRING",
    Type.NUMBER: "DOUBLE",
    Type.WHOLE: "BIGINT",
    Type.TRUTH: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIME: "TIMESTAMP_NTZ",
}
SINCE_1970 = 62_135_596_800_000_000  # microseconds from the first moment of the year 1
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


class Spark(Dialect):
    """Spark in ANSI mode. It knows no state of many tables; each query reads them once."""

    __slots__ = ()
    name = "pyspark"
    title = "Spark"
    sieves = False
    """Rows are exchanged by person once; a sieve would be a second scan and a second exchange."""
    places_keys = False
    """It was not timed here."""
    closes_by_membership = False

    def quoted(self, name: str) -> str:
        """Between grave accents.

        >>> SPARK.quoted('it`s')
        '`it``s`'
        """
        return doubled(name, "`")

    def sql_name(self, kind: Type) -> str:
        """As Spark calls it."""
        return NAMES[kind]

    def cast(self, column: str, kind: Type, dtype: dt.DataType) -> str:
        """The cast itself makes text binary."""
        return f"CAST({column} AS {NAMES[kind]})"

    def tried_cast_fails(self, held: dt.DataType, made: dt.DataType) -> bool:
        """Conversions of a time to a zone and of a day to a time, which days far off do not have."""
        to_time = held.is_date() and made.is_timestamp()
        return bool(getattr(made, "timezone", None) or held.is_timestamp() or to_time)

    def bytes_of(self, text: ir.Value) -> ir.Value:
        """Cast."""
        return text.cast("binary")

    def bytes_constant(self, value: bytes) -> ir.Value:
        """A literal."""
        import ibis

        return ibis.literal(value, type="binary")

    def wide(self, value: ir.Value) -> ir.Value:
        """19 digits hold 64 bits, and 38 digits a product."""
        return value.cast("decimal(19, 0)")

    def wide_constant(self, value: int) -> ir.Value:
        """38 digits."""
        import ibis

        return ibis.literal(Decimal(value), type="decimal(38, 0)")

    def from_decimal(self, value: ir.Value) -> ir.Value:
        """Cast, which rounds once."""
        return value.cast("float64")

    def divided(self, value: ir.Value, by: int) -> ir.Value:
        """Of a multiple, the quotient of doubles is as good as exact: it is below 2^40."""
        return ((value - value % whole(by)) / whole(by)).round().cast("int64")

    def microseconds(self, time: ir.Value) -> ir.Value:
        """Since 1970, and before; the session is in UTC."""
        return builtin("unix_micros", ("timestamp('UTC')",), "int64")(time.cast("timestamp('UTC')")) + whole(SINCE_1970)

    def time_of(self, microseconds: ir.Value) -> ir.Value:
        """From microseconds since 1970; the session is in UTC."""
        return builtin("timestamp_micros", ("int64",), "timestamp(6)")(microseconds - whole(SINCE_1970))

    def day_of(self, number: ir.Value) -> ir.Value:
        """Days are added."""
        import ibis

        return builtin("date_add", ("date", "int32"), "date")(ibis.literal(FIRST_DAY), number.cast("int32"))

    def begun(self, day: ir.Value, unit: Unit) -> ir.Value:
        """Its function for dates."""
        return builtin("trunc", ("date", "string"), "date")(day, unit.value)

    def months_later(self, day: ir.Value, months: int) -> ir.Value:
        """Months are added."""
        return builtin("add_months", ("date", "int32"), "date")(day, months)

    def trimmed(self, text: ir.Value, side: Side) -> ir.Value:
        """Spaces only, by themselves."""
        name = {Side.BOTH: "trim", Side.START: "ltrim", Side.END: "rtrim"}[side]
        return builtin(name, ("string",), "string")(text)

    def total(self, column: ir.Value) -> ir.Value:
        """Cast first: Spark would stay in 64 bits and raise."""
        return column.cast("decimal(38, 0)").sum()

    def travels_as_text(self, dtype: dt.DataType) -> bool:
        """Whole numbers of more than 64 bits."""
        return bool(dtype.is_decimal())

    def ordered(self, digits: ir.Value) -> ir.Value:
        """Text compares bytewise."""
        return digits

    def number_of(self, digits: ir.Value) -> ir.Value:
        """Converted from base 16."""
        return builtin("conv", ("string", "int32", "int32"), "string")(digits, 16, 10).cast("int64")

    def worked_out(self, table: ir.Table) -> ir.Table:
        """As it is: Spark does not repeat an expression that is not cheap."""
        return table

    def brought_out(self, table: ir.Table) -> pa.Table:
        """As Arrow all the way: by way of pandas, whole numbers would become others where some are missing."""
        engine = table.get_backend()
        return engine.raw_sql(engine.compile(table)).toArrow()

    def public_table(self, columns: PublicColumns) -> ir.Table:
        """As one text: a steward does not want temporary tables."""
        return table_from_text(columns)

    def connection(self, engine: BaseBackend) -> object:
        """The session."""
        return engine._session

    @contextmanager
    def session(self, engine: BaseBackend) -> Iterator[None]:
        """Under our settings."""
        with our_settings(engine._session):
            yield

    def columns(self, engine: BaseBackend, query: str) -> dict[str, dt.DataType]:
        """Ibis does not tell moments in time, whose day depends on a zone, from times without a zone."""
        import ibis

        found = dict(engine.sql(query).schema().items())
        moments = [field.name for field in engine.raw_sql(query).schema if field.dataType.typeName() == "timestamp"]
        return found | dict.fromkeys(moments, ibis.dtype("timestamp('UTC')"))

    def stored(self, engine: BaseBackend, name: Sequence[str]) -> list[Hashable]:
        """A table by its whole name."""
        catalogue = engine._session.catalog
        before = (catalogue.currentCatalog(), catalogue.currentDatabase())
        return [("Spark", *(part.lower() for part in (*before, *name)[-3:]))]

    def check_stored(
        self,
        engine: BaseBackend,
        name: Sequence[str],
        label: str,
        *,
        unit: Sequence[str] = (),
        columns: Sequence[str] = (),
    ) -> None:
        """Refuse a table or view whose plan has a step that is not known to be row-wise; nothing is run.

        It must list all ``columns``: others, such as _metadata, describe other rows.
        """
        frame = engine._session.table(".".join(self.quoted(part) for part in name))
        check_spark_frame(frame, label, unit=unit)
        if not set(columns) <= set(frame.columns):
            raise not_row_wise(label, "names a column that its table does not list")


SPARK = Spark()


@contextmanager
def our_settings(session: Any) -> Iterator[None]:
    """Settings under which a query means what is tested, by Spark's own functions, and does not reveal what failed."""
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
            f"the session has replaced {other.head()._1().funcName()}, a function that is built into Spark: the "
            "replacement would see the rows of a question. Nothing was read and nothing was spent. Use a session "
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
