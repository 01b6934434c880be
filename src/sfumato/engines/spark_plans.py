"""Plans of Spark: whether a table, a view or a frame takes stored rows one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sfumato.core.foreign import Frame
from sfumato.engines.logged_folders import LOGS, METADATA, SNAPSHOT, log_beside, one_of_each_folder
from sfumato.engines.row_wise import not_row_wise, not_the_stored_unit
from sfumato.engines.stored_files import local_path, named_twice

__all__ = ["check_spark_frame"]

Java = Any  # an object of Spark's own machine: py4j states no types, and takes every name

STEPS = ("Project", "Filter", "SubqueryAlias", "View", "LocalRelation", "Range", "OneRowRelation")
# Files that state their types; of others Spark may have read them off the rows, or read the same text as anything.
PARQUET = (
    "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat",
    "org.apache.spark.sql.delta.DeltaParquetFileFormat",
)
ORC = ("org.apache.spark.sql.execution.datasources.orc.OrcFileFormat",)
LISTINGS = ("InMemoryFileIndex", "CatalogFileIndex")  # all files of a folder
KEPT = ("TahoeLogFileIndex", "HoodieFileIndex", "MetadataLogFileIndex")  # those of whoever keeps a log
DECLARING = ("CatalogFileIndex", "TahoeLogFileIndex")  # where the types of folders are declared, not read off them
# Options of a reader that say where the files are, and how they were written. Others change what a row is read as.
OPTIONS = ("path", "paths", "basepath", "recursivefilelookup", "pathglobfilter", "mergeschema", "compression")
TABLE_OPTIONS = ("serialization.format",)  # of tables in a catalogue
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
EXTRACTING = ("Hour", "Minute", "Second")
NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")
WRITTEN = (*NUMBERS, "boolean", "binary", "date", "string")  # of these, every value can be written as text
# Settings of Hadoop by which ORC takes columns by their place, or passes over rows that it cannot read.
ORC_SETTINGS = ("orc.force.positional.evolution", "orc.skip.corrupt.data")
PLACES = "_col"  # what Hive calls columns that have a place and no name
TOO_FINE = "timestamp in milliseconds"  # Spark multiplies them, and some have no place in 64 bits then
HIDDEN_COLUMN = "a hidden column, which says where a row is stored and not what it holds"
EXPRESSIONS = frozenset(ROW_WISE.split())


def check_spark_frame(frame: Frame, label: str, *, unit: Sequence[str] = ()) -> None:
    """Refuse a frame whose plan has a step that is not known to be row-wise; nothing is run.

    What this kind of session does not let us see is refused too.

    The columns of the ``unit`` must be the stored ones.
    """
    inner = getattr(frame, "_jdf", None)
    if inner is None:
        raise not_row_wise(label, "has a plan that cannot be looked into")
    planned = inner.queryExecution()
    plan = planned.analyzed()
    odd = _odd(plan) or _odd_session(plan, inner.sparkSession()) or _odd_cache(planned.withCachedData())
    if odd is not None:
        raise not_row_wise(label, f"has {odd}")
    for name in unit:
        if not _keeps(plan, name):
            raise not_the_stored_unit(label, name)


def _keeps(node: Java, name: str) -> bool:
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


def _read_as(leaf: Java, name: str) -> bool:
    """Whether another column is read than the one that files have under this name: one that is known by a number."""
    if _kind(leaf) != "LogicalRelation":
        return False
    columns = [each for each in _each(leaf.output()) if each.name() == name]
    return any(each.metadata().contains("parquet.field.id") for each in columns)


def _same(one: Java, other: Java) -> bool:
    return bool(one.exprId().equals(other.exprId()))


def _kind(part: Java) -> str:
    return str(part.getClass().getSimpleName())


def _odd(node: Java) -> str | None:
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


def _odd_part(part: Java) -> str | None:
    kind = part.getClass().getSimpleName()
    if kind not in EXPRESSIONS or part.getClass().getPackageName() != "org.apache.spark.sql.catalyst.expressions":
        return f"a column by {kind}"
    if kind == "AttributeReference" and _is_hidden(part):
        return HIDDEN_COLUMN
    if kind == "Cast" and part.child().dataType().typeName() in NESTED:
        return "a cast of a nested column"
    if kind == "Cast" and not _widens(part):
        return "a cast that may fail on a row"
    if kind in EXTRACTING and not _is_plain_time(part):
        return "an hour, minute or second in another time zone"
    return next((odd for below in _each(part.children()) if (odd := _odd_part(below))), None)


def _widens(cast: Java) -> bool:
    """Whether a cast has a place for every value: to a wider number, or of a number, a truth value or a day to text.

    Days and times are not cast into one another, although Spark takes that for a cast to something wider: of a day far
    off there is not a time.
    """
    held, made = cast.child().dataType(), cast.dataType()
    if held.sameType(made) or _type(held) == "void":
        return True
    if _type(made) == "string":
        return _type(held) in WRITTEN
    return _type(held) in NUMBERS and _type(made) in NUMBERS and bool(cast.canUpCast(held, made))


def _is_plain_time(part: Java) -> bool:
    """Whether a part of a time is taken where no zone has a say."""
    zone = part.timeZoneId()
    utc = bool(zone.isDefined()) and str(zone.get()) in ("UTC", "Etc/UTC")
    return _type(part.child().dataType()) == "timestamp_ntz" or utc


def _type(of: Java) -> str:
    """What a type is called, without its digits or collation."""
    return str(of.typeName()).partition("(")[0].partition(" ")[0]


def _is_hidden(column: Java) -> bool:
    """Whether a column is made by the reader of the files, and is in none of them."""
    facts = column.metadata()
    return any(facts.contains(name) for name in HIDDEN) or str(column.name()).lower().startswith(NUMBERED)


def _odd_leaf(node: Java, kind: str) -> str | None:
    """Why a leaf of a plan is not read: it is no file that states its types, and no table of a known connector."""
    if kind == "DataSourceV2Relation":
        return None if _is_table_of_connector(node) else "a table of a connector that is not known"
    if kind != "LogicalRelation" or _kind(node.relation()) != "HadoopFsRelation":
        return f"a step {kind}"
    held = node.relation()
    if str(held.fileFormat().getClass().getName()) not in (*PARQUET, *ORC):
        return f"a step {kind}"
    if not {str(each.name()) for each in _each(node.output())} <= set(held.schema().fieldNames()):
        return HIDDEN_COLUMN
    return _odd_options(held) or _odd_folders(held) or _odd_files(held) or _odd_types(held)


def _odd_options(held: Java) -> str | None:
    """An option or a setting of Hadoop by which a row could be passed over, fail, or be read as something else."""
    for option in _each(held.options().keys().toSeq()):
        if str(option).lower() not in (*OPTIONS, *TABLE_OPTIONS):
            return f"the option {option} of its reader"
    settings = held.sparkSession().sessionState().newHadoopConf()
    return next((f"the setting {name}" for name in ORC_SETTINGS if _is_on(settings.get(name))), None)


def _is_on(setting: str | None) -> bool:
    return setting is not None and str(setting).lower() != "false"


def _odd_folders(held: Java) -> str | None:
    """Columns that are read off the names of folders: one person's folder can change the type that all of them get."""
    if not held.partitionSchema().size() or _kind(held.location()) in DECLARING:
        return None
    return (
        "columns read off the names of folders, whose types depend on the rows (declare the table with its partitions "
        "in the catalogue, or read the files without these columns)"
    )


def _odd_session(plan: Java, session: Java) -> str | None:
    """Whether a file is read under the settings of another session than the one whose settings are ours."""
    held = [leaf.relation() for leaf in _leaves(plan) if _kind(leaf) == "LogicalRelation"]
    return None if all(each.sparkSession().equals(session) for each in held) else "a table of another session"


def _odd_cache(plan: Java) -> str | None:
    """Whether Spark would read what it has kept: rows of another day, or that other settings made."""
    kept = any(_kind(leaf) == "InMemoryRelation" for leaf in _leaves(plan))
    return "rows that Spark has cached, which may be others than those stored (unpersist them)" if kept else None


def _leaves(plan: Java) -> Iterator[Java]:
    return _each(plan.collectLeaves())


def _is_table_of_connector(node: Java) -> bool:
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


def _odd_files(held: Java) -> str | None:
    """Whether a file is read twice, or although a log says that it does not count."""
    location = held.location()
    kind = _kind(location)
    if kind not in (*KEPT, *LISTINGS):
        return f"a listing of files {kind}"
    near: list[Path] = []
    far: list[str] = []
    for file in _files(held):
        name = str(file.getPath().toUri())
        path = local_path(name)
        if path is None:
            far.append(name)
        else:
            near.append(path)
    if named_twice(near) or len(set(far)) != len(far):
        return "a file twice"
    if kind in KEPT:
        return None
    logged = any(log_beside(file) for file in one_of_each_folder(near)) or _has_log(held, far)
    return "files of a folder whose log says which of them count" if logged else None


def _files(held: Java) -> Iterator[Java]:
    """The files as a query lists them: those of each partition, so that one of two partitions is there twice."""
    none = getattr(getattr(_machine(), "scala.collection.immutable.Nil$"), "MODULE$")
    for folder in _each(held.location().listFiles(none, none)):
        yield from _each(folder.files())


def _machine() -> Java:
    from pyspark import SparkContext

    return getattr(SparkContext._active_spark_context, "_jvm", None)


def _odd_types(held: Java) -> str | None:
    """Whether a column is not read as its files state it.

    A reader that converts can fail on a row, and where it opens only what a filter leaves, that reveals something about
    that row. What files state is the same for all rows: public.
    """
    wanted = {str(each.name()): _stated(each.dataType()) for each in _each(held.dataSchema())}
    folders = {str(name).lower() for name in held.partitionSchema().fieldNames()}
    lowered = {name.lower() for name in wanted}
    found: set[str] = set()
    for columns in _columns(held):
        names = [name.lower() for name, _ in columns]
        if len(set(names)) != len(names) or folders & set(names):
            return "a file with two columns of one name, or one that its folder has as well"
        if all(name.startswith(PLACES) for name in names) and [name for name, _ in columns] != list(wanted):
            return "a file whose columns have no names, and are read by their places"
        for name, kind in columns:
            if name.lower() in lowered and wanted.get(name) != kind:
                return f"a column {name!r} which is not read as the {kind} that a file states, and may fail on a row"
        found |= set(names)
    missing = sorted(lowered - found) if found else []
    return f"a column {missing[0]!r} that no file has" if missing else None


def _columns(held: Java) -> Iterator[tuple[tuple[str, str], ...]]:
    """The columns with their types that files state, once for all files that state the same."""
    settings = held.sparkSession().sessionState().newHadoopConfWithOptions(held.options())
    spark, seen = _machine().org.apache.spark.sql.execution.datasources, set[str]()
    parquet = str(held.fileFormat().getClass().getName()) in PARQUET
    convert = spark.parquet.ParquetToSparkSchemaConverter(held.sparkSession().sessionState().conf())
    for file in _files(held):
        if parquet:
            schema = _footer(settings, file.getPath())
        else:
            written = spark.orc.OrcUtils.readSchema(file.getPath(), settings, False)  # noqa: FBT003 - of Java
            schema = written.get() if written.isDefined() else None  # a file without columns has no rows
        if schema is None or str(schema) in seen:
            continue
        seen.add(str(schema))
        if parquet:
            stated = zip(_each(convert.convert(schema)), schema.getFields(), strict=True)
            yield tuple((str(each.name()), _in_parquet(each, part)) for each, part in stated)
        else:
            stated = zip(schema.getFieldNames(), schema.getChildren(), strict=True)
            yield tuple((str(name), _in_orc(part)) for name, part in stated)


def _footer(settings: Java, path: Java) -> Java:
    """What a Parquet file states by itself, whatever its writer has noted beside."""
    parquet = _machine().org.apache.parquet
    rows = parquet.format.converter.ParquetMetadataConverter.SKIP_ROW_GROUPS
    return parquet.hadoop.ParquetFileReader.readFooter(settings, path, rows).getFileMetaData().getSchema()


def _in_parquet(column: Java, part: Java) -> str:
    return TOO_FINE if "TIMESTAMP(MILLIS" in str(part) else _stated(column.dataType())


def _in_orc(part: Java) -> str:
    """As Spark calls a type; timestamps have seconds in 64 bits there, which Spark multiplies."""
    return "timestamp in seconds" if "timestamp" in str(part) else str(part)


def _stated(kind: Java) -> str:
    """A type in Spark's words; files know of no collation."""
    return "string" if _type(kind) == "string" else str(kind.catalogString())


def _has_log(held: Java, files: Sequence[str]) -> bool:
    """Whether a folder above some files, or above where all files were looked for, has a log; asked through Hadoop."""
    machine, settings = _machine(), held.sparkSession().sessionState().newHadoopConf()
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


def _each(several: Java) -> Iterator[Java]:
    """The members of a list of Scala."""
    return (several.apply(place) for place in range(several.size()))
