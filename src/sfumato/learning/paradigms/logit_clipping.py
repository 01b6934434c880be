"""In-batch negatives: how far one unit moves the gradient of a softmax over a whole batch, similarity by similarity.

The loss of n pairs (a_i, b_i) is Σ_i (−z_ii + ln Σ_j exp z_ij) with z_ij the cosine of a_i and b_j over a temperature.
Its gradient is Σ_ij w_ij ∇z_ij with w_ij = softmax − identity, and each ∇z_ij is clipped to norm C before it counts.
"""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.core import enclosures
from sfumato.core.exact import natural, positive
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput

__all__ = ["ClippedLogits"]

COLDEST = Fraction(1, 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedLogits:
    """A softmax over a batch of at most ``batch`` pairs (None: of any number), each ∇z_ij clipped to ``clip``.

    Guarantee: :meth:`sensitivity` bounds the l2 move of the sum for one pair; attained by adversarial neighbours.
    Assumes: every z_ij lies within ±1/temperature and, as ∇z_ij, depends on the pairs i and j alone. Public: every
    field. Proof: docs/proofs/paradigms.md

    >>> declared = ClippedLogits(clip=Fraction(1), temperature=Fraction(1), batch=64)
    >>> float(declared.moved(Relation.ADD_REMOVE)), float(declared.moved(Relation.REPLACE))
    (15.222..., 17.218...)
    >>> float(ClippedLogits(clip=Fraction(1), temperature=Fraction(1), batch=None).moved(Relation.ADD_REMOVE))
    16.778...
    """

    clip: Fraction
    temperature: Fraction
    batch: int | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", positive(self.clip, "clip"))
        object.__setattr__(self, "temperature", positive(self.temperature, "temperature"))
        if self.temperature < COLDEST:
            raise InvalidInput(f"a temperature below {COLDEST} bounds nothing; nothing was done.")
        if self.batch is not None:
            natural(self.batch, "batch")

    def sensitivity(self, relation: Relation, *, over: int = 1) -> Sensitivity:
        """How far one pair moves the sum, over a fixed public number.

        2C·(h + c) under add/remove and 2C·(h + 2c) under replace, where h = 1/(1/(n − 1) + e^(−2/τ)) bounds the
        weights of one column and c = 1/(1 + e^(−2/τ)/(n − 1)) half of those of one row. Both grow with n, so smaller
        batches are covered; for any number h = e^(2/τ) and c = 1.
        """
        others = None if self.batch is None else self.batch - 1
        rows = 1 if relation is Relation.ADD_REMOVE else 2
        least = enclosures.exp(-2 / self.temperature).low
        if others == 0:
            hot, cold = Fraction(0), Fraction(0)
        elif others is None:
            hot, cold = 1 / least, Fraction(1)
        else:
            hot, cold = 1 / (Fraction(1, others) + least), 1 / (1 + least / others)
        return Sensitivity.of(l2_squared=(2 * self.clip * (hot + rows * cold) / natural(over, "over")) ** 2)

    def moved(self, relation: Relation, *, over: int = 1) -> Fraction:
        """The same as a plain number."""
        bound = self.sensitivity(relation, over=over).l2
        return Fraction(0) if bound is None else enclosures.sqrt(bound.squared).high
