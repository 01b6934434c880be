"""Persons in blocks: all rows of a person lie in the block that the keyed hash of who they are decides.

A block is a function of its own rows as a set, counted with repetitions: nothing of other rows shows in their order,
in the lists of values of a column, or in notes that a file keeps about itself. Proof: docs/proofs/blocks.md
"""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.foreign import Array
from sfumato.engines.keyed_hash import DIGITS

__all__ = ["blocks_of", "places_of"]


def blocks_of(rows: pa.Table, hashes: pa.Array, blocks: int) -> list[pa.Table]:
    """The rows of each block, sorted by their own values. Sensitive: all.

    Guarantee: one person's rows are in one block, and change no other. ``hashes`` is that of each row's person.

    >>> several = blocks_of(pa.table({"x": [3, 1, 2]}), pa.array(["00000000000" + each for each in "001"]), 2)
    >>> [block["x"].to_pylist() for block in several]
    [[1, 3], [2]]
    """
    plain = pa.table([_plain(column) for column in rows.columns], names=rows.column_names)
    places = places_of(hashes, blocks)
    order = _order(plain, places)
    ends = np.searchsorted(places[order], np.arange(blocks + 1))
    return [plain.take(pa.array(order[first:end])) for first, end in pairwise(ends)]


def places_of(hashes: pa.Array, blocks: int) -> Array:
    """The block of each hash: the number that its digits write, modulo the number of blocks.

    >>> places_of(pa.array(["00000000000f", "000000000010"]), 10).tolist()
    [5, 6]
    """
    written = hashes.to_numpy(zero_copy_only=False).astype(f"S{DIGITS}")
    signs = written.view(np.uint8).reshape(-1, DIGITS)
    digits = np.where(signs > ord("9"), signs - (ord("a") - 10), signs - ord("0")).astype(np.int64)
    return (digits @ (16 ** np.arange(DIGITS - 1, -1, -1, dtype=np.int64))) % blocks


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column with values of its own rows alone, where equal ones have equal bytes."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        whole = pc.add(column, 0.0)  # there is one zero
        return pc.if_else(pc.is_nan(column), float("nan"), whole)
    return column


def _order(rows: pa.Table, places: Array) -> Array:
    """The order of rows by block and then by all their values."""
    known = [column for column in rows.columns if not pa.types.is_null(column.type)]
    names = [str(place) for place in range(len(known) + 1)]
    keyed = pa.table([pa.array(places), *known], names=names)
    return np.asarray(pc.sort_indices(keyed, sort_keys=[(name, "ascending") for name in names]))
