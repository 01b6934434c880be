"""Attacks on ladders: the exact laws of the wedge count of two small neighbours among many nodes."""

from sfumato.audit.verdict import Attack
from sfumato.core.foreign import Array
from sfumato.core.ladder_widths import Rungs
from sfumato.mechanisms.ladder import Ladder, Ladders

__all__ = ["climbed", "wedges", "wedges_twice"]

REACH = 30_000


def climbed(count: int, rungs: Rungs, rate: float, *, reach: int = REACH) -> Array:
    """The law of what a ladder draws, exp(−rate·t) for each number on rung t, for numbers up to ``reach``.

    >>> from sfumato.core.ladder_widths import WidthSteps
    >>> climbed(0, Rungs.of([WidthSteps(0, 1, 1, 1)]), 1.0, reach=1).round(3).tolist()
    [0.212, 0.576, 0.212]
    """
    import numpy as np

    ends = [0]
    while ends[-1] < reach + abs(count):
        ends.append(rungs.reach(len(ends)))
    rung = np.searchsorted(ends, np.abs(np.arange(-reach, reach + 1) - count))
    weights = np.exp(-rate * rung)
    return weights / weights.sum()


def wedges(name: str, ladder: Ladder, *, rate: float | None = None, still: bool = False) -> Attack:
    """One edge (no wedge, two nodes have one other edge), and a second beside it (one wedge, two other edges).

    ``rate`` is that of a broken one; with ``still`` its rungs stay as wide as the first.
    """
    given = float(ladder.epsilon) / 2 if rate is None else rate

    def law(count: int, total: int) -> Array:
        rungs, _ = ladder.bounds(total, total)
        return climbed(count, Rungs.of(rungs.runs[:1]) if still else rungs, given)

    return Attack(
        name=name,
        kind=Ladder.KIND,
        epsilon=float(ladder.epsilon),
        delta=0.0,
        here=lambda _: law(0, 1),
        there=lambda _: law(1, 2),
        exact=True,
    )


def wedges_twice(name: str, ladders: Ladders, *, epsilon: float) -> Attack:
    """The same graphs asked twice: both answers together."""

    def law(count: int, total: int) -> Array:
        import numpy as np

        first, second = (
            climbed(count, part.bounds(total, total)[0], float(part.epsilon) / 2, reach=600) for part in ladders.parts
        )
        return np.outer(first, second).ravel()

    return Attack(
        name=name,
        kind=Ladders.KIND,
        epsilon=epsilon,
        delta=0.0,
        here=lambda _: law(0, 1),
        there=lambda _: law(1, 2),
        exact=True,
    )
