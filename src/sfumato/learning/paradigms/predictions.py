"""What a model says of records, each seen alone: a record cannot change what is said of another."""

import copy
import sys
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

from sfumato.core.foreign import Array
from sfumato.core.interrupts import FAILED, attempt
from sfumato.errors import InvalidInput
from sfumato.learning.given import GivenRows, Predictor
from sfumato.learning.paradigms.attention_release import held_logits
from sfumato.learning.paradigms.own_rows import own
from sfumato.learning.shielded import shielded
from sfumato.learning.unchanged import Unchanged

__all__ = ["attended", "class_of", "is_module", "rehearsed", "rehearsed_head", "right"]


def is_module(model: object) -> bool:
    """Whether a model is a torch module."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def rehearsed(model: Predictor, like: GivenRows) -> GivenRows:
    """A model that is ready to be asked: tried on a record of zeros, so that what cannot work fails before a charge.

    A torch module is copied and put into evaluation mode. It must give one score for each of two or more classes.
    """
    ready = copy.deepcopy(model).eval() if is_module(model) else model
    said = _said(ready, _zeros(like), 0)
    if is_module(model) and said is None:
        raise InvalidInput(
            "a model of classes gives one score for each of two or more classes, and this one gives something else for "
            "a record of zeros; nothing was read and nothing was spent. Give a function from a record to its class."
        )
    return ready


def right(model: Predictor, inputs: GivenRows, targets: GivenRows, places: Sequence[int]) -> int:
    """How many of some records a model gets right. Sensitive: all but the model.

    Guarantee: a sum over records of a number that is 0 or 1 and depends on this record alone. Each is a batch of one in
    separate memory: in a larger one, how a kernel rounds can depend on the size of the batch and the place in it. Where
    a model fails on a record, it counts as wrong there without an error; what it writes to is restored before the next.
    """
    found = 0
    with Unchanged(model) as kept:
        for place in places:
            found += shielded(partial(_agree, model, inputs, targets, place), kept) is True
    return found


def rehearsed_head(model: Predictor, like: GivenRows, keys: int) -> GivenRows:
    """A model that is ready to give logits: tried on a record of zeros, for which it must give one for each key."""
    ready = copy.deepcopy(model).eval() if is_module(model) else model
    if _logits(ready, _zeros(like), 0).shape != (keys,):
        raise InvalidInput(
            f"a model of attention gives one logit for each of {keys} keys, and this one gives something else for a "
            "record of zeros; nothing was read and nothing was spent."
        )
    return ready


def attended(
    model: Predictor, inputs: GivenRows, places: Sequence[int], *, keys: int, limit: Fraction, together: bool
) -> list[int]:
    """The sums, over some records, of the logits that a model gives them, each record's held. Sensitive.

    Guarantee: a sum over records of what :func:`~sfumato.learning.paradigms.attention_release.held_logits` makes of
    each alone. Each is a batch of one in separate memory. Where a model fails on a record, that adds nothing; what it
    writes to is restored before the next.
    """
    import numpy as np

    sums = np.zeros(keys, dtype=np.int64)

    def held(place: int) -> list[int]:
        return held_logits(_logits(model, inputs, place), keys=keys, limit=limit, together=together)

    with Unchanged(model) as kept:
        for place in places:
            found = shielded(partial(held, place), kept)
            if found is not FAILED:
                sums += np.array(found, dtype=np.int64)
    totals: list[int] = sums.tolist()
    return totals


def class_of(value: GivenRows) -> int | None:
    """The class that a value names: a whole number. None where it names none, whatever it is.

    >>> class_of(2.0), class_of(True), class_of(0.7), class_of("none")
    (2, 1, None, None)
    """

    def whole() -> int | None:
        number = int(value)
        return number if number == float(value) else None

    found = attempt(whole)
    return None if found is FAILED else found


def _agree(model: Predictor, inputs: GivenRows, targets: GivenRows, place: int) -> bool:
    said, meant = class_of(_said(model, inputs, place)), class_of(targets[place])
    return said is not None and said == meant


def _logits(model: Predictor, inputs: GivenRows, place: int) -> Array:
    """The numbers that a model gives for one record, of which it gets a copy."""
    import numpy as np

    one = own(inputs[[place]])
    if not is_module(model):
        said = model(one[0])
        said = said.detach().cpu().double().numpy() if hasattr(said, "detach") else said
        return np.array(said, dtype=np.float64)
    import torch

    with torch.no_grad():
        found = model(torch.as_tensor(one).clone())
        return found[0].detach().cpu().double().numpy().copy()


def _said(model: Predictor, inputs: GivenRows, place: int) -> object:
    """What a model says of one record, of which it gets a copy; of a module, the class of the largest score."""
    one = own(inputs[[place]])
    if not is_module(model):
        return model(one[0])
    import torch

    with torch.no_grad():
        scores = model(torch.as_tensor(one).clone())  # a clone begins where all memory of torch is aligned to
        if not isinstance(scores, torch.Tensor):
            return None
        scores = scores.squeeze(0)
        return int(scores.argmax()) if scores.ndim == 1 and len(scores) >= 2 else None


def _zeros(like: GivenRows) -> GivenRows:
    """One record of zeros, in the shape and type of the others: no value is read."""
    if hasattr(like, "new_zeros"):
        return like.new_zeros((1, *like.shape[1:]))
    import numpy as np

    return np.zeros((1, *like.shape[1:]), dtype=like.dtype)
