"""What cannot be trained one unit at a time: layers that mix units, and losses over several units."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from sfumato.errors import Refused
from sfumato.learning.given import Tree
from sfumato.learning.model_state import other_weights, without_dropout
from sfumato.learning.unchanged import Unchanged

__all__ = ["EXACT", "check_layers", "check_uncoupled", "exchanged", "invented", "widened"]

BATCH: tuple[type[nn.Module], ...] = (nn.modules.batchnorm._BatchNorm,)
INSTANCE: tuple[type[nn.Module], ...] = (nn.modules.instancenorm._InstanceNorm,)
UNITS = 4
CLOSE = 1e-4
EXACT = 1e-12  # of what double precision gives


def check_layers(model: nn.Module) -> None:
    """Refuse layers that let one unit of a batch change what another gives, with the reason and what to use instead.

    >>> check_layers(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    Traceback (most recent call last):
    sfumato.errors.Refused: layer '1' (BatchNorm1d) normalises by statistics of the batch: ...
    """
    for name, layer in model.named_modules():
        found = _mixes(layer)
        if found:
            raise Refused(f"layer {name!r} ({type(layer).__name__}) {found} Nothing was trained.")


def _mixes(layer: nn.Module) -> str:
    if isinstance(layer, BATCH):
        return (
            "normalises by statistics of the batch: each unit's gradient then depends on all others, and no clip "
            "bounds what one unit changes. Use nn.GroupNorm, nn.LayerNorm or nn.InstanceNorm without running "
            "statistics."
        )
    if isinstance(layer, INSTANCE) and layer.track_running_stats:
        return (
            "keeps running statistics of the data, which no noise covers. Set track_running_stats=False, or use "
            "nn.GroupNorm."
        )
    if getattr(layer, "scale_grad_by_freq", False):
        return "divides gradients by how often a row occurs in the batch. Set scale_grad_by_freq=False."
    if isinstance(layer, nn.Embedding | nn.EmbeddingBag) and layer.max_norm is not None:
        return "changes its weights by which rows are looked up, which no noise covers. Set max_norm=None."
    return ""


def check_uncoupled(
    model: nn.Module, loss: Callable[..., Tensor], inputs: Tree, targets: Tree, *, unit: str = "record"
) -> None:
    """Refuse models and losses in which units of a batch affect each other, as found on invented data of the same
    shapes.

    Outputs for some rows must not change when another is exchanged, statistics that the model keeps must not depend on
    data, and the loss of a batch must be the sum or the mean of the losses of its rows, or one number for each. Of
    ``inputs`` and ``targets`` only shapes and types are used. A help, not a proof: what mixes units for other
    values, or for another number of units, is not found here. (The fast way is tried out among as many units as there
    will be, with one of them exchanged; the slow one is handed each unit alone.)

    >>> from torch.nn import functional as F
    >>> check_uncoupled(nn.Linear(3, 2), F.cross_entropy, torch.zeros(8, 3), torch.zeros(8, dtype=torch.int64))
    """
    check_layers(model)
    if unit == "group":
        return
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    if unit == "user":
        inputs, targets = tree_map(_flat, (inputs, targets))
    with Unchanged(model, loss), without_dropout(model), torch.no_grad():
        for bits in (True, False):
            rows, goals = invented((inputs, targets), UNITS, bits=bits)
            try:
                outputs = _given(model, rows)
            except IndexError:
                continue
            break
        else:
            raise Refused("the model cannot be tried on invented data of these shapes. Nothing was trained.")
        _check_model(model, rows, outputs)
        _check_statistics(model, rows)
        _check_loss(loss, outputs, goals)
        with other_weights(model):
            _check_model(model, rows, _given(model, rows))


def invented(values: Tree, units: int, *, bits: bool = False) -> Tree:
    """Values of the same shapes and types: waves for floats, and zeros, or zeros and ones, for whole numbers."""

    def one(value: Tree) -> Tree:
        if not isinstance(value, Tensor):
            return value
        shape = torch.Size((units, *value.shape[1:]))
        places = torch.arange(shape.numel(), dtype=torch.float64, device=value.device)
        if value.dtype == torch.bool:
            return torch.ones(shape, dtype=value.dtype, device=value.device)
        waves = torch.sin(1 + places * 1.7 + (places * 0.37).square())
        if not value.is_floating_point():
            waves = (waves > 0) * bits
        return waves.to(value.dtype).view(shape)

    return tree_map(one, values)


def _check_model(model: nn.Module, rows: tuple[Tensor, ...], outputs: Tree) -> None:
    fewer = _given(model, tree_map(lambda part: part[1:], rows))
    for whole, part in zip(tree_leaves(outputs), tree_leaves(fewer), strict=True):
        if len(whole) != UNITS or len(part) != UNITS - 1:
            raise Refused(
                "the model does not give one row of output a unit: its first axis must be that of the units. Nothing "
                "was trained."
            )
    if not _keeps_others(model, rows):
        raise Refused(
            "the model mixes units: on invented data, outputs for some units changed when another was exchanged. No "
            "clip bounds what one unit changes then. Normalise and attend within a unit only, or declare groups: "
            "learning.Units(…, kind='group'). Nothing was trained."
        )


def _keeps_others(model: nn.Module, rows: tuple[Tensor, ...]) -> bool:
    """Whether all units but the first give the same where the first is exchanged for another.

    In double precision they may differ by its rounding alone; a model that cannot be computed so must give them bit by
    bit in its own. Both runs have one shape: no kernel is chosen otherwise, and no shorter type (TF32, bfloat16) is
    taken for coupling.
    """
    try:
        wide = copy.deepcopy(model).double()
        pairs = _beside(wide, tree_map(widened, rows))
    except Exception:  # noqa: BLE001 - some models name their type; they are tried in it
        return all(torch.equal(one, other) for one, other in _beside(model, rows))
    return all(torch.allclose(one, other, rtol=EXACT, atol=EXACT, equal_nan=True) for one, other in pairs)


def _beside(model: nn.Module, rows: tuple[Tensor, ...]) -> list[tuple[Tensor, Tensor]]:
    """What all units but the first give, before and after the first is exchanged."""
    found = (tree_leaves(_given(model, some)) for some in (rows, tree_map(exchanged, rows)))
    return [(one[1:].nan_to_num(), other[1:].nan_to_num()) for one, other in zip(*found, strict=True)]


def exchanged(part: Tree) -> Tree:
    """The same but for the first unit, which becomes another: of numbers that are zeros alone, the same."""
    if not isinstance(part, Tensor):
        return part
    part = part.clone()
    if part.is_floating_point():
        part[0] = 1 - 2 * part[0]
    elif part.dtype != torch.bool and bool(part.any()):
        part[0] = 1 - part[0]
    return part


def widened(part: Tree) -> Tree:
    """Floats in double precision."""
    return part.double() if isinstance(part, Tensor) and part.is_floating_point() else part


def _check_statistics(model: nn.Module, rows: tuple[Tensor, ...]) -> None:
    found = []
    for some in (rows, tree_map(lambda part: part * 0, rows)):
        with Unchanged(model):
            model(*tree_map(_own, some))
            found.append([buffer.clone() for buffer in model.buffers()])
    for one, other in zip(*found, strict=True):
        if not torch.equal(one, other):
            raise Refused(
                "the model keeps statistics of its inputs in a buffer, which no noise covers. Nothing was trained. "
                "Remove them, or compute them privately beforehand."
            )


def _check_loss(loss: Callable[..., Tensor], outputs: Tree, goals: Tree) -> None:
    whole = loss(outputs, goals)
    alone = [
        loss(*tree_map(lambda part: part[at : at + 1] if isinstance(part, Tensor) else part, (outputs, goals))).sum()  # noqa: B023
        for at in range(UNITS)
    ]
    parts = torch.stack(alone)
    by_row = whole.reshape(UNITS, -1).sum(1) if whole.dim() > 0 and len(whole) == UNITS else None
    for found in (by_row,) if by_row is not None else (whole - parts.sum(), whole - parts.mean()):
        expected = parts if by_row is not None else torch.zeros_like(found)
        scale = _close(parts) * float(parts.abs().sum() + 1)
        if torch.allclose(found, expected, rtol=_close(parts), atol=scale, equal_nan=True):
            return
    raise Refused(
        "the loss mixes units: on invented data, the loss of a batch is neither the sum nor the mean of the losses "
        "of its rows (in-batch negatives, weights divided by their sum, or ranks do this). The engine asks for one "
        "unit at a time, so such a loss would mean something else. Write it for one unit, or declare groups: "
        "learning.Units(…, kind='group'). Nothing was trained."
    )


def _given(model: nn.Module, rows: tuple[Tensor, ...]) -> Tree:
    with Unchanged(model):  # as the engine does it for each batch
        return model(*tree_map(_own, rows))


def _close(values: Tensor) -> float:
    """How near two ways to the same numbers must be in their precision."""
    return max(CLOSE, 32 * torch.finfo(values.dtype).eps) if values.is_floating_point() else CLOSE


def _own(part: Tree) -> Tree:
    return part.clone() if isinstance(part, Tensor) else part


def _flat(part: Tree) -> Tree:
    return part.flatten(0, 1) if isinstance(part, Tensor) else part
