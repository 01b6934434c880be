"""A private run inside PyTorch Lightning: the run stands where Lightning wants a loader, and a step where a batch.

Lightning counts, logs and calls its callbacks; sampling, clipping, noise and the optimizer are the run's. It sees no
row. Run it with ``python -m examples.with_lightning``; without Lightning it says so and does nothing. Rows are
invented.
"""

import importlib
from typing import Any  # Lightning's classes, which may be absent

import torch
from torch.nn import functional as F

import sfumato as sf
from sfumato.learning import OpenRun, OpenStep, Units

__all__ = ["main", "opened", "private_module"]


def opened(steps: int = 20) -> tuple[torch.nn.Module, OpenRun]:
    """A model, and a charged run of it."""
    rows = torch.randn((600, 4), generator=torch.Generator().manual_seed(7))
    data = Units(rows, (rows[:, 0] > 0).long(), n_units=600, name="visits", version="2026-10")
    unit, budget = sf.record(relation="add/remove"), sf.Budget(epsilon=2, delta=1e-6)
    model = torch.nn.Linear(4, 2)
    trainer = sf.Vault(unit=unit, budget=budget, name="ward").trainer(model, F.cross_entropy, data=data)
    return model, trainer.run(steps=steps, batch=100, epsilon=2, delta=1e-7, lr=0.5)


def private_module(lightning: Any, model: torch.nn.Module) -> Any:
    """A module of Lightning that makes a step of the run for each "batch"."""

    class Private(lightning.LightningModule):  # type: ignore[misc]  # a class that may be absent
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            self.automatic_optimization = False  # the run has its optimizer

        def training_step(self, step: OpenStep, index: int) -> None:
            step.loss()
            self.log("epsilon", float(step.epsilon))
            self.log("lr", step.lr)

        def configure_optimizers(self) -> None:
            return None

    return Private()


def main() -> None:
    """Train, or say why not."""
    try:
        lightning = importlib.import_module("lightning")
    except ImportError:
        print("skipped: Lightning is not installed (pip install lightning)")  # noqa: T201 - a script that is run by hand
        return
    model, run = opened()
    fits = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    fits.fit(private_module(lightning, model), train_dataloaders=run)
    done = run.close().release.statement.query.done  # type: ignore[attr-defined]  # a run is asked by a Training
    print(f"{done} steps in Lightning, ε = {run.trained.epsilon}, ε logged {float(fits.logged_metrics['epsilon'])}")  # noqa: T201 - a script that is run by hand


if __name__ == "__main__":
    main()
