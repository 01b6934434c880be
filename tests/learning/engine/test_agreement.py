"""The fast way and the meaning agree, for every layer and for whole models, and for all kinds of units."""

import pytest

from tests import parts

parts.package("torch")

import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from sfumato.learning.engine import ClippedSum, Engine  # noqa: E402
from tests.learning.engine.models import LAYERS, SOME, WHOLE, Stepped, batch, grouped, users  # noqa: E402

ALL = LAYERS | WHOLE


def close(one: ClippedSum, other: ClippedSum) -> None:
    far = (one.flat - other.flat).norm() / other.flat.norm()
    assert far < 1e-5
    torch.testing.assert_close(one.norms, other.norms, rtol=1e-5, atol=1e-12)
    torch.testing.assert_close(one.losses, other.losses, rtol=1e-5, atol=1e-6)
    assert list(one.sums) == list(other.sums)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(7)


@pytest.mark.few(5)
@pytest.mark.parametrize("name", SOME)
def test_records(name: str) -> None:
    make, data = ALL[name]
    model, (x, y) = make(), batch(data)
    present = torch.ones(len(x), dtype=torch.bool)
    present[2] = False
    clip = float(Engine(model, F.cross_entropy).sum(x, y).norms.median())
    fast = Engine(model, F.cross_entropy, clip=clip, grad_mode="fast").sum(x, y, present)
    slow = Engine(model, F.cross_entropy, clip=clip, grad_mode="semantic").sum(x, y, present)
    close(fast, slow)
    assert float(fast.norms[2]) == 0 == float(fast.losses[2])
    assert (fast.norms > clip).any()
    assert (fast.norms < clip).any()


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SOME)
def test_users(name: str) -> None:
    make, data = ALL[name]
    model, (x, y, present) = make(), users(data)
    clip = float(Engine(model, F.cross_entropy, unit="user").sum(x, y, present).norms[0]) * 0.9
    fast = Engine(model, F.cross_entropy, clip=clip, unit="user", grad_mode="fast").sum(x, y, present)
    slow = Engine(model, F.cross_entropy, clip=clip, unit="user", grad_mode="semantic").sum(x, y, present)
    close(fast, slow)
    assert float(fast.norms[1]) == 0 < float(fast.norms[0])


@pytest.mark.few(3)
@pytest.mark.parametrize("name", SOME)
def test_groups(name: str) -> None:
    make, data = ALL[name]
    model, (x, _, _) = make(), users(data)
    y = torch.rand(len(x))
    fast = Engine(model, grouped, clip=0.5, unit="group", grad_mode="fast").sum(x, y)
    slow = Engine(model, grouped, clip=0.5, unit="group", grad_mode="semantic").sum(x, y)
    close(fast, slow)


def test_a_user_is_the_mean_of_the_present_records() -> None:
    make, data = WHOLE["perceptron"]
    model, (x, y, present) = make(), users(data)
    found = Engine(model, F.cross_entropy, clip=1e3, unit="user").sum(x, y, present)
    each = [F.cross_entropy(model(x[u][present[u]]), y[u][present[u]]) for u in range(4) if present[u].any()]
    gradients = torch.autograd.grad(torch.stack(each).sum(), list(model.parameters()))
    for one, other in zip(found.sums.values(), gradients, strict=True):
        torch.testing.assert_close(one.float(), other, rtol=1e-4, atol=1e-6)


def test_several_inputs_and_a_loss_of_ones_own() -> None:
    model = torch.nn.Bilinear(3, 4, 2)
    left, right, y = torch.randn(5, 3), torch.randn(5, 4), torch.randn(5, 2)
    found = Engine(model, F.mse_loss, clip=1e3).sum((left, right), y)
    each = [F.mse_loss(model(left[u : u + 1], right[u : u + 1]), y[u : u + 1]) for u in range(5)]
    gradients = torch.autograd.grad(torch.stack(each).sum(), list(model.parameters()))
    torch.testing.assert_close(found.sums["weight"].float(), gradients[0], rtol=1e-4, atol=1e-6)


def test_chunks_of_the_meaning_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    make, data = WHOLE["convolutions"]
    model, (x, y) = make(), batch(data)
    whole = Engine(model, F.cross_entropy, grad_mode="semantic").sum(x, y)
    monkeypatch.setattr("sfumato.learning.engine.semantics.MEMORY", 1)
    close(Engine(model, F.cross_entropy, grad_mode="semantic").sum(x, y), whole)


class Recurrent(torch.nn.Module):
    """A layer that torch cannot compute for many units at once."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.last = torch.nn.GRU(6, 4, batch_first=True), torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.last(self.steps(x)[0][:, -1])
        return found


def test_what_cannot_be_batched_is_computed_one_by_one() -> None:
    model, x, y = Recurrent(), torch.randn(4, 3, 6), torch.randint(0, 3, (4,))
    engine = Engine(model, F.cross_entropy, clip=1e3)
    found = engine.sum(x, y)
    assert "no rule for GRU" in engine.plan
    each = [F.cross_entropy(model(x[u : u + 1]), y[u : u + 1]) for u in range(4)]
    gradients = torch.autograd.grad(torch.stack(each).sum(), list(model.parameters()))
    for one, other in zip(found.sums.values(), gradients, strict=True):
        torch.testing.assert_close(one.float(), other, rtol=1e-4, atol=1e-6)


def test_half_precision_is_near() -> None:
    make, data = WHOLE["perceptron"]
    model, (x, y) = make(), batch(data)
    whole = Engine(model, F.cross_entropy, clip=0.1, grad_mode="fast")
    exact = whole.sum(x, y)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = whole.sum(x, y)
        alone = whole.sum(x, y, torch.arange(7) == 2)
    assert 0 < float((found.flat - exact.flat).norm() / exact.flat.norm()) < 0.05
    assert abs(float(alone.flat.norm()) - 0.1) < 1e-6


@pytest.mark.long
def test_gradients_that_are_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    make, data = WHOLE["convolutions"]
    model, (x, y) = make(), batch(data)
    whole = Engine(model, F.cross_entropy, grad_mode="fast").sum(x, y)
    monkeypatch.setattr("sfumato.learning.engine.fast.KEEP", {"cpu": 1})
    engine = Engine(model, F.cross_entropy, grad_mode="fast")
    close(engine.sum(x, y), whole)
    assert "made twice" in engine.plan


def test_doubles_are_summed_as_doubles() -> None:
    make, data = WHOLE["perceptron"]
    model, (x, y) = make().double(), batch(data)
    fast = Engine(model, F.cross_entropy, grad_mode="fast").sum(x.double(), y)
    slow = Engine(model, F.cross_entropy, grad_mode="semantic").sum(x.double(), y)
    assert float((fast.flat - slow.flat).norm()) < 1e-14


def test_frozen_parameters_have_no_sum() -> None:
    model, (x, y) = Stepped(torch.nn.GRUCell, 4), batch(lambda units: torch.randn(units, 3, 6))
    model.cell.bias_ih.requires_grad_(False)
    model.last.weight.requires_grad_(False)
    fast = Engine(model, F.cross_entropy, grad_mode="fast").sum(x, y)
    close(fast, Engine(model, F.cross_entropy, grad_mode="semantic").sum(x, y))
    assert "last.weight" not in fast.sums
    assert "cell.bias_ih" not in fast.sums


def test_parameters_are_left_alone() -> None:
    make, data = WHOLE["perceptron"]
    model, (x, y) = make(), batch(data)
    before = [value.clone() for value in model.parameters()]
    Engine(model, F.cross_entropy).sum(x, y)
    assert all(torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True))
    assert all(value.grad is None and value.requires_grad for value in model.parameters())
    assert not any(layer._forward_hooks or "forward" in layer.__dict__ for layer in model.modules())
