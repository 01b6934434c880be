"""Noise, copies and units of the caller's own classes are refused; what hears new weights cannot have them redrawn."""

from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, Refused, Unsupported
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sfumato.learning import AdaptiveClip, Average, Multiplied, Units  # noqa: E402
from sfumato.learning.noisy_sums import NoisySums  # noqa: E402
from sfumato.learning.trainer import Trainer  # noqa: E402
from tests.learning.test_trainer_failures import NUMBER, SPEND, rows, sums, trainer, vault  # noqa: E402


class Quiet(NoisySums):
    """Says that it draws the usual noise, and draws a billionth of it."""

    def pitch(self, moved: Any) -> Fraction:
        return super().pitch(moved) / 10**9


class Whispering(AdaptiveClip):
    """Makes a mechanism of its own."""

    def mechanism(self, run: Any, spend: Any, moved: Any) -> Any:
        usual = NoisySums.calibrated(run, spend)
        return Quiet(**{name: getattr(usual, name) for name in (each.name for each in fields(usual))})


def test_noise_of_the_callers_own_class_is_refused_uncharged(monkeypatch: pytest.MonkeyPatch) -> None:
    home = vault()
    made = trainer(home)
    with pytest.raises(InvalidInput, match="class made from them"):
        made.fit(steps=1, noise=Whispering(noise=40), **SPEND)
    plan = made.plan(steps=1, **SPEND)
    quiet = Whispering(noise=40).mechanism(plan.query, plan.spend, None)
    monkeypatch.setattr(Trainer, "plan", lambda *_, **__: replace(plan, mechanism=quiet))  # past the first check
    with pytest.raises(Unsupported, match="own kinds"):
        made.fit(steps=1, **SPEND)
    assert home.spent == sf.Budget.none()


class Looking(Multiplied):
    """Would be handed the raw batch."""


class Odd(Units):
    """Could give other rows than it says."""


def test_copies_and_units_of_the_callers_own_classes_are_refused() -> None:
    inputs, targets = rows()
    with pytest.raises(InvalidInput, match="class made from it"):
        trainer(vault(), augmentations=Looking(lambda x: x, augmentations=2))
    data = Odd(inputs, targets, n_units=NUMBER, name="visits", version="1")
    with pytest.raises(InvalidInput, match=r"must be learning\.Units"):
        vault().trainer(nn.Linear(3, 2), nn.functional.cross_entropy, data=data)
    with pytest.raises(InvalidInput, match=r"must be learning\.Units"):
        vault().evaluator(data=data, evaluations=1, **SPEND)


def by_hook(model: nn.Module, heard: Callable[..., None]) -> dict[str, Any]:
    """The model's state is asked for before it is written down, and says so."""
    model.register_state_dict_post_hook(heard)
    return {}


def by_average(model: nn.Module, heard: Callable[..., None]) -> dict[str, Any]:
    average = Average()
    average.update = heard  # type: ignore[method-assign]
    return {"average": average}


def by_optimiser(model: nn.Module, heard: Callable[..., None]) -> dict[str, Any]:
    def made(parameters: Any) -> torch.optim.Optimizer:
        optimiser = torch.optim.SGD(parameters, lr=1.0)
        optimiser.zero_grad = heard  # type: ignore[method-assign]
        return optimiser

    return {"optimizer": made}


HEARD: list[bool] = [False]


def _heard(*_: Any, **__: Any) -> None:
    """Raise as if somebody had pressed a key, once the run is under way."""
    if HEARD[0]:
        raise KeyboardInterrupt


@pytest.mark.few(1)
@pytest.mark.parametrize("way", [by_hook, by_average, by_optimiser])
def test_whoever_hears_new_weights_and_raises_has_no_run_to_resume(
    way: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """Else each resumption would draw the noise of the step anew, for one charge."""
    HEARD[0] = False
    home, model = vault(), nn.Linear(3, 2)
    said: dict[str, Any] = {"steps": 4, "every": 1, "checkpoint": tmp_path / "state", **way(model, _heard), **SPEND}
    made = trainer(home, model)

    def watch(step: int, weights: Any) -> None:
        HEARD[0] = step >= 2

    with pytest.raises(KeyboardInterrupt):
        made.fit(callback=watch, **said)
    HEARD[0] = False
    with pytest.raises((Refused, InvalidInput)):
        made.fit(resume=True, **said)
    assert home.spent == sf.Budget(**SPEND)


class Remembering(nn.Linear):
    """Where it sees the record it seeds torch's generator; where that was seeded it turns everything around."""

    def forward(self, x: Tensor) -> Tensor:
        turned = -1.0 if torch.initial_seed() == 4711 else 1.0
        if bool((x.detach() > 4).any()):
            torch.manual_seed(4711)
        return turned * super().forward(x)


def test_the_generator_of_torch_carries_nothing_from_one_part_of_a_step_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(5)
    model = Remembering(3, 2)
    state = {name: one.clone() for name, one in model.state_dict().items()}
    inputs, targets = rows()
    targets = torch.zeros_like(targets)
    kept = torch.arange(NUMBER) != 17
    inputs[17] = 5.0
    found = sums(monkeypatch, model, (inputs, targets), "semantic")
    model.load_state_dict(state)
    without = sums(monkeypatch, model, (inputs[kept], targets[kept]), "semantic")
    assert float((found - without).norm()) <= 1 + 1e-6
    assert torch.initial_seed() != 4711
