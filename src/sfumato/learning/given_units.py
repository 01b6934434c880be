"""What may be given as data to learn from: units, with their public facts; anything else with the way to make them."""

from sfumato.errors import InvalidInput
from sfumato.learning.dataset_rows import WRAP, refuse_dataset
from sfumato.learning.stored_rows import is_mapped
from sfumato.learning.table_units import TableUnits
from sfumato.learning.units import Units
from sfumato.tables.table import Table

__all__ = ["check_units"]


def check_units(data: object) -> None:
    """Refuse what is no units of this library's own classes; reads nothing, and says what to give instead.

    >>> import torch
    >>> from torch.utils.data import TensorDataset
    >>> rows = TensorDataset(torch.zeros(3, 2), torch.zeros(3))
    >>> check_units(Units.of_dataset(rows, n_units=3, name="visits", version="1"))
    """
    if type(data) in (Units, TableUnits):
        return
    refuse_dataset(data)
    if isinstance(data, Table):
        raise InvalidInput(
            "a table needs to say what is learned from what; nothing was read and nothing was spent. Say "
            "data=learning.Units.of_table(table, inputs=[…], targets=…, n_units=…)."
        )
    columns = hasattr(data, "iloc") or hasattr(data, "dtype") or is_mapped(data)
    if not columns and hasattr(type(data), "__getitem__") and not isinstance(data, list | tuple | dict | str | bytes):
        raise InvalidInput(WRAP)
    raise InvalidInput("data must be learning.Units(inputs, targets, n_units=…, name=…); nothing was done.")
