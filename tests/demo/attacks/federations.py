"""What a coordinator sees of training across sites, and what it makes of it: with the product, and without privacy.

Invented patients with inputs of their own. A *suspect* has one input that nobody else has, and is there or not by a
coin. A *victim* has a block of inputs that nobody else has, filled with one of a list of candidate records. So what a
sum says of one of them stands in numbers of its own, to which the product adds noise that is drawn for each number by
itself: guesses about different people are independent, and one run gives as many of them as there are people.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import beta
from torch import nn

import sfumato as sf
from sfumato.federated import FedSGD, InProcess, SiteAgreement
from sfumato.learning import Units

Floats = npt.NDArray[np.float64]
Names = npt.NDArray[np.int64]
SITES = ("north", "south", "west")
CLASSES = 2
LARGE = 200.0  # of inputs: updates are cut by far


@dataclass(frozen=True, slots=True, kw_only=True)
class Patients:
    """Invented patients of three sites: who is there, and which record each victim has."""

    present: npt.NDArray[np.bool_]
    candidates: Floats
    true: Names
    inputs: npt.NDArray[np.float32]
    labels: Names

    @classmethod
    def invented(
        cls, *, suspects: int, victims: int, candidates: int = 20, width: int = 6, seed: int = 1
    ) -> "Patients":
        """Half of the suspects by coins, and all victims; the records of candidates are of one length."""
        draw = np.random.default_rng(1)
        present = draw.random(suspects) < 0.5
        records = draw.normal(size=(candidates, width))
        records *= LARGE / np.linalg.norm(records, axis=1, keepdims=True)
        true = draw.integers(candidates, size=victims)
        first = np.eye(suspects)[present] * LARGE
        second = np.zeros((victims, victims, width))
        second[np.arange(victims), np.arange(victims)] = records[true]
        inputs = np.zeros((len(first) + victims, suspects + victims * width), dtype=np.float32)
        inputs[: len(first), :suspects] = first
        inputs[len(first) :, suspects:] = second.reshape(victims, -1)
        return cls(
            present=present, candidates=records, true=true, inputs=inputs, labels=np.zeros(len(inputs), dtype=np.int64)
        )

    @property
    def declared(self) -> int:
        """How many there are at most: public."""
        return len(self.present) + len(self.true)

    def model(self) -> nn.Module:
        """A softmax regression that begins at zero."""
        made = nn.Linear(self.inputs.shape[1], CLASSES)
        with torch.no_grad():
            for one in made.parameters():
                one.zero_()
        return made

    def of(self, site: int) -> tuple[npt.NDArray[np.float32], Names]:
        """The rows of one site."""
        return self.inputs[site :: len(SITES)], self.labels[site :: len(SITES)]


def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Of one row, or of several."""
    return nn.functional.cross_entropy(outputs, targets)


def product_weights(patients: Patients, *, epsilon: float, delta: float, rounds: int = 1, **said: Any) -> list[Floats]:
    """The weights before each round and after the last, as each site is sent them by ``consortium.trainer``."""
    unit, seen = sf.record(relation="add/remove"), [np.zeros(CLASSES * (patients.inputs.shape[1] + 1))]
    vaults = {name: sf.Vault(unit=unit, budget=sf.Budget(epsilon=100, delta=1e-6), name=name) for name in SITES}
    members = {name: vault.public_key for name, vault in vaults.items()}
    paper = SiteAgreement(members=members, missing=0, sites_per_person=1)
    sites = []
    for place, (name, vault) in enumerate(vaults.items()):
        inputs, labels = patients.of(place)
        own = Units(inputs, labels, n_units=patients.declared, name=f"stays of {name}", version="1")
        sites.append(vault.training_site(patients.model(), loss, data=own, agreement=paper))
    consortium = sf.consortium(
        name="network",
        unit=unit,
        budget=sf.Budget(epsilon=100, delta=1e-6),
        sites=members,
        missing=0,
        sites_per_person=1,
        transport=InProcess(sites),
    )
    model = patients.model()
    trainer = consortium.trainer(model, n_units=patients.declared, name="stays", **said)

    class Kept(FedSGD):
        """Plain descent that keeps what a coordinator has in its hands."""

        def step(self, weights: Floats, update: Floats, kept: Any, number: int) -> Any:
            after = super().step(weights, update, kept, number)
            seen.append(after[0])
            return after

    trainer.fit(epsilon=epsilon, delta=delta, rounds=rounds, optimizer=Kept(lr=1.0))
    return seen


def unprotected_weights(patients: Patients, *, rounds: int = 1, local_steps: int = 1, lr: float = 1.0) -> list[Floats]:
    """NOT PRIVATE, and nowhere in the product: federated averaging as it is often done, without clip, noise or masks.

    Each site descends for ``local_steps`` (one of them is FedSGD) on the mean loss of its rows and sends its weights;
    the mean of these, by numbers of rows, is where the next round begins.
    """
    now = patients.model()
    seen = [_flat(now)]
    for _ in range(rounds):
        sent = [_descended(patients, place, seen[-1], local_steps, lr) for place in range(len(SITES))]
        parts = [len(patients.of(place)[0]) for place in range(len(SITES))]
        seen.append(np.average(sent, axis=0, weights=parts))
    return seen


def _descended(patients: Patients, place: int, weights: Floats, steps: int, lr: float) -> Floats:
    own = patients.model()
    nn.utils.vector_to_parameters(torch.from_numpy(weights.astype(np.float32)), own.parameters())
    rows, labels = (torch.from_numpy(part) for part in patients.of(place))
    for _ in range(steps):
        own.zero_grad()
        torch.autograd.backward(loss(own(rows), labels))
        with torch.no_grad():
            for one in own.parameters():
                one.sub_(lr * one.grad if one.grad is not None else torch.zeros_like(one))
    return _flat(own)


def _flat(model: nn.Module) -> Floats:
    return torch.cat([one.detach().flatten() for one in model.parameters()]).double().numpy()


def members_named(patients: Patients, weights: list[Floats], *, one: float) -> int:
    """How many suspects a coordinator is right about who knows that a member moves the own weight by ``one``."""
    said = _moved(patients, weights)[0, : len(patients.present)] > one / 2
    return int((said == patients.present).sum())


def records_read(patients: Patients, weights: list[Floats]) -> Floats:
    """The record of each victim up to its length, as the moves of its own inputs' weights have it."""
    block = _moved(patients, weights)[0, len(patients.present) :].reshape(len(patients.true), -1)
    return np.asarray(block * LARGE / np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-300))


def victims_named(patients: Patients, weights: list[Floats]) -> int:
    """For how many victims the candidate that lies nearest is the true one."""
    near = records_read(patients, weights) @ patients.candidates.T
    return int((near.argmax(axis=1) == patients.true).sum())


def _moved(patients: Patients, weights: list[Floats]) -> Floats:
    """How far the weights of both classes moved in all rounds together: classes × inputs."""
    size = CLASSES * patients.inputs.shape[1]
    return (weights[-1] - weights[0])[:size].reshape(CLASSES, -1)


def epsilon_shown(right: int, tries: int, *, delta: float, alpha: float) -> float:
    """The least ε that allows so many right guesses at coins, but for a chance of ``alpha`` (Clopper and Pearson).

    With (ε, δ) a guess at a fair coin is right with at most (e^ε + δ)/(e^ε + 1).
    """
    rate = float(beta.ppf(alpha, right, tries - right + 1)) if right else 0.0
    return math.log((rate - delta) / (1 - rate)) if rate - delta > 1 - rate else 0.0
