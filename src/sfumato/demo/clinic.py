"""A very small table in memory, for examples: six visits of four invented patients."""

import sfumato as sf
from sfumato.tables.table import Table

__all__ = ["visits"]


def visits() -> Table:
    """The visits, declared in a vault of their own with ε = 10.

    >>> visits().count().preview(epsilon=1).margin
    6
    """
    import pyarrow as pa

    vault = sf.Vault(unit=sf.user("patient", relation="add/remove"), budget=sf.Budget(epsilon=10), name="clinic")
    rows = pa.table(
        {
            "patient": [1, 1, 2, 3, 3, 4],
            "hospital": ["A", "B", "A", "B", "B", "A"],
            "sex": ["F", "F", "M", "F", "F", "M"],
            "age": [34, 34, 71, 58, 58, 19],
            "sbp": [118.0, 121.5, 140.0, None, 133.0, 109.0],
        }
    )
    return vault.table(
        rows,
        name="visits",
        version="1",
        limit=sf.Limit(groups=1, rows_per_group=2),
        keys={"sex": ["F", "M"], "hospital": ["A", "B"]},
        bounds={"age": (0, 120), "sbp": (70, 240)},
    )
