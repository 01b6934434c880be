"""What a model says of records, each seen alone: a record cannot change what is said of another."""

import copy
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["is_module", "rehearsed", "right"]

CHUNK = 512


def is_module(model: object) -> bool:
    """Whether a model is a torch module."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def rehearsed(model: Any, like: Any) -> Any:
    """A model that is ready to be asked: tried on a record of zeros, so that what cannot work fails before a charge.

    A torch module is copied and put into evaluation mode.
    """
    if is_module(model):
        model = copy.deepcopy(model).eval()
        _said(model, _zeros(like))
    else:
        model(_zeros(like)[0])
    return model


def right(model: Any, inputs: Any, targets: Any, places: Sequence[int]) -> int:
    """How many of some records a model gets right. Sensitive: all but the model.

    Guarantee: a sum over records of a number that is 0 or 1 and hangs on this record alone; where a model fails on a
    record, it is wrong there.
    """
    return sum(
        _agree(said, targets[place])
        for at in range(0, len(places), CHUNK)
        for said, place in zip(
            _said(model, inputs[list(places[at : at + CHUNK])]), places[at : at + CHUNK], strict=True
        )
    )


def _agree(said: Any, target: Any) -> int:
    try:
        return int(int(said) == int(target))
    except (TypeError, ValueError, OverflowError):
        return 0


def _said(model: Any, records: Any) -> list[Any]:
    """The class that a model gives to each record, as if it were the only one."""
    if not is_module(model):
        return [_alone(model, record) for record in records]
    import torch

    records = torch.as_tensor(records)
    with torch.no_grad():
        # vmap makes every record a batch of its own
        outputs = torch.func.vmap(lambda record: model(record.unsqueeze(0)).squeeze(0), randomness="different")(records)
        return outputs.argmax(dim=-1).tolist()  # type: ignore[no-any-return]


def _alone(model: Any, record: Any) -> Any:
    try:
        return model(record)
    except Exception:  # noqa: BLE001 - a failure that hangs on one record must not end the release
        return None


def _zeros(like: Any) -> Any:
    """One record of zeros, in the shape and type of the others: no value is read."""
    if hasattr(like, "new_zeros"):
        return like.new_zeros((1, *like.shape[1:]))
    import numpy as np

    return np.zeros((1, *like.shape[1:]), dtype=like.dtype)
