"""Tables of the vault as units of training: columns by what was declared of them, persons by the vault's unit."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sfumato.core.foreign import Array, Frame
from sfumato.core.units import User
from sfumato.engines.edge_lists import columns_in_memory
from sfumato.engines.expressions import Type
from sfumato.errors import InvalidInput, Refused
from sfumato.learning.features import scaled
from sfumato.learning.given_rows import listed_ids
from sfumato.learning.laid import OpenedRows
from sfumato.tables.feature_columns import FeatureColumn, feature_column
from sfumato.tables.held_rows import held_rows
from sfumato.tables.table import Table

__all__ = ["VaultRows"]


class VaultRows:
    """The rows of a table of the vault as rows of units; see :meth:`Units.of_table`.

    Guarantee: no row is looked at before :meth:`opened`, which a run calls once it was charged. Sensitive: what that
    gives.
    """

    def __init__(self, table: Table, *, inputs: Sequence[str], targets: str) -> None:
        held = held_rows(table)
        if held is None:
            raise InvalidInput(
                "of_table takes a table of the vault as it was declared, without where, join, group_by or another "
                "limit; nothing was read and nothing was spent."
            )
        if isinstance(inputs, str) or not inputs:
            raise InvalidInput("inputs are names of columns, such as ['age', 'sex']; nothing was read or spent.")
        if held.source.derived:
            raise Refused(
                f"{table.dataset.name!r} was declared with derived=True, which certificates of training cannot say; "
                "nothing was read and nothing was spent. Declare the stored rows."
            )
        self._name, self._source, self._notary = table.dataset.name, held.source, held.notary
        unit, types = held.unit, self._source.columns()
        self._whose = unit.column if isinstance(unit, User) else None
        self._columns = [_Column.of(name, table, types, as_class=False) for name in inputs]
        self._target = _Column.of(targets, table, types, as_class=True)
        self.n_units = held.n_units
        self.most_rows = None if self._whose is None or table.limit is None else table.limit.rows
        """How many rows of a person count by the limit of the table."""

    @property
    def like(self) -> list[Tensor]:
        """One invented row. Public."""
        width = sum(each.width for each in self._columns)
        return [torch.zeros(width), torch.zeros((), dtype=torch.int64 if self._target.keys else torch.float32)]

    @property
    def inputs(self) -> tuple[FeatureColumn, ...]:
        """What inputs are made of. Public."""
        return tuple(each.facts for each in self._columns)

    @property
    def target(self) -> FeatureColumn:
        """What the targets are. Public."""
        return self._target.facts

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
        """Read the columns, and make numbers of each row that counts, by itself. Sensitive: all."""
        names = [*(each.name for each in self._columns), self._target.name]
        found = columns_in_memory(self._source, names if self._whose is None else [*names, self._whose])
        inputs = np.concatenate([each.numbers(found) for each in self._columns], axis=1)
        targets, counted = self._target.targets(found)
        ids = None if self._whose is None else listed_ids(found[self._whose])[counted]
        inputs, targets = inputs[counted], targets[counted]
        if ids is not None:  # engines give rows in any order; a person's rows lie in one that only they decide
            order = np.lexsort((targets, *inputs.T))
            inputs, targets, ids = inputs[order], targets[order], ids[order]
        return OpenedRows((torch.from_numpy(inputs),), torch.from_numpy(targets), len(targets), ids)


class _Column:
    """A column, and the public facts by which it becomes numbers."""

    def __init__(self, facts: FeatureColumn) -> None:
        self.facts, self.name, self.pair, self.keys = facts, facts.name, facts.pair, facts.keys
        self.width = facts.width

    @classmethod
    def of(cls, name: str, table: Table, types: dict[str, Type], *, as_class: bool) -> "_Column":
        if name not in types:
            raise InvalidInput(
                f"{table.dataset.name!r} has no column {name!r}; nothing was read and nothing was spent. It has "
                f"{', '.join(sorted(types))}."
            )
        pair, keys = table.bounds.get(name), table.keys.get(name)
        return cls(feature_column(name, types[name], bounds=pair, keys=keys, as_class=as_class))

    def numbers(self, rows: Frame) -> Array:
        """The column as inputs, one row each. Sensitive."""
        if self.pair is not None:
            return np.nan_to_num(scaled(_floats(rows[self.name]), self.pair), nan=0.0).astype(np.float32)[:, None]
        return (self._places(rows)[:, None] == np.arange(self.width)).astype(np.float32)

    def targets(self, rows: Frame) -> tuple[Array, Array]:
        """The column as targets, and which rows have one. Sensitive."""
        if self.pair is not None:
            values = np.clip(_floats(rows[self.name]), *self.pair).astype(np.float32)
            return values, ~np.isnan(values)
        places = self._places(rows)
        return places, places >= 0

    def _places(self, rows: Frame) -> Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        column = rows[self.name]
        found = pc.fill_null(pc.index_in(column, value_set=pa.array(self.keys, type=column.type)), -1)
        places = np.asarray(found).astype(np.int64)
        return np.where(places < 0, len(self.keys), places) if self.facts.rest else places


def _floats(column: Frame) -> Array:
    """A column of numbers as floats, each by itself; a missing one is NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), float("nan")), dtype=np.float64)
