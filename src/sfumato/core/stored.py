"""Stored data by what it is: whatever it is called, it is closed where it made an engine fail."""

from dataclasses import dataclass
from itertools import count

__all__ = ["Stored", "moment"]

_moments = count(1)


def moment() -> int:
    """A number that is larger each time, in this process.

    >>> moment() < moment()
    True
    """
    return next(_moments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What the rows of a dataset are known by, and the moment at which it was declared.

    ``names`` are digests of where rows lie: of files, of tables in a database. Public: no row was read for them. Two
    datasets with a name in common read the same rows, or some of them. What was computed or copied has other names.
    """

    names: frozenset[str]
    since: int
