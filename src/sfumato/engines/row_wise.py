"""Row-wise: each row of a source comes from one stored row, and nothing that others have stored can change it.

All guarantees are about what one unit's rows can do to the numbers. A column that was computed from many rows (by a
window, an aggregate, a join) lets one person change the rows of everybody, and the noise would be too small. So sources
are taken by lists of what is known to be row-wise: a stored table, and steps that look at one row at a time. Whatever
is not shown to be row-wise is refused, unless the steward declares it as derived, which the certificate then states.
"""

from sfumato.errors import InvalidInput, Refused

__all__ = ["check_derived", "not_row_wise", "not_the_stored_unit"]


def check_derived(derived: object) -> None:
    """Refuse what is neither the steward's word nor its absence.

    >>> check_derived("no")
    Traceback (most recent call last):
    sfumato.errors.InvalidInput: derived is True or False; nothing was done.
    """
    if not isinstance(derived, bool):
        raise InvalidInput("derived is True or False; nothing was done.")


def not_row_wise(label: str, why: str) -> Refused:
    """The refusal of a source whose rows may depend on the rows of several persons."""
    return Refused(
        f"{label} {why}, and cannot be shown to be row-wise: one person could change the rows of others, and the noise "
        "would not cover that. Nothing was read and nothing was spent. Give the stored table with row-wise steps on it "
        "(select, filter, computed columns). If each row depends on the rows of one protected unit only, the steward "
        "may declare derived=True, which certificates then state."
    )


def not_the_stored_unit(label: str, column: str) -> Refused:
    """The refusal of a source in which a step decides what tells units apart: one person could become many."""
    return Refused(
        f"the column {column!r}, which identifies the protected units, is not the stored column of that name in "
        f"{label}: a step computed or renamed it, one person could count as many, and no limit would hold. Nothing was "
        "read and nothing was spent. Leave the stored column as it is, and declare the unit by its name. If the column "
        "gives all rows of one protected unit one value of their own, the steward may declare derived=True, which "
        "certificates then state."
    )
