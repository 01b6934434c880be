"""Hops: the messages of all senders are added up for each name of the roster, as whole numbers, and met by noise.

Proof: docs/proofs/graph_networks.md
"""

import math

import numpy as np
import numpy.typing as npt

from sfumato.learning.graph_networks.recipients import Sent
from sfumato.noise.fine import fine_gaussian
from sfumato.noise.words import Words

__all__ = ["IntRows", "gathered", "held_message", "noisy"]

IntRows = npt.NDArray[np.int64]
SMALL = 1e-150  # a row shorter than this says nothing


def held_message(values: npt.ArrayLike, most: int) -> list[int]:
    """The direction of a row as whole numbers of l2 norm at most ``most``: what one node sends, however long it is.

    Guarantee: the squares of the whole numbers add up to at most ``most``², exactly, whatever was given. A function of
    this row alone. What is not finite counts as 0.

    >>> held_message([3.0, -4.0], 10)
    [6, -8]
    >>> held_message([float("nan"), 0.0], 10)
    [0, 0]
    """
    row = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    largest = float(np.abs(row).max(initial=0.0))
    if largest < SMALL:
        return [0] * len(row)
    row = row / largest
    length = math.sqrt(math.fsum(each * each for each in row.tolist()))
    steps = [int(each / length * most) for each in row.tolist()]
    while sum(each * each for each in steps) > most * most:  # floats came out a little too long
        steps = [each - (each > 0) + (each < 0) for each in steps]
    return steps


def gathered(messages: IntRows, sent: Sent, names: int) -> IntRows:
    """What each name of the roster gets: the sum of what was sent to it, exactly. Sensitive.

    >>> to = Sent(rows=np.array([0, 0, 1]), places=np.array([1, 2, 1]))
    >>> gathered(np.array([[1, 2], [3, 4]]), to, 3).tolist()
    [[0, 0], [4, 6], [1, 2]]
    """
    total = np.zeros((names, messages.shape[1]), dtype=np.int64)
    np.add.at(total, sent.places, messages[sent.rows])
    return total


def noisy(total: IntRows, words: Words) -> IntRows:
    """The sums with Gaussian noise of 2^20 steps, rounded to whole numbers. Public.

    Guarantee: whole numbers and the nearest whole number to N(0, (2^20)²) are together the nearest whole number to
    their sum, so this is what follows from continuous Gaussian noise on the exact sums, and costs no more.
    """
    return total + fine_gaussian(total.size, words).reshape(total.shape)
