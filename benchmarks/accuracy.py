"""How good private models are: digits and clothes at ε = 3 by record, readmissions by patient, through a vault.

Pictures become scattering features (``sfumato.learning.scattering``), normalised within each picture, and a linear
model is trained on them. Batch, learning rate, momentum, clip, epochs and groups are those which Tramèr and Boneh
(2021) published for linear models on such features. The settings for the table of stays were written down before its
first run. Test rows and patients are public here, so that accuracy can be told after each epoch: with private rows it
would have to be charged.

``python -m benchmarks accuracy`` takes about a quarter of an hour on two quiet cores.
"""

import gzip
import statistics
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import readmissions
from benchmarks.harness import write

if TYPE_CHECKING:
    from torch import Tensor

DATA = Path(__file__).parents[2] / "shared" / "data"
RUNS, EPSILON, DELTA = 3, 3, "1/100000"
GROUPS, CLIP, MOMENTUM, EPOCHS = 27, "1/10", 0.9, 40
PICTURES = {  # batch and learning rate
    "mnist": (4096, 8.0),
    "fashion-mnist": (8192, 16.0),
}
BY_PATIENT = {"batch": 4096, "epochs": 20, "clip": 1, "momentum": 0.9, "records": 4, "delta": "1/1000000"}
MODELS: dict[str, tuple[tuple[int, ...], float]] = {"logistic regression": ((), 1.0), "network, 32": ((32,), 0.5)}
EPSILONS = (1, 3, 8)


def run(*, smoke: bool) -> Path:
    """Train everything, write after each part; a smoke run invents small data."""
    if smoke:
        return write("accuracy", {"invented": _smoke()}, smoke=True)
    measured: dict[str, object] = {}
    for name, (batch, rate) in PICTURES.items():
        measured[name] = pictures(*features(DATA / name), name=name, batch=batch, rate=rate)
        write("accuracy", measured, smoke=False)
    measured["readmissions"] = stays(DATA / "diabetes-130-us-hospitals" / "diabetic_data.parquet")
    return write("accuracy", measured, smoke=False)


def pictures(
    seen: "tuple[Tensor, Tensor]",
    held: "tuple[Tensor, Tensor]",
    *,
    name: str,
    batch: int,
    rate: float,
    epochs: int = EPOCHS,
    runs: int = RUNS,
) -> dict[str, object]:
    """Train linear models on features, and tell accuracy and ε after each epoch."""
    import torch

    number, width = len(seen[1]), seen[0].shape[1]
    told = []
    for _ in range(runs):
        model = torch.nn.Linear(width, 10)
        torch.nn.init.zeros_(model.weight)
        torch.nn.init.zeros_(model.bias)
        told.append(
            trained(
                model,
                seen,
                unit="record",
                facts={"n_units": number, "name": name, "version": "1"},
                settings={"epsilon": EPSILON, "delta": DELTA, "epochs": epochs, "batch": batch},
                clip=CLIP,
                rate=rate,
                figure=lambda model: _accuracy(model, *held),
            )
        )
    best = [one["accuracy"][-1] for one in told]
    return {
        "pairs": 0,
        "peers": {},
        "settings": {
            "epsilon": EPSILON,
            "delta": DELTA,
            "unit": "record, add/remove",
            "batch": batch,
            "learning rate": rate,
            "momentum": MOMENTUM,
            "clip": CLIP,
            "epochs": epochs,
            "groups": GROUPS,
            "parameters": 10 * (width + 1),
        },
        "accuracy, mean": round(statistics.mean(best), 4),
        "accuracy, least": min(best),
        "runs": told,
    }


def trained(
    model: Any,
    seen: "tuple[Tensor, Tensor]",
    *,
    unit: str,
    facts: Mapping[str, Any],
    settings: Mapping[str, Any],
    clip: Any,
    rate: float,
    figure: "Callable[[Any], float]",
    called: str = "accuracy",
) -> dict[str, Any]:
    """One charged run through a vault, with a figure on public rows and the ε after each epoch."""
    import copy

    import torch

    import sfumato as sf
    from sfumato.learning import Units

    protected = sf.user("patient_nbr", relation="add/remove") if unit == "user" else sf.record(relation="add/remove")
    budget = sf.Budget(epsilon=settings["epsilon"], delta=settings["delta"])
    vault = sf.Vault(unit=protected, budget=budget, name="benchmark", population=facts["number"])
    trainer = vault.trainer(model, torch.nn.functional.cross_entropy, data=Units(*seen, **facts), clip=clip)
    steps: list[int] = []
    figures: list[float] = []
    shown = copy.deepcopy(model)

    def watch(step: int, weights: Any) -> None:
        shown.load_state_dict(weights)
        steps.append(step)
        figures.append(round(figure(shown), 4))

    optimiser = torch.optim.SGD(model.parameters(), lr=rate, momentum=MOMENTUM)
    at_once = settings["batch"] + 4 * int(settings["batch"] ** 0.5)  # nearly always one physical batch a step
    result = trainer.fit(**settings, optimizer=optimiser, callback=watch, max_physical_batch_size=at_once)
    statement = result.release.statement
    return {
        "steps": steps,
        "epsilon": spent(statement.event, steps, settings["delta"]),
        called: figures,
        "charged": str(result.release.charged.epsilon),
        "noise multiplier": round(float(statement.mechanism.multiplier), 4),  # type: ignore[attr-defined]
    }


@lru_cache
def _after(event: Any, step: int, delta: str) -> float:
    from sfumato import accounting
    from sfumato.core.events import Repeated

    return float(accounting.epsilon(Repeated(event=event.event, times=step), delta=delta))


def spent(event: Any, steps: list[int], delta: str) -> list[float]:
    """The ε of the first steps, at the δ of the whole run."""
    return [round(_after(event, step, delta), 4) for step in steps]


def features(folder: Path) -> "tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]":
    """Features and labels of the pictures to train on, and of those to test with."""
    train = np.concatenate([idx(path) for path in sorted(folder.glob("train-images*"))])
    test = idx(folder / "t10k-images-idx3-ubyte.gz")
    return (
        transformed(train, idx(folder / "train-labels-idx1-ubyte.gz")),
        transformed(test, idx(folder / "t10k-labels-idx1-ubyte.gz")),
    )


def transformed(images: Any, labels: Any, *, at_once: int = 500) -> "tuple[Tensor, Tensor]":
    """Scattering features, normalised in groups of channels within each picture."""
    import torch

    from sfumato.learning.scattering import Scattering, group_normalised

    scattering = Scattering(size=images.shape[-1])
    found = torch.empty(len(images), scattering.channels * scattering.side**2)
    for start in range(0, len(images), at_once):
        some = torch.from_numpy(images[start : start + at_once].astype(np.float32) / 255)
        found[start : start + at_once] = group_normalised(scattering(some), groups=GROUPS).flatten(1)
    return found, torch.from_numpy(labels.astype(np.int64))


def idx(path: Path) -> Any:
    """An array in the idx format."""
    with gzip.open(path) as file:
        content = file.read()
    shape = [int.from_bytes(content[4 + 4 * axis : 8 + 4 * axis], "big") for axis in range(content[3])]
    return np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def stays(path: Path, *, runs: int = RUNS) -> dict[str, object]:
    """Readmission within 30 days: the area under the curve for held-out patients, private and not."""
    import torch

    from sfumato.learning import Features

    columns, targets, patients, held = readmissions.read(path)
    features, wanted = Features(bounds=readmissions.BOUNDS, categories=readmissions.WORDS), torch.from_numpy(targets)
    rows = features(columns)
    seen, test = torch.from_numpy(~held), (rows[torch.from_numpy(held)], targets[held])
    number = 1000 * round(readmissions.PATIENTS * (1 - 1 / readmissions.HELD_OUT) / 1000)
    found: dict[str, dict[str, object]] = {}
    for name, (hidden, rate) in MODELS.items():
        plain = network(rows.shape[1], hidden)
        found[name] = {"learning rate": rate, "not private": round(_plainly(plain, rows[seen], wanted[seen], test), 4)}
        for epsilon in EPSILONS:
            told = [
                trained(
                    network(rows.shape[1], hidden),
                    (rows[seen], wanted[seen]),
                    unit="user",
                    facts={
                        "ids": patients[~held],
                        "max_records_per_unit": BY_PATIENT["records"],
                        "n_units": number,
                        "name": "stays",
                    },
                    settings={key: BY_PATIENT[key] for key in ("batch", "epochs", "delta")} | {"epsilon": epsilon},
                    clip=BY_PATIENT["clip"],
                    rate=rate,
                    figure=lambda model: _area(model, *test),
                    called="area",
                )
                for _ in range(runs)
            ]
            last = [one["area"][-1] for one in told]
            found[name][f"epsilon {epsilon}"] = {
                "mean": round(statistics.mean(last), 4),
                "least": min(last),
                "runs": told,
            }
    return {
        "pairs": 0,
        "peers": {},
        "settings": {
            **BY_PATIENT,
            "unit": "patient, add/remove",
            "declared patients": number,
            "features": rows.shape[1],
        },
        "test": {"patients": len(np.unique(patients[held])), "stays": int(held.sum())},
        "area under the curve": found,
    }


def network(width: int, hidden: tuple[int, ...]) -> Any:
    """Layers with tanh between them, the last at zero."""
    import torch

    layers: list[Any] = []
    for size in hidden:
        layers += [torch.nn.Linear(width, size), torch.nn.Tanh()]
        width = size
    last = torch.nn.Linear(width, 2)
    torch.nn.init.zeros_(last.weight)
    torch.nn.init.zeros_(last.bias)
    return torch.nn.Sequential(*layers, last)


def _plainly(model: Any, rows: "Tensor", targets: "Tensor", test: tuple[Any, Any]) -> float:
    """Train without privacy: Adam, ten passes in batches of 512, by row."""
    import torch

    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
    for _ in range(10):
        for some in torch.randperm(len(rows)).split(512):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(rows[some]), targets[some]).backward()
            optimiser.step()
    return _area(model, *test)


def _accuracy(model: Any, rows: "Tensor", labels: "Tensor") -> float:
    import torch

    with torch.no_grad():
        return float((model(rows).argmax(dim=1) == labels).double().mean())


def _area(model: Any, rows: "Tensor", targets: Any) -> float:
    import torch

    with torch.no_grad():
        outputs = model(rows)
    return readmissions.area_under_curve((outputs[:, 1] - outputs[:, 0]).numpy(), targets)


def _smoke() -> dict[str, object]:
    """Pictures of two bars, standing and lying: far too few to learn from, enough to run every line."""
    chance = np.random.default_rng(0)  # invented pictures, nothing private
    labels = chance.integers(0, 2, 300)
    images = chance.integers(0, 60, (300, 28, 28))
    for image, label in zip(images, labels, strict=True):
        image[(slice(None), slice(12, 16)) if label else (slice(12, 16), slice(None))] = 200
    made = transformed(images, labels)
    return pictures(made, made, name="invented", batch=64, rate=1.0, epochs=1, runs=2)
