"""Who takes part in a secure sum and what may go wrong: three numbers and a word about the server, kept apart.

Sites that leave, sites that share what they see with the server, and shares that open a secret are different things:
what one number would say for all three is wrong for two of them.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput

__all__ = ["MOST_SITES", "Parties", "ServerTrust"]

MOST_SITES = 1024


class ServerTrust(Enum):
    """What the server that collects messages is believed to do."""

    CURIOUS = "curious"
    """It sends each site what the protocol says, and looks at everything that it gets."""
    LYING = "lying"
    """It may send anything to anybody, and different things to different sites."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """``sites`` in the roster; up to ``missing`` leave, up to ``colluding`` tell the server all that they see.

    Any ``threshold`` of the sites can open a secret that was shared, and fewer learn nothing about it. Where it is left
    out, it is the largest that drop-outs allow: sites − missing.
    Guarantee: with these numbers one round gives the sum although ``missing`` sites leave in any phases, and the server
    with ``colluding`` sites learns no more than the sum of the others. A lying server needs 2·threshold > sites +
    colluding: of two sets of that size, more than ``colluding`` belong to both, so that an honest one does.

    >>> Parties(sites=7, missing=2, colluding=2, server=ServerTrust.LYING).threshold
    5
    >>> Parties(sites=6, missing=2, colluding=2, server=ServerTrust.LYING)
    Traceback (most recent call last):
    sfumato.errors.InvalidInput: a lying server and 2 colluding sites of 6 need a threshold of at least 5, and 2 sites \
that leave allow at most 4; nothing was agreed. Allow fewer sites to leave, or take 7 sites or more.
    """

    KIND: ClassVar[str] = "federated.parties"
    VERSION: ClassVar[int] = 1
    sites: int
    missing: int
    colluding: int
    server: ServerTrust
    threshold: int = 0

    def __post_init__(self) -> None:
        natural(self.sites, "sites", least=2, most=MOST_SITES)
        natural(self.missing, "missing", least=0)
        natural(self.colluding, "colluding", least=0)
        if not isinstance(self.server, ServerTrust):
            raise InvalidInput("server says what the server may do: a ServerTrust. Nothing was agreed.")
        if self.honest < 1:
            raise InvalidInput(
                f"of {self.sites} sites {self.missing} may leave and {self.colluding} may collude, and then no honest "
                "one is left to be protected; nothing was agreed. Lower either number."
            )
        if self.threshold == 0:
            object.__setattr__(self, "threshold", self.present)
        natural(self.threshold, "threshold")
        self._check_threshold()

    def _check_threshold(self) -> None:
        if self.least_threshold > self.present:
            enough = self._enough_sites()
            raise InvalidInput(
                f"{self._said} need a threshold of at least {self.least_threshold}, and {self.missing} sites that "
                f"leave allow at most {self.present}; nothing was agreed. Allow fewer sites to leave, or take {enough} "
                "sites or more."
            )
        if self.threshold < self.least_threshold:
            raise InvalidInput(
                f"a threshold of {self.threshold} is too low: {self._said} need at least {self.least_threshold}, or "
                "they could open what hides a single site. Nothing was agreed."
            )
        if self.threshold > self.present:
            raise InvalidInput(
                f"a threshold of {self.threshold} is too high: when {self.missing} of {self.sites} sites leave, "
                f"{self.present} are there to open the sum. Nothing was agreed."
            )

    @property
    def present(self) -> int:
        """The least number of sites that are there in the end."""
        return self.sites - self.missing

    @property
    def honest(self) -> int:
        """The least number of honest sites whose noise is in a sum: sites − missing − colluding."""
        return self.sites - self.missing - self.colluding

    @property
    def least_threshold(self) -> int:
        """The least threshold at which nobody opens both secrets of one site."""
        if self.server is ServerTrust.LYING:
            return max(2, (self.sites + self.colluding) // 2 + 1)
        return max(2, self.colluding + 1)

    @property
    def _said(self) -> str:
        return f"a {self.server.value} server and {self.colluding} colluding sites of {self.sites}"

    def _enough_sites(self) -> int:
        """The least number of sites for which as many may leave and collude."""
        if self.server is ServerTrust.LYING:
            return max(2 * self.missing + self.colluding + 1, self.missing + 2)
        return self.missing + max(2, self.colluding + 1)
