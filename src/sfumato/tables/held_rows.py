"""The rows behind a table, for what learns from rows and not from counts: found by the table and its vault alone."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from sfumato.core.data_kind import SomeStore
from sfumato.core.query import Dataset
from sfumato.core.question import Gate
from sfumato.core.units import Unit
from sfumato.engines.sources import Source
from sfumato.gate.notary import Notary
from sfumato.tables.table import Table

__all__ = ["HeldRows", "held_rows", "hold_rows"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class HeldRows:
    """Where the rows of a declared table are, and whose vault charges for them. Sensitive: what ``source`` opens.

    ``store`` answers questions about it, for whoever charges.
    """

    source: Source
    n_units: int | None
    unit: Unit
    notary: Notary
    store: SomeStore


_HELD: "WeakKeyDictionary[Gate, dict[Dataset, HeldRows]]" = WeakKeyDictionary()


def hold_rows(gate: Gate, dataset: Dataset, rows: HeldRows) -> None:
    """Remember the rows of a table for as long as there is its vault."""
    _HELD.setdefault(gate, {})[dataset] = rows


def held_rows(table: object) -> HeldRows | None:
    """The rows of a table as it was declared; None where it is another one, or no table. Reads nothing.

    Whoever opens the source charges first.

    >>> import pyarrow as pa, sfumato as sf
    >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
    >>> table = vault.table(pa.table({"age": [40]}), name="stays", version="1", bounds={"age": (0, 100)})
    >>> held_rows(table) is None, held_rows(table.where("age > 3")) is None
    (False, True)
    """
    if not isinstance(table, Table) or not table._as_declared:
        return None
    return _HELD.get(table._gate, {}).get(table.dataset)
