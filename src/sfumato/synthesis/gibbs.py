"""Rows of a pairwise log-linear model: of all distributions with the same pair tables the one that assumes least more.

A mixture meets the pairs, and invents how three columns go together. The log-linear model with the same pairs does not;
it is fitted to the pairs of the mixture by chains of Gibbs samples whose rows are kept from one step to the next.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.synthesis.bound_columns import BoundColumns, sites_of
from sfumato.synthesis.measured import Codes, Layout, Reals

__all__ = ["gibbs_rows"]

CHAINS = 4_000
SWEEPS = 60
LAST_SWEEPS = 4
STEP = 1.3
"""Over the number of other columns: corrections of all pairs of a column add up."""
EXPECTED = 3.0  # rows added to both counts before a logarithm: a cell without a row says little
CHUNK = 65_536
MOST_AT_ONCE = 2**23  # rows times combinations of a site
NEVER = -60.0


def gibbs_rows(
    start: Codes, pairs: Reals, allowed: NDArray[np.bool_], layout: Layout, rows: int, random: np.random.Generator
) -> Codes:
    """Rows whose pairs are near ``pairs``, a symmetric matrix of shares; chains begin with rows of ``start``."""
    wide = len(layout.sizes)
    shares = np.concatenate(
        [pairs[part, layout.parts[place - 1]].sum(axis=1) for place, part in enumerate(layout.parts)]
    )
    base = np.log(np.maximum(shares, 1e-7)).astype(np.float32)
    hidden = np.where(allowed, np.float32(0), np.float32(NEVER))
    bonds = np.zeros_like(pairs)
    late = np.zeros_like(pairs)
    chains = start[:CHAINS].copy()
    number = np.float32(1 / len(chains))
    added = np.float32(EXPECTED) * number
    target = np.log(pairs + added)
    inside = np.zeros(pairs.shape, dtype=bool)
    for part in layout.parts:
        inside[part, part] = True
    sites = sites_of(pairs, start, layout)
    for sweep in range(SWEEPS):
        _swept(chains, bonds + hidden, base, layout, sites, random)
        missing = target - np.log(layout.pair_counts(chains) * number + added)
        missing[inside] = 0
        slower = 1.0 if 2 * sweep < SWEEPS else 2 * (1 - sweep / SWEEPS) + 0.05
        bonds += np.float32(STEP / (wide - 1) * slower) * missing
        if 2 * sweep >= SWEEPS:
            late += bonds
    bonds = late * np.float32(1 / (SWEEPS - SWEEPS // 2)) + hidden
    found = chains[random.integers(0, len(chains), rows)]
    for first in range(0, rows, CHUNK):
        for _ in range(LAST_SWEEPS):
            _swept(found[first : first + CHUNK], bonds, base, layout, sites, random)
    return found


def _swept(
    rows: Codes, bonds: Reals, base: Reals, layout: Layout, sites: Sequence[BoundColumns], random: np.random.Generator
) -> None:
    """Draw each site anew, given the others; in place."""
    for place in random.permutation(len(sites)):
        site = sites[place]
        at_once = max(1, MOST_AT_ONCE // len(site.cells))
        for first in range(0, len(rows), at_once):
            some = rows[first : first + at_once]
            logits = _logits(some, site, bonds, base, layout)
            logits -= logits.max(axis=1, keepdims=True)
            rising = np.cumsum(np.exp(logits, out=logits), axis=1, out=logits)
            drawn = random.random(len(some), dtype=np.float32)[:, None] * rising[:, -1:]
            some[:, site.columns] = site.cells[np.minimum((drawn >= rising).sum(axis=1), len(site.cells) - 1)]


def _logits(rows: Codes, site: BoundColumns, bonds: Reals, base: Reals, layout: Layout) -> Reals:
    """For each row and each combination of the site."""
    found = np.zeros((len(rows), len(site.cells)), dtype=np.float32)
    for place, column in enumerate(site.columns):
        part = layout.parts[column]
        own = np.ascontiguousarray(bonds[:, part])
        logits = np.broadcast_to(base[part], (len(rows), layout.sizes[column])).copy()
        for other, beside in enumerate(layout.parts):
            if other not in site.columns:
                logits += own[beside][rows[:, other]]
        if len(site.columns) == 1:
            return logits
        found += logits[:, site.cells[:, place]]
        for before, other in enumerate(site.columns[:place]):
            found += own[layout.starts[other] + site.cells[:, before], site.cells[:, place]]
    return found
