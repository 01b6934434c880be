"""A private run inside the Trainer of Hugging Face: the run stands where it wants a loader, and a step where a batch.

That Trainer counts, logs and calls its callbacks; sampling, clipping, noise and the optimizer are the run's. It sees no
row and no gradient: after each step the noised weights are put into its model. Run it with
``python -m examples.with_hugging_face``; without transformers it says so and does nothing. Rows are invented.
"""

import importlib
import tempfile
from typing import Any  # classes of transformers, which may be absent

import torch

from examples.with_lightning import opened
from sfumato.learning import OpenRun, OpenStep

__all__ = ["main", "private_trainer"]


def private_trainer(transformers: Any) -> Any:
    """The class of a Trainer whose batches are the steps of a run."""

    class Private(transformers.Trainer):  # type: ignore[misc]  # a class that may be absent
        def __init__(self, run: OpenRun, **said: Any) -> None:
            own = torch.optim.SGD(said["model"].parameters(), lr=0.0)  # the run has its own; this one never moves
            super().__init__(optimizers=(own, torch.optim.lr_scheduler.ConstantLR(own)), **said)
            self.run = run

        def get_train_dataloader(self) -> OpenRun:
            return self.run

        def get_batch_samples(self, steps: Any, number: int, device: Any) -> tuple[list[OpenStep], None]:
            return [next(steps)], None  # one step at a time; how many rows it has is nobody's business

        def training_step(self, model: Any, inputs: OpenStep, num_items_in_batch: Any = None) -> torch.Tensor:
            inputs.loss()
            model.load_state_dict(inputs.weights)
            return torch.zeros(())  # there is no loss to show

        def floating_point_ops(self, inputs: OpenStep) -> int:
            return 0  # that would be counted by rows

        def log(self, logs: dict[str, float], *more: Any, **named: Any) -> None:
            logs.pop("loss", None)
            logs.pop("train_loss", None)
            super().log({**logs, "epsilon": float(self.run.epsilon)}, *more, **named)

    return Private


def main() -> None:
    """Train, or say why not."""
    try:
        transformers = importlib.import_module("transformers")
        importlib.import_module("accelerate")
    except ImportError:
        print("skipped: transformers or accelerate is not installed (pip install transformers accelerate)")  # noqa: T201 - a script that is run by hand
        return
    model, run = opened()
    with tempfile.TemporaryDirectory() as folder:
        said = transformers.TrainingArguments(
            output_dir=folder, num_train_epochs=1, use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True
        )
        private = private_trainer(transformers)(run, model=model, args=said)
        private.train()
    done = run.close().release.statement.query.done  # type: ignore[attr-defined]  # a run is asked by a Training
    print(f"{done} steps in the Trainer, ε = {run.trained.epsilon}")  # noqa: T201 - a script that is run by hand


if __name__ == "__main__":
    main()
