"""Norms that cannot come out too small: squares in short pieces, never by cancellation."""

import torch
from torch import Tensor

from sfumato.learning.engine.bounds import PIECE, TINIEST, TINY
from sfumato.learning.engine.device import row_squares

__all__ = ["squares"]


def squares(values: Tensor) -> Tensor:
    """The sum of squares of each row in double precision; too small by a factor of at most 1 + (PIECE + 4)·u.

    What underflows is added back as its upper bound. A row with a value that is not finite, or whose squares overflow,
    gets infinity or not-a-number.

    >>> squares(torch.full((1, 4), 2.0)).tolist()
    [16.0]
    """
    if values.device.type != "cpu":
        return row_squares(values) + values.shape[1] * TINIEST
    length = values.shape[1]
    if values.dtype == torch.float64:
        return values.square().sum(1) + length * TINIEST
    values = values.float()
    whole = length // PIECE * PIECE
    found: Tensor
    if length <= PIECE:
        found = torch.linalg.vector_norm(values, dim=1).double().square()
    else:
        pieces = values[:, :whole].reshape(values.shape[0], -1, PIECE)
        found = torch.linalg.vector_norm(pieces, dim=2).double().square().sum(1)
        if whole < length:
            found = found + torch.linalg.vector_norm(values[:, whole:], dim=1).double().square()
    found += length * TINY
    return found
