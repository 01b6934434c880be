"""The binary tree: the strategy of the textbooks for prefix sums, kept as the one to beat."""

import numpy as np

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput
from sfumato.mechanisms.matrix.workloads import Integers

__all__ = ["plain_rmse", "tree"]


def tree(n: int) -> Integers:
    """All dyadic blocks of ``n`` counts, n a power of two: 2n − 1 sums, each count in log₂ n + 1 of them.

    Least squares with this strategy is Honaker's full estimate.

    >>> tree(2).tolist()
    [[1, 0], [0, 1], [1, 1]]
    """
    if natural(n, "n") & (n - 1):
        raise InvalidInput(f"n = {n} must be a power of two; nothing was done.")
    levels = [np.kron(np.eye(n >> level), np.ones(1 << level)) for level in range(n.bit_length())]
    return np.vstack(levels).astype(np.int64)


def plain_rmse(n: int) -> float:
    """The error per unit noise at unit l2 sensitivity of adding up the dyadic blocks that make a prefix.

    >>> round(plain_rmse(64), 3)
    4.594
    """
    blocks = sum(total.bit_count() for total in range(1, natural(n, "n") + 1))
    return float(np.sqrt(blocks / n * n.bit_length()))
