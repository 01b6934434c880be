"""Noise that no single party knows: each site adds a share of Skellam noise, and the shares add up to the whole.

The difference of two Poisson numbers of mean v/2 has variance v, and sums of such differences are of the same kind:
that is why shares are Skellam and not discrete Gaussian. Proof: docs/proofs/skellam.md
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.events import Skellam
from sfumato.core.exact import Exact, positive
from sfumato.errors import InvalidInput
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

    def event(self, *, l1: Exact, l2_squared: Exact) -> Skellam:
        """What a round costs a person whose whole numbers move the sum by at most these norms.

        It is charged for ``variance``, what honest sites leave in any sum; more noise than that is not counted.
        """
        return Skellam(l1=l1, l2_squared=l2_squared, variance=self.variance)  # type: ignore[arg-type]  # made exact there
