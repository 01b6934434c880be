"""What the sites of a consortium agreed on before any question: who belongs to it, and what protects them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sfumato.core.exact import natural
from sfumato.core.signature import read_public_key
from sfumato.errors import InvalidInput, Refused
from sfumato.federated.parties import Parties, ServerTrust
from sfumato.federated.signed_requests import opened_request

__all__ = ["Proposed", "SiteAgreement"]


class Proposed(Protocol):
    """What is held against an agreement: who is asked, and what protects them."""

    @property
    def sites(self) -> tuple[str, ...]:
        """The public keys of all who are asked."""
        ...

    @property
    def sites_per_person(self) -> int:
        """In how many sites one person may be."""
        ...

    @property
    def missing(self) -> int:
        """How many sites may leave."""
        ...

    @property
    def colluding(self) -> int:
        """How many sites may collude."""
        ...

    @property
    def lying(self) -> bool:
        """Whether the coordinator may send anything."""
        ...


@dataclass(frozen=True, kw_only=True)
class SiteAgreement:
    """What is written in the contract of a consortium, as one site holds it against every question.

    ``members`` are the public keys of all sites by name. One person may be in ``sites_per_person`` of them, which has
    no default: whoever signs vouches for it. Up to ``missing`` sites may leave a round, at least ``colluding`` are
    taken to tell the coordinator all that they see, and no round has fewer than ``least_sites`` sites: all but the
    missing ones, if not said. With ``lying`` the coordinator may send anything to anybody. ``coordinator`` is its
    public key; only where all sites are in one process it may be left out.

    Guarantee: a question with a weaker protection than this, or that the coordinator has not signed, is declined before
    a key is made. Public: every field.

    >>> from sfumato.core.signature import SigningKey
    >>> members = {name: SigningKey.new().public_text for name in ("north", "south", "west")}
    >>> SiteAgreement(members=members, sites_per_person=1, missing=1).least_sites
    2
    """

    members: Mapping[str, str]
    sites_per_person: int
    missing: int = 0
    colluding: int = 0
    lying: bool = True
    least_sites: int = 0
    coordinator: str = ""

    def __post_init__(self) -> None:
        keys = {name: read_public_key(key) for name, key in self.members.items()}
        if len(set(keys.values())) != len(keys):
            raise InvalidInput("two members have one key; nothing was agreed. Give each site its own.")
        object.__setattr__(self, "members", keys)
        natural(self.sites_per_person, "sites_per_person", most=len(keys))
        trust = ServerTrust.LYING if self.lying else ServerTrust.CURIOUS
        Parties(sites=len(keys), missing=self.missing, colluding=self.colluding, server=trust)
        if self.least_sites == 0:
            object.__setattr__(self, "least_sites", max(2, len(keys) - self.missing))
        natural(self.least_sites, "least_sites", least=2, most=len(keys))
        if self.coordinator:
            object.__setattr__(self, "coordinator", read_public_key(self.coordinator))

    def request(self, data: bytes, site: str) -> bytes:
        """What a site is asked; refused where it is not the coordinator who asks, or somebody else is asked."""
        return opened_request(data, site=site, coordinator=self.coordinator)

    def check(self, proposal: Proposed) -> None:
        """Refuse a question to others than the members, or one that protects less than was agreed."""
        kept = (
            set(proposal.sites) <= set(self.members.values())
            and proposal.sites_per_person >= self.sites_per_person
            and proposal.missing <= self.missing
            and proposal.colluding >= self.colluding
            and (proposal.lying or not self.lying)
        )
        if not kept:
            raise Refused("who is asked, or what protects them, is not what this site agreed to; nothing was sent.")

    def check_roster(self, roster: tuple[str, ...]) -> None:
        """Refuse a round of too few sites: the fewer they are, the more their sum says about each."""
        if len(set(roster)) < self.least_sites:
            raise Refused(
                f"the round has {len(set(roster))} sites and this site agreed to rounds of at least "
                f"{self.least_sites}; no key was made and nothing was sent."
            )
