"""A step is walked through only where a user's code can run in it; torch's own code is known."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from sfumato.learning.kept_tensors import KeptTensors
from sfumato.learning.library_code import QUIET, LibraryCode

LOSS = nn.functional.cross_entropy


def plain() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.GroupNorm(1, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))


class Own(nn.Linear):
    """A layer of the caller's."""


class Weight(nn.Parameter):
    """A parameter of the caller's."""


def _hook(model: nn.Sequential) -> None:
    model[4].register_forward_hook(lambda *_: None)


def _pre_hook(model: nn.Sequential) -> None:
    model[0].register_full_backward_pre_hook(lambda *_: None)


def _forward(model: nn.Sequential) -> None:
    model[2].forward = lambda seen: seen  # type: ignore[method-assign]


def _list(model: nn.Sequential) -> None:
    model.seen = [1]  # type: ignore[assignment]


def _function(model: nn.Sequential) -> None:
    model[1].told = print  # type: ignore[assignment]


def _inside_a_tuple(model: nn.Sequential) -> None:
    model[1].told = (1, ([],))  # type: ignore[assignment]


def _class(model: nn.Sequential) -> None:
    model[4].__class__ = Own


def _parameter(model: nn.Sequential) -> None:
    model[4].weight = Weight(model[4].weight.detach())


def _gradient_hook(model: nn.Sequential) -> None:
    model[4].weight.register_hook(lambda found: found)  # type: ignore[union-attr]


def _gradient(model: nn.Sequential) -> None:
    model[4].weight.grad = torch.zeros(2, 8)


def _parametrized(model: nn.Sequential) -> None:
    nn.utils.parametrizations.weight_norm(model[4])


CHANGES = (
    *(_hook, _pre_hook, _forward, _list, _function, _inside_a_tuple, _class, _parameter, _gradient_hook, _gradient),
    _parametrized,
)


def test_torch_s_own_layers_and_losses_are_known() -> None:
    assert LibraryCode(plain(), LOSS)
    assert LibraryCode(plain(), nn.CrossEntropyLoss())


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_a_user_adds_is_noticed_at_the_next_step(change: Callable[[nn.Sequential], None]) -> None:
    model = plain()
    code = LibraryCode(model, LOSS)
    assert code
    change(model)
    assert not code


def test_a_loss_of_one_s_own_is_a_user_s_code() -> None:
    assert not LibraryCode(plain(), lambda found, target: LOSS(found, target))


def test_hooks_of_all_modules_are_a_user_s_code() -> None:
    code = LibraryCode(plain(), LOSS)
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert not code
    finally:
        handle.remove()
    assert code


def test_layers_that_write_to_their_weights_are_put_back() -> None:
    model = nn.Sequential(nn.Embedding(4, 3, max_norm=0.1))
    before = model[0].weight.detach().clone()
    code = LibraryCode(model, LOSS)
    with code.kept():
        model(torch.arange(4))
        assert not torch.equal(model[0].weight, before)
    assert code
    assert torch.equal(model[0].weight, before)


MADE: dict[str, tuple[object, ...]] = {
    **dict.fromkeys(("Linear", "Conv1d", "Conv2d", "Conv3d"), (4, 4, 1)),
    "GroupNorm": (2, 4),
    "LayerNorm": (4,),
    **dict.fromkeys(("MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d"), (2,)),
    **dict.fromkeys(("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d"), (1,)),
}


@pytest.mark.parametrize("kind", sorted(QUIET, key=lambda kind: str(kind.__name__)))
def test_quiet_layers_write_to_nothing_of_theirs(kind: type[nn.Module]) -> None:
    layer = kind(*MADE.get(kind.__name__, ()))
    assert not list(layer.buffers())
    kept = [(value, value.detach().clone(), value._version) for value in layer.parameters()]
    axes = next((int(each) for each in "123" if kind.__name__.endswith(f"{each}d")), 0)
    seen = torch.randn(3, 4, *[4] * axes, requires_grad=True)
    for _ in range(2):
        layer(seen).square().sum().backward()
    assert seen.grad is not None
    for value, before, version in kept:
        assert torch.equal(value, before)
        assert value._version == version


def test_nothing_is_copied_of_quiet_layers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []
    monkeypatch.setattr(KeptTensors, "keep", lambda self, found: copied.append(len(found)))
    monkeypatch.setattr(KeptTensors, "restore", lambda self: None)
    with LibraryCode(plain(), LOSS).kept():
        pass
    assert not copied
    with LibraryCode(nn.Sequential(plain(), nn.Embedding(2, 2)), LOSS).kept():
        pass
    assert copied == [7]


def test_a_layer_that_was_given_other_code_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by a reviewer: a class of torch with another ``forward`` wrote to weights, and nothing put them back."""
    model = plain()
    before = model[4].weight.detach().clone()
    own = nn.Linear.forward

    def writes(self: nn.Linear, seen: torch.Tensor) -> torch.Tensor:
        self.weight.data.add_(1000.0)
        return own(self, seen)

    code = LibraryCode(model, LOSS)
    assert code._quiet()
    monkeypatch.setattr(nn.Linear, "forward", writes)
    assert not code._quiet()
    with code.kept():
        model(torch.zeros(1, 1, 4, 4))
    assert torch.equal(model[4].weight, before)


def test_functions_of_torch_that_were_exchanged_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    code = LibraryCode(plain(), LOSS)
    monkeypatch.setattr(nn.functional, "linear", lambda *given: torch._C._nn.linear(*given))
    assert not code._quiet()
