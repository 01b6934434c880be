"""Plans of Spark: whether a table, a view or a frame takes stored rows one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sfumato.engines.logged_folders import LOGS, METADATA, SNAPSHOT, log_beside, one_of_each_folder
from sfumato.engines.row_wise import not_row_wise, not_the_stored_unit
from sfumato.engines.stored_files import local_path, named_twice

__all__ = ["check_spark_frame"]

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
KEPT = ("TahoeLogFileIndex", "HoodieFileIndex", "MetadataLogFileIndex")  # those of whoever keeps a log
# Tables of connectors, not what they show of their own: files, snapshots, changes.
CONNECTORS = (
    "org.apache.iceberg.spark.source.SparkTable",
    "org.apache.spark.sql.delta.catalog.DeltaTableV2",
    "org.apache.spark.sql.hudi.catalog.HoodieInternalV2Table",
)
# Columns that no file has: where a row lies, how large its file is. Other rows change them.
HIDDEN, NUMBERED = ("__metadata_col", "__file_source_metadata_col"), ("_tmp_metadata_", "_metadata")
NESTED = ("struct", "array", "map", "variant")  # as text they may hold anything
# None of these can fail on a row, in ANSI mode either: a step that can could be aimed at one person.
ROW_WISE = """
AttributeReference Alias Literal Cast Collate ResolvedCollation And Or Not EqualTo EqualNullSafe
LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual In InSet IsNull IsNotNull IsNaN NaNvl CaseWhen If Coalesce
Greatest Least Upper Lower StringTrim StringTrimLeft StringTrimRight Length Contains StartsWith EndsWith
Year Quarter Month DayOfMonth DayOfYear DayOfWeek WeekOfYear Hour Minute Second
"""
RENAMING = ("avroSchema", "avroSchemaUrl", "positionalFieldMatching")  # options by which one column is read as another
BY_PLACE = "orc.force.positional.evolution"
HIDDEN_COLUMN = "a hidden column, which tells where a row is stored and not what it holds"
EXPRESSIONS = frozenset(ROW_WISE.split())


def check_spark_frame(frame: Any, label: str, *, unit: Sequence[str] = ()) -> None:
    """Refuse a frame whose plan has a step that is not known to be row-wise; nothing is run.

    What this kind of session does not let us see is refused too.

    The columns of the ``unit`` must be the stored ones.
    """
    inner = getattr(frame, "_jdf", None)
    if inner is None:
        raise not_row_wise(label, "has a plan that cannot be looked into")
    plan = inner.queryExecution().analyzed()
    odd = _odd(plan)
    if odd is not None:
        raise not_row_wise(label, f"has {odd}")
    for name in unit:
        if not _keeps(plan, name):
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
    return any(_same(each, part) and each.name() == name for each in _each(node.output())) and not _read_as(node, name)


def _read_as(leaf: Any, name: str) -> bool:
    """Whether files have a column of this name, and another one is read: one of a folder's name, or of a number."""
    if _kind(leaf) != "LogicalRelation" or _kind(leaf.relation().location()) not in LISTINGS:
        return False
    held = leaf.relation()
    columns = [each for each in _each(leaf.output()) if each.name() == name]
    by_folder = {each.lower() for each in held.partitionSchema().fieldNames()}
    own = {each.lower() for each in held.dataSchema().fieldNames()}
    if any(held.options().contains(option) for option in RENAMING) or _is_by_place(held):
        return True
    return name.lower() in by_folder & own or any(each.metadata().contains("parquet.field.id") for each in columns)


def _is_by_place(held: Any) -> bool:
    """Whether columns of ORC files are taken by their place, whatever they are called."""
    settings = held.sparkSession().sessionState().newHadoopConfWithOptions(held.options())
    return str(settings.get(BY_PLACE, "false")).lower() != "false"


def _same(one: Any, other: Any) -> bool:
    return bool(one.exprId().equals(other.exprId()))


def _kind(part: Any) -> str:
    return str(part.getClass().getSimpleName())


def _odd(node: Any) -> str | None:
    """The first step of a plan, or part of a column, that is not on the list; None where there is none."""
    kind = _kind(node)
    wrong = None if kind in STEPS else _odd_leaf(node, kind)
    if wrong is not None:
        return wrong
    if not node.children().size() and any(_is_hidden(each) for each in _each(node.output())):
        return HIDDEN_COLUMN
    for part in _each(node.expressions()):
        odd = _odd_part(part)
        if odd is not None:
            return odd
    return next((odd for below in _each(node.children()) if (odd := _odd(below))), None)


def _odd_part(part: Any) -> str | None:
    kind = part.getClass().getSimpleName()
    if kind not in EXPRESSIONS or part.getClass().getPackageName() != "org.apache.spark.sql.catalyst.expressions":
        return f"a column by {kind}"
    if kind == "AttributeReference" and _is_hidden(part):
        return HIDDEN_COLUMN
    if kind == "Cast" and part.child().dataType().typeName() in NESTED:
        return "a cast of a nested column"
    if kind == "Cast" and not _widens(part):
        return "a cast that may fail on a row"
    return next((odd for below in _each(part.children()) if (odd := _odd_part(below))), None)


def _widens(cast: Any) -> bool:
    """Whether a cast has a place for every value: to a wider number, or of a number or a date to text."""
    return bool(cast.canUpCast(cast.child().dataType(), cast.dataType()))


def _is_hidden(column: Any) -> bool:
    """Whether a column is made by the reader of the files, and is in none of them."""
    facts = column.metadata()
    return any(facts.contains(name) for name in HIDDEN) or str(column.name()).lower().startswith(NUMBERED)


def _odd_leaf(node: Any, kind: str) -> str | None:
    """Why a leaf of a plan is not read: it is no file that states its types, and no table of a known connector."""
    if kind == "DataSourceV2Relation":
        return None if _is_table_of_connector(node) else "a table of a connector that is not known"
    if kind != "LogicalRelation" or _kind(node.relation()) != "HadoopFsRelation":
        return f"a step {kind}"
    held = node.relation()
    if not any(name in _kind(held.fileFormat()) for name in FORMATS):
        return f"a step {kind}"
    if not {str(each.name()) for each in _each(node.output())} <= set(held.schema().fieldNames()):
        return HIDDEN_COLUMN
    return _odd_files(held)


def _is_table_of_connector(node: Any) -> bool:
    table = node.table()
    if str(table.getClass().getName()) not in CONNECTORS or node.options().size() > 0:
        return False
    if "iceberg" not in str(table.getClass().getName()):
        return True
    above = table.table().getClass()  # the table that Iceberg keeps: its tables about tables are of another class
    while above is not None:
        if str(above.getSimpleName()) == "BaseMetadataTable":
            return False
        above = above.getSuperclass()
    return True


def _odd_files(held: Any) -> str | None:
    """Whether a file is read twice, or although a log says that it does not count."""
    location = held.location()
    kind = _kind(location)
    if kind in KEPT:
        return None
    if kind not in LISTINGS:
        return f"a listing of files {kind}"
    near: list[Path] = []
    far: list[str] = []
    for name in map(str, location.inputFiles()):
        path = local_path(name)
        if path is None:
            far.append(name)
        else:
            near.append(path)
    if named_twice(near) or len(set(far)) != len(far):
        return "a file twice"
    logged = any(log_beside(file) for file in one_of_each_folder(near)) or _has_log(held, far)
    return "files of a folder whose log says which of them count" if logged else None


def _has_log(held: Any, files: Sequence[str]) -> bool:
    """Whether a folder above some files, or above where all files were looked for, has a log; asked through Hadoop."""
    from pyspark import SparkContext

    machine: Any = getattr(SparkContext._active_spark_context, "_jvm", None)
    settings = held.sparkSession().sessionState().newHadoopConf()
    paths = [machine.org.apache.hadoop.fs.Path(machine.java.net.URI(file)).getParent() for file in _of_folders(files)]
    seen: set[str] = set()
    for start in (*_each(held.location().rootPaths()), *paths):
        held_by, folder = start.getFileSystem(settings), start
        while folder is not None and str(folder) not in seen:
            seen.add(str(folder))
            if any(held_by.exists(folder.suffix(f"/{name}")) for name in LOGS):
                return True
            if len(held_by.globStatus(folder.suffix(f"/{METADATA}/{SNAPSHOT}")) or ()):
                return True
            folder = folder.getParent()
    return False


def _of_folders(files: Sequence[str]) -> list[str]:
    """One file of each folder."""
    return list({file.rpartition("/")[0]: file for file in files}.values())


def _each(several: Any) -> Iterator[Any]:
    """The members of a list of Scala."""
    return (several.apply(place) for place in range(several.size()))
