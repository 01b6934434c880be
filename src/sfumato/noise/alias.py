"""An alias table in whole numbers: one word a draw, and a residual outcome for what words cannot express.

The 2^width words are dealt out among the outcomes: outcome r gets ``units[r]`` of them, at most its share of the
exact law, and the words left over are the residual outcome. Whoever draws it makes the law exact (columns.py).
Proof: docs/proofs/exact_samplers.md
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.noise.words import WordArray

__all__ = ["RESIDUAL", "AliasTable"]

RESIDUAL = -1


@dataclass(frozen=True, slots=True, eq=False)
class AliasTable:
    """Half columns of words, each cut in two by a threshold; the cut side of a word says which slot it falls into.

    With g = 2^shift words to a half column: a word h·g + r of half column h falls into slot 2⌊h/2⌋ + [r ≥ cut(h)], and
    ``steps[h]`` is such that (word + steps[h]) ⟫ shift is that slot. No comparison and no branch looks at a word.

    >>> table = AliasTable.of([3, 9], width=4)
    >>> table.residual, table.counted()
    (4, {-1: 4, 0: 3, 1: 9})
    """

    width: int
    shift: int
    residual: int
    steps: WordArray
    outcomes: "np.ndarray[tuple[int], np.dtype[np.int64]]"

    @classmethod
    def of(cls, units: Sequence[int], *, width: int) -> "AliasTable":
        """Deal the words out: ``units[r]`` for outcome r, the rest for the residual outcome."""
        residual = (1 << width) - sum(units)
        if residual < 0 or min(units, default=0) < 0:
            raise InvalidInput(f"{sum(units)} units were asked of the 2^{width} words there are; nothing was built.")
        left = {r: n for r, n in enumerate(units) if n} | ({RESIDUAL: residual} if residual else {})
        columns = max(2, 1 << (len(left) - 1).bit_length())
        if columns > 1 << (width - 1):
            raise InvalidInput(f"{len(left)} outcomes need more than {width}-bit words; nothing was built.")
        share = (1 << width) // columns
        half = share // 2
        steps, outcomes = [], []
        for own, cut, other in _columns(left, columns, share):
            first = min(cut, half)
            steps += [half - first, first - cut]
            outcomes += [own, other]
        return cls(
            width=width,
            shift=half.bit_length() - 1,
            residual=residual,
            steps=np.array([step % (1 << 64) for step in steps], dtype=np.uint64),
            outcomes=np.array(outcomes, dtype=np.int64),
        )

    def slots(self, words: WordArray, out: WordArray, scratch: WordArray) -> None:
        """Write the slot of each word to ``out``; ``outcomes[slot]`` is what was drawn."""
        shift = np.uint64(self.shift)
        np.right_shift(words, shift, out=out)
        self.steps.take(out.view(np.int64), out=scratch, mode="clip")
        np.add(words, scratch, out=scratch)
        np.right_shift(scratch, shift, out=out)

    def counted(self) -> dict[int, int]:
        """Count the words of each outcome from the table itself, as ``slots`` reads it."""
        half = 1 << self.shift
        words: dict[int, int] = {}
        for h, step in enumerate(self.steps.tolist()):
            cut = (half - step if h % 2 == 0 else -step) % (1 << 64)
            for slot, count in ((h & ~1, cut), (h | 1, half - cut)):
                outcome = int(self.outcomes[slot])
                words[outcome] = words.get(outcome, 0) + count
        return {outcome: count for outcome, count in sorted(words.items()) if count}


def _columns(left: dict[int, int], columns: int, share: int) -> list[tuple[int, int, int]]:
    """Fill each column with ``cut`` words of one outcome and ``share − cut`` of another (Walker and Vose)."""
    small = [(r, n) for r, n in left.items() if n < share]
    large = [(r, n) for r, n in left.items() if n >= share]
    small += [(large[0][0], 0)] * (columns - len(left))
    filled = []
    while small:
        own, cut = small.pop()
        other, n = large.pop()
        filled.append((own, cut, other))
        n -= share - cut
        (small if n < share else large).append((other, n))
    return filled + [(r, share, r) for r, _ in large]
