"""Rows of a table of the vault as cells of declared columns, for a critic to judge; read after the charge."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sfumato.core.foreign import Array, Frame
from sfumato.core.units import User
from sfumato.engines.edge_lists import columns_in_memory
from sfumato.engines.expressions import Type
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.learning.given_rows import listed_ids
from sfumato.learning.laid import OpenedRows
from sfumato.synthesis.columns import EPOCH, BinnedColumn, SyntheticColumn
from sfumato.tables.held_rows import held_rows
from sfumato.tables.table import Table

__all__ = ["CellRows"]

LISTED = (Type.TEXT, Type.WHOLE, Type.TRUTH, Type.DATE)
NUMBERS = (Type.WHOLE, Type.NUMBER)


class CellRows:
    """The rows of a table as ones and zeros: one place for each cell of each column, and a 1 where the value lies.

    A row with a value that no cell holds, or with a missing one where that is none, does not count.

    Guarantee: each row becomes cells by itself, by what was declared; no row is looked at before :meth:`opened`, which
    a run calls once it was charged. Sensitive: what that gives.
    """

    def __init__(self, table: Table, columns: Sequence[SyntheticColumn]) -> None:
        held = held_rows(table)
        if held is None:
            raise InvalidInput(
                "a generator takes a table of the vault as it was declared, without where, join, group_by or another "
                "limit; nothing was read and nothing was spent."
            )
        if held.source.derived:
            raise Refused(
                f"{table.dataset.name!r} was declared with derived=True, which certificates of training cannot say; "
                "nothing was read and nothing was spent. Declare the stored rows."
            )
        self._name, self._source, self._notary = table.dataset.name, held.source, held.notary
        self._columns = tuple(columns)
        types = self._source.columns()
        for column in self._columns:
            _check_type(column, types.get(column.name))
        self._whose = held.unit.column if isinstance(held.unit, User) else None
        self.n_units = held.n_units
        self.most_rows = None if self._whose is None or table.limit is None else table.limit.rows
        """How many rows of a person count by the limit of the table."""

    @property
    def like(self) -> list[Tensor]:
        """One invented row, and a target that says nothing. Public."""
        return [torch.zeros(sum(column.size for column in self._columns)), torch.zeros(())]

    @property
    def named(self) -> bool:
        """Whether a column says whose rows they are. Public."""
        return self._whose is not None

    def check_home(self, notary: object) -> None:
        """Refuse a table of another vault: what is charged here would not protect the people of that one."""
        if notary is not self._notary:
            raise Refused(
                f"{self._name!r} is a table of another vault; nothing was read and nothing was spent. Train with the "
                "vault that it was declared in."
            )

    def opened(self) -> OpenedRows:
        """Read the columns, and make cells of each row that counts, by itself. Sensitive: all."""
        names = [column.name for column in self._columns]
        found = columns_in_memory(self._source, names if self._whose is None else [*names, self._whose])
        places = np.stack([_cells(column, found[column.name]) for column in self._columns], axis=1)
        counted = (places >= 0).all(axis=1)
        places = places[counted]
        ids = None if self._whose is None else listed_ids(found[self._whose])[counted]
        if ids is not None:  # engines give rows in any order; a person's rows lie in one that only they decide
            order = np.lexsort(tuple(places.T))
            places, ids = places[order], ids[order]
        starts = np.cumsum([0, *(column.size for column in self._columns)])
        rows = np.zeros((len(places), int(starts[-1])), dtype=np.float32)
        np.put_along_axis(rows, places + starts[:-1], 1, axis=1)
        return OpenedRows((torch.from_numpy(rows),), torch.zeros(len(rows)), len(rows), ids)


def _check_type(column: SyntheticColumn, found: Type | None) -> None:
    if found is None:
        raise InvalidInput(f"there is no column {column.name!r} in the rows; nothing was read and nothing was spent.")
    known = LISTED if not isinstance(column, BinnedColumn) else (Type.DATE,) if column.days else NUMBERS
    if found not in known:
        raise NotDeclared(
            f"column {column.name!r} needs keys of texts, whole numbers, truth values or dates, or bounds of numbers "
            "or dates, to become cells; nothing was read and nothing was spent. Leave it out."
        )


def _cells(column: SyntheticColumn, rows: Frame) -> Array:
    """The cell of each value, −1 where there is none. Sensitive."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, BinnedColumn):
        if column.days:
            values = (
                np.asarray(pc.fill_null(rows.cast(pa.date32()).cast(pa.int32()).cast(pa.float64()), np.nan)) + EPOCH
            )
        else:
            values = np.asarray(pc.fill_null(rows.cast(pa.float64(), safe=False), np.nan))
        inner = np.array([float(edge) for edge in column.edges[1:-1]])
        places = np.where(np.isnan(values), -1, np.searchsorted(inner, values, side="right"))
    else:
        listed = pa.array(column.values).cast(rows.type, safe=False)
        places = np.asarray(pc.fill_null(pc.index_in(rows, value_set=listed), -1))
    last = column.size - 1
    return np.where(places < 0, last if column.missing else -1, places).astype(np.int64)
