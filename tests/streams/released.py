"""Releases of streams of invented numbers, many groups at once: as many independent draws of the noise as groups."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

import sfumato as sf
from sfumato.core.release import Release

ALPHA = 1e-9  # of each statistical test that counts how often an interval holds


def released(
    values: npt.ArrayLike, *, epsilon: float = 1, delta: float = 1e-7, strategy: str = "best", **said: Any
) -> Release:
    """A release of the running totals of these steps, a column for each group."""
    steps = np.asarray(values)
    vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=100, delta=1e-6), name="made")
    groups = () if steps.ndim == 1 else tuple(f"g{number}" for number in range(steps.shape[1]))
    stream = vault.stream(name="made", version="1", horizon=len(steps), bounds=(0, 10**5), groups=groups, **said)
    running = stream.running_total(strategy=strategy).open(epsilon=epsilon, delta=delta)
    running.add_many(steps)
    return running.close()


def often_enough(held: npt.ArrayLike, level: float = 0.95) -> bool:
    """Whether as many of these independent intervals hold as should, by an exact test at ALPHA."""
    found = np.asarray(held)
    return bool(binom.cdf(int(found.sum()), found.size, level) > ALPHA)


def inside(exact: npt.ArrayLike, ends: Any, *, shrink: float = 1.0) -> npt.NDArray[np.bool_]:
    """Which intervals hold their number; a twin's are shrunk around their middle."""
    low, high = np.asarray(ends, dtype=float).T
    middle, half = (low + high) / 2, shrink * (high - low) / 2
    return np.abs(np.asarray(exact, dtype=float).ravel() - middle) <= half
