"""Codes below groups: a column with thousands of values is fitted by its groups, and rows get codes of their groups.

How many rows have each code is measured as one table. Where the noise is as large as a count, the count says nothing:
such codes are taken together, and what is left of their group is theirs. A function of the release alone.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.synthesis.columns import ListedColumn
from sfumato.synthesis.measured import Codes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CodeLevel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLevel:
    """The codes of a column, and the group of each, as its place among the groups; all of it is public.

    ``rest`` stands for codes that are too rare to be told from noise, and for codes that are not listed; without it,
    they share what is left of their group alike. ``open`` says of each group whether it has codes that are not listed.

    >>> level = CodeLevel(name="code", group=0, codes=("a1", "a2", "b1"), within=(0, 0, 1), open=(False, True))
    >>> level.shares(np.array([60.0, 2.0, 40.0]), 15.0, np.array([100.0, 50.0])).round(2).tolist()
    [[0.6, 0.0, 0.0, 0.4], [0.0, 0.0, 0.8, 0.2]]
    """

    name: str
    group: int
    """Which column has the groups."""
    codes: tuple[str | int | bool, ...]
    within: tuple[int, ...]
    open: tuple[bool, ...]
    rest: str | None = "other"

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.open)

    @property
    def cells(self) -> int:
        """The cells of its table: the codes, and one for all that is not listed."""
        return len(self.codes) + 1

    def listed(self, *, missing: bool) -> ListedColumn:
        """The column as its reader meets it: the codes, what stands for the rest, and whether values may be missing."""
        return ListedColumn(
            name=self.name, values=(*self.codes, *(() if self.rest is None else (self.rest,))), missing=missing
        )

    def shares(
        self, counts: NDArray[np.float64], threshold: float, expected: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """For each group the shares of all codes in it, and last of the rest.

        ``counts`` are the noisy rows of each code, ``expected`` those of each group. A code is told apart from the
        ``threshold`` on, which is where noise alone hardly gets.
        """
        within = np.array(self.within)
        found = np.zeros((self.groups, self.cells))
        for group in range(self.groups):
            own = np.flatnonzero(within == group)
            told = own[counts[own] >= threshold]
            untold = own[counts[own] < threshold]
            left = max(0.0, float(expected[group]) - float(counts[told].sum()))
            found[group, told] = counts[told]
            if self.rest is not None and (len(untold) or self.open[group]):
                found[group, -1] = left
            elif len(untold):
                found[group, untold] = left / len(untold)
            if found[group].sum() <= 0:  # nothing is known of it
                alike = np.array([self.cells - 1]) if self.rest is not None else own
                found[group, alike] = 1
            found[group] /= found[group].sum()
        return found

    def drawn(self, groups: Codes, shares: NDArray[np.float64], random: np.random.Generator) -> "pa.Array":
        """A code for each row, of its group; as many rows have each as its share says, up to one."""
        import pyarrow as pa

        found = np.full(len(groups), self.cells, dtype=np.int64)
        for group in range(self.groups):
            rows = np.flatnonzero(groups == group)
            if not len(rows):
                continue
            ends = np.rint(np.cumsum(shares[group]) * len(rows)).astype(np.int64)
            ends[-1] = len(rows)
            places = np.repeat(np.arange(self.cells), np.diff(np.minimum(ends, len(rows)), prepend=0))
            found[rows] = random.permutation(places)
        values = [*self.codes, self.rest, None]  # last, for rows of no group
        return pa.array(values).take(pa.array(found))
