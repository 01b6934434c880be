"""Units that are exchanged: coupling of one part in a million is found, and rounding is not taken for it."""

import pytest

from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from sfumato.errors import Refused  # noqa: E402
from sfumato.learning.engine import Engine  # noqa: E402
from sfumato.learning.refusals import check_uncoupled  # noqa: E402

ROWS, GOALS = torch.zeros(8, 3), torch.zeros(8, dtype=torch.int64)


class Mixed(nn.Module):
    """A layer, and a part of the mean over the batch."""

    def __init__(self, part: float) -> None:
        super().__init__()
        self.layer, self.part = nn.Linear(3, 2), part

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x + self.part * x.mean(0))


class Attended(nn.Module):
    """Attention among the units of a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(F.scaled_dot_product_attention(x[None], x[None], x[None])[0])


class Rounded(nn.Module):
    """A layer whose products are of half precision, whatever it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x.bfloat16(), self.layer.weight.bfloat16(), self.layer.bias.bfloat16()).float()


@pytest.mark.parametrize("part", [1.0, 1e-3, 1e-6, 1e-9])
def test_a_mean_over_the_batch_is_found_however_small(part: float) -> None:
    with pytest.raises(Refused, match="mixes units"):
        check_uncoupled(Mixed(part), F.cross_entropy, ROWS, GOALS)


def test_attention_across_units_is_found() -> None:
    with pytest.raises(Refused, match="mixes units"):
        check_uncoupled(Attended(), F.cross_entropy, ROWS, GOALS)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_short_types_are_not_refused_for_their_rounding(kind: torch.dtype) -> None:
    model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2)).to(kind)
    check_uncoupled(model, F.cross_entropy, ROWS.to(kind), GOALS)


def test_a_model_that_names_its_type_is_tried_in_it() -> None:
    check_uncoupled(Rounded(), F.cross_entropy, ROWS, GOALS)


def test_coupling_that_shows_among_many_units_alone_closes_the_fast_way() -> None:
    """Of 64 units the last sees a millionth of the first; among the four of the first check there is none such."""

    class Late(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            late = torch.zeros_like(x)
            late[63:] = x[:1] * 1e-6
            return self.layer(x + late)

    engine = Engine(Late(), F.cross_entropy)
    engine.prepare(torch.zeros(64, 3), torch.zeros(64, dtype=torch.int64))
    assert engine.plan.startswith("semantic: among 64 units")
    alone = Engine(nn.Linear(3, 2), F.cross_entropy)
    alone.prepare(torch.zeros(64, 3), torch.zeros(64, dtype=torch.int64))
    assert alone.plan.startswith("fast")
