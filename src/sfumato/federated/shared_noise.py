"""Noise that no single party knows: each site adds a share of Skellam noise, and the shares add up to the whole.

The difference of two Poisson numbers of mean v/2 has variance v, and sums of such differences are of the same kind:
that is why shares are Skellam and not discrete Gaussian. Proof: docs/proofs/skellam.md
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.accounting import rdp
from sfumato.core.events import Repeated, Skellam
from sfumato.core.exact import Exact, natural, non_negative, positive, probability
from sfumato.errors import InvalidInput, Refused
from sfumato.federated.parties import Parties
from sfumato.noise.poisson_noise import MOST_VARIANCE

__all__ = ["SharedNoise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNoise:
    """Skellam noise in a sum: at least ``variance`` of it comes from honest sites that stay, whoever leaves.

    Without ``removable`` each site adds variance/(sites − missing − colluding), so that a sum that nobody left holds
    sites/(sites − missing − colluding) times the variance. With it, each site adds pieces, and those that drop-outs did
    not make necessary are taken out again: then exactly ``variance`` is left of honest sites where ``colluding``
    collude, and exactly ``variance`` in all where none may.
    Guarantee: as the event of :meth:`event`, against the server with ``colluding`` sites.

    >>> from sfumato.federated.parties import Parties, ServerTrust
    >>> six = Parties(sites=6, missing=2, colluding=1, server=ServerTrust.CURIOUS)
    >>> SharedNoise(variance=300).pieces(six)
    (Fraction(100, 1),)
    >>> SharedNoise(variance=300, removable=True).pieces(six)
    (Fraction(60, 1), Fraction(15, 1), Fraction(25, 1))
    """

    KIND: ClassVar[str] = "federated.shared_noise"
    VERSION: ClassVar[int] = 1
    variance: Fraction
    removable: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", positive(self.variance, "variance"))

    def pieces(self, parties: Parties) -> tuple[Fraction, ...]:
        """The variances of what one site adds: one share, or a base and a piece for each site that may leave.

        With n = sites − colluding: variance/n and variance/((n − k + 1)(n − k)) for k = 1 … missing. The base and the
        first D pieces make variance/(n − D) together.
        """
        if not self.removable:
            return (self.variance / parties.honest,)
        n = parties.sites - parties.colluding
        return (self.variance / n, *(self.variance / ((n - k + 1) * (n - k)) for k in range(1, parties.missing + 1)))

    def taken_out(self, parties: Parties, missing: int) -> tuple[int, ...]:
        """Which pieces of every site are taken out of a sum that ``missing`` sites left: those beyond that number."""
        return tuple(range(missing + 1, parties.missing + 1)) if self.removable else ()

    def left(self, parties: Parties, missing: int) -> Fraction:
        """The variance in a sum that ``missing`` sites left, all of the others honest."""
        if not 0 <= missing <= parties.missing:
            raise InvalidInput(f"at most {parties.missing} sites may leave a round; nothing was computed.")
        return (parties.sites - missing) * self.share(parties, missing)

    def share(self, parties: Parties, missing: int) -> Fraction:
        """The variance that one site has in a sum that ``missing`` sites left."""
        pieces = self.pieces(parties)
        return sum(pieces[: missing + 1], Fraction(0)) if self.removable else pieces[0]

    def most_variance(self, parties: Parties) -> Fraction:
        """The most variance that is left in a sum, whoever leaves."""
        return max(self.left(parties, missing) for missing in range(parties.missing + 1))

    def check(self, parties: Parties) -> None:
        """Refuse pieces that no exact sampler draws."""
        if max(self.pieces(parties)) > MOST_VARIANCE:
            raise InvalidInput(
                f"a site's share of the noise has a variance beyond {MOST_VARIANCE}; nothing was agreed. Count in a "
                "coarser unit: noise of thousands of units has nothing to gain from a finer one."
            )

    def event(self, *, l1: Exact, l2_squared: Exact, sites_per_person: int = 1) -> Skellam:
        """What a round costs a person whose whole numbers in one site have at most these norms.

        It is charged for ``variance``, what honest sites leave in any sum; more noise than that is not counted. A
        person with rows in k sites moves the sum by up to k times as much: say so, nobody may look it up.

        >>> SharedNoise(variance=100).event(l1=3, l2_squared=5, sites_per_person=2)
        Skellam(l1=Fraction(6, 1), l2_squared=Fraction(20, 1), variance=Fraction(100, 1))
        """
        k = natural(sites_per_person, "sites per person")
        size, square = non_negative(l1, "l1"), non_negative(l2_squared, "l2 squared")
        return Skellam(l1=k * size, l2_squared=k**2 * square, variance=self.variance)

    @classmethod
    def within(
        cls,
        *,
        epsilon: Exact,
        delta: Exact,
        l1: Exact,
        l2_squared: Exact,
        rounds: int = 1,
        sites_per_person: int = 1,
        removable: bool = False,
    ) -> "SharedNoise":
        """The least noise, rounded up to a whole number, with which all rounds together are (ε, δ)-DP.

        Guarantee: what is returned was itself accounted, by the proven Rényi bound, and is within (ε, δ).

        >>> SharedNoise.within(epsilon=1, delta=1e-5, l1=16, l2_squared=256).variance
        Fraction(4191, 1)
        """
        asked, times = positive(epsilon, "epsilon"), natural(rounds, "rounds")
        room = positive(probability(delta, "delta"), "delta")

        def noise(size: int) -> SharedNoise:
            return cls(variance=Fraction(size), removable=removable)

        def step(size: int) -> Skellam:
            return noise(size).event(l1=l1, l2_squared=l2_squared, sites_per_person=sites_per_person)

        size = _guess(step(1), float(asked), float(room), times)
        while rdp.epsilon(Repeated(event=step(size), times=times), delta=room) > asked:
            size += max(1, size >> 10)
        return noise(size)


def _guess(one: Skellam, epsilon: float, delta: float, times: int) -> int:
    """About the least variance that keeps (ε, δ) by the same bound, in floats; what is returned is accounted again."""
    orders = np.arange(2, 1025, dtype=np.float64)
    l1, square = float(min(one.l1, one.l2_squared)), float(one.l2_squared)
    more = (math.log(1 / delta) - np.log(orders)) / (orders - 1) + np.log1p(-1 / orders)

    def spent(variance: float) -> float:
        second = np.minimum(((2 * orders - 1) * square + 6 * l1) / (4 * variance**2), 1.5 * l1 / variance)
        return float((times * (orders * square / (2 * variance) + second) + more).min())

    low, high = 0.0, 1.0
    while spent(high) > epsilon:
        low, high = high, 2 * high
        if high > 2.0**80:
            raise Refused("no noise within reach meets the target; nothing was found. Allow a larger ε or δ.")
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if spent(middle) <= epsilon else (middle, high)
    return max(1, math.ceil(high))
