"""Values that could not be read: a condition, asked and charged like any other."""

from sfumato.engines.expressions import Expression, col
from sfumato.engines.sources import unreadable_name

__all__ = ["unreadable"]


def unreadable(column: str) -> Expression:
    """The rows in which a value of a file of text is there and could not be read as its schema declares it.

    Such a value is missing everywhere else. How many there are is private, and is asked for like any count. Columns of
    text can all be read, and so can files that state their types: there is no such condition for them.

    >>> unreadable("sbp").KIND
    'expression.compare'
    """
    return col(unreadable_name(column)) == True  # noqa: E712 - makes an expression
