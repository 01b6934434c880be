"""A folder with a log is refused by name: only the log knows which of its files count."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines.sources import Source
from sfumato.errors import Refused, SfumatoError

REMOVED, LIVE = pa.table({"id": list(range(1000))}), pa.table({"id": list(range(1000, 1990))})


def delta(folder: Path) -> None:
    """Add A, remove A, add B."""
    (folder / "_delta_log").mkdir(parents=True)
    for number, action in enumerate(('{"add":{"path":"a.parquet"}}', '{"remove":{"path":"a.parquet"}}')):
        (folder / "_delta_log" / f"{number:020}.json").write_text(action)


def streamed(folder: Path) -> None:
    (folder / "_spark_metadata").mkdir(parents=True)
    (folder / "_spark_metadata" / "0").write_text("v1")


def iceberg(folder: Path) -> None:
    (folder / "metadata").mkdir(parents=True)
    (folder / "metadata" / "00001-ab.metadata.json").write_text("{}")


def hudi(folder: Path) -> None:
    (folder / ".hoodie").mkdir(parents=True)
    (folder / ".hoodie" / "hoodie.properties").write_text("")


KINDS: list[tuple[Callable[[Path], None], str]] = [
    (delta, "a Delta table"),
    (streamed, "a folder that Spark streams to"),
    (iceberg, "an Iceberg table"),
    (hudi, "a Hudi table"),
]
kinds = pytest.mark.parametrize(("log", "named"), KINDS, ids=[named for _, named in KINDS])


def filled(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(REMOVED, folder / "a.parquet")
    pq.write_table(LIVE, folder / "b.parquet")
    return folder


def refused(data: Any, named: str, **facts: Any) -> None:
    with pytest.raises(Refused, match=rf"belongs to {named}: .*erased people .*Nothing was read and nothing was spent"):
        Source(data, **facts)


@kinds
def test_the_folder_itself_what_lies_in_it_and_what_it_lies_in(tmp_path: Path, log: Any, named: str) -> None:
    folder = filled(tmp_path / "visits")
    log(folder)
    refused(folder, named)
    refused(str(folder), named)
    refused(folder / "b.parquet", named)
    refused([folder / "a.parquet", folder / "b.parquet"], named)
    part = filled(folder / "region=north" / "year=2026")
    refused(part, named)
    refused(part / "a.parquet", named)
    refused(tmp_path, named)  # a folder of folders, one of which has a log
    link = tmp_path.parent / f"{tmp_path.name}-link"
    link.symlink_to(folder)
    refused(link, named)
    refused(pl.scan_parquet(folder / "*.parquet"), named)
    (folder / "c.csv").write_text("id\n1\n")
    refused(folder / "c.csv", named, columns={"id": "whole"})


@kinds
def test_other_ways_to_name_what_lies_in_it(tmp_path: Path, log: Any, named: str) -> None:
    """URLs, links to files, links inside a folder and folders that a link leads out of."""
    folder, plain = filled(tmp_path / "visits"), filled(tmp_path / "plain")
    log(folder)
    for form in ("file://", "file:"):
        refused(pl.scan_parquet(f"{form}{folder}/b.parquet"), named)
    (tmp_path / "link.parquet").symlink_to(folder / "a.parquet")
    refused(tmp_path / "link.parquet", named)
    refused(pl.scan_parquet(tmp_path / "link.parquet"), named)
    (folder / "out").symlink_to(plain)
    refused(folder / "out" / "a.parquet", named)
    assert Source(plain).columns()
    (plain / "c.parquet").symlink_to(folder / "a.parquet")
    with pytest.raises(Refused, match=f"belongs to {named}"):
        Source(plain).columns()


@kinds
def test_every_door_of_a_vault(tmp_path: Path, log: Any, named: str) -> None:
    folder = filled(tmp_path / "visits")
    log(folder)
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="clinic")
    with pytest.raises(Refused, match=named):
        vault.table(folder, name="visits", version="1")
    with pytest.raises(Refused, match=named):
        vault.public(folder, name="places")
    contacts = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=1), name="contacts")
    with pytest.raises(Refused, match=named):
        contacts.graph(folder, name="contacts", version="1", nodes=3)


@kinds
def test_a_folder_that_becomes_such_a_table_later(tmp_path: Path, log: Any, named: str) -> None:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="clinic")
    table = vault.table(filled(tmp_path / "visits"), name="visits", version="1")
    log(tmp_path / "visits")
    with pytest.raises(Refused, match=named):
        table.count().release(epsilon=1)
    assert vault.spent == sf.Budget(epsilon=0)


def test_a_plain_folder_is_read_whole(tmp_path: Path) -> None:
    filled(tmp_path / "visits" / "metadata")
    with Source(tmp_path / "visits").opened() as table:
        assert table.count().to_pyarrow().as_py() == 1990


@pytest.mark.long
def test_spark_does_not_read_past_a_log(tmp_path: Path, spark: Any) -> None:
    folder = filled(tmp_path / "visits")
    source = Source(spark.read.parquet(str(folder)))
    assert "id" in source.columns()
    delta(folder)
    with pytest.raises(SfumatoError, match="cannot be shown to be row-wise"):
        source.columns()
    iceberg(filled(tmp_path / "more" / "snow"))
    filled(tmp_path / "more" / "plain")
    (tmp_path / "link.parquet").symlink_to(folder / "a.parquet")
    found = spark.read.option("recursiveFileLookup", "true")
    for frame in (
        spark.read.parquet(str(tmp_path / "more" / "snow" / "a.parquet")),
        spark.read.parquet(str(tmp_path / "more" / "s*" / "a.parquet")),
        spark.read.parquet(str(tmp_path / "link.parquet")),
        found.parquet(str(tmp_path / "more")),
        found.option("pathGlobFilter", "a.*").parquet(str(tmp_path / "more")),
    ):
        with pytest.raises(Refused, match="whose log says which of them count, and cannot be shown to be row-wise"):
            Source(frame).columns()
    assert Source(spark.read.parquet(str(tmp_path / "more" / "plain"))).columns()


def test_hadoop_is_asked_for_logs_of_files_elsewhere(tmp_path: Path, spark: Any) -> None:
    from sfumato.engines.spark_plans import _has_log

    folder, snow = filled(tmp_path / "visits"), filled(tmp_path / "snow")
    held = spark.read.parquet(str(folder))._jdf.queryExecution().analyzed().relation()
    files = [str(file) for file in held.location().inputFiles()]
    assert not _has_log(held, files)
    iceberg(snow)
    assert _has_log(held, [(snow / "a.parquet").as_uri()])
    hudi(folder)
    assert _has_log(held, files)
