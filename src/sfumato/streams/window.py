"""Sliding windows: sums over the last steps, as differences of released totals."""

from typing import TYPE_CHECKING

from sfumato.mechanisms.matrix.steps.buffers import Buffers
from sfumato.mechanisms.matrix.steps.doubling import Doubling
from sfumato.mechanisms.matrix.steps.rows import Rows
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz
from sfumato.mechanisms.matrix.steps.tree import Tree

if TYPE_CHECKING:
    from sfumato.streams.strategy_encoder import Floats

__all__ = ["window_squares"]


def window_squares(
    strategy: Toeplitz | Buffers | Tree | Rows | Doubling, step: int, width: int
) -> "tuple[Floats, Floats]":
    """Σ b² and Σ |b| over the measurements in the difference of the totals after ``step`` and ``width`` steps before.

    Where measurements count alike at every step, b_k − b_(k−width) is what they count by; elsewhere they are read off.
    """
    import numpy as np

    from sfumato.streams.reconstruction import back_row

    late = back_row(strategy, step)
    early = back_row(strategy, step - width) if step > width else np.zeros(0)
    if isinstance(strategy, Tree):
        # each total is a sum of blocks, and the two may share none
        both = float(strategy.blocks(step) + (strategy.blocks(step - width) if step > width else 0))
        return np.array([both]), np.array([both])
    late[: len(early)] -= early
    return np.array([(late**2).sum()]), np.array([np.abs(late).sum()])
