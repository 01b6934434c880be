"""Sums across sites that no server can look behind: masks that cancel, and noise of which every site adds a share."""

from sfumato.federated.allocation import CountedNoise, RoundAllocation, allocate
from sfumato.federated.in_process import round_in_process
from sfumato.federated.messages import SumPhase
from sfumato.federated.parties import Parties, ServerTrust
from sfumato.federated.person_rounding import PersonRounding
from sfumato.federated.server import SumResult, SumServer, verify_round
from sfumato.federated.shared_noise import SharedNoise
from sfumato.federated.site import SumSite
from sfumato.federated.terms import RoundTerms
from sfumato.federated.zero_round import NoiseVerdict, noise_verdict

__all__ = [
    "CountedNoise",
    "NoiseVerdict",
    "Parties",
    "PersonRounding",
    "RoundAllocation",
    "RoundTerms",
    "ServerTrust",
    "SharedNoise",
    "SumPhase",
    "SumResult",
    "SumServer",
    "SumSite",
    "allocate",
    "noise_verdict",
    "round_in_process",
    "verify_round",
]
