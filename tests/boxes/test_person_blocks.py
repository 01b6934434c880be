"""Blocks of persons: whoever comes or goes changes the bytes of one block and of no other."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.boxes import slots, trial
from sfumato.boxes.levels import BoxLevel
from sfumato.boxes.person_blocks import blocks_of
from sfumato.engines.person_blocks import rows_by_person
from sfumato.engines.sources import Source
from tests.engines.loading import on, put
from tests.parts import boxes

KEY = "a key"
ROWS = pa.table(
    {
        "id": ["ann", "bob", "ann", None, "eve", "bob", "dan"],
        "x": [0.0, 2.0, float("nan"), 9.0, -0.0, 1.0, 5.0],
        "ward": pa.array(["A", "B", "A", "Z", "C", "B", "B"]).dictionary_encode(),
    }
)


def blocks(rows: pa.Table, number: int = 3) -> list[pa.Table]:
    """By the way of the product, from a frame that notes how many rows it has."""
    noted = rows.replace_schema_metadata({"pandas": f'{{"stop": {rows.num_rows}}}'})
    found, hashes = rows_by_person(Source(noted), rows.column_names, person="id", secret=KEY)
    return blocks_of(found.replace_schema_metadata({"rows": str(rows.num_rows)}), hashes, number)


def written(block: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, block.schema) as stream:
        stream.write_table(block)
    return bytes(sink.getvalue())


def test_all_rows_of_a_person_are_in_one_block_and_nobody_in_none() -> None:
    several = blocks(ROWS)
    assert len(several) == 3
    homes = [
        [place for place, block in enumerate(several) if who in block["id"].to_pylist()]
        for who in ("ann", "bob", "eve", "dan")
    ]
    assert all(len(home) == 1 for home in homes)
    assert sum(block.num_rows for block in several) == 6


@pytest.mark.parametrize("who", ["ann", "bob", "eve", "dan"])
def test_whoever_goes_changes_the_bytes_of_one_block(who: str) -> None:
    kept = pa.array([name != who for name in ROWS["id"].to_pylist()])
    whole, without = blocks(ROWS), blocks(ROWS.filter(kept))
    changed = [one for one, other in zip(whole, without, strict=True) if written(one) != written(other)]
    assert len(changed) == 1
    assert who in changed[0]["id"].to_pylist()


def test_the_order_of_rows_leaves_no_trace() -> None:
    turned = ROWS.take(list(range(ROWS.num_rows))[::-1])
    assert list(map(written, blocks(ROWS))) == list(map(written, blocks(turned)))


def test_a_block_holds_no_list_of_values_and_no_notes() -> None:
    for block in blocks(ROWS):
        assert block.schema.metadata is None
        assert not any(pa.types.is_dictionary(each.type) or each.metadata for each in block.schema)


def test_more_blocks_than_persons_leave_some_empty_with_the_same_columns() -> None:
    several = blocks(ROWS, 50)
    assert [block.schema for block in several] == [several[0].schema] * 50
    assert sum(block.num_rows > 0 for block in several) <= 4


@pytest.mark.parametrize(
    "ids", [["ann", "bob", "ann", None, "eve"], [7, -1, 7, None, 2**53 + 1]], ids=["text", "whole"]
)
def test_postgresql_gives_the_same_blocks_byte_for_byte(postgres_url: str, ids: list[object]) -> None:
    """Order of rows, lists of values and notes of an engine leave no trace in a block."""
    rows = pa.table({"id": ids, "x": [0.0, 2.5, float("nan"), 9.0, 1.0], "ward": ["A", "B", None, "Z", "é"]})
    several = []
    for source in (Source(rows), on("PostgreSQL", rows, "persons_in_blocks", url=postgres_url)):
        found, hashes = rows_by_person(source, rows.column_names, person="id", secret=KEY)
        several.append([written(block) for block in blocks_of(found, hashes, 3)])
    assert several[0] == several[1]


def test_a_program_over_blocks_of_a_table_of_postgresql_is_answered(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole path but the box: the sums are those of the same rows here, up to noise of less than a step."""
    boxes()
    rows = pa.table({"id": [1, 2, 2, 3, None], "days": [1.0, 2.0, 3.0, 4.0, 1e9]})
    monkeypatch.setattr(trial, "tested_level", lambda: BoxLevel.NAMESPACES)
    monkeypatch.setattr(trial, "check_starts", lambda limits, level: 0.0)
    counted = lambda box, code, several: [(float(sum(block["days"].to_pylist())),) for block in several]  # noqa: E731
    monkeypatch.setattr(slots, "answers_of_blocks", counted)
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="trial")
    table = vault.table(put("PostgreSQL", rows, "stays_in_blocks", url=postgres_url), name="stays", version="1")
    asked = vault.block_mean(table, "def analyse(rows): return 0", bounds=(0, 16), blocks=2)
    assert float(asked.release(epsilon=10**6)["answer"].values[0]) == pytest.approx(5, abs=1e-3)
