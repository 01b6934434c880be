"""The trainer in its vault: one charge before any row is read, one certificate, and nothing told besides."""

import io
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.release import Release
from sfumato.reports.verify import load, verify
from sfumato.vault import Vault
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sfumato.learning import Trainer, Units, weights_digest  # noqa: E402
from sfumato.learning.progress import Spending, bar  # noqa: E402
from sfumato.learning.run import Run  # noqa: E402

SPEND: dict[str, Any] = {"epsilon": 2, "delta": 1e-7}


def vault(**said: Any) -> Vault:
    facts: dict[str, Any] = {
        "unit": sf.record(relation="add/remove"),
        "budget": sf.Budget(epsilon=8, delta=1e-6),
        "name": "clinic",
    }
    return Vault(**{**facts, **said})


def rows(number: int = 400) -> tuple[Tensor, Tensor]:
    inputs = torch.sin(torch.arange(number * 3.0) * 1.7).reshape(number, 3)
    return inputs, (inputs.sum(1) > 0).long()


def units(**said: Any) -> Units:
    inputs, targets = rows()
    return Units(inputs, targets, **{"n_units": 400, "name": "visits", "version": "1", **said})


def trainer(home: Vault, **said: Any) -> Trainer:
    return home.trainer(nn.Linear(3, 2), nn.functional.cross_entropy, data=units(), **said)


@pytest.mark.claim("S1-12")
def test_a_run_is_one_charge_with_its_event_and_its_certificate(tmp_path: Path) -> None:
    home = vault()
    model = nn.Linear(3, 2)
    found = home.trainer(model, nn.functional.cross_entropy, data=units(), clip=1).fit(epochs=20, **SPEND)
    said = found.release.statement
    assert home.spent == sf.Budget(**SPEND) == said.spend
    assert said.account.releases == 1
    assert said.event.times == said.query.steps == said.query.done == 63
    assert said.event.event.rate == Fraction(128, 400)
    assert said.sensitivity.l2.squared == 1
    assert said.query.weights == weights_digest(model)
    assert found.model is model
    inputs, targets = rows()
    assert (model(inputs).argmax(1) == targets).float().mean() > 0.8
    found.release.certificate.save(tmp_path / "run.json")
    assert verify(found.release.certificate.document, key=home.public_key).authenticated
    assert load(tmp_path / "run.json").statement == said
    assert [step for step, _ in found.curve][-1] == 63
    spent = [epsilon for _, epsilon in found.curve]
    assert spent == sorted(spent)
    assert spent[-1] == found.epsilon == 2


def forged(release: Release, **said: Any) -> Any:
    document = release.certificate.document
    query = document["statement"]["query"]
    query.update(said)
    return verify(document)


def test_a_changed_certificate_does_not_verify() -> None:
    release = trainer(vault()).fit(steps=3, batch=40, **SPEND).release
    assert verify(release.certificate.document).consistent
    for said in ({"steps": 2}, {"clip": "1/2"}, {"rate": "1/20"}, {"weights": ""}, {"parameters": 9}):
        outcome = forged(release, **said)
        assert not outcome.consistent
        assert any(finding.field != f"statement.query.{next(iter(said))}" for finding in outcome.findings)


def test_nothing_is_read_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    home = vault(budget=sf.Budget(epsilon=1, delta=1e-6))
    read: list[str] = []
    laid = Units.laid
    monkeypatch.setattr(Units, "laid", lambda self, key: read.append(str(home.spent.epsilon)) or laid(self, key))
    with pytest.raises(errors.BudgetExceeded):
        trainer(home).fit(steps=3, **SPEND)
    assert read == []
    trainer(home).fit(steps=3, epsilon=1, delta=1e-7)
    assert read == ["1"]


def test_the_bar_tells_steps_and_spending_and_nothing_else() -> None:
    from sfumato.accounting import plan

    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stderr", screen)
        patched.setenv("TERM", "xterm")
        with bar("visits", 4, Spending(plan(sigma=2, steps=4), Fraction(1, 10**5), Fraction(9)), shown=None) as told:
            told(2)
            told(4)
    assert "training on visits" in screen.getvalue()
    assert "4/4" in screen.getvalue()
    assert "ε 9" in screen.getvalue()


def test_steps_of_any_size_are_what_they_sum_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty batches are steps, and large ones are cut into parts of one shape."""
    shapes: list[tuple[int, ...]] = []
    clipped = Run._clipped
    parts: list[int] = []

    def spied(self: Run) -> Tensor:
        engine = self._engine.sum

        def sum_(inputs: Any, targets: Any, present: Any) -> Any:
            shapes.append(tuple(inputs.shape))
            parts.append(int(present.sum()))
            return engine(inputs, targets, present)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(self._engine, "sum", sum_)
            return clipped(self)

    monkeypatch.setattr(Run, "_clipped", spied)
    trainer(vault()).fit(steps=2, batch=400, max_physical_batch_size=150, **SPEND)
    assert set(shapes) == {(160, 3)}
    assert parts == [160, 160, 80] * 2
    nobody = Units(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), n_units=9, name="visits", version="2")
    found = vault().trainer(nn.Linear(3, 2), nn.functional.cross_entropy, data=nobody).fit(steps=2, **SPEND)
    assert len(parts) == 6
    assert found.release.statement.query.done == 2


@pytest.mark.few(1)
@pytest.mark.parametrize("given", ["class", "function", "made", "with more settings"])
def test_optimisers(given: str) -> None:
    model = nn.Linear(3, 2)
    made: Any = {
        "class": torch.optim.Adam,
        "function": lambda parameters: torch.optim.SGD(parameters, lr=0.3),
        "with more settings": torch.optim.AdamW(model.parameters(), lr=0.1, betas=(0.5, 0.9)),
        "made": torch.optim.SGD([{"params": [model.weight], "lr": 0.0}, {"params": [model.bias]}], lr=0.1),
    }[given]
    before = model.weight.clone()
    vault().trainer(model, nn.functional.cross_entropy, data=units()).fit(steps=3, optimizer=made, **SPEND)
    assert torch.equal(model.weight, before) is (given == "made")  # its first group has a rate of 0


def test_whoever_watches_sees_released_weights_and_may_end_the_run() -> None:
    seen: list[int] = []
    home = vault()

    def watch(step: int, weights: Any) -> bool:
        seen.append(step)
        return step >= 4

    found = trainer(home).fit(steps=9, batch=40, every=2, callback=watch, **SPEND)
    assert seen == [2, 4]
    assert found.release.statement.query.done == 4
    assert home.spent == sf.Budget(**SPEND)
    assert verify(found.release.certificate.document).consistent


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, "epochs=… or steps=…"),
        ({"steps": 1, "epochs": 1}, "epochs=… or steps=…"),
        ({"steps": 1, "batch": 401}, "batch"),
        ({"steps": 1, "resume": True}, "checkpoint="),
        ({"steps": 1, "checkpoint": "nowhere/at/all"}, "no folder"),
        ({"steps": 1, "optimizer": lambda parameters: 3}, "optimiser"),
        ({"steps": 1, "optimizer": torch.optim.LBFGS}, "L-BFGS"),
        ({"steps": 1, "delta": 0}, "delta"),
    ],
)
def test_what_is_refused_costs_nothing(said: dict[str, Any], words: str) -> None:
    home = vault()
    with pytest.raises(errors.SfumatoError, match=words):
        trainer(home).fit(**{**SPEND, **said})
    assert home.spent == sf.Budget.none()


def test_data_must_be_units() -> None:
    with pytest.raises(errors.InvalidInput, match=r"learning\.Units"):
        vault().trainer(nn.Linear(3, 2), nn.functional.cross_entropy, data=rows())  # type: ignore[arg-type]


def test_hints_come_with_the_plan() -> None:
    made = trainer(vault()).plan(epochs=5, **SPEND)
    assert (made.batch, made.query.steps) == (128, 16)
    assert 0 < made.rate < 1
    assert made.max_physical_batch_size >= made.batch


def test_an_open_run_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    import copy

    tried: list[str] = []

    def learn(self: Run, noisy: Tensor) -> None:
        with pytest.raises(errors.Refused, match="an open training run is not copied") as told:
            copy.copy(self)
        tried.append(str(told.value))

    monkeypatch.setattr(Run, "_learn", learn)
    trainer(vault()).fit(steps=1, **SPEND)
    assert len(tried) == 1


def test_a_state_of_a_million_parameters_is_written_within_a_second(tmp_path: Path) -> None:
    import time

    from sfumato.gate.sealed import read_sealed, write_sealed

    body = bytes(12 * 10**6)  # the weights and both moments of Adam
    start = time.process_time()
    write_sealed(tmp_path / "state", b"k" * 32, {"charge": 1}, {"step": 1}, body)
    assert read_sealed(tmp_path / "state", b"k" * 32)[2] == body
    assert time.process_time() - start < 1


def coupled(outputs: Tensor, targets: Tensor) -> Tensor:
    """In-batch negatives: every row is compared with all others."""
    return nn.functional.cross_entropy(outputs @ outputs.T, torch.arange(len(outputs)))


@pytest.mark.parametrize(
    ("model", "loss", "words"),
    [
        (nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), nn.functional.cross_entropy, "GroupNorm"),
        (nn.Linear(3, 2), coupled, "the loss mixes units"),
    ],
)
def test_what_couples_units_is_refused_before_anything_is_charged(model: nn.Module, loss: Any, words: str) -> None:
    home = vault()
    with pytest.raises(errors.Refused, match=words):
        home.trainer(model, loss, data=units())
    assert home.spent == sf.Budget.none()


def test_an_average_is_told_with_the_end_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.learning.averaging import Average

    average, learn, seen = Average(decay=0.5), Run._learn, []

    def spied(self: Run, noisy: Tensor) -> None:
        learn(self, noisy)
        seen.append(average.steps)

    monkeypatch.setattr(Run, "_learn", spied)
    found = trainer(vault()).fit(steps=3, average=average, **SPEND)
    assert seen == [0, 0, 0]
    assert average.steps == 3
    assert average.weights.keys() == found.model.state_dict().keys()


def test_a_model_is_no_figure() -> None:
    release = trainer(vault()).fit(steps=1, **SPEND).release
    assert release.to_arrow().num_columns == 0
    for ask in (lambda: release.figure, release.interval):
        with pytest.raises(errors.InvalidInput, match="no columns of numbers"):
            ask()


BLOCKED = """
import sys
sys.modules["torch"] = None  # importing it fails
from sfumato.reports.verify import read, verify
print(verify(read(sys.argv[1]), key=sys.argv[2]))
"""


@pytest.mark.long
def test_a_certificate_is_verified_without_torch(tmp_path: Path) -> None:
    home = vault()
    trainer(home).fit(steps=2, **SPEND).release.certificate.save(tmp_path / "run.json")
    command = [sys.executable, "-c", BLOCKED, str(tmp_path / "run.json"), home.public_key]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "consistent, and signed by the trusted key"
