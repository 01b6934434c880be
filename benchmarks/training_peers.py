"""Opacus, in an environment of its own that is built on first use: its step beside the plain one, in one process."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.table_peers import Peer, built

__all__ = ["COMMON", "TRAINING_PEERS", "built", "stepped"]

COMMON = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
CLASSES = 10

def perceptron():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, CLASSES))

def convolutions():
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2), nn.ReLU(),
        nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, CLASSES))

def normed():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.GroupNorm(8, 32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1568, CLASSES))

MODELS = {
    "perceptron": (perceptron, (784,), "record"), "convolutions": (convolutions, (1, 28, 28), "record"),
    "convolutions, group norm": (normed, (1, 28, 28), "record"), "users": (perceptron, (784,), "user")}

def data(shape, kind, units, records=8):
    axes = (units, records) if kind == "user" else (units,)
    return torch.randn(*axes, *shape), torch.randint(0, CLASSES, axes)

def plain_step(model, inputs, targets, kind):
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    if kind == "user":
        inputs, targets = inputs.flatten(0, 1), targets.flatten(0, 1)
    def step():
        optimiser.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimiser.step()
    return step

def peak(step):
    from torch.profiler import ProfilerActivity, profile
    step()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        step()
    held = most = 0
    for event in seen.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most / 2**20

def pairs(private, plain, number):
    for _ in range(3):
        private(), plain()
    found = {"private": [], "plain": []}
    for _ in range(number):
        for name, step in (("private", private), ("plain", plain)):
            start = time.perf_counter()
            step()
            found[name].append(time.perf_counter() - start)
    return found

def told(make_private, name, number, units, threads):
    torch.set_num_threads(threads)
    make, shape, kind = MODELS[name]
    inputs, targets = data(shape, kind, units)
    one, other = make(), make()
    private, plain = make_private(one, inputs, targets, kind), plain_step(other, inputs, targets, kind)
    found = pairs(private, plain, number)
    found["peak_mb"] = {"private": peak(private), "plain": peak(plain)}
    print(json.dumps(found))
"""

OPACUS = """
from opacus import PrivacyEngine

def make_private(model, inputs, targets, kind):
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), batch_size=len(inputs))
    criterion = nn.CrossEntropyLoss()
    parts = PrivacyEngine(secure_mode=False).make_private(
        module=model, optimizer=optimiser, criterion=criterion, data_loader=loader, noise_multiplier=1.0,
        max_grad_norm=1.0, poisson_sampling=False, grad_sample_mode=MODE)
    model, optimiser = parts[0], parts[1]
    criterion = parts[2] if MODE == "ghost" else criterion
    def step():
        optimiser.zero_grad()
        found, named = model(inputs), {}
        if kind == "user":
            found, named = found.flatten(0, 1), {"shape": targets.shape} if MODE == "ghost" else {}
        criterion(found, targets.flatten(), **named).backward()
        optimiser.step()
    return step

told(make_private, sys.argv[1], *map(int, sys.argv[2:5]))
"""

PACKAGE, TORCH = "opacus==1.6.0", ("torch==2.13.0",)

TRAINING_PEERS = {
    "Opacus 1.6, ghost": Peer(package=PACKAGE, also=TORCH, program=COMMON + 'MODE = "ghost"\n' + OPACUS),
    "Opacus 1.6, hooks": Peer(package=PACKAGE, also=TORCH, program=COMMON + 'MODE = "hooks"\n' + OPACUS),
}


def stepped(program: str, python: Path | str, name: str, pairs: int, units: int, threads: int) -> Mapping[str, Any]:
    """Run a program once in a process of its own; it tells the seconds of plain and private steps in turn."""
    answer = subprocess.run(
        [python, "-c", program, name, str(pairs), str(units), str(threads)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    if answer.returncode != 0:
        raise SystemExit(f"the step {name!r} failed:\n{answer.stderr[-2000:]}")
    figures: Mapping[str, Any] = json.loads(answer.stdout.strip().splitlines()[-1])
    return figures
