"""Several contingency tables of the same rows: each row is coded once, and every table is counted from the codes.

Which rows of a person count is settled before anything is counted, so all tables are about the same rows. It depends on
the person's own rows and a secret alone. Proof: docs/proofs/synthesis.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.engines.contribution_limits import KeyColumn, Share, kept_rows
from sfumato.engines.expressions import Expression
from sfumato.engines.joined import few_rows
from sfumato.engines.totals import whole_numbers

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import numpy as np
    import numpy.typing as npt

__all__ = ["code_blocks", "coded_rows", "codes_of", "marginal_counts", "tables_of"]

MOST_IN_BLOCK = 2**62
"""Cells of a block of columns, whose number is one whole number of 64 bits."""


def marginal_counts(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    share: Share | None,
    tables: Sequence[Sequence[int]],
) -> list[list[int]]:
    """Count rows in each cell of each table, which names places in ``keys``; the last column runs fastest.

    Rows that have no cell in some column do not count in any table. Of each person at most as many rows count as the
    limit lets in, the same in every table. Sensitive: all of it is exact.
    """
    found = whole_numbers(coded_rows(table, where=where, keys=keys, share=share))
    return [counts.tolist() for counts in tables_of(codes_of(found, keys), keys, tables)]


def coded_rows(
    table: ir.Table,
    *,
    where: Expression | None,
    keys: Sequence[KeyColumn],
    share: Share | None,
    world: str | None = None,
) -> ir.Table:
    """The plan: for each row that counts the number of its cell in every block of columns, ``block0`` and so on.

    ``world`` names a column that tells several datasets in one table apart; each is treated as if it were alone.
    """
    blocks, rows, condition, loose = code_blocks(keys), table, where, False
    raw = {column for key in keys for column in key.columns}
    beside = [name for name in (None if share is None else share.column, world) if name is not None]
    prefix = "joint_"
    while any(name.casefold().startswith(prefix) for name in table.columns):
        prefix += "_"
    names: list[str] = []
    for place, block in enumerate(blocks):
        needed = {*names, *beside, *raw}
        kept = kept_rows(rows, where=condition, keys=[keys[column] for column in block], share=None, needed=needed)
        names, condition, loose = [*names, f"{prefix}{place}"], None, loose or kept.loose
        rows = kept.rows.select(*sorted(needed), **{names[-1]: kept.rows[kept.cell]})
    rows = rows.select(*beside, *names)
    if loose:
        rows = rows.filter(*(rows[name].notnull() for name in names))
    if share is not None:
        rows = rows.filter(rows[share.column].notnull())
        if not share.single:
            rows = few_rows(rows, person=share.column, most=share.limit.rows, on=(), secret=share.secret, world=world)
    side = {} if world is None else {"world": rows[world]}
    return rows.select(**side, **{f"block{place}": rows[name] for place, name in enumerate(names)})


def code_blocks(keys: Sequence[KeyColumn]) -> list[list[int]]:
    """The columns in blocks, each with fewer cells than a whole number of 64 bits can tell apart.

    >>> wide = KeyColumn(column="x", values=tuple(range(2**10)))
    >>> [len(block) for block in code_blocks([wide] * 7)]
    [6, 1]
    """
    blocks: list[list[int]] = [[]]
    cells = 1
    for place, key in enumerate(keys):
        if cells * key.size > MOST_IN_BLOCK:
            blocks.append([])
            cells = 1
        blocks[-1].append(place)
        cells *= key.size
    return blocks


def codes_of(found: dict[str, npt.NDArray[np.int64]], keys: Sequence[KeyColumn]) -> list[npt.NDArray[np.int32]]:
    """The place of each row in each column, from the numbers of its cells. Sensitive: they are exact."""
    import numpy as np

    codes: list[npt.NDArray[np.int32]] = []
    for place, block in enumerate(code_blocks(keys)):
        left, backward = found[f"block{place}"], []
        for column in reversed(block):
            left, code = np.divmod(left, keys[column].size)
            backward.append(code.astype(np.int32))
        codes += reversed(backward)
    return codes


def tables_of(
    codes: Sequence[npt.NDArray[np.int32]], keys: Sequence[KeyColumn], tables: Sequence[Sequence[int]]
) -> list[npt.NDArray[np.int64]]:
    """Rows in each cell of each table. Sensitive: they are exact."""
    import numpy as np

    counted = []
    for columns in tables:
        cell, cells = np.zeros(len(codes[0]), dtype=np.int64), 1
        for column in columns:
            cell = cell * keys[column].size + codes[column]
            cells *= keys[column].size
        counted.append(np.bincount(cell, minlength=cells))
    return counted
