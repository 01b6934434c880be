"""A loop of one's own: charged before a row is read, the same run as ``fit`` makes, and an end however it is left."""

import gc
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import errors
from sfumato.reports.verify import verify
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from sfumato.learning import Units, weights_digest  # noqa: E402
from tests.learning.test_trainer_failures import NUMBER, SPEND, trainer, vault  # noqa: E402
from tests.learning.test_ways_in import FEW, linear, same_noise  # noqa: E402


@pytest.mark.claim("S1-12")
def test_a_loop_makes_the_run_that_fit_makes_for_the_same_charge() -> None:
    home, other = vault(), vault()
    model, fitted = linear(), linear()
    run = same_noise(home, model).run(steps=4, lr=0.5, **FEW, **SPEND)
    assert home.spent == sf.Budget(**SPEND) == run.charged  # before the first step
    assert len(run) == 4
    for step in run:
        assert not step.made
        step.loss()
        assert step.made
    by_fit = same_noise(other, fitted).fit(steps=4, lr=0.5, **FEW, **SPEND)
    assert weights_digest(model) == weights_digest(fitted)
    assert run.trained.curve == by_fit.curve
    one, two = run.trained.release.statement, by_fit.release.statement
    assert (one.query, one.mechanism, one.event, one.spend) == (two.query, two.mechanism, two.event, two.spend)
    assert verify(run.trained.release.certificate.document, key=home.public_key).authenticated
    assert home.spent == sf.Budget(**SPEND)


def test_nothing_is_read_before_the_charge_and_nothing_in_the_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    laid = Units.laid
    monkeypatch.setattr(Units, "laid", lambda self, key: read.append("rows") or laid(self, key))
    home = vault(budget=sf.Budget(epsilon=1, delta=1e-6))
    with pytest.raises(errors.BudgetExceeded):
        trainer(home, linear()).run(steps=2, **FEW, **SPEND)
    run = trainer(home, linear()).run(steps=2, epsilon=1, delta=1e-7, **FEW)
    steps = iter(run)
    step = next(steps)
    assert read == []
    step.loss()
    assert read == ["rows"]


def test_a_loop_that_is_left_early_is_closed_with_what_was_charged() -> None:
    home, model = vault(), linear()
    start = weights_digest(model)
    with trainer(home, model).run(steps=9, **FEW, **SPEND) as run:
        for step in run:
            step.loss()
            if step.index == 2:
                assert weights_digest(model) == start  # the caller's model waits for the end
                break
    said: Any = run.trained.release.statement
    assert (said.query.done, said.query.steps) == (3, 9)
    assert said.query.weights == weights_digest(model) != start
    assert home.spent == sf.Budget(**SPEND)
    with pytest.raises(errors.InvalidInput, match="not the turn"):
        step.loss()
    assert run.close() is run.trained


def test_an_exception_leaves_a_run_unsigned_and_a_checkpoint_resumes_it(tmp_path: Path) -> None:
    home, model = vault(), linear()
    said: dict[str, Any] = {"steps": 4, "checkpoint": tmp_path / "run.state", **FEW, **SPEND}
    seen: list[Tensor] = []
    with pytest.raises(ZeroDivisionError), trainer(home, model).run(**said) as run:  # noqa: PT012 - a loop is several
        for step in run:
            step.loss()
            seen.append(step.weights["weight"])
            if step.index == 1:
                raise ZeroDivisionError
    with pytest.raises(errors.InvalidInput, match="not ended"):
        _ = run.trained
    with pytest.raises(errors.SfumatoError):
        step.loss()
    again = trainer(home, model).run(resume=True, **said)
    indices = []
    for step in again:
        if not indices:
            assert torch.equal(step.weights["weight"], seen[-1])  # what was seen is not drawn anew
        step.loss()
        indices.append(step.index)
    assert indices == [2, 3]
    assert len(again) == 2
    assert home.spent == sf.Budget(**SPEND)
    with pytest.raises(errors.Refused, match="has ended"):
        trainer(home, model).run(resume=True, **said)


def test_a_run_that_nobody_closes_lets_go_of_its_file(tmp_path: Path) -> None:
    home, path = vault(), tmp_path / "run.state"
    said: dict[str, Any] = {"steps": 3, "checkpoint": path, **FEW, **SPEND}
    run = trainer(home, linear()).run(**said)
    step = next(iter(run))
    step.loss()
    del run, step
    gc.collect()
    for step in trainer(home, linear()).run(resume=True, **said):
        step.loss()
    assert home.spent == sf.Budget(**SPEND)


def test_a_step_is_made_once_and_in_turn() -> None:
    run = trainer(vault(), linear()).run(steps=3, **FEW, **SPEND)
    steps = iter(run)
    first = next(steps)
    first.loss()
    with pytest.raises(errors.InvalidInput, match="not the turn of step 0"):
        first.loss()
    second = next(steps)
    with pytest.raises(errors.InvalidInput, match="step 1 was not made"):
        next(steps)
    second.loss()
    assert [step.index for step in [next(iter(run))]] == [2]  # whoever iterates goes on where the run is
    with pytest.raises(errors.InvalidInput, match="gone on since step 0"):
        _ = first.weights


def test_a_loss_may_change_and_one_that_mixes_units_is_refused_before_its_step() -> None:
    home, model = vault(), linear()
    run = trainer(home, model).run(steps=4, **FEW, **SPEND)
    weight = 1.0
    for step in run:
        if step.index == 1:
            with pytest.raises(errors.Refused, match="mixes units"):
                step.loss(lambda outputs, targets: (outputs - outputs.mean(0)).square().sum())
            with pytest.raises(TypeError):
                step.loss(lambda outputs: outputs.sum())
            weight = 0.5
        step.loss(lambda outputs, targets: weight * F.cross_entropy(outputs, targets))  # noqa: B023 - used at once
    assert run.step == 4
    assert home.spent == sf.Budget(**SPEND)


def test_a_weight_of_a_loss_that_changes_is_learned_with() -> None:
    moved: list[float] = []
    for second in (1.0, 0.0):
        model = linear()
        run = same_noise(vault(), model).run(steps=2, lr=1.0, optimizer=torch.optim.SGD, **FEW, **SPEND)
        weight = 1.0
        for step in run:
            step.loss(lambda outputs, targets: weight * F.cross_entropy(outputs, targets))  # noqa: B023 - used at once
            weight = second
        moved.append(float(model.weight.detach().norm()))
    assert moved[0] != moved[1]


def test_the_rate_of_a_loop_is_set_between_steps() -> None:
    model = linear()
    run = trainer(vault(), model).run(steps=3, lr=0.5, optimizer=torch.optim.SGD, **FEW, **SPEND)
    for step in run:
        step.loss()
        run.lr = 0.0
        if step.index == 0:
            first = step.weights["weight"]
    assert torch.equal(model.weight, first)  # at a rate of 0 the other steps learn nothing
    follows = trainer(vault(), linear()).run(steps=1, lr=lambda step: 0.1, **FEW, **SPEND)
    with pytest.raises(errors.InvalidInput, match="schedule"):
        follows.lr = 0.2
    with pytest.raises(errors.InvalidInput, match="finite"):
        run.lr = float("inf")


def test_groups_and_samples_work_in_a_loop_as_well() -> None:
    home = vault()
    run = trainer(home, nn.Linear(3, 2)).run(steps=3, batch=NUMBER // 4, autocast=torch.bfloat16, **SPEND)
    for step in run:
        step.loss()
        step.optimizer_state["state"].clear()
    assert run.trained.release.statement.query.done == 3  # type: ignore[attr-defined]
