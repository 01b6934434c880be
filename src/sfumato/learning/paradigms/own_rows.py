"""Rows and questions for one teacher or model alone: nothing of them is shared with anybody else."""

import copy

from sfumato.errors import InvalidInput
from sfumato.learning.given import GivenRows

__all__ = ["own", "public_questions"]

PLAIN = frozenset({str, bytes, bool, int, float, complex, type(None)})
"""What cannot be written on."""


def own(rows: GivenRows) -> GivenRows:
    """A copy of a tensor or an array, and of the objects in it.

    >>> import numpy as np
    >>> rows = np.array([[1], None], dtype=object)
    >>> own(rows)[0].append(2)
    >>> rows[0]
    [1]
    """
    if hasattr(rows, "clone"):
        return rows.detach().clone()
    return copy.deepcopy(rows) if rows.dtype.hasobject else rows.copy()


def public_questions(given: GivenRows) -> GivenRows:
    """Questions as they are now, with nothing of the caller's in them: a tensor, or an array of numbers or text.

    Other objects are refused: teachers see them one after the other, and could write on them what the next one reads;
    how an object is copied is up to its class.

    >>> public_questions(["old", "young"]).shape
    (2,)
    """
    import numpy as np

    if hasattr(given, "clone"):
        import torch

        if type(given) in (torch.Tensor, torch.nn.Parameter):
            return given.detach().clone()
        raise _refused()
    taken = np.array(given)
    plain = taken.dtype == object and all(type(each) in PLAIN for each in taken.flat)
    if taken.dtype.hasobject and not plain:
        raise _refused()
    return taken


def _refused() -> InvalidInput:
    return InvalidInput(
        "public questions are numbers or text, in an array or a plain tensor: teachers could write on other objects, "
        "and pass on what they see. Nothing was done. Give an array with one row a question."
    )
