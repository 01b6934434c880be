"""The K-norm mechanism for degree vectors: pure privacy with noise that is correlated, shaped by what an edge can do.

K is the convex hull of the moves ±(e_i + e_j) of one edge. Independent Laplace noise has an l1 ball in its place: a
density ∝ exp(−‖z‖₁/b) is a product, and so is no source of correlated noise. Proof: docs/proofs/k_norm.md
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.events import Stated
from sfumato.core.exact import natural, positive
from sfumato.core.guarantees import Pure
from sfumato.core.units import Edge, Relation, Unit, describe
from sfumato.errors import InvalidInput, Refused
from sfumato.noise.bits import Bits
from sfumato.noise.reference import draw_discrete_laplace, toss_exp

__all__ = ["DegreeNoise", "edge_norm"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DegreeNoise:
    """Add z with P(z) ∝ exp(−ε·‖z‖_K) to a degree vector, z from the vectors of whole numbers with an even sum.

    Guarantee: two graphs that differ in one edge become ε apart (pure DP), and some output reaches that.
    Assumes: the vector is the degrees of a simple undirected graph on ``nodes`` ≥ 3 public nodes.
    Public: nodes and epsilon. Sensitive: the degrees. Proof: docs/proofs/k_norm.md

    >>> from sfumato.core.units import edge
    >>> DegreeNoise(nodes=5, epsilon=Fraction(1, 2)).loss(edge(relation="add/remove")).guarantee
    Pure(epsilon=Fraction(1, 2))
    """

    nodes: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        natural(self.nodes, "nodes", least=3)
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))

    def loss(self, unit: Unit) -> Stated:
        """The event for one edge: ε where it is added or removed, 2ε where it is replaced by another."""
        if not isinstance(unit, Edge):
            raise Refused(
                f"the noise is shaped for one edge and says nothing of {describe(unit)}; nothing was done. "
                "Convert the guarantee for an edge with an enforced bound on degrees."
            )
        edges = 1 if unit.relation is Relation.ADD_REMOVE else 2
        return Stated(guarantee=Pure(epsilon=edges * self.epsilon))

    def draw(self, bits: Bits) -> tuple[int, ...]:
        """Draw z exactly: independent Laplace noise of scale 2/ε, kept if its sum is even and a coin allows.

        Since ‖z‖_K ≥ ½‖z‖₁, a coin of probability exp(−ε·(‖z‖_K − ½‖z‖₁)) turns the first law into the second.
        """
        while True:
            proposed = tuple(draw_discrete_laplace(2 / self.epsilon, bits) for _ in range(self.nodes))
            if sum(proposed) % 2 == 0 and toss_exp(self.epsilon * excess(proposed), bits):
                return proposed

    def add_noise(self, degrees: Sequence[int], bits: Bits) -> tuple[int, ...]:
        """Add fresh noise to a degree vector."""
        whole = all(isinstance(value, int) and not isinstance(value, bool) for value in degrees)
        if not whole or len(degrees) != self.nodes:
            raise InvalidInput(f"degrees must be {self.nodes} whole numbers; nothing was drawn.")
        return tuple(value + noise for value, noise in zip(degrees, self.draw(bits), strict=True))


def excess(vector: Sequence[int]) -> Fraction:
    """By how much the K-norm is above half the l1 norm: 0 unless one entry dominates.

    >>> excess([1, 1, 0]), excess([2, 0, 0])
    (Fraction(0, 1), Fraction(2, 1))
    """
    return edge_norm(vector) - Fraction(sum(abs(value) for value in vector), 2)
