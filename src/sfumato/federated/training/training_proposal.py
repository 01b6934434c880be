"""What a consortium proposes before a training run, and what each site holds against its own declarations."""

import hashlib
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.budget import Budget
from sfumato.core.documents import LEFT_OUT, canonical, encode, parse
from sfumato.core.exact import natural, positive
from sfumato.core.query import Dataset
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, Refused
from sfumato.federated.parties import Parties, ServerTrust
from sfumato.federated.training.declared_network import DeclaredNetwork
from sfumato.federated.training.federated_training import REASON, FederatedTraining
from sfumato.federated.training.shared_rounds import SharedRounds
from sfumato.reports.declarations import DECLARATIONS

if TYPE_CHECKING:
    from sfumato.federated.terms import RoundTerms

__all__ = ["TrainingProposal"]

BITS = (32, 62)  # of the numbers that are added up: the fewer, the less is sent


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProposal:
    """A whole training run that is put to the vote of the sites: what is learned, how, with which noise, for which ε.

    ``training`` and ``mechanism`` are what each site charges before it reads a row, for its own data; ``sites`` are the
    public keys of all who are asked, and those that join make the roster of a round. ``number`` tells runs with the
    same settings apart. ``network`` declares the model where sites have no code of their own for it. Public: every
    field.
    """

    KIND: ClassVar[str] = "federated.training_proposal"
    VERSION: ClassVar[int] = 1
    consortium: str
    number: int
    training: FederatedTraining
    mechanism: SharedRounds
    local_rate: Fraction
    unit: Unit
    spend: Budget
    sites: tuple[str, ...]
    missing: int
    colluding: int
    lying: bool
    network: DeclaredNetwork | None = field(default=None, metadata={LEFT_OUT: "runs about a site's own code have none"})

    def __post_init__(self) -> None:
        for name in ("number", "missing", "colluding"):
            natural(getattr(self, name), name, least=0)
        if not 1 / REASON <= positive(self.local_rate, "local_rate") <= REASON:
            raise InvalidInput("a rate beyond 2^300, or below its inverse, is not computed with; nothing was done.")
        if self.training.run or self.training.weights or not self.training.model:
            raise InvalidInput("a run that is proposed names its model, and has no weights yet; nothing was done.")
        told = self.network
        if told is not None and (told.digest, told.parameters) != (self.training.model, self.training.parameters):
            raise InvalidInput("the run is about another model than the one that it declares; nothing was done.")
        problem = self.training.mismatch(self.mechanism, self.unit)
        if problem is not None:
            raise InvalidInput(f"the mechanism of a proposal {problem}; nothing was done.")

    @property
    def sites_per_person(self) -> int:
        """In how many sites one person may be."""
        return self.training.sites_per_person

    def to_json(self) -> str:
        """The canonical text."""
        return canonical(encode(self))

    @classmethod
    def from_json(cls, text: str) -> "TrainingProposal":
        """Read a proposal; what is not exactly a text of :meth:`to_json` is refused."""
        found = DECLARATIONS.decode(parse(text), "proposal")
        if not isinstance(found, cls):
            raise InvalidInput("this is not a proposal of a training run; it was not read.")
        return found

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical text, as hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def query(self, dataset: Dataset) -> FederatedTraining:
        """The run as one party charges it: about its own data, and under the digest of the proposal."""
        from dataclasses import replace

        return replace(self.training, dataset=dataset, run=self.digest)

    def terms(self, number: int, roster: tuple[str, ...]) -> "RoundTerms":
        """The terms of one round of those who are there; refused where they are too few.

        Where few are left, fewer may leave: that costs no privacy, and a round that loses more gives no sum.
        """
        from sfumato.federated.shared_noise import SharedNoise
        from sfumato.federated.terms import RoundTerms

        if not set(roster) <= set(self.sites):
            raise Refused("the roster names a site that was not asked; nothing was sent.")
        natural(number, "the number of a round", most=self.training.rounds)
        return RoundTerms(
            run=f"{self.consortium}/{self.digest}",
            number=number,
            roster=roster,
            parties=self._parties(len(roster)),
            length=self.training.parameters,
            bits=self._bits(len(roster)),
            noise=SharedNoise(variance=self.mechanism.variance, removable=True),
        )

    def _parties(self, sites: int) -> Parties:
        trust = ServerTrust.LYING if self.lying else ServerTrust.CURIOUS
        for missing in range(self.missing, 0, -1):
            try:
                return Parties(sites=sites, missing=missing, colluding=self.colluding, server=trust)
            except InvalidInput:
                continue
        return Parties(sites=sites, missing=0, colluding=self.colluding, server=trust)

    def _bits(self, sites: int) -> int:
        """The fewest bits that hold the sum although all people move one number by as much as they can."""
        people = self.training.number if self.training.clients == "persons" else sites
        most = people * (math.isqrt(self.training.l2_squared) + 1) * max(1, sum(self.mechanism.mix))
        room = most * sites + 16 * math.isqrt(math.ceil(self.mechanism.variance)) * sites
        return BITS[0] if room < 2 ** (BITS[0] - 1) else BITS[1]
