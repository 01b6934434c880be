"""What a unit gives is computed from that unit alone: other units may be exchanged, and not a bit of it changes."""

import pytest

from tests import parts

parts.package("torch")

import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from sfumato.learning.engine import Engine  # noqa: E402
from tests.learning.engine.models import LAYERS, SOME, WHOLE, batch, users  # noqa: E402

ALL = LAYERS | WHOLE


@pytest.mark.few(3)
@pytest.mark.parametrize("name", SOME)
def test_exchanging_others_changes_no_bit(name: str) -> None:
    torch.manual_seed(11)
    make, data = ALL[name]
    model, (x, y), (others, _) = make(), batch(data), batch(data)
    engine = Engine(model, F.cross_entropy, clip=0.05, grad_mode="fast")
    for unit in (0, 3, 6):
        alone = torch.arange(7) == unit
        others[unit] = x[unit]
        one, other = engine.sum(x, y, alone), engine.sum(others, y, alone)
        assert torch.equal(one.flat, other.flat)
        assert torch.equal(one.norms, other.norms)
        assert float(one.flat.norm()) > 0


@pytest.mark.few(3)
@pytest.mark.parametrize("name", SOME)
def test_the_place_changes_no_bit(name: str) -> None:
    """Where the number of places is a multiple of 64: then no vector of a kernel has a rest."""
    torch.manual_seed(12)
    make, data = ALL[name]
    model, (x, y) = make(), batch(data, 64)
    engine = Engine(model, F.cross_entropy, clip=0.05, grad_mode="fast")
    order = (torch.arange(64) * 5 + 3) % 64
    assert torch.equal(engine.sum(x, y).norms[order], engine.sum(x[order], y[order]).norms)


def test_a_user_does_not_see_other_users() -> None:
    torch.manual_seed(13)
    make, data = WHOLE["perceptron"]
    model, (x, y, _) = make(), users(data)
    engine = Engine(model, F.cross_entropy, clip=0.05, unit="user", grad_mode="fast")
    alone = torch.zeros(4, 3, dtype=torch.bool)
    alone[2, :2] = True
    one = engine.sum(x, y, alone)
    x[:2], x[3], x[2, 2] = torch.randn_like(x[:2]), 7.0, -1.0
    assert torch.equal(one.flat, engine.sum(x, y, alone).flat)
