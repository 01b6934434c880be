"""Sites whose tables are declared, for runs about declared networks: invented rows, and no code at the sites."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.federated import Consortium, DeclaredNetwork, InProcess, SiteAgreement, TrainingSite
from sfumato.federated.training.federated_trainer import FederatedTrainer
from sfumato.tables.schema import Schema

PATIENT = sf.user("patient", relation="add/remove")
SITES = ("north", "south", "west")
SCHEMA = """
kind = "schema"
version = 1
[dataset]
name = "stays"
version = "1"
[unit]
column = "patient"
[limit]
groups = 1
rows_per_group = 1
[columns.patient]
type = "whole"
bounds = [0, 99]
[columns.age]
type = "number"
bounds = [0, 100]
[columns.sex]
type = "text"
keys = ["F", "M"]
[columns.died]
type = "truth"
[columns.note]
type = "text"
"""


def schema() -> Schema:
    """What all sites declare."""
    return Schema.from_toml(SCHEMA)


def network(**said: Any) -> DeclaredNetwork:
    """Logistic regression of death on age and sex, if nothing else is said."""
    return DeclaredNetwork.of_schema(schema(), **{"inputs": ["sex", "age"], "target": "died", **said})


def stays(number: int, seed: int) -> dict[str, list[Any]]:
    """Invented rows."""
    draw = np.random.default_rng(seed)
    age = draw.uniform(0, 100, number)
    return {
        "patient": list(range(number)),
        "age": age.tolist(),
        "sex": draw.choice(["F", "M"], number).tolist(),
        "died": (age + draw.normal(0, 5, number) > 50).tolist(),
        "note": ["x"] * number,
    }


@dataclass
class TableNetwork:
    """Sites by name, their vaults, and a consortium that reaches them."""

    vaults: dict[str, sf.Vault]
    sites: dict[str, TrainingSite]
    consortium: Consortium

    def trainer(self, declared: Any = None, **said: Any) -> FederatedTrainer:
        """A trainer for all of them."""
        return self.consortium.trainer(declared or network(), **{"n_units": 90, "name": "stays", **said})

    @property
    def spent(self) -> list[int]:
        """The ε of each site."""
        return [int(vault.spent.epsilon) for vault in self.vaults.values()]


def table_network(rows: Mapping[str, Mapping[str, Any]] | None = None, **said: Any) -> TableNetwork:
    """A consortium of sites with invented rows, or with these."""
    budget = sf.Budget(epsilon=9, delta=1e-6)
    vaults = {name: sf.Vault(unit=PATIENT, budget=budget, name=name) for name in SITES}
    members = {name: vault.public_key for name, vault in vaults.items()}
    paper, sites = SiteAgreement(members=members, missing=1, sites_per_person=1, least_sites=2), {}
    for seed, (name, vault) in enumerate(vaults.items()):
        table = vault.table(pa.table(dict((rows or {}).get(name) or stays(30, seed))), schema=schema())
        sites[name] = vault.declared_training_site(table, agreement=paper, **said)
    consortium = sf.consortium(
        name="network",
        unit=PATIENT,
        budget=budget,
        sites=members,
        missing=1,
        sites_per_person=1,
        transport=InProcess(list(sites.values())),
    )
    return TableNetwork(vaults=vaults, sites=sites, consortium=consortium)
