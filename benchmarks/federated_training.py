"""Ten hospital-like groups of diabetes-130: a model trained across them beside one trained in one place.

The table names no hospital, so that patients are put into ten groups by the payer of their first stay: groups differ in
size and in who is in them. ``python -m benchmarks.federated_training FOLDER [--rounds N]`` prints JSON: the area under
the curve on held-out patients of training across sites at (ε, δ), of central private training at the same ε with its
own noise, and of central training with the very noise that the sites left in the sums.
"""

import argparse
import hashlib
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import readmissions

if TYPE_CHECKING:
    from torch import nn

SITES = 10
PERSON = "patient_nbr"
DELTA = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Stays:
    """Features, targets, patients and groups of rows to train on, and what to test with."""

    inputs: Any
    targets: Any
    patients: Any
    sites: Any
    held_inputs: Any
    held_targets: Any


def stays(folder: Path) -> Stays:
    """The rows of the table by group."""
    import pyarrow.parquet as pq

    from sfumato.learning import Features

    path = folder / "diabetic_data.parquet"
    columns, targets, patients, held = readmissions.read(path)
    inputs = Features(bounds=readmissions.BOUNDS, categories=readmissions.WORDS)(columns).numpy()
    first: dict[int, int] = {}
    for patient, payer in zip(patients.tolist(), pq.read_table(path)["payer_code"].to_pylist(), strict=True):
        first.setdefault(patient, hashlib.sha256(str(payer).encode()).digest()[0] % SITES)
    sites = np.array([first[patient] for patient in patients.tolist()])
    seen = ~held
    return Stays(
        inputs=inputs[seen],
        targets=targets[seen],
        patients=patients[seen],
        sites=sites[seen],
        held_inputs=inputs[held],
        held_targets=targets[held],
    )


def model(size: int) -> "nn.Module":
    """Logistic regression, the same for everybody."""
    import torch

    made = torch.nn.Linear(size, 2)
    torch.nn.init.zeros_(made.weight)
    torch.nn.init.zeros_(made.bias)
    return made


def units(rows: Stays, which: Any, number: int, name: str) -> Any:
    """Patients, one stay of each."""
    from sfumato.learning import Units

    return Units(
        rows.inputs[which],
        rows.targets[which],
        ids=rows.patients[which].tolist(),
        max_records_per_unit=1,
        n_units=number,
        name=name,
        version="1",
    )


def area(trained: "nn.Module", rows: Stays) -> float:
    """The area under the curve on held-out patients."""
    import torch

    with torch.no_grad():
        scores = trained(torch.from_numpy(rows.held_inputs)).numpy()
    return readmissions.area_under_curve(scores[:, 1] - scores[:, 0], rows.held_targets)


def across(rows: Stays, settings: dict[str, Any], lr: float, colluding: int) -> dict[str, float]:
    """Train across the groups, each with its own vault."""
    import torch

    import sfumato as sf
    from sfumato import federated

    unit, budget = sf.user(PERSON, relation="add/remove"), sf.Budget(epsilon=20, delta=1e-5)
    people = {"population": readmissions.PATIENTS}
    vaults = {f"site {k}": sf.Vault(unit=unit, budget=budget, name=f"site {k}", **people) for k in range(SITES)}
    members = {name: vault.public_key for name, vault in vaults.items()}
    paper = federated.SiteAgreement(members=members, sites_per_person=1, missing=1, colluding=colluding)
    size, loss = rows.inputs.shape[1], torch.nn.functional.cross_entropy
    sites = [
        vault.training_site(
            model(size), loss, data=units(rows, rows.sites == place, settings["number"], name), agreement=paper
        )
        for place, (name, vault) in enumerate(vaults.items())
    ]
    network = sf.consortium(
        name="ten groups",
        unit=unit,
        budget=budget,
        sites=members,
        sites_per_person=1,
        missing=1,
        colluding=colluding,
        transport=federated.InProcess(sites),
        **people,
    )
    trainer = network.trainer(model(size), n_units=settings["number"], name="stays", clip=1)
    begin = time.perf_counter()
    done = trainer.fit(
        epsilon=settings["epsilon"],
        delta=DELTA,
        rounds=settings["rounds"],
        batch=settings["batch"],
        optimizer=federated.FedSGD(lr=lr, momentum=0.9),
    )
    said = done.release.statement
    realised = math.sqrt(said.mechanism.variance * SITES / (SITES - colluding)) * float(said.query.step)
    seconds = time.perf_counter() - begin
    return {"auc": area(done.model, rows), "multiplier": realised, "seconds_a_round": seconds / settings["rounds"]}


def central(rows: Stays, settings: dict[str, Any], lr: float, multiplier: float | None) -> dict[str, float]:
    """Train in one place, at the same ε, or with a given noise."""
    import torch

    import sfumato as sf

    vault = sf.Vault(
        unit=sf.user(PERSON, relation="add/remove"),
        budget=sf.Budget(epsilon=200, delta=1e-5),
        name="one place",
        population=readmissions.PATIENTS,
    )
    trainer = vault.trainer(
        model(rows.inputs.shape[1]),
        torch.nn.functional.cross_entropy,
        data=units(rows, slice(None), settings["number"], "stays"),
        clip=1,
    )
    how: dict[str, Any] = {"epsilon": settings["epsilon"]} if multiplier is None else {"noise_multiplier": multiplier}
    done = trainer.fit(
        **how,
        delta=DELTA,
        steps=settings["rounds"],
        batch=settings["batch"],
        optimizer=lambda weights: torch.optim.SGD(weights, lr=lr, momentum=0.9),
        progress=False,
    )
    return {"auc": area(done.model, rows), "multiplier": float(done.release.statement.mechanism.multiplier)}


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--rounds", type=int, default=200)
    asked.add_argument("--batch", type=int, default=1000)
    asked.add_argument("--epsilon", type=float, default=3.0)
    asked.add_argument("--lr", type=float, default=0.5)
    asked.add_argument("--colluding", type=int, default=0)
    asked.add_argument("--runs", type=int, default=3)
    said = asked.parse_args()
    rows = stays(said.folder)
    number = readmissions.PATIENTS * 4 // 5
    settings = {"rounds": said.rounds, "batch": said.batch, "epsilon": said.epsilon, "number": number}
    found: dict[str, list[dict[str, float]]] = {"across": [], "central": [], "central at realised noise": []}
    for _ in range(said.runs):
        found["across"].append(across(rows, settings, said.lr, said.colluding))
        found["central"].append(central(rows, settings, said.lr, None))
        realised = found["across"][-1]["multiplier"]
        found["central at realised noise"].append(central(rows, settings, said.lr, realised))
    means = {name: float(np.mean([one["auc"] for one in each])) for name, each in found.items()}
    print(json.dumps({"settings": settings, "mean auc": means, "runs": found}, indent=1))


if __name__ == "__main__":
    main()
