"""Layers that mix units and losses that couple them are refused, with the reason and what to do."""

from collections.abc import Callable

import pytest

from tests import parts

parts.package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from sfumato.errors import Refused  # noqa: E402
from sfumato.learning.engine import Engine  # noqa: E402
from sfumato.learning.refusals import check_layers, check_uncoupled  # noqa: E402
from tests.learning.engine.models import WHOLE  # noqa: E402

CLASSES = torch.zeros(8, dtype=torch.int64)
Loss = Callable[..., Tensor]

MIXING = {
    "BatchNorm1d": (nn.BatchNorm1d(3), "GroupNorm"),
    "BatchNorm2d": (nn.BatchNorm2d(3), "GroupNorm"),
    "SyncBatchNorm": (nn.SyncBatchNorm(3), "GroupNorm"),
    "InstanceNorm1d": (nn.InstanceNorm1d(3, track_running_stats=True), "track_running_stats=False"),
    "by frequency": (nn.Embedding(3, 2, scale_grad_by_freq=True), "scale_grad_by_freq=False"),
    "max_norm": (nn.Embedding(3, 2, max_norm=1.0), "max_norm=None"),
}


@pytest.mark.parametrize("name", MIXING)
def test_layers_that_mix_units_are_refused(name: str) -> None:
    layer, instead = MIXING[name]
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(layer))
    with pytest.raises(Refused, match=instead) as refused:
        check_layers(model)
    assert "layer '1.0'" in str(refused.value)
    assert "Nothing was trained" in str(refused.value)
    with pytest.raises(Refused):
        Engine(model, F.cross_entropy)


@pytest.mark.parametrize("layer", [nn.GroupNorm(1, 3), nn.LayerNorm(3), nn.InstanceNorm1d(3), nn.Dropout(0.5)])
def test_what_stays_within_a_row_passes(layer: nn.Module) -> None:
    check_layers(nn.Sequential(nn.Linear(3, 3), layer))


def contrastive(outputs: Tensor, targets: Tensor) -> Tensor:
    """InfoNCE with the other rows of the batch as negatives."""
    found = F.normalize(outputs, dim=1)
    return F.cross_entropy(found @ F.normalize(outputs.roll(1, 1), dim=1).t() / 0.5, torch.arange(len(outputs)))


LOSSES: dict[str, tuple[Loss, Tensor]] = {
    "cross entropy": (F.cross_entropy, CLASSES),
    "summed": (nn.CrossEntropyLoss(reduction="sum"), CLASSES),
    "one number a row": (nn.CrossEntropyLoss(reduction="none"), CLASSES),
    "squares": (F.mse_loss, torch.zeros(8, 3)),
    "squares by entry": (nn.MSELoss(reduction="none"), torch.zeros(8, 3)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_plain_losses_pass(name: str) -> None:
    loss, targets = LOSSES[name]
    check_uncoupled(nn.Linear(5, 3), loss, torch.zeros(8, 5), targets)


COUPLED: dict[str, tuple[Loss, Tensor]] = {
    "in-batch negatives": (contrastive, CLASSES),
    "weights over their sum": (nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 1.0])), CLASSES),
    "the largest of the batch": (lambda outputs, targets: outputs.max(), CLASSES),
    "centred": (lambda outputs, targets: (outputs - outputs.mean(0)).square().mean(), CLASSES),
}


@pytest.mark.parametrize("name", COUPLED)
def test_losses_that_couple_units_are_refused(name: str) -> None:
    loss, targets = COUPLED[name]
    with pytest.raises(Refused, match="the loss mixes units"):
        check_uncoupled(nn.Linear(5, 3), loss, torch.zeros(8, 5), targets)
    check_uncoupled(nn.Linear(5, 3), loss, torch.zeros(8, 2, 5), targets, unit="group")


class Mixing(nn.Module):
    """Attention over the units of the batch."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(x @ x.t(), 1) @ x


class Centred(nn.Module):
    """A statistic of the batch."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0)


class Pooling(nn.Module):
    """One output for all rows."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(0, keepdim=True)


class Remembering(nn.Module):
    """A running mean that changes no output."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    seen: Tensor

    def forward(self, x: Tensor) -> Tensor:
        self.seen.mul_(0.9).add_(x.detach().mean(0))
        return x


@pytest.mark.parametrize(
    ("layer", "why"),
    [(Mixing(), "mixes units"), (Centred(), "mixes units"), (Pooling(), "one row"), (Remembering(), "statistics")],
)
def test_models_that_mix_units_are_refused(layer: nn.Module, why: str) -> None:
    model = nn.Sequential(nn.Linear(5, 3), layer)
    before = [value.clone() for value in model.buffers()]
    with pytest.raises(Refused, match=why):
        check_uncoupled(model, F.cross_entropy, torch.zeros(8, 5), CLASSES)
    assert all(torch.equal(one, other) for one, other in zip(before, model.buffers(), strict=True))


@pytest.mark.parametrize("name", WHOLE)
def test_whole_models_pass(name: str) -> None:
    make, data = WHOLE[name]
    check_uncoupled(make(), F.cross_entropy, data(8), CLASSES)
    check_uncoupled(make(), F.cross_entropy, data(8).reshape(4, 2, *data(1).shape[1:]), CLASSES.view(4, 2), unit="user")


def test_the_values_of_the_batch_are_not_looked_at() -> None:
    bad = torch.full((8, 5), float("nan"))
    check_uncoupled(nn.Sequential(nn.Linear(5, 3), nn.Dropout(0.5)), F.cross_entropy, bad, CLASSES + 99)
