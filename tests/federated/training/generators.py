"""Three sites that teach a generator together, for tests, and a walk through all tensors that a run computes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import sfumato as sf
from sfumato.federated import FederatedGenerator, InProcess, SiteAgreement
from sfumato.learning import GeneratorSettings

UNIT = sf.record(relation="add/remove")
NAMES = ("north", "south", "west")
KEYS: dict[str, Any] = {"sex": ["F", "M"], "ward": ["A", "B", "C"]}
BOUNDS: dict[str, Any] = {"age": (0, 99)}
FEW = GeneratorSettings(hidden=16, noise=4, batch=32)
NETWORK = GeneratorSettings(critic="network", critic_hidden=8, hidden=16, noise=4, batch=32)
SAID: dict[str, Any] = {"bins": {"age": 4}, "missing": ["age"]}


def people(number: int, shift: int) -> dict[str, list[Any]]:
    """Invented rows; another shift gives quite other ones."""
    places = range(number)
    return {
        "sex": ["FM"[(place + shift) % 2] for place in places],
        "ward": ["ABC"[(place // 2 + shift) % 3] for place in places],
        "age": [None if place % 11 == 10 else (37 * place + 5 * shift) % 100 for place in places],
    }


@dataclass
class GeneratorNetwork:
    """A generator of a consortium, and the vaults of its sites."""

    vaults: dict[str, sf.Vault]
    generator: FederatedGenerator


def generator_network(
    *, shift: int = 0, number: int = 40, settings: GeneratorSettings = FEW, said: Mapping[str, Any] = SAID
) -> GeneratorNetwork:
    """Three sites with ``number`` rows each."""
    vaults = {name: sf.Vault(unit=UNIT, budget=sf.Budget(epsilon=60, delta=1e-6), name=name) for name in NAMES}
    members = {name: vault.public_key for name, vault in vaults.items()}
    paper = SiteAgreement(members=members, missing=1, sites_per_person=1, least_sites=2)
    sites = []
    for place, (name, vault) in enumerate(vaults.items()):
        rows = pa.table(people(number, shift * (1 + place)))
        table = vault.table(rows, name=f"stays of {name}", version="1", keys=KEYS, bounds=BOUNDS)
        sites.append(
            vault.generator_site(table, n_units=number, agreement=paper, **{"settings": settings, **SAID, **said})
        )
    consortium = sf.consortium(
        name="network",
        unit=UNIT,
        budget=sf.Budget(epsilon=60, delta=1e-6),
        sites=members,
        missing=1,
        sites_per_person=1,
        transport=InProcess(sites),
    )
    stays = consortium.table(name="stays", keys=KEYS, bounds=BOUNDS, whole=["age"])
    made = consortium.generator(stays, n_units=3 * number, settings=settings, **SAID)
    return GeneratorNetwork(vaults=vaults, generator=made)


class TensorWalk(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types for it
    """Follows storages: what is computed from, or written with, something marked is marked, also backwards in autograd.

    All tensors that were seen are held until the walk ends, so that no place in memory stands for two of them.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types for it
        self.marked: set[int] = set()
        self._held: list[torch.Tensor] = []

    def mark(self, tensors: Iterable[torch.Tensor]) -> None:
        """Mark tensors that hold rows of people."""
        for one in tensors:
            self._held.append(one)
            self.marked.add(place_of(one))

    def reached(self, tensors: Iterable[torch.Tensor]) -> bool:
        """Whether a way leads from something marked to one of these."""
        return any(place_of(one) in self.marked for one in tensors)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation, and mark what it gives or writes to where one of its inputs is marked."""
        out = func(*args, **(kwargs or {}))
        given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        made = [one for one in tree_leaves(out) if isinstance(one, torch.Tensor)]
        self._held += [*given, *made]
        if self.reached(given):
            written = given if func._schema.is_mutable else []
            self.mark([*made, *written[:1]])
        return out


def place_of(one: torch.Tensor) -> int:
    """Where a tensor lies in memory."""
    return int(one.untyped_storage().data_ptr())
