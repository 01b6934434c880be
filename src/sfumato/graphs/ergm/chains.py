"""Compiled Markov chains over graphs and parameters, for :mod:`sfumato.graphs.ergm.fit`.

Nothing private is read here: the chains start from released numbers. Their randomness protects nobody, so it comes from
a counter (the finaliser of SplitMix64 over a running number) with a public seed, and a fit can be repeated to the bit.

A graph is kept as rows of bits, degrees, and a list of its edges with the place of each pair in it. The functions
whose names begin with an underscore are plain Python on arrays; numba compiles them when they are first used.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sfumato.core.extras import need

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Chain", "ChainNoise", "empty_chain"]

Bits: TypeAlias = "NDArray[np.uint64]"
Whole: TypeAlias = "NDArray[np.int64]"
Short: TypeAlias = "NDArray[np.int32]"
Floats: TypeAlias = "NDArray[np.float64]"

GOLDEN, MIX_1, MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S27, S30, S31, S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)
ONE, S1, S2, S4, S56 = np.uint64(1), np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
M1, M2, M4 = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
H01 = np.uint64(0x0101010101010101)


@dataclass(frozen=True, slots=True, eq=False)
class ChainNoise:
    """Released statistics with their error distributions: log P(error) = −linear·|error| − quadratic·error² + c."""

    released: "NDArray[np.float64]"
    linear: "NDArray[np.float64]"
    quadratic: "NDArray[np.float64]"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Chain:
    """A graph that walks, and the counter that drives it; ``statistics`` are its edges, 2-stars and triangles."""

    rows: "NDArray[np.uint64]"
    degrees: "NDArray[np.int64]"
    place: "NDArray[np.int32]"
    ends: "NDArray[np.int32]"
    statistics: "NDArray[np.float64]"
    counter: "NDArray[np.uint64]"

    def copy(self) -> "Chain":
        """The same graph in arrays of its own, driven by the same counter."""
        return Chain(
            self.rows.copy(),
            self.degrees.copy(),
            self.place.copy(),
            self.ends.copy(),
            self.statistics.copy(),
            self.counter,
        )

    def fill(self, edges: int) -> None:
        """Add uniformly drawn edges until there are enough."""
        _loops().fill(self.rows, self.degrees, self.place, self.ends, self.statistics, self.counter, edges)

    def walk(self, theta: "NDArray[np.float64]", steps: int, noise: ChainNoise | None = None) -> None:
        """Walk towards P(graph) ∝ exp(θ·s), times the chance of the released numbers where there are some."""
        nothing = np.zeros(3)
        told = (nothing, nothing, nothing) if noise is None else (noise.released, noise.linear, noise.quadratic)
        _loops().walk(
            self.rows, self.degrees, self.place, self.ends, self.statistics, self.counter, theta, *told, steps
        )

    def trace(self, theta: "NDArray[np.float64]", draws: int, steps: int) -> "NDArray[np.float64]":
        """The statistics at regular intervals of a walk at one θ."""
        held: NDArray[np.float64] = _loops().trace(
            self.rows, self.degrees, self.place, self.ends, self.statistics, self.counter, theta, draws, steps
        )
        return held

    def sample(
        self,
        theta: "NDArray[np.float64]",
        noise: ChainNoise,
        prior: "tuple[NDArray[np.float64], NDArray[np.float64]]",
        root: "NDArray[np.float64]",
        *,
        draws: int,
        steps: int,
        latent: bool,
    ) -> "tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]":
        """Draw parameters and latent statistics one after the other; ``theta`` is moved along.

        Without ``latent`` the released numbers are taken for the exact ones.
        """
        other = self.copy()
        return _loops().sample(
            (self.rows, self.degrees, self.place, self.ends, self.statistics, self.counter),
            (other.rows, other.degrees, other.place, other.ends, other.statistics),
            theta,
            (noise.released, noise.linear, noise.quadratic),
            prior,
            root,
            draws,
            steps,
            latent,
        )


def empty_chain(nodes: int, seed: int) -> Chain:
    """A graph without edges."""
    pairs = nodes * (nodes - 1) // 2
    return Chain(
        rows=np.zeros((nodes, (nodes + 63) // 64), np.uint64),
        degrees=np.zeros(nodes, np.int64),
        place=np.full((nodes, nodes), -1, np.int32),
        ends=np.zeros((pairs, 2), np.int32),
        statistics=np.zeros(3),
        counter=np.array([seed], np.uint64),
    )


@dataclass(frozen=True, slots=True)
class _Loops:
    """The loops below, compiled."""

    fill: Callable[..., None]
    walk: Callable[..., None]
    trace: Callable[..., Floats]
    sample: Callable[..., tuple[Floats, Floats, Whole]]


@lru_cache(maxsize=1)
def _loops() -> _Loops:
    """Compile, or read what was compiled before; what calls another loop must find it compiled."""
    global _uniform, _normal, _shared, _toggle, _walk
    plain = need("numba", "pip install 'sfumato[graphs]'").njit(cache=True)
    _uniform = plain(_uniform)
    _normal = plain(_normal)
    _shared = plain(_shared)
    _toggle = plain(_toggle)
    _walk = plain(_walk)
    return _Loops(fill=plain(_fill), walk=_walk, trace=plain(_trace), sample=plain(_sample))


def _uniform(counter: Bits) -> float:
    """A number of [0, 1) on 53 bits."""
    counter[0] += GOLDEN
    z = counter[0]
    z = (z ^ (z >> S30)) * MIX_1
    z = (z ^ (z >> S27)) * MIX_2
    z = z ^ (z >> S31)
    return np.float64(z >> S11) * 2.0**-53


def _normal(counter: Bits) -> float:
    """A standard normal number, by the polar form of two uniform ones."""
    radius = math.sqrt(-2.0 * math.log(1.0 - _uniform(counter)))
    return radius * math.cos(2.0 * math.pi * _uniform(counter))


def _shared(rows: Bits, i: int, j: int) -> np.int64:
    """How many neighbours i and j have in common: the bits that both rows have."""
    found = np.int64(0)
    for w in range(rows.shape[1]):
        x = rows[i, w] & rows[j, w]
        x = x - ((x >> S1) & M1)
        x = (x & M2) + ((x >> S2) & M2)
        x = (x + (x >> S4)) & M4
        found += np.int64((x * H01) >> S56)
    return found


def _toggle(rows: Bits, degrees: Whole, place: Short, ends: Short, edges: int, i: int, j: int) -> int:
    """Take the edge of i and j away, or add it; gives how many edges there are then."""
    rows[i, j >> 6] ^= ONE << np.uint64(j & 63)
    rows[j, i >> 6] ^= ONE << np.uint64(i & 63)
    at = place[i, j]
    if at < 0:
        ends[edges, 0] = i
        ends[edges, 1] = j
        place[i, j] = edges
        place[j, i] = edges
        degrees[i] += 1
        degrees[j] += 1
        return edges + 1
    last_i, last_j = ends[edges - 1, 0], ends[edges - 1, 1]
    ends[at, 0] = last_i
    ends[at, 1] = last_j
    place[last_i, last_j] = at
    place[last_j, last_i] = at
    place[i, j] = -1
    place[j, i] = -1
    degrees[i] -= 1
    degrees[j] -= 1
    return edges - 1


def _fill(
    rows: Bits, degrees: Whole, place: Short, ends: Short, statistics: Floats, counter: Bits, wanted: int
) -> None:
    n = len(degrees)
    edges = int(statistics[0])
    while edges < wanted:
        i = int(_uniform(counter) * n)
        j = int(_uniform(counter) * n)
        if i == j or place[i, j] >= 0:
            continue
        statistics[0] += 1
        statistics[1] += degrees[i] + degrees[j]
        statistics[2] += _shared(rows, i, j)
        edges = _toggle(rows, degrees, place, ends, edges, i, j)


def _walk(
    rows: Bits,
    degrees: Whole,
    place: Short,
    ends: Short,
    statistics: Floats,
    counter: Bits,
    theta: Floats,
    released: Floats,
    linear: Floats,
    quadratic: Floats,
    steps: int,
) -> None:
    """Metropolis steps that propose an edge to go half of the time, and any pair otherwise (tie–no-tie)."""
    n = len(degrees)
    pairs = n * (n - 1) / 2.0
    edges = int(statistics[0])
    change = np.zeros(3)
    for _ in range(steps):
        if edges > 0 and _uniform(counter) < 0.5:
            k = int(_uniform(counter) * edges)
            i, j = ends[k, 0], ends[k, 1]
        else:
            i = int(_uniform(counter) * n)
            j = int(_uniform(counter) * (n - 1))
            if j >= i:
                j += 1
        there = place[i, j] >= 0
        # The chance of this proposal, and of the one that takes it back, times the number of pairs.
        out = 1.0 if edges == 0 else 0.5 + (0.5 * pairs / edges if there else 0.0)
        after = edges - 1 if there else edges + 1
        back = 1.0 if after == 0 else 0.5 + (0.0 if there else 0.5 * pairs / after)
        sign = -1.0 if there else 1.0
        change[0] = sign
        change[1] = sign * (degrees[i] + degrees[j] - (2 if there else 0))
        change[2] = sign * _shared(rows, i, j)
        gain = math.log(back / out)
        for k in range(3):
            gain += theta[k] * change[k]
            error = released[k] - statistics[k]
            moved = error - change[k]
            gain -= linear[k] * (abs(moved) - abs(error)) + quadratic[k] * (moved * moved - error * error)
        if gain >= 0.0 or _uniform(counter) < math.exp(gain):
            edges = _toggle(rows, degrees, place, ends, edges, i, j)
            for k in range(3):
                statistics[k] += change[k]


def _trace(
    rows: Bits,
    degrees: Whole,
    place: Short,
    ends: Short,
    statistics: Floats,
    counter: Bits,
    theta: Floats,
    draws: int,
    steps: int,
) -> Floats:
    nothing = np.zeros(3)
    held = np.empty((draws, 3))
    for t in range(draws):
        _walk(rows, degrees, place, ends, statistics, counter, theta, nothing, nothing, nothing, steps)
        held[t] = statistics
    return held


def _sample(
    here: tuple[Bits, Whole, Short, Short, Floats, Bits],
    there: tuple[Bits, Whole, Short, Short, Floats],
    theta: Floats,
    told: tuple[Floats, Floats, Floats],
    prior: tuple[Floats, Floats],
    root: Floats,
    draws: int,
    steps: int,
    latent: bool,  # noqa: FBT001 - compiled loops take no names
) -> tuple[Floats, Floats, Whole]:
    """Alternate three moves that leave P(θ, graph | released) as it is.

    The graph walks, given θ and the released numbers. Then θ' is proposed, with a graph y of its own drawn at θ' by a
    walk; by a coin, either θ alone moves (the exchange algorithm: y cancels the unknown constants), or θ and the graph
    move together to (θ', y), which the noise accepts or refuses.
    """
    rows, degrees, place, ends, statistics, counter = here
    rows_y, degrees_y, place_y, ends_y, statistics_y = there
    released, linear, quadratic = told
    mean, precision = prior
    nothing = np.zeros(3)
    held, graphs, taken = np.empty((draws, 3)), np.empty((draws, 3)), np.zeros(4, np.int64)
    proposed, step = np.empty(3), np.empty(3)
    for t in range(draws):
        if latent:
            _walk(rows, degrees, place, ends, statistics, counter, theta, released, linear, quadratic, steps)
        for k in range(3):
            step[k] = _normal(counter)
        gain = 0.0
        for k in range(3):
            proposed[k] = theta[k]
            for m in range(k + 1):
                proposed[k] += root[k, m] * step[m]
            old, new = theta[k] - mean[k], proposed[k] - mean[k]
            gain -= 0.5 * precision[k] * (new * new - old * old)
        rows_y[:] = rows
        degrees_y[:] = degrees
        place_y[:] = place
        ends_y[:] = ends
        statistics_y[:] = statistics
        _walk(rows_y, degrees_y, place_y, ends_y, statistics_y, counter, proposed, nothing, nothing, nothing, steps)
        together = latent and _uniform(counter) < 0.5
        for k in range(3):
            if together:
                error, moved = released[k] - statistics[k], released[k] - statistics_y[k]
                gain -= linear[k] * (abs(moved) - abs(error)) + quadratic[k] * (moved * moved - error * error)
            else:
                seen = statistics[k] if latent else released[k]
                gain += (theta[k] - proposed[k]) * (statistics_y[k] - seen)
        taken[2 if together else 0] += 1
        if gain >= 0.0 or _uniform(counter) < math.exp(gain):
            taken[3 if together else 1] += 1
            theta[:] = proposed
            if together or not latent:  # without a latent graph, the walk begins where the last accepted one ended
                rows[:] = rows_y
                degrees[:] = degrees_y
                place[:] = place_y
                ends[:] = ends_y
                statistics[:] = statistics_y
        held[t] = theta
        graphs[t] = statistics if latent else released
    return held, graphs, taken
