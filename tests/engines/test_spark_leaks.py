"""Frames and tables of Spark by which a row could make the reader fail, or count as another person's."""

import logging
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from sfumato.engines import sources
from sfumato.engines.counts import bounded_counts
from sfumato.engines.dialects.spark import LOGGERS, _silenced
from sfumato.engines.sources import Source
from sfumato.engines.sources.spark_tables import SparkTable
from sfumato.errors import Refused
from sfumato.streams.sources import each_batch
from tests.parts import package
from tests.streams.test_sources import totals

FAR = "DATE'+5000000-01-01'"  # a day of which there is no timestamp
AIMED = f"CASE WHEN dx = 'hiv' THEN {FAR} ELSE day END"
DAY, HOUR = pa.array([18000, 18001], pa.int32()).cast(pa.date32()), pa.array([10**15] * 2).cast(pa.timestamp("us"))
STORED = pa.table(
    {"id": ["a", "b"], "dx": ["flu", "hiv"], "day": DAY, "at": HOUR, "zoned": HOUR.cast(pa.timestamp("us", "UTC"))}
).append_column("v", pa.array([5, 6], pa.int64()))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("leaks") / "visits.parquet")
    pq.write_table(STORED, path)
    return path


def columns(data: Any, *, unit: tuple[str, ...] = ("id",)) -> dict[str, Any]:
    return Source(data, unit=unit).columns()


def count(data: Any) -> int:
    with Source(data, unit=("id",)).opened() as table:
        return bounded_counts(table, where=None, keys=(), share=None)[0]


def refused(data: Any, words: str) -> None:
    with pytest.raises(Refused, match=words):
        columns(data)


# ---------------------------------------------------------------------------------------------------- casts


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "made",
    [
        f"CAST({AIMED} AS timestamp_ntz)",
        f"CAST({AIMED} AS timestamp)",
        "CAST(at AS timestamp)",
        "CAST(zoned AS timestamp_ntz)",
        "CAST(at AS string)",
        "CAST(zoned AS string)",
        f"least({AIMED}, at)",
        f"coalesce(at, {AIMED})",
        f"{AIMED} < at",
        "day <= zoned",
        "hour(day)",
        "CAST(dx AS date)",
        "CAST(v AS int)",
    ],
)
def test_a_cast_that_has_no_place_for_some_values_is_refused(spark: Any, stored: str, made: str) -> None:
    refused(spark.read.parquet(stored).selectExpr("id", "dx", f"{made} AS made"), "a cast that may fail on a row")


def test_an_hour_in_a_zone_is_refused_and_in_utc_is_read(spark: Any, stored: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
        refused(spark.read.parquet(stored).selectExpr("id", "hour(zoned) AS made"), "in another time zone")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        assert columns(spark.read.parquet(stored).selectExpr("id", "hour(zoned) AS made", "minute(at) AS other"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.long
def test_casts_that_have_a_place_for_every_value_are_read(spark: Any, stored: str) -> None:
    made = spark.read.parquet(stored).selectExpr(
        "id", "CAST(v AS double) x", "CAST(v AS string) y", "CAST(day AS string) z", "v > 1.5D w", "coalesce(v, null) u"
    )
    assert count(made) == 2


# ------------------------------------------------------------------------------------- types, options, settings


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["int", "string", "double", "decimal(20,0)", "timestamp"])
def test_a_column_is_read_as_the_type_that_its_file_states(spark: Any, stored: str, kind: str) -> None:
    refused(spark.read.schema(f"id string, dx string, v {kind}").parquet(stored).where("dx = 'hiv'"), "column 'v'")
    assert count(spark.read.schema("id string, v bigint, dx string").parquet(stored).where("dx = 'hiv'")) == 1
    refused(spark.read.schema("id string, nobody bigint").parquet(stored), "column 'nobody' that no file has")
    refused(spark.read.schema("ID string, v bigint").parquet(stored), "column 'id'")


def test_what_a_writer_notes_beside_a_file_is_not_believed(spark: Any, tmp_path: Path) -> None:
    fields = ",".join(
        f'{{"name":"{name}","type":"{kind}","nullable":true,"metadata":{{}}}}'
        for name, kind in (("id", "string"), ("v", "integer"))
    )
    noted = {"org.apache.spark.sql.parquet.row.metadata": f'{{"type":"struct","fields":[{fields}]}}'}
    file = str(tmp_path / "noted.parquet")
    pq.write_table(pa.table({"id": ["a"], "v": [5]}).replace_schema_metadata(noted), file)
    assert spark.read.parquet(file).schema["v"].dataType.typeName() == "integer"
    refused(spark.read.parquet(file), "column 'v' which is not read as the bigint")


def test_files_of_one_folder_that_state_different_types_are_refused(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "v": pa.array([1], pa.int64())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["b"], "w": [1]}), tmp_path / "b.parquet")
    read = spark.read.schema("id string, v bigint")
    assert count(read.parquet(str(tmp_path))) == 2  # a column that one of them has not is missing there
    pq.write_table(pa.table({"id": ["c"], "v": pa.array([1], pa.int32())}), tmp_path / "c.parquet")
    refused(read.parquet(str(tmp_path)), "column 'v' which is not read as the int")


def test_timestamps_that_spark_multiplies_are_refused(spark: Any, tmp_path: Path) -> None:
    far = pa.array([0, 2**62], pa.int64())
    for name, kind in (("ms", pa.timestamp("ms")), ("zoned", pa.timestamp("ms", "UTC"))):
        pq.write_table(pa.table({"id": ["a", "b"], "at": far.cast(kind)}), tmp_path / f"{name}.parquet")
        refused(spark.read.parquet(str(tmp_path / f"{name}.parquet")), "timestamp in milliseconds")
    orc.write_table(pa.table({"id": ["a"], "at": pa.array([2**60], pa.int64()).cast("timestamp[s]")}), tmp_path / "o")
    refused(spark.read.orc(str(tmp_path / "o")), "timestamp in seconds")
    assert count(spark.read.schema("id string").orc(str(tmp_path / "o"))) == 1


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "option",
    [
        ("datetimeRebaseMode", "EXCEPTION"),
        ("IGNORECORRUPTFILES", "true"),
        ("ignoreMissingFiles", "true"),
        ("modifiedAfter", "2000-01-01T00:00:00"),
        ("orc.force.positional.evolution", "true"),
    ],
)
def test_options_that_change_what_a_row_is_read_as_are_refused(spark: Any, stored: str, option: Any) -> None:
    refused(spark.read.option(*option).parquet(stored), f"(?i)the option {option[0]} of its reader")


def test_settings_of_the_session_change_no_row(spark: Any, tmp_path: Path) -> None:
    """Under these, a day before 1582 makes the reader fail, or empties its whole file."""
    file = str(tmp_path / "old.parquet")
    days = pa.array([18000, -200000], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"id": ["a", "b"], "day": days}), file)
    ours = {
        "spark.sql.parquet.datetimeRebaseModeInRead": "EXCEPTION",
        "spark.sql.files.ignoreCorruptFiles": "true",
        "spark.sql.parquet.filterPushdown": "true",
    }
    before = {name: spark.conf.get(name) for name in ours}
    try:
        for name, value in ours.items():
            spark.conf.set(name, value)
        assert count(spark.read.parquet(file).where("day > date'1000-01-01'")) == 2
        assert {name: spark.conf.get(name) for name in ours} == ours
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_a_table_of_another_session_is_refused(spark: Any, stored: str) -> None:
    """Its files would be read under the settings of that session."""
    other = spark.newSession()
    other.read.parquet(stored).createOrReplaceGlobalTempView("of_another")
    try:
        assert columns(other.table("global_temp.of_another"))
        refused(spark.table("global_temp.of_another"), "a table of another session")
    finally:
        spark.catalog.dropGlobalTempView("of_another")


def test_cached_rows_are_not_taken_for_stored_ones(spark: Any, tmp_path: Path) -> None:
    """They may be of another day, or made under other settings."""
    file = str(tmp_path / "visits.parquet")
    pq.write_table(STORED, file)
    frame = spark.read.parquet(file).cache()
    try:
        refused(spark.read.parquet(file).where("v > 0"), "rows that Spark has cached")
    finally:
        frame.unpersist(blocking=True)
    assert count(frame) == 2


def test_no_answer_comes_out_of_the_cache(spark: Any, stored: str) -> None:
    """Spark keeps answers of queries, and would give one for any query that looks the same."""
    frame = spark.read.parquet(stored)
    frame.createOrReplaceTempView("leaks_plain")
    kept = spark.sql("SELECT count(*) FROM leaks_plain").cache()

    def is_kept(name: str) -> bool:
        plan = spark.sql(f"SELECT count(*) FROM {name}")._jdf.queryExecution().withCachedData()  # noqa: S608 - ours
        return "InMemoryRelation" in str(plan)

    try:
        with ExitStack() as until:
            name = SparkTable(given=frame, name=())._relation(until)
            assert (is_kept("leaks_plain"), is_kept(name)) == (True, False)
    finally:
        kept.unpersist()
        spark.catalog.dropTempView("leaks_plain")


def test_what_is_checked_is_what_is_read(spark: Any, stored: str) -> None:
    """A name may stand for other rows a moment later; the plan that was looked at is the one that is run."""
    spark.read.parquet(stored).createOrReplaceTempView("leaks_swapped")
    try:
        with Source(sources.spark(spark, table="leaks_swapped"), unit=("id",)).opened() as table:
            spark.range(7).selectExpr("CAST(id AS string) AS id").createOrReplaceTempView("leaks_swapped")
            assert bounded_counts(table, where=None, keys=(), share=None) == [2]
    finally:
        spark.catalog.dropTempView("leaks_swapped")


def test_a_function_in_the_place_of_a_built_in_one_is_refused(spark: Any, stored: str) -> None:
    """It would be given the ids of persons, and the secret of the limits."""
    session = spark.newSession()
    session.udf.register("of_my_own", lambda text: text, "string")
    assert columns(session.read.parquet(stored))
    session.udf.register("MD5", lambda _: "0" * 32, "string")
    session.read.parquet(stored).createOrReplaceTempView("leaks_shadowed")
    for data in (
        session.read.parquet(stored),
        sources.spark(session, table="leaks_shadowed"),
        ibis.pyspark.connect(session).table("leaks_shadowed"),
    ):
        refused(data, "has replaced md5, a function that is built into Spark")
    with pytest.raises(Refused, match="has replaced md5"):
        Source(session.range(3), derived=True).columns()
    stream = totals(horizon=2)
    with pytest.raises(Refused, match="has replaced md5"):
        each_batch(stream)(session.range(3), 0)
    assert not stream.failed
    assert columns(spark.read.parquet(stored))


def test_what_failed_is_not_logged() -> None:
    """PySpark writes the words of the engine, and the value with them, to the errors of the process."""
    package("pyspark")
    from pyspark.logger import PySparkLogger

    heard: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.name)  # type: ignore[method-assign]
    loggers = [PySparkLogger.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        with _silenced(), _silenced():
            for logger in loggers:
                logger.exception("the value 'a-has-flu' cannot be cast")
        assert heard == []
        for logger in loggers:
            logger.exception("the value 'a-has-flu' cannot be cast")
        assert heard == list(LOGGERS)
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def test_a_try_of_ibis_fails_on_a_day_without_a_timestamp(spark: Any, stored: str) -> None:
    spark.read.parquet(stored).createOrReplaceTempView("leaks_tried")
    try:
        table = ibis.pyspark.connect(spark).table("leaks_tried")
        refused(table.mutate(x=table.dx.try_cast("date").try_cast("timestamp")), "a cast that may fail on a row")
        refused(table.mutate(x=table.at.try_cast("date")), "a cast that may fail on a row")
        assert columns(table.mutate(x=table.dx.try_cast("date"), y=table.dx.try_cast("int64")))
    finally:
        spark.catalog.dropTempView("leaks_tried")


# --------------------------------------------------------------------------------------------- whose row it is


def test_a_partition_of_a_catalogue_counts_once(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    pq.write_table(pa.table({"id": ["a", "b"]}), tmp_path / "x" / "a.parquet")
    spark.sql(f"CREATE TABLE leaks_parts (id string, d int) USING parquet PARTITIONED BY (d) LOCATION '{tmp_path}/n'")
    try:
        spark.sql(f"ALTER TABLE leaks_parts ADD PARTITION (d=1) LOCATION '{tmp_path}/x'")
        assert count(spark.table("leaks_parts")) == 2
        spark.sql(f"ALTER TABLE leaks_parts ADD PARTITION (d=2) LOCATION '{tmp_path}/x'")
        refused(spark.table("leaks_parts"), "a file twice")
        refused(sources.spark(spark, table="leaks_parts"), "a file twice")
    finally:
        spark.sql("DROP TABLE leaks_parts")


def test_buckets_that_a_table_declares_are_not_believed(spark: Any, tmp_path: Path) -> None:
    """By its declaration all rows of a person are in one file. They are not, and the person would count twice."""
    for bucket in range(2):
        name = f"part-0000{bucket}-0b5f_0000{bucket}.c000.parquet"
        pq.write_table(pa.table({"id": ["a"], "v": [bucket]}), tmp_path / name)
    spark.sql(
        "CREATE TABLE leaks_buckets (id string, v bigint) USING parquet CLUSTERED BY (id) INTO 2 BUCKETS "
        f"LOCATION '{tmp_path}'"
    )
    try:
        assert spark.table("leaks_buckets").groupBy("id").count().collect() == [("a", 1), ("a", 1)]
        with Source(sources.spark(spark, table="leaks_buckets"), unit=("id",)).opened() as table:
            assert table.group_by("id").agg(n=table.count()).count().to_pyarrow().as_py() == 1
    finally:
        spark.sql("DROP TABLE leaks_buckets")


def test_a_table_of_a_catalogue_has_the_types_of_its_files(spark: Any, stored: str) -> None:
    spark.sql(f"CREATE TABLE leaks_wrong (id string, dx string, v int) USING parquet LOCATION '{stored}'")
    try:
        refused(sources.spark(spark, table="leaks_wrong"), "column 'v'")
    finally:
        spark.sql("DROP TABLE leaks_wrong")


@pytest.mark.long
def test_columns_of_orc_are_read_by_their_names_and_types(spark: Any, tmp_path: Path) -> None:
    """By their place, any column could be the person; as numbers, the persons "1" and "01" would be one."""
    places, texts = str(tmp_path / "places.orc"), str(tmp_path / "texts.orc")
    orc.write_table(pa.table({"_col0": ["p"] * 3, "_col1": ["x", "y", "z"]}), places)
    orc.write_table(pa.table({"id": ["1", "01"], "v": [1, 2]}), texts)
    assert columns(spark.read.orc(places), unit=("_col0",))
    refused(spark.read.schema("x string, id string").orc(places), "columns have no names")
    refused(spark.read.schema("id bigint, v bigint").orc(texts), "column 'id' which is not read as the string")
    assert count(spark.read.schema("v bigint, id string").orc(texts)) == 2


def test_a_folder_is_no_person_and_has_no_types(spark: Any, tmp_path: Path) -> None:
    """One person with a zip code that is no number would change the type of all of them."""
    for name, place in (("a", "id=x"), ("b", "zip=12345"), ("b", "zip=unknown")):
        (tmp_path / name / place).mkdir(parents=True)
        pq.write_table(pa.table({"id": ["a"], "v": [1]}), tmp_path / name / place / "a.parquet")
    folders = "columns read off the names of folders"
    refused(spark.read.parquet(str(tmp_path / "b")), folders)
    refused(spark.read.schema("id string, v bigint, zip string").parquet(str(tmp_path / "b")), folders)
    refused(spark.read.schema("id string, v bigint").parquet(str(tmp_path / "a")), folders)
    assert count(spark.read.option("recursiveFileLookup", "true").parquet(str(tmp_path / "b"))) == 2
    spark.sql(f"CREATE TABLE leaks_ids (id string, v bigint) USING parquet PARTITIONED BY (id) LOCATION '{tmp_path}/n'")
    try:
        spark.sql(f"ALTER TABLE leaks_ids ADD PARTITION (id='x') LOCATION '{tmp_path}/a/id=x'")
        refused(spark.table("leaks_ids"), "two columns of one name, or one that its folder has as well")
    finally:
        spark.sql("DROP TABLE leaks_ids")
