"""K-norm noise: pure privacy with noise that is correlated, shaped by what one unit can do to a whole vector.

P(z) ∝ exp(−ε·‖z‖_K), K the convex hull of all moves: for degrees that of ±(e_i + e_j), for a unit that moves every
number by up to Δ the cube. Independent Laplace noise has an l1 ball in its place: a density ∝ exp(−‖z‖₁/b) is a
product, and so is no source of correlated noise. Proof: docs/proofs/k_norm.md
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.events import Stated
from sfumato.core.exact import Exact, natural, non_negative, positive
from sfumato.core.guarantees import Pure
from sfumato.core.query import Answer
from sfumato.core.sensitivity import L0, L1, L2, LInf, Sensitivity
from sfumato.core.units import Edge, Relation, Unit, describe
from sfumato.errors import InvalidInput, Refused, WrongNorm
from sfumato.laws.cube import Cube
from sfumato.laws.degrees import DegreeNoiseLaw
from sfumato.mechanisms.norms import known

if TYPE_CHECKING:
    from sfumato.noise import Words
    from sfumato.noise.cube import Vectors
    from sfumato.noise.sampler import AnyIntArray

__all__ = ["DegreeNoise", "LInfKNorm", "edge_norm", "excess"]

CELLS = 1 << 20  # numbers proposed at a time, where that is more than one vector


@dataclass(frozen=True, slots=True, kw_only=True)
class LInfKNorm:
    """Add z with P(z) ∝ exp(−max|z_i|/scale) to an answer of ``dimensions`` whole numbers.

    For a unit that may move all d numbers by up to Δ each, the variance of each error is about (d + 1)(d + 2)/3·(Δ/ε)².
    Independent Laplace noise has 2d²·(Δ/ε)²: twice that for d = 2, six times for large d. It is better where a unit
    moves k numbers at most and 6k² < (d + 1)(d + 2), about two fifths of all.

    Guarantee: answers of which no number differs by more than m become ε = m/scale apart (pure DP); some output reaches
    that. Assumes: the exact answer is a vector of whole numbers. Public: dimensions, linf and scale. Sensitive: the
    exact answer. Proof: docs/proofs/k_norm.md

    >>> noise = LInfKNorm.calibrated(dimensions=10, linf=1, epsilon=0.5)
    >>> noise.scale, round(float(noise.law.variance), 1)
    (Fraction(2, 1), 175.9)
    """

    KIND: ClassVar[str] = "mechanism.cube_noise"
    VERSION: ClassVar[int] = 1
    dimensions: int
    linf: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        natural(self.dimensions, "dimensions", most=1024)
        object.__setattr__(self, "linf", non_negative(self.linf, "linf"))
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    @classmethod
    def calibrated(cls, *, dimensions: int, linf: LInf | Exact, epsilon: Exact) -> "LInfKNorm":
        """The least noise that gives ε where one unit moves no number by more than ``linf``; scale = linf/ε exactly."""
        if isinstance(linf, L0 | L1 | L2 | Sensitivity):
            raise WrongNorm(
                f"the cube needs an linf bound and was given {type(linf).__name__}; nothing was done. "
                "Pass the linf bound of the query."
            )
        moved = positive(linf.value if isinstance(linf, LInf) else linf, "linf")
        return cls(dimensions=dimensions, linf=moved, scale=moved / positive(epsilon, "epsilon"))

    @property
    def law(self) -> Cube:
        """The distribution of the error of each number, and of the largest of several."""
        return Cube(dimensions=self.dimensions, scale=self.scale)

    @property
    def event(self) -> Stated:
        """The event for the linf bound that the noise was calibrated for."""
        return self.loss(Sensitivity(linf=LInf(self.linf)))

    def loss(self, moved: Sensitivity) -> Stated:
        """The event for a unit that moves the answer by at most ``moved``; its linf bound must be known."""
        return Stated(guarantee=Pure(epsilon=known(moved.linf, "linf").value / self.scale))

    def sample(self, size: int, words: "Words") -> "Vectors":
        """Draw ``size`` independent vectors of noise, exactly and without refusal."""
        from sfumato.noise.cube import sample_cube

        return sample_cube(self.dimensions, self.scale, size, words)

    def draw(self, exact: Sequence[int], words: "Words") -> Answer:
        """The answer: :meth:`add_noise`. Sensitive: ``exact``."""
        return self.add_noise(exact, words), ()

    def add_noise(self, exact: Sequence[int], words: "Words") -> tuple[int, ...]:
        """Add one fresh vector; sums beyond 64 bits are held at the largest that fits (post-processing)."""
        from sfumato.noise import saturating_sum

        _whole(exact, self.dimensions, "the answer")
        return saturating_sum(exact, self.sample(1, words)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class DegreeNoise:
    """Add z with P(z) ∝ exp(−ε·‖z‖_K) to a degree vector, z from the vectors of whole numbers with an even sum.

    Guarantee: two graphs that differ in one edge become ε apart (pure DP), and some output reaches that. Every graph
    has an even sum of degrees, and so has every output: its parity reveals nothing.
    Assumes: the vector is the degrees of a simple undirected graph on ``nodes`` ≥ 3 public nodes.
    Public: nodes and epsilon. Sensitive: the degrees. Proof: docs/proofs/k_norm.md

    >>> from sfumato.core.units import edge
    >>> DegreeNoise(nodes=5, epsilon=Fraction(1, 2)).event(edge(relation="replace")).guarantee
    Pure(epsilon=Fraction(1, 1))
    """

    KIND: ClassVar[str] = "mechanism.degree_noise"
    VERSION: ClassVar[int] = 1
    nodes: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        natural(self.nodes, "nodes", least=3, most=2**31)
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))

    @property
    def law(self) -> DegreeNoiseLaw:
        """The distribution of the error of each degree, from above."""
        return DegreeNoiseLaw(nodes=self.nodes, epsilon=self.epsilon)

    def loss(self, moved: Sensitivity) -> Stated:
        """The event for a unit that moves the *edges* by at most ``moved``; the l1 bound of that must be known.

        The edges are a vector with a 1 for each pair of nodes that has one, and the degrees are linear in it: one edge
        added or removed is l1 = 1, one replaced is 2. The norms of the degrees themselves do not tell e_i + e_j from
        e_i − e_j, which is two edges' worth.
        """
        return Stated(guarantee=Pure(epsilon=known(moved.l1, "l1").value * self.epsilon))

    def event(self, unit: Unit) -> Stated:
        """The event for one edge: ε where it is added or removed, 2ε where it is replaced by another."""
        if not isinstance(unit, Edge):
            raise Refused(
                f"the noise is shaped for one edge and says nothing of {describe(unit)}; nothing was done. "
                "Convert the guarantee for an edge with an enforced bound on degrees."
            )
        return self.loss(Sensitivity.of(l1=1 if unit.relation is Relation.ADD_REMOVE else 2))

    def sample(self, size: int, words: "Words") -> "Vectors":
        """Draw ``size`` independent vectors exactly: Laplace noise of scale 2/ε, kept by its parity and a coin.

        Since ‖z‖_K ≥ ½‖z‖₁, a coin of probability exp(−ε·(‖z‖_K − ½‖z‖₁)) turns the first law into the second. It is
        tossed as "a geometric number is at least the excess", for all proposals alike.
        """
        import numpy as np

        from sfumato.noise import sample_discrete_laplace, sample_geometric
        from sfumato.noise.sums import wide

        kept, left = [np.empty((0, self.nodes), dtype=np.int64)], size
        while left:
            rows = max(2, min(8 * left + 8, CELLS // self.nodes))
            drawn = sample_discrete_laplace(2 / self.epsilon, rows * self.nodes, words)
            proposed = wide(drawn, self.nodes + 4).reshape(rows, self.nodes)
            coin = sample_geometric(1 / self.epsilon, rows, words)
            some = proposed[(proposed.sum(axis=1) % 2 == 0) & (coin >= excess(proposed))][:left]
            kept.append(some)
            left -= len(some)
        return np.concatenate(kept)

    def draw(self, exact: Sequence[int], words: "Words") -> Answer:
        """The answer: :meth:`add_noise`. Sensitive: ``exact``."""
        return self.add_noise(exact, words), ()

    def add_noise(self, degrees: Sequence[int], words: "Words") -> tuple[int, ...]:
        """Add one fresh vector; sums beyond 64 bits are held at the largest that fits (post-processing)."""
        from sfumato.noise import saturating_sum

        _whole(degrees, self.nodes, "degrees")
        return saturating_sum(degrees, self.sample(1, words)[0])


def edge_norm(vector: Sequence[int]) -> Fraction:
    """How many edges' worth of moves a vector is: the norm whose unit ball is the hull of all ±(e_i + e_j), n ≥ 3.

    ‖z‖_K = max(½·Σ|z_i|, max_i |2z_i − ½·Σz|): the largest value of y·z over the corners y of the polar body, which
    are (±½, …, ±½) and ±(3/2, −½, …, −½) with the 3/2 at any place.

    >>> edge_norm([1, 1, 0]), edge_norm([1, 0, 0]), edge_norm([1, -1, 0])
    (Fraction(1, 1), Fraction(3, 2), Fraction(2, 1))
    """
    natural(len(vector), "the number of nodes", least=3)
    total = sum(vector)
    largest = max(abs(4 * value - total) for value in vector)
    return Fraction(max(sum(abs(value) for value in vector), largest), 2)


def excess(vectors: "Vectors") -> "AnyIntArray":
    """By how much the K-norm of each vector with an even sum is above half its l1 norm: 0 unless one entry dominates.

    >>> import numpy as np
    >>> excess(np.array([[1, 1, 0], [2, 0, 0]])).tolist()
    [0, 2]
    """
    import numpy as np

    totals = vectors.sum(axis=1)
    beyond = np.abs(4 * vectors - totals[:, None]).max(axis=1) - np.abs(vectors).sum(axis=1)
    return np.asarray(np.maximum(beyond, 0) // 2)


def _whole(numbers: Sequence[int], size: int, name: str) -> None:
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in numbers)
    if not whole or len(numbers) != size:
        raise InvalidInput(f"{name} must be {size} whole numbers; nothing was drawn.")
