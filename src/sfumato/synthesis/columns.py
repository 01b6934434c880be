"""Columns of synthetic rows: which cells they have, and the values that a cell stands for. All of it is public."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.synthesis.measured import Codes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BinnedColumn", "ListedColumn", "SyntheticColumn", "equal_bins", "in_order"]

EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedColumn:
    """A column whose values are a public list; with ``missing`` there is one cell more, for no value."""

    name: str
    values: tuple[str | int | bool | date, ...]
    missing: bool = False

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.values) + self.missing

    def arrow(self, codes: Codes, drawn: NDArray[np.float64] | None = None) -> "pa.Array":
        """The values of cells."""
        import pyarrow as pa

        del drawn
        return pa.array([*self.values, None]).take(pa.array(codes))


@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedColumn:
    """A column of numbers or days that is cut at public edges; values are drawn inside a bin, each alike.

    A bin holds its lower edge and not its upper one, but for the last, which holds both. Days are held as ordinals.

    >>> column = BinnedColumn(name="age", edges=(Fraction(0), Fraction(18), Fraction(120)), whole=True)
    >>> column.ends(0), column.ends(1)
    ((0.0, 17.0), (18.0, 120.0))
    """

    name: str
    edges: tuple[Fraction, ...]
    whole: bool
    days: bool = False
    missing: bool = False

    @property
    def long_bin(self) -> bool:
        """Whether one bin of several covers more than half of the range."""
        widths = [high - low for low, high in zip(self.edges, self.edges[1:], strict=False)]
        return len(widths) > 2 and 2 * max(widths) > self.edges[-1] - self.edges[0]

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.bins + self.missing

    def ends(self, cell: int) -> tuple[float, float]:
        """The least and the greatest value of a bin."""
        low, high = self.edges[cell], self.edges[cell + 1]
        if not self.whole:
            return float(low), float(high)
        return float(ceil(low)), float(high // 1 if cell == self.bins - 1 else ceil(high) - 1)

    def drawn(self, codes: Codes, random: np.random.Generator) -> NDArray[np.float64]:
        """A value inside the bin of each row; anything where there is none."""
        ends = np.array([*(self.ends(cell) for cell in range(self.bins)), (0.0, 0.0)])
        low, high = ends[codes].T
        wide = high - low + (1 if self.whole else 0)
        found: NDArray[np.float64] = low + random.random(len(codes)) * wide
        return np.minimum(np.floor(found), high) if self.whole else found

    def arrow(self, codes: Codes, drawn: NDArray[np.float64] | None = None) -> "pa.Array":
        """The values as Arrow has them; missing ones are null."""
        import pyarrow as pa

        assert drawn is not None  # noqa: S101 - what drawn(...) gave
        none = codes == self.bins
        if self.days:
            return pa.array(drawn.astype(np.int32) - EPOCH, mask=none).cast(pa.date32())
        return pa.array(drawn.astype(np.int64) if self.whole else drawn, mask=none)


SyntheticColumn = ListedColumn | BinnedColumn


def equal_bins(low: Fraction, high: Fraction, bins: int, *, whole: bool) -> tuple[Fraction, ...]:
    """Edges of bins of one width, of whole numbers as nearly as can be; never an empty bin.

    >>> [int(edge) for edge in equal_bins(Fraction(0), Fraction(9), 4, whole=True)]
    [0, 3, 5, 8, 9]
    """
    if not whole:
        return tuple(low + (high - low) * place / bins for place in range(bins + 1))
    number = int(high - low) + 1
    bins = min(bins, number)
    return (*(low + ceil(Fraction(number * place, bins)) for place in range(bins)), high)


def in_order(
    columns: Sequence[SyntheticColumn],
    codes: Codes,
    values: dict[int, NDArray[np.float64]],
    rules: Sequence[tuple[int, int]],
) -> None:
    """Let the first value of each rule be at least the second, both inside their bins; in place.

    The bins of every row let it be so already. Where the smaller value is beyond the bin of the larger, it is moved to
    the end of that bin, and then the larger one to it. A rule may undo another one's order, so they are gone through as
    often as there are rules.
    """
    for _ in rules:
        for larger, smaller in rules:
            one, two = columns[larger], columns[smaller]
            if not isinstance(one, BinnedColumn) or not isinstance(two, BinnedColumn):
                continue
            known = (codes[:, larger] < one.bins) & (codes[:, smaller] < two.bins)
            highest = np.array([one.ends(cell)[1] for cell in range(one.bins)])[codes[known, larger]]
            values[smaller][known] = np.minimum(values[smaller][known], highest)
            values[larger][known] = np.maximum(values[larger][known], values[smaller][known])
