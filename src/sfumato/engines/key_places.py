"""Where a row's key stands among the public ones, worked out row by row: a look-up in a list of them costs a join.

Which way is taken depends on the question and the declared keys alone, never on a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import TYPE_CHECKING

from sfumato.engines.compile import constants_of, place_of
from sfumato.engines.expressions import CaseWhen, Cut, Value
from sfumato.engines.operands import whole

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from sfumato.engines.dialect import Dialect

__all__ = ["KeyValue", "is_placed", "place"]

KeyValue = str | int | bool | date
FEW = 4  # beyond it, comparing texts with each key takes longer than the join; measured with 10^5 and 10^6 rows


def is_placed(value: Value | None, values: Sequence[KeyValue], dialect: Dialect) -> bool:
    """Whether an engine is to work a key's place out; ``value`` computes the key, if it is no column.

    So it is where the key is one of several constants anyway (a case, a cut), of whole numbers in a row, and of few
    keys. A null character has no place in the text of a question.
    """
    if not dialect.places_keys:
        return False
    if constants_of(value) is not None or _in_a_row(values):
        return True
    return len(values) <= FEW and not any(isinstance(key, str) and "\0" in key for key in values)


def place(value: Value | None, key: Callable[[], ir.Value], values: Sequence[KeyValue], table: ir.Table) -> ir.Value:
    """The place of a row's key in ``values``, from 0; null where it has none. ``key`` makes the key itself."""
    import ibis

    none = ibis.null("int64")
    constants = constants_of(value)
    if constants is not None and isinstance(value, CaseWhen | Cut):
        at = {(type(each), each): whole(number) for number, each in enumerate(values)}
        return place_of(value, [at.get((type(each), each), none) for each in constants], table)
    found = key()
    if _in_a_row(values):
        first, last = whole(int(values[0])), whole(int(values[-1]))  # type: ignore[arg-type]  # whole numbers, as was asked
        return ibis.cases(((found >= first) & (found <= last), found.cast("int64") - first), else_=none)
    listed = (whole(each) if type(each) is int else ibis.literal(each) for each in values)
    return ibis.cases(*((found == each, whole(number)) for number, each in enumerate(listed)), else_=none)


def _in_a_row(values: Sequence[KeyValue]) -> bool:
    """Whether keys are whole numbers that follow each other: one subtraction places them."""
    first = values[0]
    return type(first) is int and len(values) > 1 and list(values) == list(range(first, first + len(values)))
