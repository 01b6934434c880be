"""Digits and clothes: a linear model on scattering features, and a small network from the pixels.

The scattering features are those of ``sfumato.learning.scattering``, normalised within each picture; batch, clip,
momentum and groups those which Tramèr and Boneh (2021) published for linear models on such features; 80 epochs in place
of their 40 were chosen on held-out training pictures of Fashion-MNIST. The network is that of Papernot and others
(2021, tempered sigmoids), with tanh; batch, clip, momentum and epochs are those of Tramèr and Boneh's runs of it. *With
copies*: batches of 2,048 and four copies of each picture, shifted by up to two pixels, in one clip (De and others
2022). Learning rates are by rule. Test pictures are public here, so that accuracy can be told after each epoch: with
private ones every look would be charged.
"""

import gzip
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.accuracy_rules import Setting
from benchmarks.accuracy_runs import (
    DELTA,
    EPSILONS,
    RUNS,
    Figures,
    device,
    figures,
    measured_on,
    plainly,
    told_settings,
    trained,
)

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["COPIES", "SCATTERED", "network", "pictures", "pixels", "scattered", "transformed"]

GROUPS, CLIP, EPOCHS, CLASSES = 27, Fraction(1, 10), 40, 10
LINEAR_EPOCHS = 80
COPIES, SHIFT = 4, 2
SCATTERED = {"mnist": 4096, "fashion-mnist": 8192}  # batches
FROM_PIXELS = {"mnist": 512, "fashion-mnist": 2048}
WITH_COPIES = {"mnist": 2048, "fashion-mnist": 2048}


def scattered(folder: Path) -> dict[str, object]:
    """A linear model on scattering features of a data set."""
    made = tuple(transformed(*part) for part in _read(folder))
    return pictures(*made, name=folder.name, way="linear", batch=SCATTERED[folder.name], epochs=LINEAR_EPOCHS)


def pixels(folder: Path, *, copies: bool = False) -> dict[str, object]:
    """A network from the pixels of a data set."""
    made = tuple(_pixels(*part) for part in _read(folder))
    batch = (WITH_COPIES if copies else FROM_PIXELS)[folder.name]
    return pictures(*made, name=folder.name, way="copies" if copies else "network", batch=batch)


def pictures(
    seen: "tuple[Tensor, Tensor]",
    held: "tuple[Tensor, Tensor]",
    *,
    name: str,
    way: str,
    batch: int,
    epochs: int = EPOCHS,
    few: bool = False,
) -> dict[str, object]:
    """Train private models at each ε, and one without privacy; tell the accuracy on held-out pictures.

    ``few`` is for smoke runs.
    """
    import torch

    from sfumato.learning import Multiplied
    from sfumato.learning.multiplicity import shifted

    place, number = device(), len(seen[1])
    seen, held = (tuple(part.to(place) for part in some) for some in (seen, held))
    kind = "linear" if way == "linear" else "network"
    setting = Setting(batch=batch, steps=-(-epochs * number // batch), clip=CLIP, kind=kind)
    copies = Multiplied(shifted(SHIFT), augmentations=COPIES) if way == "copies" else None

    def model() -> Any:
        if kind == "network":
            return network().to(place)
        flat = torch.nn.Linear(seen[0].shape[1], CLASSES)
        torch.nn.init.zeros_(flat.weight)
        torch.nn.init.zeros_(flat.bias)
        return flat.to(place)

    def measure(model: Any) -> Figures:
        with torch.no_grad():
            right = [(model(x).argmax(1) == y).sum() for x, y in zip(*(p.split(2000) for p in held), strict=True)]
        return {"accuracy": round(float(sum(right)) / len(held[1]), 5)}

    found: dict[str, object] = {
        "pairs": 0,
        "peers": {},
        "settings": told_settings(
            setting,
            unit="record, add/remove",
            epochs=epochs,
            units=number,
            parameters=sum(one.numel() for one in model().parameters()),
            **({"groups": GROUPS} if kind == "linear" else {}),
            **({"copies": COPIES, "shift": SHIFT} if copies else {}),
        ),
        "not private": plainly(model(), *seen, measure, passes=1 if few else 10),
    }
    facts = {"n_units": number, "name": name, "version": "1"}
    for epsilon in (3,) if few else EPSILONS:
        told: list[dict[str, Any]] = []
        for _ in range(1 if few else RUNS):
            torch.manual_seed(len(told))  # the weights to begin with: public, and others in each run
            told.append(
                trained(
                    model(), seen, setting, epsilon=epsilon, facts=facts, measure=measure, watched=True, copies=copies
                )
            )
        found[f"epsilon {epsilon}"] = figures(told)
        if way == "linear" and epsilon == 3:
            found["epsilon by step"] = spent(told[0]["noise multiplier"], told[0]["steps"], setting, number)
        print(f"{name}, {way}, ε = {epsilon}: {[run['averaged'] for run in told]}", flush=True)
    return {**found, "measured on": measured_on()}


@lru_cache
def _after(multiplier: float, step: int, sampling: Fraction) -> float:
    from sfumato import accounting

    event = accounting.plan(sigma=multiplier, steps=step, sampling=sampling)
    return float(accounting.epsilon(event, delta=DELTA))


def spent(multiplier: float, steps: list[int], setting: Setting, number: int) -> list[float]:
    """The ε of the first steps, at the δ of the whole run."""
    return [round(_after(multiplier, step, Fraction(setting.batch, number)), 4) for step in steps]


def network() -> Any:
    """16 filters of 8 × 8 and 32 of 4 × 4, tanh and overlapping maxima between them, 32 more units: 26,010 weights."""
    from torch import nn

    return nn.Sequential(
        *(nn.Conv2d(1, 16, 8, 2, padding=2), nn.Tanh(), nn.MaxPool2d(2, 1)),
        *(nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Flatten()),
        *(nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, CLASSES)),
    )


def transformed(images: Any, labels: Any, *, at_once: int = 500) -> "tuple[Tensor, Tensor]":
    """Scattering features, normalised in groups of channels within each picture."""
    import torch

    from sfumato.learning.scattering import Scattering, group_normalised

    place, scattering = device(), Scattering(size=images.shape[-1])
    found = torch.empty(len(images), scattering.channels * scattering.side**2, device=place)
    for start in range(0, len(images), at_once):
        some = torch.from_numpy(images[start : start + at_once].astype(np.float32) / 255).to(place)
        found[start : start + at_once] = group_normalised(scattering(some), groups=GROUPS).flatten(1)
    return found, torch.from_numpy(labels.astype(np.int64))


def _pixels(images: Any, labels: Any) -> "tuple[Tensor, Tensor]":
    """Pixels from −1 to 1, by the range of a byte and no mean of any picture."""
    import torch

    made = torch.from_numpy(images.astype(np.float32))[:, None] / 127.5 - 1
    return made, torch.from_numpy(labels.astype(np.int64))


def _read(folder: Path) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Pictures and labels to train on, and those to test with."""
    train = np.concatenate([_idx(path) for path in sorted(folder.glob("train-images*"))])
    test = _idx(folder / "t10k-images-idx3-ubyte.gz")
    return (
        (train, _idx(folder / "train-labels-idx1-ubyte.gz")),
        (test, _idx(folder / "t10k-labels-idx1-ubyte.gz")),
    )


def _idx(path: Path) -> Any:
    """An array in the idx format."""
    with gzip.open(path) as file:
        content = file.read()
    shape = [int.from_bytes(content[4 + 4 * axis : 8 + 4 * axis], "big") for axis in range(content[3])]
    return np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def smoke() -> dict[str, object]:
    """Pictures of two bars, standing and lying: far too few to learn from, enough to run every line."""
    chance = np.random.default_rng(0)  # invented pictures, nothing private
    labels = chance.integers(0, 2, 96)
    images = chance.integers(0, 60, (96, 28, 28))
    for image, label in zip(images, labels, strict=True):
        image[(slice(None), slice(12, 16)) if label else (slice(12, 16), slice(None))] = 200
    ways = {"linear": transformed, "network": _pixels, "copies": _pixels}
    return {
        f"pictures, {way}": pictures(
            made := make(images, labels), made, name="invented", way=way, batch=32, epochs=1, few=True
        )
        for way, make in ways.items()
    }
