"""Examples in frameworks: with a stand-in for the calls that each makes, and with the framework itself where it is.

The stand-ins do what Lightning 2.6 and transformers 5 were seen to do with a loader and a batch. They do not show that
the packages of tomorrow do the same; where a package is installed, the example runs in it.
"""

import importlib.util
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.parts import package

package("torch")

import torch  # noqa: E402

from examples import with_hugging_face, with_lightning, with_scikit_learn  # noqa: E402

MODULES = [with_lightning, with_hugging_face, with_scikit_learn]
NEEDS = {with_lightning: "lightning", with_hugging_face: "transformers", with_scikit_learn: "sklearn"}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_an_example_runs_or_says_what_is_missing(module: Any, capsys: pytest.CaptureFixture[str]) -> None:
    module.main()
    said = capsys.readouterr().out
    if importlib.util.find_spec(NEEDS[module]) is None:
        assert said.startswith("skipped: ")
        assert "pip install" in said
    else:
        assert "ε" in said


class LightningModule:
    """What an example asks of Lightning's module."""

    def __init__(self) -> None:
        self.logged: list[tuple[str, float]] = []

    def log(self, name: str, value: float) -> None:
        self.logged.append((name, value))


def test_lightnings_calls_make_a_private_run() -> None:
    """It asks for a length, iterates twice over the loader before the first batch, and takes as many as the length."""
    model, run = with_lightning.opened(steps=3)
    module = with_lightning.private_module(SimpleNamespace(LightningModule=LightningModule), model)
    assert module.automatic_optimization is False
    assert module.configure_optimizers() is None
    iter(run)
    batches, number = iter(run), len(run)
    for index in range(number):
        assert module.training_step(next(batches), index) is None
    done: Any = run.close().release.statement.query
    assert (done.done, number) == (3, 3)
    assert {name for name, _ in module.logged} == {"epsilon", "lr"}
    assert module.logged[-2][1] == 2.0


class Trainer:
    """What the Trainer of Hugging Face does with a loader in one epoch, as far as an example overrides it."""

    def __init__(self, *, model: Any, optimizers: Any) -> None:
        self.model, (self.optimizer, self.lr_scheduler) = model, optimizers
        self.logged: list[dict[str, float]] = []

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        self.logged.append(logs)

    def train(self) -> None:
        loader: Any = self.get_train_dataloader()  # type: ignore[attr-defined]
        steps: Iterator[Any] = iter(loader)
        loss = torch.zeros(())
        for _ in range(len(loader)):
            batches, number = self.get_batch_samples(steps, 1, torch.device("cpu"))  # type: ignore[attr-defined]
            for inputs in batches:
                loss += self.training_step(self.model, inputs, number)  # type: ignore[attr-defined]
                assert self.floating_point_ops(inputs) == 0  # type: ignore[attr-defined]
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.lr_scheduler.step()
                self.model.zero_grad()
        self.log({"train_loss": float(loss), "train_runtime": 1.0}, start_time=0.0)


def test_the_calls_of_hugging_faces_trainer_make_a_private_run() -> None:
    model, run = with_lightning.opened(steps=3)
    trainer = with_hugging_face.private_trainer(SimpleNamespace(Trainer=Trainer))(run, model=model)
    trainer.train()
    done: Any = run.close().release.statement.query
    assert done.done == 3
    assert trainer.logged == [{"train_runtime": 1.0, "epsilon": 2.0}]


def test_a_classifier_is_cloned_with_its_vault() -> None:
    import sfumato as sf

    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=5, delta=1e-6), name="ward")
    made = with_scikit_learn.classifier(vault)
    twin = made.__sklearn_clone__()
    assert twin.vault is vault
    assert twin.get_params() == made.get_params()
