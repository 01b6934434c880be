"""Invented survival data for tests: cells that a law draws, with the noise that a release would have."""

import numpy as np

from sfumato.studies.exit_cells import ExitNoise, Floats, best_widths, level_matrix

__all__ = ["drawn", "exit_law", "with_noise"]


def exit_law(steps: int, *, hazard: float = 1.0, censoring: float = 0.45) -> tuple[Floats, Floats]:
    """The chance of each cell (event, censored) × steps, and the survival; about 30% are censored before the end."""
    event, lost = 1 - np.exp(-hazard / steps), 1 - np.exp(-censoring / steps)
    alive = ((1 - event) * (1 - lost)) ** np.arange(steps)
    cells = np.stack([alive * event, alive * (1 - event) * lost])
    cells[1, -1] += alive[-1] * (1 - event) * (1 - lost)
    return cells, (1 - event) ** np.arange(1, steps + 1)


def drawn(generator: np.random.Generator, law: Floats, number: int, runs: int) -> Floats:
    """Exact cells of some runs: (runs, 2, steps)."""
    cells = generator.multinomial(number, law.ravel(), size=runs)
    return cells.reshape(runs, *law.shape).astype(np.float64)


def with_noise(generator: np.random.Generator, cells: Floats, epsilon: float) -> tuple[Floats, ExitNoise]:
    """The cells as a study gets them: every level with discrete Laplace noise, one charge for all."""
    steps = cells.shape[-1]
    widths = best_widths(steps)
    q = np.exp(-epsilon / len(widths))
    exact = cells @ level_matrix(steps, widths).T
    measured = exact + generator.geometric(1 - q, exact.shape) - generator.geometric(1 - q, exact.shape)
    variance = 2 * q / (1 - q) ** 2
    noise = ExitNoise(variance=variance, steps=steps, widths=widths, tails=3 + 1 / variance)
    return noise.cells_of(measured), noise
