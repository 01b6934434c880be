"""Forward passes that the engine writes out itself give what those of torch give."""

import pytest

from tests import parts

parts.package("torch")

import torch  # noqa: E402
from torch import nn  # noqa: E402

from sfumato.learning.engine.layers import forward_of  # noqa: E402
from sfumato.learning.engine.record import ForwardRecord  # noqa: E402

CELLS = [nn.RNNCell(5, 4), nn.RNNCell(5, 4, nonlinearity="relu"), nn.LSTMCell(5, 4, bias=False), nn.GRUCell(5, 4)]


@pytest.mark.parametrize("cell", CELLS)
def test_cells(cell: nn.Module) -> None:
    own, x, h = forward_of(cell, "cell", ForwardRecord()), torch.randn(3, 5), torch.randn(3, 4)
    assert own is not None
    state = (h, torch.randn(3, 4)) if isinstance(cell, nn.LSTMCell) else h
    for given in ((x,), (x, state)):
        torch.testing.assert_close(own(*given), cell(*given))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_attention(first: bool, bias: bool) -> None:
    layer = nn.MultiheadAttention(6, 2, batch_first=first, bias=bias)
    own, x, y = forward_of(layer, "", ForwardRecord()), torch.randn(4, 4, 6), torch.randn(4, 4, 6)
    assert own is not None
    hidden = torch.tensor([[False, False, True, True]]).expand(4, 4)
    ahead = torch.ones(4, 4).triu(1).bool()
    for named in (
        {},
        {"need_weights": False, "attn_mask": ahead},
        {"key_padding_mask": hidden, "average_attn_weights": False},
        {"attn_mask": torch.randn(8, 4, 4)},
    ):
        for one, other in zip(own(x, y, y, **named), layer(x, y, y, **named), strict=True):
            if other is not None:
                torch.testing.assert_close(one, other)
            else:
                assert one is None
