"""Neighbouring batches differ by at most what is stated, and adversarial ones attain it."""

import pytest

from tests import parts

parts.package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sfumato.learning.engine import SLACK, Engine  # noqa: E402

CLIP = 0.5
MOST = CLIP * float(1 + SLACK)


def towards(outputs: Tensor, targets: Tensor) -> Tensor:
    """A loss whose gradient points where its target says."""
    return (outputs * targets).sum()


def batch(units: int, records: int | None = None) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    axes = (units,) if records is None else (units, records)
    return torch.randn(*axes, 6) * 3, torch.randn(*axes, 2) * 3


def naive(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The twin: the gradient of the batch is clipped, not that of each unit."""
    found: Tensor = torch.cat(
        [g.flatten() for g in torch.autograd.grad(towards(model(x), y), list(model.parameters()))]
    )
    short: Tensor = found * (len(x) * CLIP / found.norm()).clamp(max=1)
    return short


@pytest.mark.claim("S1-12")
@pytest.mark.claim("S3-02")
def test_one_record_more_or_other_attains_the_clip_and_twice_it() -> None:
    model, (x, y) = nn.Linear(6, 2), batch(40)
    engine, here = Engine(model, towards, clip=CLIP), torch.ones(40, dtype=torch.bool)
    whole, gone = engine.sum(x, y, here).flat, here.clone()
    gone[7] = False
    one = float((whole - engine.sum(x, y, gone).flat).norm())
    other = y.clone()
    other[7] = -y[7]
    two = float((whole - engine.sum(x, other, here).flat).norm())
    assert 0.999 * CLIP <= one <= MOST
    assert 2 * 0.999 * CLIP <= two <= 2 * MOST
    assert float((naive(model, x, y) - naive(model, x, other)).norm()) > 2 * MOST


@pytest.mark.claim("S1-13")
def test_a_user_with_a_thousand_records_moves_the_sum_by_at_most_the_clip() -> None:
    model, (x, y) = nn.Linear(6, 2), batch(3, 1000)
    y[1] = y[1, 0] * torch.sign(x[1] @ x[1, 0])[:, None]
    engine, here = Engine(model, towards, clip=CLIP, unit="user"), torch.ones(3, 1000, dtype=torch.bool)
    gone = here.clone()
    gone[1] = False
    whole = engine.sum(x, y, here).flat
    assert 0.999 * CLIP <= float((whole - engine.sum(x, y, gone).flat).norm()) <= MOST
    by_record = Engine(model, towards, clip=CLIP)  # the twin: records are clipped, and the user has a thousand of them
    moved = by_record.sum(x[1], y[1]).flat
    assert float(moved.norm()) > 10 * MOST
