"""Three sites that train together in one process, for tests: invented rows, each site with its own vault."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

import sfumato as sf
from sfumato.federated import Consortium, InProcess, SiteAgreement, TrainingSite
from sfumato.federated.signed_requests import MAGIC
from sfumato.federated.training.federated_trainer import FederatedTrainer
from sfumato.federated.training.training_site import RunCommittee
from sfumato.learning import Units

UNIT = sf.record(relation="add/remove")
TRUE = np.array([1.0, -2.0, 0.5])
NAMES = ("north", "south", "west")
SPEND: dict[str, Any] = {"epsilon": 3, "delta": 1e-7}


def plain(request: bytes) -> bytes:
    """A request without the signature of the coordinator."""
    return request[len(MAGIC) + 96 :] if request.startswith(MAGIC) else request


def rows(number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Invented inputs, and the class that a line divides them by."""
    inputs = np.random.default_rng(seed).normal(size=(number, 3)).astype(np.float32)
    return inputs, (inputs @ TRUE > 0).astype(np.int64)


def model() -> nn.Module:
    """A linear model; all parties begin with the same weights."""
    made = nn.Linear(3, 2)
    with torch.no_grad():
        for one in made.parameters():
            one.zero_()
    return made


def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Of one row, or of several."""
    return nn.functional.cross_entropy(outputs, targets)


@dataclass
class TrainingNetwork:
    """Sites by name, their vaults, and a consortium that reaches them."""

    vaults: dict[str, sf.Vault]
    sites: dict[str, TrainingSite]
    consortium: Consortium
    model: nn.Module

    def trainer(self, **said: Any) -> FederatedTrainer:
        """A trainer for all of them."""
        return self.consortium.trainer(self.model, **{"n_units": 90, "name": "stays", **said})

    def silent(self, **left: int) -> None:
        """From now on, sites answer so many times more."""
        silent = {self.sites[name].public_key: count for name, count in left.items()}
        self.consortium.connect(InProcess(list(self.sites.values()), silent=silent))


def training_network(
    numbers: Sequence[int] = (30, 30, 30),
    *,
    committees: Mapping[str, RunCommittee] | None = None,
    missing: int = 1,
    sites_per_person: int = 1,
    budget: float = 5,
    unit: Any = UNIT,
    data: Mapping[str, Units] | None = None,
) -> TrainingNetwork:
    """A consortium of sites with invented rows, or with these data."""
    names = NAMES if data is None else tuple(data)
    vaults = {name: sf.Vault(unit=unit, budget=sf.Budget(epsilon=budget, delta=1e-6), name=name) for name in names}
    members = {name: vault.public_key for name, vault in vaults.items()}
    paper = SiteAgreement(members=members, missing=missing, sites_per_person=sites_per_person, least_sites=2)
    sites = {}
    for seed, (name, number) in enumerate(zip(names, numbers, strict=False)):
        inputs, targets = rows(number, seed)
        own = (
            Units(inputs, targets, n_units=number, name=f"stays of {name}", version="1") if data is None else data[name]
        )
        sites[name] = vaults[name].training_site(
            model(), loss, data=own, agreement=paper, committee=(committees or {}).get(name)
        )
    consortium = sf.consortium(
        name="network",
        unit=unit,
        budget=sf.Budget(epsilon=50, delta=1e-6),
        sites=members,
        missing=missing,
        sites_per_person=sites_per_person,
        transport=InProcess(list(sites.values())),
    )
    return TrainingNetwork(vaults=vaults, sites=sites, consortium=consortium, model=model())
