"""What a review found: each of these moved the sum by more than a clip, or told something without noise."""

import pytest

from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from sfumato.errors import Refused  # noqa: E402
from sfumato.learning.engine import Engine  # noqa: E402
from sfumato.learning.engine.bounds import SLACK  # noqa: E402
from sfumato.learning.refusals import check_uncoupled  # noqa: E402

MOST = 1 + float(SLACK)


def moved(engine: Engine, inputs: Tensor, targets: Tensor) -> float:
    """How far the first unit moves the sum, in clips: its place is filled with another one, absent, in its stead."""
    filled = inputs.clone()
    filled[0] = inputs[1]
    absent = torch.arange(len(inputs)) > 0
    without = engine.sum(filled, targets, absent).flat.double().clone()
    return float((engine.sum(inputs, targets).flat.double() - without).norm()) / engine.clip


@pytest.mark.parametrize("size", [1e9, 1e18])  # the longer input counts nothing anyway
def test_factors_that_single_precision_cannot_hold_are_nothing(size: float) -> None:
    """A factor of half the least float was rounded up to it: the contribution was twice a clip."""
    model = nn.Linear(4, 1)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    inputs, targets = torch.zeros(64, 4), torch.zeros(64, 1)
    inputs[0], targets[0] = size, -1 / (0.51 * 2.0**-149) / (4 * size)
    assert moved(Engine(model, F.mse_loss), inputs, targets) <= MOST


@pytest.mark.parametrize("part", [0.501, 0.51, 0.75, 1.49, 1.51])
def test_long_inputs_times_faint_gradients(part: float) -> None:
    """A scaled gradient of half the least float is rounded up to it, and a long input makes that a whole clip."""
    model, clip = nn.Linear(1, 1, bias=False), 2.0**-40
    nn.init.zeros_(model.weight)
    inputs, targets = torch.zeros(8, 1), torch.zeros(8, 1)
    inputs[0], targets[0] = clip / (part * 2.0**-149), 2.0**-52
    assert moved(Engine(model, F.mse_loss, clip=clip), inputs, targets) <= MOST


def test_squares_that_underflow_in_double_precision_are_made_up_for() -> None:
    model = nn.Linear(1, 1000, bias=False).double()
    nn.init.zeros_(model.weight)
    inputs, targets = torch.zeros(4, 1).double(), torch.zeros(4, 1000).double()
    inputs[0], targets[0] = 1.2e154, 7.5e-160
    for way in ("fast", "semantic"):
        assert moved(Engine(model, F.mse_loss, clip=2.0**-40, grad_mode=way), inputs, targets) <= MOST


class Whitened(nn.Module):
    """Normalises over the batch, in training alone."""

    def __init__(self, *, head: bool) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 2)
        if not head:
            nn.init.zeros_(self.last.weight)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if self.training:
            h = (h - h.mean(0)) / (h.std(0, unbiased=False) + 1e-3)
        return self.last(torch.tanh(h))


def test_what_couples_units_in_training_alone_is_found() -> None:
    inputs, targets = torch.randn(16, 3), torch.randint(0, 2, (16,))
    for head in (True, False):
        with pytest.raises(Refused, match="mixes units"):
            check_uncoupled(Whitened(head=head).train(), F.cross_entropy, inputs, targets)
    model = Whitened(head=False).train()
    engine = Engine(model, F.cross_entropy)
    engine.prepare(inputs, targets)
    with torch.no_grad():
        model.last.weight.normal_()
    inputs[0] = 1e4
    assert moved(engine, inputs, targets) <= MOST


def test_members_of_a_group_may_be_normalised_together() -> None:
    model = Whitened(head=True).train()
    inputs, targets = torch.randn(16, 4, 3), torch.randn(16, 2)
    inputs[0] *= 1e4
    engine = Engine(model, lambda outputs, target: (outputs.mean(0) - target).square().sum(), unit="group")
    assert moved(engine, inputs, targets) <= MOST
    assert engine.plan.startswith("semantic")


class Gated(nn.Module):
    """Mixes units where there are many, or moves them to each other's place and back."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.layer = how, nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "many" and len(x) >= 8:
            x = x - x.mean(0)
        if self.how == "turned":
            return self.layer(x.roll(12, 0)).roll(-12, 0)
        return self.layer(x)


@pytest.mark.parametrize("how", ["many", "turned"])
def test_the_fast_way_is_tried_out_among_as_many_units_as_there_are(how: str) -> None:
    engine = Engine(Gated(how), F.cross_entropy)
    inputs, targets = torch.randn(64, 3), torch.randint(0, 2, (64,))
    inputs[0] = 1e4
    assert moved(engine, inputs, targets) <= MOST
    assert engine.plan.startswith("semantic")


class Counting(nn.Module):
    """Counts its forward passes, and what it sees."""

    passes: Tensor
    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.words, self.layer = nn.Embedding(5, 4), nn.Linear(4, 2)
        self.register_buffer("passes", torch.zeros(()))
        self.register_buffer("seen", torch.zeros(5))

    def forward(self, x: Tensor) -> Tensor:
        if not torch._C._functorch.peek_interpreter_stack():  # counting inside vmap is an error of its own
            self.passes += 1
            self.seen = self.seen + torch.bincount(x.flatten(), minlength=5)
        return self.layer(self.words(x).mean(1))


def test_buffers_are_left_as_they_were() -> None:
    model = Counting()
    with pytest.raises(Refused, match="statistics of its inputs"):
        check_uncoupled(model, F.cross_entropy, torch.zeros(4, 6, dtype=torch.long), torch.zeros(4, dtype=torch.long))
    engine = Engine(model, F.cross_entropy)
    engine.sum(torch.randint(0, 5, (8, 6)), torch.randint(0, 2, (8,)))
    assert float(model.passes) == 0
    assert model.seen.tolist() == [0.0] * 5


def test_sound_models_are_not_refused_for_dropout_or_precision() -> None:
    inputs, targets = torch.zeros(4, 5, 8), torch.zeros(4, dtype=torch.long)

    class Dropping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.last = nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(F.dropout(self.block(x), 0.5, self.training).mean(1))

    check_uncoupled(Dropping().train(), F.cross_entropy, inputs, targets)
    short = nn.Linear(8, 3).bfloat16()
    check_uncoupled(short, F.cross_entropy, torch.zeros(4, 8).bfloat16(), targets)
