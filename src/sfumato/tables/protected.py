"""Who is protected where a table is asked."""

from sfumato.core.units import Unit
from sfumato.tables.table import Table

__all__ = ["unit_of"]


def unit_of(table: Table) -> Unit | None:
    """The unit of the vault that a table was declared in; None where the gate is that of something else."""
    unit: Unit | None = getattr(table._gate, "unit", None)
    return unit
