"""The refusal of several rows a person: studies take rows for an independent sample."""

from typing import TYPE_CHECKING

from sfumato.core.units import Record
from sfumato.errors import Refused
from sfumato.tables.persons import is_per_person

if TYPE_CHECKING:
    from sfumato.tables.table import Table

__all__ = ["check_independent"]


def check_independent(table: "Table", study: str, *, cells: bool = True) -> None:
    """Refuse a table of which several rows of a person can count, in one group or, with ``cells``, in all together.

    Where each row is protected by itself rows are taken for persons. Without a limit, where one is needed, the question
    itself is refused.
    """
    if isinstance(getattr(table._gate, "unit", None), Record) or is_per_person(table.joins) or table.limit is None:
        return
    most = table.limit.rows if cells else table.limit.rows_per_group
    if most == 1:
        return
    raise Refused(
        f"{study} takes one row of each person, and here a person can have several rows, up to {most}: rows of one "
        "person depend on each other, and standard errors would be too small. Nothing was read and nothing was spent. "
        "Make one row a person first, table.per_person(…), or count one row of each, "
        "table.with_limit(sf.Limit(groups=1, rows_per_group=1))."
    )
