"""Ways in: callbacks, schedules of the learning rate, noise multipliers, shorter floats, frozen layers, adapters."""

import csv
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import errors, learning
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.optim import lr_scheduler  # noqa: E402

from sfumato.learning import CSVLogger, StepView, TensorBoardLogger, Units, weights_digest  # noqa: E402
from sfumato.learning.run import Run  # noqa: E402
from tests.learning.test_trainer_failures import NUMBER, SPEND, rows, trainer, vault  # noqa: E402
from tests.learning.words import TestWords  # noqa: E402

FEW: dict[str, Any] = {"batch": NUMBER, "max_physical_batch_size": 16}


def same_noise(home: Any, model: nn.Module, **said: Any) -> Any:
    made = trainer(home, model, **said)
    made._words = TestWords
    return made


def linear() -> nn.Linear:
    torch.manual_seed(3)
    return nn.Linear(3, 2)


# ------------------------------------------------------------------------------------------------- callbacks


def test_callbacks_see_what_is_public_of_each_step_and_nothing_else() -> None:
    seen: list[tuple[int, int, Fraction, Fraction, float]] = []
    weights: list[Tensor] = []

    def look(step: StepView) -> None:
        seen.append((step.index, step.steps, step.epsilon, step.epsilon_at_end, step.lr))
        weights.append(step.weights["weight"])

    model = linear()
    trained = same_noise(vault(), model).fit(steps=3, lr=0.5, callbacks=[look], **FEW, **SPEND)
    assert [(index, steps, end, lr) for index, steps, _, end, lr in seen] == [(at, 3, 2, 0.5) for at in range(3)]
    assert [epsilon for _, _, epsilon, _, _ in seen] == [epsilon for _, epsilon in trained.curve]
    assert torch.equal(weights[-1], model.weight)
    assert len({tuple(one.flatten().tolist()) for one in weights}) == 3
    public = {name for name in dir(StepView) if not name.startswith("_")}
    assert public == {
        *("delta", "epsilon", "epsilon_at_end", "index", "lr", "made", "optimizer_state", "steps", "weights")
    }


def test_a_view_cannot_be_written_to_and_its_weights_are_copies() -> None:
    def spoil(step: StepView) -> None:
        with pytest.raises(AttributeError):
            step.index = 7  # type: ignore[misc]
        with pytest.raises(AttributeError):
            step.other = 7  # type: ignore[attr-defined]
        for one in step.weights.values():
            one.zero_()
        step.optimizer_state["param_groups"][0]["lr"] = 0.0

    one, other = linear(), linear()
    same_noise(vault(), one).fit(steps=2, callbacks=[spoil], **FEW, **SPEND)
    same_noise(vault(), other).fit(steps=2, **FEW, **SPEND)
    assert weights_digest(one) == weights_digest(other)


def test_a_view_of_a_step_that_is_over_shows_nothing() -> None:
    kept: list[StepView] = []
    trainer(vault(), linear()).fit(steps=3, callbacks=[kept.append], **FEW, **SPEND)
    with pytest.raises(errors.SfumatoError):
        _ = kept[0].weights


def test_a_callback_ends_a_run_and_the_charge_stays(tmp_path: Path) -> None:
    home = vault()
    calls: list[int] = []

    def second(step: StepView) -> bool:
        calls.append(step.index)
        return step.index == 1

    found = trainer(home, linear()).fit(steps=9, callbacks=[second, lambda step: None], **FEW, **SPEND)
    assert calls == [0, 1]
    assert found.release.statement.query.done == 2  # type: ignore[attr-defined]
    assert home.spent == sf.Budget(**SPEND)


def test_what_was_looked_at_is_what_a_resumed_run_goes_on_from(tmp_path: Path) -> None:
    home, path, told = vault(), tmp_path / "run.state", []

    def dies(step: StepView) -> None:
        told.append(step.weights["weight"].clone())
        if step.index == 1:
            raise RuntimeError("a callback of somebody's")

    said: dict[str, Any] = {"steps": 4, "checkpoint": path, "every": 4, **FEW, **SPEND}
    model = linear()
    with pytest.raises(RuntimeError, match="somebody"):
        trainer(home, model).fit(callbacks=[dies], **said)
    begun: list[int] = []
    trainer(home, model).fit(resume=True, callbacks=[lambda step: begun.append(step.index)], **said)
    assert begun == [2, 3]  # the two steps that were seen are not drawn anew
    assert home.spent == sf.Budget(**SPEND)


@pytest.mark.parametrize("wrong", [[3], 3, ["text"]])
def test_what_is_no_callback_is_refused_uncharged(wrong: Any) -> None:
    home = vault()
    with pytest.raises(errors.InvalidInput, match="callbacks"):
        trainer(home, linear()).fit(steps=1, callbacks=wrong, **SPEND)
    assert home.spent == sf.Budget.none()


def test_a_log_holds_what_is_public(tmp_path: Path) -> None:
    log = CSVLogger(tmp_path / "run.csv")
    trainer(vault(), linear()).fit(steps=3, lr=lambda step: 0.1 / (1 + step), callbacks=[log], **FEW, **SPEND)
    with log.path.open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [set(line) for line in lines] == [{"step", "epsilon", "lr"}] * 3
    assert [line["step"] for line in lines] == ["1", "2", "3"]
    assert float(lines[-1]["epsilon"]) == 2


class Board:
    """What TensorBoard's writer is asked to do."""

    def __init__(self, folder: str) -> None:
        self.folder, self.written, self.closed = folder, [], 0

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.written.append((name, value, step))

    def close(self) -> None:
        self.closed += 1


def test_tensorboard_is_told_epsilon_and_rate_and_named_where_it_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from sfumato.learning import loggers

    monkeypatch.setattr(loggers, "need", lambda name, command: SimpleNamespace(SummaryWriter=Board))
    with TensorBoardLogger("logs") as log:
        trainer(vault(), linear()).fit(steps=2, lr=0.5, callbacks=[log], **FEW, **SPEND)
    written = log._writer.written
    assert {(name, step) for name, _, step in written} == {(name, at) for name in ("epsilon", "lr") for at in (1, 2)}
    assert log._writer.closed

    def absent(name: str, command: str) -> None:
        raise errors.MissingExtra(f"this needs {name!r}. Install it: {command}")

    monkeypatch.setattr(loggers, "need", absent)
    with pytest.raises(errors.MissingExtra, match="tensorboard"):
        TensorBoardLogger("logs")


# ------------------------------------------------------------------------------------------------- learning rates


def rates_of(**said: Any) -> list[float]:
    """The rate that each step really learned at."""
    found: list[float] = []
    learn = Run._learn

    def spied(self: Run, noisy: Tensor) -> None:
        found.append(self.rates[0])
        learn(self, noisy)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Run, "_learn", spied)
        model = linear()
        if "made_for" in said:
            said["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.8)
            said["scheduler"] = said.pop("made_for")(said["optimizer"])
        trainer(vault(), model).fit(steps=5, **said, **FEW, **SPEND)
    return found


HALVED = [0.8, 0.8, 0.4, 0.4, 0.2]


def halving(optimizer: torch.optim.Optimizer) -> lr_scheduler.LRScheduler:
    return lr_scheduler.StepLR(optimizer, 2, 0.5)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "said",
    [
        {"lr": lambda step: HALVED[step]},
        {"lr": 0.8, "scheduler": halving},
        {"made_for": halving},
        {"lr": 0.8, "scheduler": lambda own: lr_scheduler.SequentialLR(own, [halving(own), halving(own)], [9])},
    ],
)
def test_a_schedule_gives_each_step_its_rate(said: dict[str, Any]) -> None:
    assert rates_of(**said) == HALVED


def test_momentum_follows_a_schedule_that_moves_it() -> None:
    seen: list[float] = []

    def look(step: StepView) -> None:
        seen.append(step.optimizer_state["param_groups"][0]["momentum"])

    trainer(vault(), linear()).fit(
        steps=4,
        scheduler=lambda own: lr_scheduler.OneCycleLR(own, 0.5, total_steps=4),
        callbacks=[look],
        **FEW,
        **SPEND,
    )
    assert len(set(seen)) > 1


def test_a_resumed_run_has_the_rates_that_an_unbroken_one_has(tmp_path: Path) -> None:
    home, model = vault(), linear()
    said: dict[str, Any] = {"steps": 5, "lr": 0.8, "scheduler": halving, "checkpoint": tmp_path / "s", "every": 1}
    seen: list[float] = []

    def dies(step: StepView) -> None:
        if step.index == 2:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        trainer(home, model).fit(callbacks=[dies], **said, **FEW, **SPEND)
    trainer(home, model).fit(resume=True, callbacks=[lambda step: seen.append(step.lr)], **said, **FEW, **SPEND)
    assert seen == [0.4, 0.2, 0.2]  # of the next step each; after the last there is none, and it stays


def plateau(optimizer: torch.optim.Optimizer) -> lr_scheduler.LRScheduler:
    return lr_scheduler.ReduceLROnPlateau(optimizer)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"scheduler": plateau}, "chooses the rate by a loss"),
        ({"scheduler": lr_scheduler.ReduceLROnPlateau}, "chooses the rate by a loss"),
        ({"scheduler": lambda step: 0.1}, "no scheduler of torch"),
        ({"scheduler": lambda step: 0.1 / step}, "no scheduler could be made"),
        ({"scheduler": 7}, "scheduler is one of"),
        ({"scheduler": halving(torch.optim.SGD([torch.zeros(1)]))}, "another optimizer"),
        ({"scheduler": halving, "lr": lambda step: 0.1}, "both a scheduler and"),
        ({"lr": lambda step: float("nan")}, "finite"),
        ({"lr": lambda step: 0.1 if step < 2 else -1.0}, "at least 0"),
        ({"lr": lambda step: 1 / (2 - step)}, "schedule of the learning rate fails"),
        ({"scheduler": lambda own: lr_scheduler.OneCycleLR(own, 0.5, total_steps=2)}, "schedule of the learning"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_uncharged(said: dict[str, Any], why: str) -> None:
    home = vault()
    with pytest.raises(errors.SfumatoError, match=why):
        trainer(home, linear()).fit(steps=5, **said, **FEW, **SPEND)
    assert home.spent == sf.Budget.none()


# ------------------------------------------------------------------------------------------------- noise multiplier


def test_a_noise_multiplier_is_charged_the_epsilon_that_follows() -> None:
    home = vault()
    made = trainer(home, linear())
    asked = made.plan(steps=5, batch=16, **SPEND)
    plan = made.plan(steps=5, batch=16, noise_multiplier=asked.mechanism.multiplier, delta=SPEND["delta"])  # type: ignore[attr-defined]
    assert plan.mechanism == asked.mechanism
    assert Fraction(199, 100) < plan.spend.epsilon <= 2  # calibrated to about four digits
    found = made.fit(steps=5, batch=16, noise_multiplier=2, delta=SPEND["delta"])
    assert found.release.statement.mechanism.multiplier == 2  # type: ignore[attr-defined]
    assert home.spent.epsilon == found.epsilon == made.plan(steps=5, batch=16, noise_multiplier=2, delta=SPEND["delta"]).spend.epsilon  # fmt: skip  # noqa: E501
    assert found.epsilon >= sf.accounting.epsilon(found.release.statement.event, delta=SPEND["delta"])


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"noise_multiplier": 1, **SPEND}, "both epsilon and noise_multiplier"),
        ({"delta": 1e-7}, "say epsilon"),
        ({"noise_multiplier": 0, "delta": 1e-7}, "noise_multiplier"),
        ({"noise_multiplier": 1, "delta": 0}, "delta"),
        ({"noise_multiplier": 1, "delta": 1e-7, "noise": learning.Correlated(bands=2)}, "independent noise"),
    ],
)
def test_a_noise_that_is_not_clear_is_refused_uncharged(said: dict[str, Any], why: str) -> None:
    home = vault()
    with pytest.raises(errors.SfumatoError, match=why):
        trainer(home, linear()).fit(steps=5, **FEW, **said)
    assert home.spent == sf.Budget.none()


# --------------------------------------------------------------- frozen layers, adapters, shorter floats, parts


class Adapted(nn.Module):
    """A frozen layer with a small one beside it (low-rank adaptation)."""

    def __init__(self, base: nn.Linear, rank: int = 2) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x))  # type: ignore[no-any-return]


def frozen_first() -> nn.Module:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    model[0].requires_grad_(False)
    return model


def adapted() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(Adapted(nn.Linear(3, 8)), nn.Tanh(), Adapted(nn.Linear(8, 2)))


@pytest.mark.few(1)
@pytest.mark.parametrize("way", ["fast", "semantic"])
@pytest.mark.parametrize("make", [frozen_first, adapted])
def test_what_is_frozen_stays_and_is_not_counted(make: Callable[[], nn.Module], way: str) -> None:
    model = make()
    before = {name: one.clone() for name, one in model.state_dict().items()}
    free = {name for name, one in model.named_parameters() if one.requires_grad}
    found = trainer(vault(), model, grad_mode=way).fit(steps=3, lr=0.5, **FEW, **SPEND)
    changed = {name for name, one in model.state_dict().items() if not torch.equal(one, before[name])}
    assert changed == free
    said: Any = found.release.statement.query
    assert said.parameters == sum(one.numel() for one in model.parameters() if one.requires_grad)


def test_shorter_floats_compute_a_step_and_clip_it_as_far() -> None:
    caught: dict[str, Tensor] = {}
    outputs: set[torch.dtype] = set()

    def loss(output: Tensor, target: Tensor) -> Tensor:
        assert output.dtype in (torch.bfloat16, torch.float32)
        return F.cross_entropy(output, target)

    summed = Run._clipped
    for name, said in (("single", {}), ("short", {"autocast": torch.bfloat16})):

        def spied(self: Run, name: str = name) -> Tensor:
            caught.setdefault(name, summed(self))
            with self._cast():
                outputs.add(torch.mm(torch.ones(1, 1), torch.ones(1, 1)).dtype)
            return summed(self)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Run, "_clipped", spied)
            inputs, targets = rows()
            data = Units(inputs, targets, n_units=NUMBER, name="visits", version="1")
            vault().trainer(linear(), loss, data=data, clip=1).fit(steps=1, **said, **FEW, **SPEND)
    assert outputs == {torch.bfloat16, torch.float32}
    far = float((caught["single"] - caught["short"]).norm())
    assert 0 < far < 0.02 * float(caught["single"].norm())


@pytest.mark.parametrize(("kind", "why"), [(torch.float16, "GradScaler"), (torch.float64, "bfloat16")])
def test_floats_that_need_a_scaled_loss_are_refused_uncharged(kind: torch.dtype, why: str) -> None:
    home = vault()
    with pytest.raises(errors.SfumatoError, match=why):
        trainer(home, linear()).fit(steps=1, autocast=kind, **FEW, **SPEND)
    assert home.spent == sf.Budget.none()


def test_parts_of_a_step_add_up_to_it() -> None:
    """Gradient accumulation: the same step in one part and in several has the same sum, up to rounding."""
    sums: list[Tensor] = []
    summed = Run._clipped

    def spied(self: Run) -> Tensor:
        found = summed(self)
        sums.append(found.clone())  # noise is written over it
        return found

    for size in (16, 64):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Run, "_clipped", spied)
            same_noise(vault(), linear()).fit(steps=1, batch=NUMBER, max_physical_batch_size=size, **SPEND)
    torch.testing.assert_close(sums[0].double(), sums[1].double(), rtol=1e-5, atol=1e-6)


def test_all_public_names_are_listed_and_no_others() -> None:
    assert dir(learning) == sorted(learning.__all__)
    assert {"Units", "DPClassifier", "Trainer", "OpenRun"} <= set(dir(learning))
    assert all(hasattr(learning, name) for name in dir(learning))
