"""Limits: how much of each person counts."""

from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.exact import natural

__all__ = ["Limit"]

MOST = 2**31  # so that what an engine adds up stays within 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """At most ``groups`` groups of a person count, and at most ``rows_per_group`` rows in each.

    Guarantee: enforced by the engine for every output grouping: a person's total in a group is clipped first, then
    the groups are chosen from that person's own data and a secret key alone.

    >>> Limit(groups=3, rows_per_group=5).rows
    15
    """

    KIND: ClassVar[str] = "limit"
    VERSION: ClassVar[int] = 1
    groups: int
    rows_per_group: int

    def __post_init__(self) -> None:
        natural(self.groups, "groups", most=MOST)
        natural(self.rows_per_group, "rows_per_group", most=MOST)

    @property
    def rows(self) -> int:
        """The most rows of one person that count in one answer."""
        return self.groups * self.rows_per_group
