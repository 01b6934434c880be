"""Tables of whole numbers that nobody's data stand behind, in a vault for an audit."""

from typing import TYPE_CHECKING, Any  # what is declared is named by whoever attacks

if TYPE_CHECKING:
    from sfumato.tables.table import Table
    from sfumato.vault import Vault

__all__ = ["invented_table"]


def invented_table(vault: "Vault", rows: dict[str, list[int]], **declared: Any) -> "Table":
    """Register invented columns in a vault, with what is declared of them.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="audit")
    >>> invented_table(vault, {"x": [1, 2]}, bounds={"x": (0, 9)}).sum("x").release(epsilon=1).charged.epsilon
    Fraction(1, 1)
    """
    import pyarrow as pa

    data = pa.table({name: pa.array(column, pa.int64()) for name, column in rows.items()})
    return vault.table(data, name="invented", version="1", **declared)
