"""The search over rows: values are exchanged, one column of some rows at a time, until the pairs are those of the fit.

Rows that are drawn miss their tables by the luck of the draw, which for a file is one more error. Rows of a batch move
together, and too many would move into one cell: each moves with the chance that leaves as many as the cell lacks.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.synthesis.measured import Codes, Layout, Reals

__all__ = ["searched"]

PASSES = 2
BATCH = 400
MOST_BATCHES = 150
GAIN = 1e-6
FORBIDDEN = np.float32(1e6)


def searched(
    rows: Codes,
    pairs: Reals,
    allowed: NDArray[np.bool_],
    layout: Layout,
    random: np.random.Generator,
    *,
    columns: Sequence[int] | None = None,
) -> Codes:
    """Rows whose pairs are nearer to ``pairs``, a symmetric matrix of shares; no move makes them worse by itself.

    ``columns`` are those whose values may be exchanged, by default all.
    """
    found = rows.copy()
    excess = layout.pair_counts(found) - pairs * np.float32(len(found))
    batches = max(1, min(len(found) // BATCH, MOST_BATCHES))
    for _ in range(PASSES):
        for some in np.array_split(random.permutation(len(found)), batches):
            batch = found[some]
            for column in random.permutation(len(layout.sizes) if columns is None else np.array(columns)):
                _moved(batch, int(column), excess, allowed, layout, random)
            found[some] = batch
    return found


def _moved(
    batch: Codes,
    column: int,
    excess: Reals,
    allowed: NDArray[np.bool_],
    layout: Layout,
    random: np.random.Generator,
) -> None:
    """Give rows of a batch other values of one column, where that brings the pairs nearer; in place."""
    part, size = layout.parts[column], layout.sizes[column]
    own = np.ascontiguousarray(excess[:, part])
    distance = np.abs(own)
    comes = np.abs(own + 1) - distance
    comes[~allowed[:, part]] = FORBIDDEN
    goes = np.abs(own - 1) - distance
    each, old = np.arange(len(batch)), batch[:, column].astype(np.int64)
    others = [other for other in range(len(layout.sizes)) if other != column]
    cells = (layout.starts[:-1] + batch)[:, others]
    cost = np.zeros((len(batch), size), dtype=np.float32)
    freed = np.zeros(len(batch), dtype=np.float32)
    for place in range(len(others)):
        cost += comes[cells[:, place]]
        freed += goes[cells[:, place], old]
    cost[each, old] = -freed
    new = cost.argmin(axis=1)
    movers = np.flatnonzero(cost[each, new] + freed < -GAIN)
    if not len(movers):
        return
    beside = cells[movers] * size
    into, out = beside + new[movers, None], beside + old[movers, None]
    number, flat = own.size, own.ravel()
    arriving = np.bincount(into.ravel(), minlength=number)
    leaving = np.bincount(out.ravel(), minlength=number)
    room = (np.maximum(1, -flat) / np.maximum(arriving, 1))[into].min(axis=1)
    spare = (np.maximum(1, flat) / np.maximum(leaving, 1))[out].min(axis=1)
    go = random.random(len(movers)) < np.minimum(room, spare)
    batch[movers[go], column] = new[movers[go]]
    change = np.bincount(into[go].ravel(), minlength=number) - np.bincount(out[go].ravel(), minlength=number)
    shifted = change.reshape(layout.width, size).astype(np.float32)
    excess[:, part] += shifted
    excess[part, :] += shifted.T
