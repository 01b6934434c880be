"""No norm that is trusted can cancel, overflow or vanish, and nothing of a unit that is not finite is left."""

import pytest

from tests import parts

parts.package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from sfumato.learning.engine import Engine  # noqa: E402
from sfumato.learning.engine.bounds import OVER, PIECE  # noqa: E402
from sfumato.learning.engine.layers.linear import Gram  # noqa: E402
from sfumato.learning.engine.measure import squares  # noqa: E402
from tests.learning.engine.models import LAYERS, SOME, WHOLE, batch, users  # noqa: E402

MOST = 1 + float(OVER)
FAR = 2.0**22


def weighted(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs * targets).sum()


def cancelling() -> tuple[Tensor, Tensor]:
    """Two places of one unit whose gradients nearly cancel: the norm is 47."""
    return torch.tensor([[[FAR], [47 - FAR]]]), torch.ones(1, 2, 1)


def test_a_naive_gram_norm_is_zero_where_the_norm_is_47() -> None:
    a, g = cancelling()
    naive = (torch.bmm(a, a.transpose(1, 2)) * torch.bmm(g, g.transpose(1, 2))).sum()
    assert float(naive) == 0.0
    assert float((g.transpose(1, 2) @ a).norm()) == 47.0
    squared, _ = Gram(a=a, g=g, weight="weight", bias=None, double=False).measure()
    assert float(squared.sqrt()) >= 47.0


def test_what_cancels_is_still_clipped() -> None:
    a, g = cancelling()
    found = Engine(nn.Linear(1, 1, bias=False), weighted, clip=1.0, unit="user", grad_mode="fast").sum(a, 2 * g)
    assert float(found.flat.norm()) <= MOST


@pytest.mark.parametrize("seed", range(20))
def test_safe_gram_norms_are_never_too_small(seed: int) -> None:
    torch.manual_seed(seed)
    a, g = torch.randn(6, 8, 30), torch.randn(6, 8, 20)
    a[:, 1:] = a[:, :1] * (-1) ** torch.arange(7)[:, None] + a[:, 1:] * 10.0 ** -torch.arange(6)[:, None, None]
    g[:, 1:] = g[:, :1] + g[:, 1:] * 10.0 ** -torch.arange(6)[:, None, None]
    squared, spread = Gram(a=a, g=g, weight="weight", bias="bias", double=False).measure()
    a, g = a.double(), g.double()
    true = torch.bmm(g.transpose(1, 2), a).square().sum((1, 2)) + g.sum(1).square().sum(1)
    assert (true <= squared * MOST).all()
    assert (true <= spread * 1.001).all()


@pytest.mark.parametrize("length", [1, PIECE - 1, PIECE, PIECE + 1, 5000])
def test_squares(length: int) -> None:
    values = torch.randn(3, length) * torch.tensor([[1.0], [1e-12], [1e12]])
    true = values.double().square().sum(1)
    torch.testing.assert_close(squares(values), true, rtol=1e-5, atol=0)
    assert (squares(torch.full((1, length), 1e-30)) > 0).all()
    assert not torch.isfinite(squares(torch.full((1, length), float("nan")))).any()
    assert not (squares(torch.full((1, length), 1e30)) < length * 0.999e60).any()


SIZES = (1e-30, 1e-20, 1e-10, 1e10, 1e18, 1e20, 1e30, 3e38)


@pytest.mark.few(1)
@pytest.mark.parametrize("unit", ["record", "user"])
def test_no_size_gets_past_the_clip(unit: str) -> None:
    model = nn.Linear(3, 2)
    for inside in SIZES:
        for outside in SIZES:
            x, y = torch.full((1, 2, 3), inside), torch.full((1, 2, 2), outside)
            if unit == "record":
                x, y = x[:, 0], y[:, 0]
            found = Engine(model, weighted, clip=1.0, unit=unit, grad_mode="fast").sum(x, y)  # type: ignore[arg-type]
            assert float(found.flat.norm()) <= MOST, (inside, outside)


def test_underflow_is_not_taken_for_nothing() -> None:
    """|a|² is 0 in floats, and the gradient is 10 long."""
    x, y = torch.full((1, 100), 1e-24), torch.full((1, 1), 1e19)
    assert float(x.square().sum()) == 0
    found = Engine(nn.Linear(100, 1, bias=False), weighted, clip=2.0**-20, grad_mode="fast").sum(x, y)
    assert float(squares(x)) * 1e38 >= 1e-8
    assert float(found.flat.norm()) <= 2.0**-20 * MOST


@pytest.mark.few(8)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e38])
@pytest.mark.parametrize("name", ["perceptron", "convolutions", "lstm", "layer norm", "group norm", "conv1d"])
@pytest.mark.parametrize("way", ["fast", "semantic"])
def test_a_unit_that_is_not_finite_counts_nothing(name: str, way: str, bad: float) -> None:
    torch.manual_seed(3)
    make, data = (LAYERS | WHOLE)[name]
    model, (x, y) = make(), batch(data, 5)
    present = torch.ones(5, dtype=torch.bool)
    engine = Engine(model, F.cross_entropy, clip=0.1, grad_mode=way)  # type: ignore[arg-type]
    engine.prepare(x, y)
    dirty = x.clone()
    dirty[3].view(-1)[1] = bad
    present[3] = False
    without = engine.sum(x, y, present)
    present[3] = True
    found = engine.sum(dirty, y, present)
    assert torch.isfinite(found.flat).all()
    assert torch.isfinite(found.norms).all()
    assert torch.isfinite(found.losses).all()
    if bad == 1e38 and float(found.norms[3]) > 0:
        assert float((found.flat - without.flat).norm()) <= 0.1 * MOST
    else:
        assert torch.equal(found.flat, without.flat)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", SOME)
def test_each_contribution_is_at_most_the_clip(name: str) -> None:
    torch.manual_seed(5)
    make, data = (LAYERS | WHOLE)[name]
    model, (x, y, _) = make(), users(data)
    engine = Engine(model, F.cross_entropy, clip=1e-3, unit="user", grad_mode="fast")
    for unit in range(4):
        present = torch.zeros(4, 3, dtype=torch.bool)
        present[unit] = True
        length = float(engine.sum(x, y, present).flat.norm())
        assert 0.999e-3 < length <= 1e-3 * MOST
