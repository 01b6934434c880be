"""What a consortium proposes to its sites, and how each of them votes on it before any key is exchanged."""

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.budget import Budget
from sfumato.core.documents import canonical, encode, parse
from sfumato.core.exact import natural, positive
from sfumato.core.limits import Limit
from sfumato.core.signature import SigningKey, signature_holds
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, Refused
from sfumato.federated.parties import Parties, ServerTrust
from sfumato.federated.summed import SiteShare
from sfumato.reports.declarations import DECLARATIONS
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count
from sfumato.tables.queries.marginals import Marginals

if TYPE_CHECKING:
    from sfumato.federated.terms import RoundTerms

__all__ = ["SiteProposal", "SiteVote"]

BITS = 62  # of the numbers that are added up
_SIGNED = b"sfumato vote on a sum across sites 1\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteProposal:
    """A question that a consortium puts to its sites: what is asked, who is protected how, and with which noise.

    ``sites`` are the public keys of all who are asked; those that join make the roster. ``number`` tells rounds about
    the same question apart. Public: every field.
    """

    KIND: ClassVar[str] = "federated.proposal"
    VERSION: ClassVar[int] = 1
    consortium: str
    number: int
    of: Count | Aggregate | Marginals
    unit: Unit
    limit: Limit | None
    spend: Budget
    variance: Fraction
    sites: tuple[str, ...]
    missing: int
    colluding: int
    lying: bool
    sites_per_person: int
    step: int = 1

    def __post_init__(self) -> None:
        for name in ("sites_per_person", "step"):
            natural(getattr(self, name), name)
        for name in ("number", "missing", "colluding"):
            natural(getattr(self, name), name, least=0)
        positive(self.variance, "variance")

    def to_json(self) -> str:
        """The canonical text."""
        return canonical(encode(self))

    @classmethod
    def from_json(cls, text: str) -> "SiteProposal":
        """Read a proposal; what is not exactly a text of :meth:`to_json` is refused."""
        found = DECLARATIONS.decode(parse(text), "proposal")
        if not isinstance(found, cls):
            raise InvalidInput("this is not a proposal of a consortium; it was not read.")
        return found

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical text, as hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def terms(self, roster: tuple[str, ...]) -> "RoundTerms":
        """The terms of the round of those who joined; refused where they are too few."""
        from sfumato.federated.shared_noise import SharedNoise
        from sfumato.federated.terms import RoundTerms

        if not set(roster) <= set(self.sites):
            raise Refused("the roster names a site that was not asked; nothing was sent.")
        trust = ServerTrust.LYING if self.lying else ServerTrust.CURIOUS
        parties = Parties(sites=len(roster), missing=self.missing, colluding=self.colluding, server=trust)
        return RoundTerms(
            run=f"{self.consortium}/{self.digest}",
            number=self.number,
            roster=roster,
            parties=parties,
            length=self.of.size,
            bits=BITS,
            noise=SharedNoise(variance=self.variance, removable=True),
        )

    def share(self, of: "Count | Aggregate | Marginals", *, round: str, keys: str, sites: int) -> SiteShare:
        """What one site sends: the same question about its own table."""
        return SiteShare(
            of=of,
            round=round,
            keys=keys,
            variance=self.variance,
            sites=sites,
            step=self.step,
            sites_per_person=self.sites_per_person,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteVote:
    """Whether a site joins, and nothing besides: why not would tell, question by question, what its budget has left."""

    joins: bool
    proposal: str

    def signed(self, key: SigningKey) -> bytes:
        """The vote as bytes, signed by its site."""
        text = canonical({"joins": self.joins, "proposal": self.proposal})
        return bytes.fromhex(key.sign(_SIGNED + text.encode())) + text.encode()

    @classmethod
    def opened(cls, data: bytes, *, key: str, proposal: str) -> "SiteVote":
        """Read the vote of the site with this public key; one of another site, or on another question, is refused."""
        signature, text = data[:64], data[64:]
        if not signature_holds(key, signature.hex(), _SIGNED + text):
            raise Refused("this vote is not signed by the site that it is said to come from; it was not counted.")
        match parse(text.decode()):
            case {"joins": bool(joins), "proposal": str(about), **rest} if not rest:
                if about != proposal:
                    raise Refused("this vote is about another question; it was not counted.")
                return cls(joins=joins, proposal=about)
        raise Refused("this is not a vote; it was not counted.")
