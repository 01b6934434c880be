"""How many persons one unit of a vault is, where every person counts once."""

from sfumato.core.limits import Limit
from sfumato.core.units import Family, Record, Unit, User, describe
from sfumato.errors import InvalidInput, Unsupported

__all__ = ["persons"]


def persons(unit: Unit, limit: Limit | None) -> int:
    """How many persons, or records, come, go or are exchanged at once.

    Assumes: of a person no more counts than the query says, so that there is nothing left for a limit to bound.

    >>> from sfumato.core.units import family, record
    >>> persons(record(relation="replace"), None), persons(family(3, "id", relation="replace"), None)
    (1, 3)
    """
    if limit is not None:
        raise InvalidInput("of each person one record, or one teacher, counts here; nothing was done. Give no limit.")
    match unit:
        case Record() | User():
            return 1
        case Family():
            return unit.size
    raise Unsupported(
        f"examples are of records, users or families, and the unit is {describe(unit)}; nothing was done. "
        "Open a vault for sf.user(…) or sf.record(…)."
    )
