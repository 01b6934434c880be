"""Sums across sites that no server can look behind: masks that cancel, and noise of which every site adds a share."""

import importlib
from typing import TYPE_CHECKING

from sfumato.core.data_kind import DataKind
from sfumato.federated.proposal import SiteProposal
from sfumato.federated.shared_skellam import SharedSkellam
from sfumato.federated.summed import AcrossSites, SiteShare
from sfumato.federated.training.declared_network import DeclaredNetwork
from sfumato.federated.training.federated_training import FederatedTraining
from sfumato.federated.training.shared_rounds import SharedRounds
from sfumato.federated.training.training_proposal import TrainingProposal
from sfumato.tables.feature_columns import FeatureColumn

if TYPE_CHECKING:
    from sfumato.federated.agreement import SiteAgreement
    from sfumato.federated.allocation import CountedNoise, RoundAllocation, allocate
    from sfumato.federated.consortium import Consortium
    from sfumato.federated.file_transport import AnswersAwaited, FileTransport
    from sfumato.federated.hospital import Hospital
    from sfumato.federated.http_server import HttpTransport
    from sfumato.federated.http_site import HttpSite
    from sfumato.federated.in_process import round_in_process
    from sfumato.federated.messages import SumPhase
    from sfumato.federated.parties import Parties, ServerTrust
    from sfumato.federated.person_rounding import PersonRounding
    from sfumato.federated.server import SumResult, SumServer, verify_round
    from sfumato.federated.shared_noise import SharedNoise
    from sfumato.federated.site import SumSite
    from sfumato.federated.terms import RoundTerms
    from sfumato.federated.training.federated_generator import FederatedGenerator
    from sfumato.federated.training.federated_trainer import FederatedTrainer, TrainedAcrossSites
    from sfumato.federated.training.server_optimizers import FedAdam, FedSGD
    from sfumato.federated.training.training_site import TrainingSite
    from sfumato.federated.training.weights_file import check_certified, read_network
    from sfumato.federated.transports import InProcess, Transport, TransportToAll
    from sfumato.federated.zero_round import NoiseVerdict, noise_verdict

_HOME = {
    "SiteAgreement": "agreement",
    "Consortium": "consortium",
    "CountedNoise": "allocation",
    "FedAdam": "training.server_optimizers",
    "FedSGD": "training.server_optimizers",
    "FederatedGenerator": "training.federated_generator",
    "FederatedTrainer": "training.federated_trainer",
    "AnswersAwaited": "file_transport",
    "FileTransport": "file_transport",
    "Hospital": "hospital",
    "HttpSite": "http_site",
    "HttpTransport": "http_server",
    "InProcess": "transports",
    "NoiseVerdict": "zero_round",
    "Parties": "parties",
    "PersonRounding": "person_rounding",
    "RoundAllocation": "allocation",
    "RoundTerms": "terms",
    "ServerTrust": "parties",
    "SharedNoise": "shared_noise",
    "SumPhase": "messages",
    "SumResult": "server",
    "SumServer": "server",
    "SumSite": "site",
    "TrainedAcrossSites": "training.federated_trainer",
    "TrainingSite": "training.training_site",
    "Transport": "transports",
    "TransportToAll": "transports",
    "allocate": "allocation",
    "check_certified": "training.weights_file",
    "noise_verdict": "zero_round",
    "read_network": "training.weights_file",
    "round_in_process": "in_process",
    "verify_round": "server",
}

__all__ = [
    "KIND",
    "AcrossSites",
    "AnswersAwaited",
    "Consortium",
    "CountedNoise",
    "DeclaredNetwork",
    "FedAdam",
    "FedSGD",
    "FederatedGenerator",
    "FederatedTrainer",
    "FederatedTraining",
    "FileTransport",
    "Hospital",
    "HttpSite",
    "HttpTransport",
    "InProcess",
    "NoiseVerdict",
    "Parties",
    "PersonRounding",
    "RoundAllocation",
    "RoundTerms",
    "ServerTrust",
    "SharedNoise",
    "SharedRounds",
    "SharedSkellam",
    "SiteAgreement",
    "SiteProposal",
    "SiteShare",
    "SumPhase",
    "SumResult",
    "SumServer",
    "SumSite",
    "TrainedAcrossSites",
    "TrainingProposal",
    "TrainingSite",
    "Transport",
    "TransportToAll",
    "allocate",
    "check_certified",
    "noise_verdict",
    "read_network",
    "round_in_process",
    "verify_round",
]

KIND = DataKind(
    name="federated",
    declarations=(
        AcrossSites,
        DeclaredNetwork,
        FeatureColumn,
        FederatedTraining,
        SharedRounds,
        SharedSkellam,
        SiteProposal,
        SiteShare,
        TrainingProposal,
    ),
    messages="sfumato.federated",
    plots={},
    store="sfumato.federated.consortium:ConsortiumStore",
)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato.federated' has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"sfumato.federated.{_HOME[name]}"), name)
    return found
