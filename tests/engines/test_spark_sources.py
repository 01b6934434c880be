"""Tables and frames of a real Spark, whose session is left as it was."""

from decimal import Decimal
from typing import Any

import ibis
import pytest

import sfumato as sf
from sfumato.core.limits import Limit
from sfumato.engines import sources
from sfumato.engines.counts import KeyColumn, bounded_counts
from sfumato.engines.expressions import Type
from sfumato.engines.sources import Source
from sfumato.errors import EngineFailed, Refused
from tests.engines.reading import SENSITIVE, SHARE, rows
from tests.engines.test_sources import all_words_of


@pytest.mark.long
def test_tables_and_frames_of_spark(spark: Any) -> None:
    """The column of persons ignores capital letters; the session has ANSI mode off, which must not matter."""
    names = "id string collate utf8_lcase, n tinyint, w float, cost decimal(10, 2), at timestamp_ntz, zoned timestamp"

    frame = spark.createDataFrame(
        [("p", 1, 0.5, Decimal("1.25"), None, None), ("P", None, None, None, None, None)], names
    )
    frame.createOrReplaceTempView("clinic_visits")
    settings = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.variable.substitute": "true",
    }
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        for given in (
            frame,
            sources.spark(spark, table="clinic_visits"),
            ibis.pyspark.connect(spark).table("clinic_visits"),
        ):
            spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")  # connecting by Ibis has set it
            with pytest.raises(Refused, match="cannot be shown to be row-wise"):
                Source(given).columns()  # rows that came by way of Python: what made them cannot be seen
            source = Source(given, derived=True)
            assert source.engine == "Spark"
            assert source.columns() == {
                "id": Type.TEXT,
                "n": Type.WHOLE,
                "w": Type.NUMBER,
                "cost": Type.NUMBER,
                "at": Type.TIME,
                "zoned": Type.OTHER,
            }
            with source.opened() as table:
                assert spark.conf.get("spark.sql.ansi.enabled") == "true"
                assert "".join(sorted(table.id.to_pyarrow().to_pylist())) == "Pp"
            assert {name: spark.conf.get(name) for name in settings} == settings
        assert rows(Source(frame, {"cost": Type.NUMBER}, derived=True))[0] == {"cost": 1.25}
        keys = (KeyColumn(column="id", values=("p", "P", "${spark.app.name}")),)
        with Source(frame, derived=True).opened() as table:
            assert bounded_counts(table, where=None, keys=keys, share=SHARE) == [1, 1, 0]
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert [view.name for view in spark.catalog.listTables() if "sfumato" in view.name or "ibis" in view.name] == []


def test_a_spark_table_that_is_not_there_or_a_failing_frame(spark: Any) -> None:
    with pytest.raises(EngineFailed, match=r"Spark could not open table 'absent'.*nothing was spent") as caught:
        Source(sources.spark(spark, table="absent")).columns()
    assert caught.value.__context__ is None
    failing = spark.sql("SELECT id, CAST(concat('Zaphod-4711', id) AS INT) AS n FROM range(3)")
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=1), name="clinic")
    limit = Limit(groups=1, rows_per_group=1)
    with pytest.raises(Refused, match="cannot be shown to be row-wise"):
        vault.table(failing, name="y", version="1", limit=limit).where(sf.col("n") > 0).count().release(epsilon="1/4")
    assert vault.spent == sf.Budget.none()
    table = vault.table(failing, name="x", version="1", limit=limit, derived=True)
    with pytest.raises(EngineFailed, match="charge of ε = 1/2 is kept") as kept:
        table.where(sf.col("n") > 0).count().release(epsilon="1/2")
    assert SENSITIVE not in all_words_of(kept.value)
    assert vault.spent == sf.Budget(epsilon="1/2")
