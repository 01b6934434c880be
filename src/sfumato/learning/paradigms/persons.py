"""Who is one person: how an id is written, and how many persons one unit of a vault is, where every person counts once.

One rule for all ways of learning: a limit on one person holds only where all parts of the code agree on who that is.
"""

from collections.abc import Iterable
from numbers import Integral

from sfumato.core.interrupts import FAILED, attempt
from sfumato.core.limits import Limit
from sfumato.core.units import Family, Record, Unit, User, describe
from sfumato.errors import InvalidInput, Unsupported

__all__ = ["Id", "canonical_id", "canonical_ids", "persons", "whose"]

Id = str | int | bytes
"""Who somebody is, in the one form in which ids are compared: equal if and only if they are one person."""

WHOLE = 2**53  # floats of this size and beyond are not told apart from their neighbours
NULLS = ("NAType", "NaTType", "MaskedConstant")  # of libraries that need not be there


def canonical_id(value: object) -> Id | None:
    """An id in the one form that identifies persons; None where a record names nobody.

    Text and bytes are themselves, whole numbers of any type are one number (so are ``True``, ``1.0`` and a tensor of
    one number), and a UUID is its text; the text "1" and the number 1 are two persons. None, NaN, NA, NaT are nobody.
    Anything else is refused, without naming it: a part of a number, a list, an object with an identity of its
    own. Call it before anything is charged.

    Guarantee: a function of the value alone, never of which object holds it; equal ids give equal forms.

    >>> import numpy as np
    >>> [canonical_id(value) for value in (7, np.int8(7), 7.0, np.array(7), "7", b"7", float("nan"), None)]
    [7, 7, 7, 7, '7', b'7', None, None]
    """
    plain = _plain(value)
    if plain is None or type(plain).__name__ in NULLS:
        return None
    if isinstance(plain, str):
        return str.__str__(plain)
    if isinstance(plain, bytes | bytearray | memoryview):
        return bytes(plain)
    if isinstance(plain, Integral):
        return int(plain)
    if isinstance(plain, float):
        if plain != plain:
            return None
        if plain.is_integer():
            return int(plain)
    if type(plain).__name__ == "UUID" and type(plain).__module__ == "uuid":
        return str(plain)
    raise InvalidInput(
        "an id is text, bytes or a whole number, one for each record, and null where nobody is known; nothing was "
        "done. Write other ids as text first."
    )


def canonical_ids(ids: Iterable[object]) -> list[Id | None]:
    """Public ids, such as those of a roster, each as :func:`canonical_id` writes it. For ids of data: :func:`whose`.

    >>> canonical_ids(["ann", None, 3.0])
    ['ann', None, 3]
    """
    if isinstance(ids, str | bytes):
        raise InvalidInput("ids are one for each record, and this is one text; nothing was done.")
    return [canonical_id(each) for each in (ids.tolist() if hasattr(ids, "tolist") else ids)]


def whose(value: object) -> Id | None:
    """Who an id of the data is, by itself; None for nobody. Never refused: a refusal would reveal something about one
    record.

    Floats beyond exact whole numbers, and anything odd, are nobody. Sensitive: the result.

    >>> [whose(value) for value in ("ann", 3.0, 0.5, 1e300, object())]
    ['ann', 3, None, None, None]
    """

    def read() -> Id | None:
        return None if isinstance(value, float) and abs(value) >= WHOLE else canonical_id(value)

    if type(value) in (str, bytes, int, type(None)):
        return value  # type: ignore[return-value]  # mypy does not narrow by the exact type
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) < WHOLE else None
    found = attempt(read)
    return None if found is FAILED else found


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


def _plain(value: object) -> object:
    """What a scalar of an array library holds; anything else as it is."""
    if type(value).__name__ in NULLS:
        return None
    if hasattr(value, "as_py"):
        return value.as_py()
    if hasattr(value, "item") and getattr(value, "shape", None) == () and not isinstance(value, str | bytes):
        return value.item()
    return value
