"""Three hospitals in one process, for tests: few rows, each with its own vault."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.federated import Consortium, Hospital, InProcess, SiteAgreement
from sfumato.federated.hospital import Committee
from sfumato.federated.messages import unpacked
from sfumato.federated.signed_requests import opened_request
from sfumato.tables.table import Table

UNIT = sf.user("patient", relation="add/remove")
ONCE = sf.Limit(groups=1, rows_per_group=1)
FACTS: dict[str, Any] = {"keys": {"sex": ["F", "M"]}, "bounds": {"age": (0, 100), "weeks": (1, 8)}, "limit": ONCE}
SPEND: dict[str, Any] = {"epsilon": 1, "delta": 1e-7}
ROWS: dict[str, dict[str, list[Any]]] = {
    "north": {"patient": [1, 2, 3, 4], "sex": ["F", "F", "M", "M"], "age": [40, 50, 60, 71], "weeks": [1, 2, 3, 8]},
    "south": {"patient": [5, 6, 7], "sex": ["M", "M", "F"], "age": [30, 20, 90], "weeks": [4, 4, 5]},
    "west": {"patient": [8, 9], "sex": ["F", "F"], "age": [33, 66], "weeks": [6, 8]},
}


@dataclass
class Network:
    """Hospitals by name, their vaults, and a consortium that reaches them."""

    vaults: dict[str, sf.Vault]
    sites: dict[str, Hospital]
    consortium: Consortium
    stays: Table

    def silent(self, **left: int) -> None:
        """From now on, sites answer so many times more."""
        silent = {self.sites[name].public_key: count for name, count in left.items()}
        self.consortium.connect(InProcess(list(self.sites.values()), silent=silent))


def network(
    rows: Mapping[str, Mapping[str, list[Any]]] = ROWS,
    *,
    committees: Mapping[str, Committee] | None = None,
    missing: int = 1,
    sites_per_person: int = 1,
    budget: float = 5,
) -> Network:
    """A consortium of hospitals with these rows."""
    vaults = {name: sf.Vault(unit=UNIT, budget=sf.Budget(epsilon=budget, delta=1e-6), name=name) for name in rows}
    members = {name: vault.public_key for name, vault in vaults.items()}
    said = committees or {}
    paper = SiteAgreement(members=members, missing=missing, sites_per_person=sites_per_person, least_sites=2)
    sites = {}
    for name, own in rows.items():
        frame = pa.table({**own, "died": [age > 45 for age in own["age"]]})
        table = vaults[name].table(frame, name=f"stays of {name}", version="1", **FACTS)
        sites[name] = Hospital(table, agreement=paper, committee=said.get(name, lambda proposal: True))
    consortium = sf.consortium(
        name="network",
        unit=UNIT,
        budget=sf.Budget(epsilon=50, delta=1e-6),
        sites=members,
        missing=missing,
        sites_per_person=sites_per_person,
        transport=InProcess(list(sites.values())),
    )
    stays = consortium.table(name="stays", whole=["weeks"], **FACTS)
    return Network(vaults=vaults, sites=sites, consortium=consortium, stays=stays)


def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sites add zeros for noise: what the product has no way to ask for."""

    def zeros(variance: object, size: int, words: object) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        del variance, words
        return np.zeros(size, dtype=np.int64)

    for module in ("site", "server"):
        monkeypatch.setattr(f"sfumato.federated.{module}.sample_skellam", zeros)


def parts_of(site: str, request: bytes) -> tuple[bytes, ...]:
    """What a coordinator asks a site, taken apart."""
    return unpacked(opened_request(request, site=site, coordinator=""))


def kept_in(folder: Path) -> list[Path]:
    """The files of a folder."""
    return sorted(folder.iterdir())
