"""Coverage of intervals for the parameters of random graphs, with the noise modelled and with the noise ignored.

``python -m tests.graphs.ergm_study EPSILON GRAPHS`` prints the table of docs/how-to/ergm.md as it goes.
"""

import sys
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sfumato.core.query import Dataset
from sfumato.core.units import edge
from sfumato.graphs.ergm.chains import empty_chain
from sfumato.graphs.ergm.fit import fit_numbers
from sfumato.graphs.ergm.statistics import STATISTICS, NetworkStatistics, usual_weights
from sfumato.graphs.shape import Shape
from sfumato.mechanisms import Laplace
from sfumato.noise import SystemWords

NODES, TRUTH = 50, (-1.5, -0.08, 0.3)


@dataclass
class Tally:
    """How many intervals held the truth, by parameter, and how wide and how far off they were."""

    graphs: int = 0
    held: list[int] = field(default_factory=lambda: [0, 0, 0])
    widths: list[list[float]] = field(default_factory=lambda: [[], [], []])
    errors: list[list[float]] = field(default_factory=lambda: [[], [], []])

    def add(self, intervals: dict[str, tuple[float, float]], means: dict[str, float]) -> None:
        self.graphs += 1
        for k, name in enumerate(STATISTICS):
            low, high = intervals[name]
            self.held[k] += low <= TRUTH[k] <= high
            self.widths[k].append(high - low)
            self.errors[k].append(abs(means[name] - TRUTH[k]))

    def __str__(self) -> str:
        return "; ".join(
            f"{name}: {self.held[k]}/{self.graphs}, width {np.median(self.widths[k]):.2f}, "
            f"|error| {np.median(self.errors[k]):.2f}"
            for k, name in enumerate(STATISTICS)
        )


def released(epsilon: Fraction, seed: int) -> tuple[list[Fraction], list[Fraction]]:
    """The statistics of one graph of the model with noise, and the rate of the noise of each."""
    chain = empty_chain(NODES, 10**6 + seed)
    chain.fill(125)
    chain.walk(np.array(TRUTH), 200_000)
    query = NetworkStatistics(
        dataset=Dataset(name="simulated", edition=str(seed)), shape=Shape(nodes=NODES), weights=usual_weights(NODES)
    )
    moved = query.sensitivity(edge(relation="add/remove"), None)
    assert moved.l1 is not None
    noise = Laplace.calibrated(l1=moved.l1, epsilon=epsilon)
    exact = [int(count) * weight for count, weight in zip(chain.statistics, query.weights, strict=True)]
    numbers = noise.add_noise(exact, SystemWords())
    return (
        [Fraction(number, weight) for number, weight in zip(numbers, query.weights, strict=True)],
        [weight / noise.scale for weight in query.weights],
    )


def study(epsilon: Fraction, graphs: int, *, draws: int, steps: int | None = None, said: bool = False) -> list[Tally]:
    """Tally both fits over so many graphs: first with the noise modelled, then without."""
    tallies = [Tally(), Tally()]
    for seed in range(graphs):
        numbers, linear = released(epsilon, seed)
        for tally, naive in zip(tallies, (False, True), strict=True):
            found = fit_numbers(
                nodes=NODES, released=numbers, linear=linear, draws=draws, steps=steps, seed=seed, naive=naive
            )
            tally.add(found.intervals(), found.means())
        if said and (seed % 5 == 4):
            print(f"ε = {epsilon}, modelled: {tallies[0]}\nε = {epsilon}, ignored: {tallies[1]}", flush=True)
    return tallies


if __name__ == "__main__":
    study(Fraction(sys.argv[1]), int(sys.argv[2]), draws=5000, said=True)
