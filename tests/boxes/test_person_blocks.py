"""Blocks of persons: whoever comes or goes changes the bytes of one block and of no other."""

import pyarrow as pa
import pytest

from sfumato.boxes.person_blocks import blocks_of
from sfumato.engines.person_blocks import rows_by_person
from sfumato.engines.sources import Source

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
