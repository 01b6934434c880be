"""``trainer.fit`` beside a plain loop that reads the same rows, and beside Opacus' loop: a step, and the first call.

What users pay for is ``fit``: sampling, gathering the rows, clipped sums, exact noise, the update, and all that goes
around them. A step is the time between an early step of a run and its last one, over the steps between; the first call
is a run of one step in a process that has trained nothing yet. The plain loop draws as many places as our sample is
expected to have, gathers those rows and makes PyTorch's own step. Rows are where the model is, or in the machine's
memory (``rows in host memory``).
"""

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import sfumato as sf
from benchmarks.harness import PAIRS, ratio, write
from benchmarks.training_models import CASES, SMALL, Case
from sfumato.learning import Units

RATE = 0.05
EPSILON, DELTA = 8, Fraction(1, 10**9)


def _cnn() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2), nn.ReLU()),
        *(nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10)),
    )


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


PROCESSOR = {
    "MLP 784-256-10": Case(_mlp, lambda rows: torch.randn(rows, 784), 256),
    "CNN": Case(_cnn, lambda rows: torch.randn(rows, 1, 28, 28), 256),
}
ROWS = 50_000
Loop = Callable[[int], float]  # so many steps; the seconds of one, of those after the first few
EARLY = 10


def run(*, smoke: bool) -> Path:
    """Measure on the device that is there and write the result; each kind of machine has a file of its own."""
    there = torch.cuda.is_available()
    device = torch.device("cuda" if there and not smoke else "cpu")
    torch.set_float32_matmul_precision("high")
    torch.set_num_threads(2 if device.type == "cpu" else torch.get_num_threads())
    cases = SMALL if smoke else CASES if device.type == "cuda" else PROCESSOR
    pairs, steps = (2, 2 * EARLY) if smoke else (PAIRS, 10 * EARLY)
    measured = {}
    for name, case in cases.items():
        measured[name] = _measured(name, case, device, pairs=pairs, steps=steps, rows=16 if smoke else ROWS)
        print(name, json.dumps(measured[name]), flush=True)
    beside = {"device": torch.cuda.get_device_name() if device.type == "cuda" else "none", "torch": torch.__version__}
    return write("fit_device" if device.type == "cuda" else "fit", measured, smoke=smoke, beside=beside)


def _measured(name: str, case: Case, device: torch.device, *, pairs: int, steps: int, rows: int) -> dict[str, object]:
    loops: dict[str, Callable[[], Loop]] = {"ours": lambda: _ours(case, device, rows, device)}
    loops["plain"] = lambda: _plain(case, device, rows)
    if device.type == "cuda":
        loops["ours, rows in host memory"] = lambda: _ours(case, device, rows, torch.device("cpu"))
    loops |= {way: lambda way=way: _opacus(case, device, rows, way) for way in _opacus_ways()}
    made = {who: loop() for who, loop in loops.items()}
    times: dict[str, list[float]] = {who: [] for who in made}
    for who, loop in made.items():
        loop(_number(who, steps))
    for _ in range(pairs):
        for who, loop in made.items():
            times[who].append(loop(_number(who, steps)))
    own = times.pop("ours")
    return {
        "pairs": pairs,
        "step_seconds": sorted(own)[len(own) // 2],
        "peers": {
            who: {
                "seconds": sorted(each)[len(each) // 2],
                "ratio": ratio([b / a for a, b in zip(own, each, strict=True)]),
            }
            for who, each in times.items()
        },
        "first_call_seconds": {who: _first(name, who, device, rows) for who in ("ours", "plain")},
        "batch": case.batch,
        "rows": rows,
    }


def _number(who: str, steps: int) -> int:
    """Fewer steps of those that take many times as long."""
    return 2 * EARLY if who.startswith("Opacus") else steps


def _ours(case: Case, device: torch.device, rows: int, kept: torch.device) -> Loop:
    inputs, targets = _data(case, rows, kept)
    vault = sf.Vault(
        unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=10**6, delta=Fraction(1, 10**6)), name="fit"
    )
    data = Units(inputs, targets, n_units=rows, name="rows", version="1")
    torch.manual_seed(0)
    trainer = vault.trainer(case.model().to(device), F.cross_entropy, data=data)

    def loop(steps: int) -> float:
        seen = [0.0]

        def callback(step: int, _: object) -> None:
            if step in (EARLY, steps):
                _settled(device)
                seen.append(time.perf_counter())

        trainer.fit(
            epsilon=EPSILON, delta=DELTA, steps=steps, batch=case.batch, optimizer=torch.optim.SGD, lr=RATE,
            progress=False, every=min(EARLY, steps), callback=callback,
        )  # fmt: skip
        return (seen[-1] - seen[-2]) / max(1, steps - EARLY)

    return loop


def _plain(case: Case, device: torch.device, rows: int) -> Loop:
    inputs, targets = _data(case, rows, device)
    torch.manual_seed(0)
    model = case.model().to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)

    def some(steps: int) -> None:
        for _ in range(steps):
            places = torch.randint(0, rows, (case.batch,), device=device)
            optimiser.zero_grad()
            F.cross_entropy(model(inputs[places]), targets[places]).backward()
            optimiser.step()

    return lambda steps: _after_the_first(some, steps, device)


def _opacus_ways() -> tuple[str, ...]:
    try:
        import opacus  # noqa: F401
    except ImportError:
        return ()
    return ("Opacus, hooks", "Opacus, ghost")


def _opacus(case: Case, device: torch.device, rows: int, way: str) -> Loop:
    from opacus import PrivacyEngine

    inputs, targets = _data(case, rows, device)
    torch.manual_seed(0)
    model = case.model().to(device)
    mode = way.split(", ")[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=RATE),
            data_loader=torch.utils.data.DataLoader(
                torch.utils.data.TensorDataset(inputs, targets), batch_size=case.batch
            ),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            criterion=nn.CrossEntropyLoss(),
            grad_sample_mode=mode,
        )
    model, optimiser, loader = parts[0], parts[1], parts[-1]
    criterion = parts[2] if mode == "ghost" else nn.CrossEntropyLoss()

    def some(steps: int) -> None:
        made = 0
        while made < steps:
            for x, y in loader:
                optimiser.zero_grad()
                criterion(model(x), y).backward()
                optimiser.step()
                made += 1
                if made == steps:
                    break

    return lambda steps: _after_the_first(some, steps, device)


def _data(case: Case, rows: int, device: torch.device) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    return case.inputs(rows).to(device), torch.randint(0, 10, (rows,)).to(device)


def _after_the_first(some: Callable[[int], None], steps: int, device: torch.device) -> float:
    some(min(EARLY, steps))
    _settled(device)
    start = time.perf_counter()
    some(max(0, steps - EARLY))
    _settled(device)
    return (time.perf_counter() - start) / max(1, steps - EARLY)


def _settled(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def _first(name: str, who: str, device: torch.device, rows: int) -> float:
    """One step in a process that has trained nothing yet, without its imports."""
    found = subprocess.run(
        [sys.executable, "-m", "benchmarks.fit", name, who, device.type, str(rows)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(found.stdout.split()[-1])


def _first_call(name: str, who: str, device: torch.device, rows: int) -> float:
    torch.set_float32_matmul_precision("high")
    case = ({**CASES, **PROCESSOR} if rows == ROWS else SMALL)[name]
    torch.zeros(1, device=device) @ torch.zeros(1, device=device)  # the device itself and its library
    loop = _ours(case, device, rows, device) if who == "ours" else _plain(case, device, rows)
    start = time.perf_counter()
    loop(1)
    _settled(device)
    return time.perf_counter() - start


if __name__ == "__main__":
    print(_first_call(sys.argv[1], sys.argv[2], torch.device(sys.argv[3]), int(sys.argv[4])))
