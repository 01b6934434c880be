"""A step of private training on a GPU beside the same step without privacy, and beside Opacus where it is installed.

A step is all of it: forward and backward pass, clipped sums, exact noise from the device's own cipher, and the update
of the weights. The plain step is PyTorch's as it is usually written; recorded as a CUDA graph it stands beside as well,
because ours is recorded. Products may use TF32 in both. Without a GPU only the small version runs.
"""

from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.harness import PAIRS, compare, write
from benchmarks.training_models import CASES, SMALL, Case
from sfumato.learning import Engine
from sfumato.learning.lattice import NoisyLattice
from sfumato.learning.replayed import Replayed

RATE = 0.05
Step = Callable[[], object]


def possible() -> bool:
    """Whether there is a device to measure on."""
    return torch.cuda.is_available()


def run(*, smoke: bool) -> Path:
    """Measure and write the result."""
    if not smoke and not torch.cuda.is_available():
        raise SystemExit("there is no GPU here; python -m benchmarks --smoke training_device runs a small version")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")
    pairs, steps = (2, 1) if smoke else (PAIRS, 20)
    measured = {name: _measured(case, device, pairs, steps) for name, case in (SMALL if smoke else CASES).items()}
    where = torch.cuda.get_device_name() if device.type == "cuda" else "none"
    return write("training_device", measured, smoke=smoke, beside={"device": where, "torch": torch.__version__})


def _measured(case: Case, device: torch.device, pairs: int, steps: int) -> dict[str, object]:
    inputs, targets = case.inputs(case.batch).to(device), torch.randint(0, 10, (case.batch,), device=device)
    jobs: dict[str, Step] = {}
    memory: dict[str, float] = {}
    for name, made in {"ours": _ours, "plain": _plain, "plain, recorded": _recorded, **_opacus()}.items():
        torch.manual_seed(0)
        model = case.model().to(device)
        before = _settled(device)
        step = made(model, inputs, targets)
        step()
        memory[name] = _most(device) - before
        jobs[name] = _times(step, steps, device)
    found = compare(jobs.pop("ours"), jobs, pairs=pairs)
    return found | {"peak_mb": memory, "steps": steps}


def _ours(model: nn.Module, inputs: Tensor, targets: Tensor) -> Step:
    engine = Engine(model, F.cross_entropy, clip=1.0, batches=1)
    trained = list(model.parameters())
    lattice = NoisyLattice(pitch=2.0**-20, size=sum(one.numel() for one in trained))
    sums = Replayed(lambda x, y, here: engine.sum(x, y, here).flat)
    here = torch.ones(len(inputs), dtype=torch.bool, device=inputs.device)

    def step() -> None:
        noisy = lattice.release(sums(inputs, targets, here))
        parts = (noisy * (-RATE / len(inputs))).float().split([one.numel() for one in trained])
        with torch.no_grad():
            torch._foreach_add_(trained, [part.view_as(one) for one, part in zip(trained, parts, strict=True)])

    return step


def _plain(model: nn.Module, inputs: Tensor, targets: Tensor) -> Step:
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)

    def step() -> None:
        optimiser.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimiser.step()

    return step


def _recorded(model: nn.Module, inputs: Tensor, targets: Tensor) -> Step:
    trained = list(model.parameters())

    def whole(x: Tensor, y: Tensor) -> Tensor:
        loss = F.cross_entropy(model(x), y)
        gradients = torch.autograd.grad(loss, trained)
        with torch.no_grad():
            torch._foreach_add_(trained, gradients, alpha=-RATE)
        return loss.detach()

    once = Replayed(whole)
    return lambda: once(inputs, targets)


def _opacus() -> dict[str, Callable[[nn.Module, Tensor, Tensor], Step]]:
    """Both ways of Opacus, where it is installed."""
    try:
        from opacus import PrivacyEngine
    except ImportError:
        return {}

    def private(model: nn.Module, inputs: Tensor, targets: Tensor, mode: str) -> Step:
        data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), batch_size=len(inputs))
        parts = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=RATE),
            data_loader=data,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            poisson_sampling=False,
            criterion=nn.CrossEntropyLoss(),
            grad_sample_mode=mode,
        )
        criterion = parts[2] if mode == "ghost" else nn.CrossEntropyLoss()

        def step() -> None:
            parts[1].zero_grad()
            criterion(parts[0](inputs), targets).backward()
            parts[1].step()

        return step

    return {
        f"Opacus, {mode}": lambda model, inputs, targets, mode=mode: private(model, inputs, targets, mode)
        for mode in ("hooks", "ghost")
    }


def _times(step: Step, steps: int, device: torch.device) -> Step:
    def many() -> None:
        for _ in range(steps):
            step()
        if device.type == "cuda":
            torch.cuda.synchronize()

    return many


def _settled(device: torch.device) -> float:
    """The memory that is taken now, in MB; from here on the most is counted anew."""
    if device.type != "cuda":
        return 0.0
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_reserved() / 2**20


def _most(device: torch.device) -> float:
    """The most memory that was taken since, in MB, with what a graph holds."""
    if device.type != "cuda":
        return 0.0
    torch.cuda.synchronize()
    return torch.cuda.max_memory_reserved() / 2**20


if __name__ == "__main__":
    print(run(smoke=not torch.cuda.is_available()))
