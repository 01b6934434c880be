"""Gradients of matrices that are made twice and never written out: what their kernels do, by tensor operations."""

import pytest

from tests import parts

parts.package("torch")

import torch  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from sfumato.learning import device_products  # noqa: E402
from sfumato.learning.engine import SLACK, Engine  # noqa: E402
from sfumato.learning.engine.bounds import ErrorBudget  # noqa: E402
from sfumato.learning.engine.layers.linear import Streamed, matrix_part  # noqa: E402
from tests.learning.engine.models import WHOLE, batch  # noqa: E402

UNITS, PLACES, HIGH, WIDE = 6, 5, 7, 4
BUDGET = ErrorBudget(units=UNITS, batches=2, crowded=False)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(3)


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every matrix with several places a unit take this way."""
    monkeypatch.setattr(device_products, "fits", lambda left, right: left.shape[1] > 1)


def values(width: int) -> Tensor:
    """Numbers that TF32 has."""
    return torch.randint(-512, 512, (UNITS, PLACES, width)) / 64


def sums(a: Tensor, g: Tensor, factors: Tensor) -> tuple[Tensor, Tensor, Tensor, str]:
    """Squared norms, the sum of the matrix and that of the bias, and the way."""
    part = matrix_part(a, g, "weight", "bias", 2)
    into = {"weight": torch.zeros(HIGH, WIDE).double(), "bias": torch.zeros(HIGH).double()}
    squared, _ = part.measure()
    part.put(factors, into, BUDGET)
    return squared, into["weight"], into["bias"], part.way


def test_it_is_what_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    a, g, factors = values(WIDE), values(HIGH), torch.rand(UNITS).double()
    written = sums(a, g, factors)
    monkeypatch.setattr(device_products, "fits", lambda left, right: True)
    made_twice = sums(a, g, factors)
    assert (written[3], made_twice[3]) == ("direct", "direct, made twice")
    for one, other in zip(written[:3], made_twice[:3], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("streamed")
def test_what_is_summed_is_what_was_measured() -> None:
    """Whatever rounding does to a gradient: the sum of one unit alone is as long as its norm."""
    a, g = torch.randn(UNITS, PLACES, WIDE) * 1e3, torch.randn(UNITS, PLACES, HIGH)
    for unit in range(UNITS):
        alone = (torch.arange(UNITS) == unit).double()
        squared, weight, bias, _ = sums(a, g, alone)
        torch.testing.assert_close(weight.square().sum() + bias.square().sum(), squared[unit], rtol=1e-9, atol=0.0)


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_is_found_and_counts_nothing(bad: float) -> None:
    a, g, factors = values(WIDE), values(HIGH), torch.rand(UNITS).double()
    factors[2] = 0
    expected = sums(a, g, factors)
    g[2, 1, 3] = bad
    found = sums(a, g, factors)
    assert not torch.isfinite(found[0][2])
    assert all(torch.equal(one, other) for one, other in zip(expected[1:3], found[1:3], strict=True))


def test_rounding_keeps_every_form_of_what_is_no_number() -> None:
    """Added to these bits, half a last place would carry over into the sign and leave 0."""
    bits = torch.tensor([0x7FFFFFFF, -1, 0x7F800001, 0x7F800000, -0x800000], dtype=torch.int32)
    found = device_products.turned(bits.view(torch.float32).view(1, 1, -1)).values
    assert not torch.isfinite(found).any()


def test_rounding_is_to_the_nearest() -> None:
    given = torch.tensor([1.0, 1 + 2.0**-10, 1 + 2.0**-11 + 2.0**-20, -1 - 2.0**-12, 0.0, 2.0**-130])
    found = device_products.turned(given.view(1, 1, -1)).values.flatten()
    assert found.tolist() == [1.0, 1 + 2.0**-10, 1 + 2.0**-10, -1.0, 0.0, 2.0**-130]


@pytest.mark.usefixtures("streamed")
def test_whole_models_agree_and_no_unit_moves_more_than_the_clip() -> None:
    make, data = WHOLE["transformer"]
    model, (x, y) = make(), batch(data)
    engine = Engine(model, F.cross_entropy, clip=0.05, grad_mode="fast")
    whole, slow = engine.sum(x, y), Engine(model, F.cross_entropy, clip=0.05, grad_mode="semantic").sum(x, y)
    assert "direct, made twice" in engine.plan
    torch.testing.assert_close(whole.norms, slow.norms, rtol=2e-3, atol=1e-9)
    assert float((whole.flat - slow.flat).norm() / slow.flat.norm()) < 2e-3
    for unit in range(len(x)):
        without = engine.sum(x, y, torch.arange(len(x)) != unit)
        assert float((whole.flat.double() - without.flat.double()).norm()) <= 0.05 * (1 + float(SLACK))


def test_it_is_measured_before_it_is_summed() -> None:
    part = Streamed(a=values(WIDE), g=values(HIGH), weight="weight", bias=None)
    with pytest.raises(RuntimeError, match="measured before"):
        part.put(torch.ones(UNITS), {"weight": torch.zeros(HIGH, WIDE).double()}, BUDGET)
