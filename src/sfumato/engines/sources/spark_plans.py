"""Plans of Spark: whether a table, a view or a frame takes stored rows one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sfumato.engines.dialects import Dialect
from sfumato.engines.sources.columns import quoted
from sfumato.engines.sources.logged_folders import LOGS
from sfumato.engines.sources.row_wise import not_row_wise, not_the_stored_unit

__all__ = ["check_spark_frame", "check_spark_table"]

STEPS = (
    "Project",
    "Filter",
    "SubqueryAlias",
    "View",
    "LocalRelation",
    "Range",
    "OneRowRelation",
    "HiveTableRelation",
)
FORMATS = ("Parquet", "Orc", "Avro")  # files that state their types; of others Spark may have read them off the rows
LISTINGS = ("InMemoryFileIndex", "CatalogFileIndex")  # all files of a folder
CONNECTORS = ("org.apache.iceberg.", "org.apache.spark.sql.delta.", "org.apache.hudi.")
ROW_WISE = """
AttributeReference Alias Literal Cast Collate ResolvedCollation And Or Not EqualTo EqualNullSafe
LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual In InSet IsNull IsNotNull IsNaN NaNvl CaseWhen If Coalesce
Greatest Least Add Subtract Multiply Divide IntegralDivide Remainder Pmod UnaryMinus UnaryPositive Abs Round Floor Ceil
Concat ConcatWs Upper Lower StringTrim StringTrimLeft StringTrimRight Substring Length Like RLike
Contains StartsWith EndsWith StringReplace
Year Quarter Month DayOfMonth DayOfYear DayOfWeek WeekOfYear Hour Minute Second
DateAdd DateSub DateDiff AddMonths TruncDate TruncTimestamp
"""
EXPRESSIONS = frozenset(ROW_WISE.split())


def check_spark_table(session: Any, name: Sequence[str], label: str, *, unit: Sequence[str] = ()) -> None:
    """Refuse a table or view of a session whose plan has a step that is not known to be row-wise; nothing is run."""
    check_spark_frame(session.table(".".join(quoted(part, Dialect.SPARK) for part in name)), label, unit=unit)


def check_spark_frame(frame: Any, label: str, *, unit: Sequence[str] = ()) -> None:
    """The same for a frame. What this kind of session does not let us see is refused too.

    The columns of the ``unit`` must be the stored ones.
    """
    plan = getattr(frame, "_jdf", None)
    odd = "a plan that cannot be looked into" if plan is None else _odd(plan.queryExecution().analyzed())
    if odd is not None:
        raise not_row_wise(label, f"has {odd}")
    for name in unit:
        if not _keeps(plan.queryExecution().analyzed(), name):  # type: ignore[union-attr] - there, or it was refused
            raise not_the_stored_unit(label, name)


def _keeps(node: Any, name: str) -> bool:
    """Whether a column is the one that is stored under this name, as it is; for a plan of listed steps.

    A column keeps its number through a plan until a step computes or renames it. One that is not there at all is for
    the check of columns to refuse.
    """
    found = [each for each in _each(node.output()) if each.name() == name]
    if not found:
        return True
    (part,) = found
    while node.children().size():
        made = [each for each in _each(node.expressions()) if _kind(each) == "Alias" and _same(each, part)]
        if made:
            part = made[0].child()
            while _kind(part) == "Cast" and part.dataType().sameType(part.child().dataType()):
                part = part.child()  # of views, which cast each column to its own type
            if _kind(part) != "AttributeReference":
                return False
        (node,) = _each(node.children())
    return any(_same(each, part) and each.name() == name for each in _each(node.output()))


def _same(one: Any, other: Any) -> bool:
    return bool(one.exprId().equals(other.exprId()))


def _kind(part: Any) -> str:
    return str(part.getClass().getSimpleName())


def _odd(node: Any) -> str | None:
    """The first step of a plan, or part of a column, that is not on the list; None where there is none."""
    kind = node.getClass().getSimpleName()
    if not (kind in STEPS or _is_stored(node, kind)):
        return f"a step {kind}"
    for part in _each(node.expressions()):
        odd = _odd_part(part)
        if odd is not None:
            return odd
    return next((odd for below in _each(node.children()) if (odd := _odd(below))), None)


def _odd_part(part: Any) -> str | None:
    kind = part.getClass().getSimpleName()
    if kind not in EXPRESSIONS or part.getClass().getPackageName() != "org.apache.spark.sql.catalyst.expressions":
        return f"a column by {kind}"
    return next((odd for below in _each(part.children()) if (odd := _odd_part(below))), None)


def _is_stored(node: Any, kind: str) -> bool:
    """Whether a leaf of a plan reads files that state their types, or a table of a connector that keeps such files."""
    if kind == "LogicalRelation":
        held = node.relation()
        if held.getClass().getSimpleName() != "HadoopFsRelation":
            return False
        known = any(name in held.fileFormat().getClass().getSimpleName() for name in FORMATS)
        return known and not _passes_over_a_log(held)
    if kind == "DataSourceV2Relation":
        return str(node.table().getClass().getName()).startswith(CONNECTORS)
    return False


def _passes_over_a_log(held: Any) -> bool:
    """Whether all files of a folder are read although a log says which of them count."""
    location = held.location()
    if location.getClass().getSimpleName() not in LISTINGS:
        return False  # the file index of whoever keeps the log
    settings = held.sparkSession().sessionState().newHadoopConf()
    for root in _each(location.rootPaths()):
        files, folder = root.getFileSystem(settings), root
        while folder is not None:
            if any(files.exists(folder.suffix(f"/{name}")) for name in LOGS):
                return True
            folder = folder.getParent()
    return False


def _each(several: Any) -> Iterator[Any]:
    """The members of a list of Scala."""
    return (several.apply(place) for place in range(several.size()))
