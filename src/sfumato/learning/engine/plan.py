"""The plan: which way each layer goes, and why, found on invented data of the same shapes."""

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._pytree import tree_leaves, tree_map

from sfumato.learning.engine.fast import Changed, fast_sum
from sfumato.learning.engine.layers import unfit
from sfumato.learning.engine.losses import Kind, Loss, unit_losses
from sfumato.learning.engine.record import Site
from sfumato.learning.engine.recording import recording
from sfumato.learning.engine.semantics import semantic_sum
from sfumato.learning.given import Tree
from sfumato.learning.model_state import other_weights, without_dropout
from sfumato.learning.refusals import EXACT, exchanged, invented, widened
from sfumato.learning.unchanged import Unchanged

__all__ = ["PassPlan", "key", "plan"]

UNITS = 3
AGREE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class PassPlan:
    """Whether the fast way is open, with a line for each layer: its name, its type, what is done, and why.

    ``calls`` and ``ways`` are how often each layer was called and how it was summed on invented data.
    """

    fast: bool
    reason: str
    layers: dict[str, nn.Module]
    calls: dict[Site, int]
    ways: dict[Site, str]
    doubts: dict[str, str]

    def table(self) -> str:
        """The plan as text."""
        lines = [("layer", "type", "way", "why")]
        for name, layer in self.layers.items():
            found = {way for site, way in self.ways.items() if site.layer == name} if self.fast else set()
            way = ", ".join(sorted(found)) if found else ("fast" if self.fast else "semantic")
            why = self.doubts.get(name, "it has a rule" if self.fast else self.reason)
            lines.append((name or "the model", type(layer).__name__, way, why))
        widths = [max(len(line[at]) for line in lines) for at in range(3)]
        text = [
            "  ".join((*(cell.ljust(wide) for cell, wide in zip(line, widths, strict=False)), line[3]))
            for line in lines
        ]
        return "\n".join([f"{'fast' if self.fast else 'semantic'}: {self.reason}", *text])


def plan(model: nn.Module, loss: Loss, inputs: tuple[Tensor, ...], targets: Tree, kind: Kind) -> PassPlan:
    """Plan for batches of such shapes. The values of the batch are not looked at."""
    layers = {
        name: layer
        for name, layer in model.named_modules()
        if any(value.requires_grad for value in layer.parameters(recurse=False))
    }
    doubts = {name: why for name, layer in layers.items() if (why := unfit(layer)) is not None}
    calls: dict[Site, int] = {}
    ways: dict[Site, str] = {}
    if _shared(model):
        reason = "a parameter has two names"
    elif doubts:
        reason = f"{next(iter(doubts)) or 'the model itself'}: {next(iter(doubts.values()))}"
    else:
        units = inputs[0].shape[0]
        inputs, targets = invented((inputs, targets), UNITS)
        with without_dropout(model):
            try:
                reason = _roads(model, loss, inputs, targets, kind, layers, calls) or _disagreement(
                    model, loss, inputs, targets, kind, layers, ways
                )
                if not reason:
                    reason = _company(model, loss, inputs, targets, kind, layers, ways, units)
                with other_weights(model):
                    reason = reason or _disagreement(model, loss, inputs, targets, kind, layers, {})
                    reason = reason or _company(model, loss, inputs, targets, kind, layers, {}, units)
            except Changed as changed:
                reason = str(changed)
            except (RuntimeError, ValueError, TypeError, LookupError) as failed:
                reason = f"the fast way cannot run on invented data ({type(failed).__name__})"
    return PassPlan(
        fast=not reason,
        reason=reason or "every parameter has a rule, no other road, and both ways agree on invented data",
        layers=layers,
        calls=calls,
        ways=ways,
        doubts=doubts,
    )


def _roads(
    model: nn.Module,
    loss: Loss,
    inputs: tuple[Tensor, ...],
    targets: Tree,
    kind: Kind,
    layers: dict[str, nn.Module],
    calls: dict[Site, int],
) -> str:
    """Which parameter is used beside the forward pass of its layer; the number of calls is noted on the way."""
    present = torch.ones(inputs[0].shape[: 2 if kind == "user" else 1], dtype=torch.bool, device=inputs[0].device)
    rows = inputs if kind == "record" else tree_map(lambda part: part.flatten(0, 1), inputs)
    with torch.enable_grad():
        with Unchanged(model, loss), recording(layers) as record:
            unit_losses(loss, model(*rows), targets, present, kind)
        calls.update({site: len(found) for site, found in record.calls.items()})
        with Unchanged(model, loss), _cut_off(layers):
            total = unit_losses(loss, model(*rows), targets, present, kind).sum()
        trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
        if total.requires_grad:
            others = torch.autograd.grad(total, list(trained.values()), allow_unused=True)
            for name, other in zip(trained, others, strict=True):
                if other is not None:
                    return f"{name} is used beside the forward pass of its layer"
    return ""


def _disagreement(
    model: nn.Module,
    loss: Loss,
    inputs: tuple[Tensor, ...],
    targets: Tree,
    kind: Kind,
    layers: dict[str, nn.Module],
    ways: dict[Site, str],
) -> str:
    """Compare both ways on invented data, in the mode that will run but without dropout; note the way of each site."""
    present = torch.ones(inputs[0].shape[: 2 if kind == "user" else 1], dtype=torch.bool, device=inputs[0].device)
    trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
    one, other = ({n: torch.zeros_like(v, dtype=torch.float64) for n, v in trained.items()} for _ in range(2))
    with Unchanged(model, loss):
        norms, _, found = fast_sum(
            model, loss, inputs, targets, present, clip=1.0, kind=kind, layers=layers, into=one, batches=2
        )
    ways.update(found)
    true, _ = semantic_sum(model, loss, inputs, targets, present, clip=1.0, kind=kind, into=other)
    if not bool((true > 0).any()):
        return "invented data have no gradient to compare both ways by"
    far = max(float((one[name] - other[name]).abs().max()) for name in trained)
    agree = _agree(trained.values())
    if far > agree or not torch.allclose(norms, true, rtol=agree, atol=1e-12):
        return "both ways disagree on invented data: rows of different units are mixed or moved"
    return ""


def _company(
    model: nn.Module,
    loss: Loss,
    inputs: tuple[Tensor, ...],
    targets: Tree,
    kind: Kind,
    layers: dict[str, nn.Module],
    ways: dict[Site, str],
    units: int,
) -> str:
    """Exchange one of as many units as there will be: nobody else's norm may change; note the way of each site.

    Bit by bit, or, where kernels add up in no fixed order, in double precision by no more than its rounding.
    """
    if units < 2:
        return ""
    inputs, targets = invented((inputs, targets), units)
    if torch.equal(*_others(model, loss, inputs, targets, kind, layers, ways)):
        return ""
    try:
        wide = copy.deepcopy(model).double()
        own = {name: wide.get_submodule(name) for name in layers}
        goals = tree_map(widened, targets)
        pair = _others(wide, loss, tree_map(widened, inputs), goals, kind, own, {})
    except (RuntimeError, ValueError, TypeError, LookupError):
        pair = None  # it names its type, and its own kernels are not sure of their order
    if pair is None or not torch.allclose(*pair, rtol=EXACT, atol=EXACT):
        return f"among {units} units of invented data, one that is exchanged changes what others give"
    return ""


def _others(
    model: nn.Module,
    loss: Loss,
    inputs: tuple[Tensor, ...],
    targets: Tree,
    kind: Kind,
    layers: dict[str, nn.Module],
    ways: dict[Site, str],
) -> tuple[Tensor, Tensor]:
    """The norms of all units but the first, before and after that is exchanged."""
    present = torch.ones(inputs[0].shape[: 2 if kind == "user" else 1], dtype=torch.bool, device=inputs[0].device)
    trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
    norms = []
    for some in (inputs, tree_map(exchanged, inputs)):
        into = {name: torch.zeros_like(value, dtype=torch.float64) for name, value in trained.items()}
        with Unchanged(model, loss):
            found = fast_sum(
                model, loss, some, targets, present, clip=1.0, kind=kind, layers=layers, into=into, batches=2
            )
        norms.append(found[0][1:])
        ways.update(found[2])
    return norms[0], norms[1]


def _agree(trained: Iterable[Tensor]) -> float:
    """How near both ways must be in the precision that the model has."""
    kinds = {value.dtype for value in trained}
    if any(torch.is_autocast_enabled(device) for device in ("cpu", "cuda")):
        kinds.add(torch.bfloat16)
    return max(AGREE, *(8 * torch.finfo(kind).eps for kind in kinds))


@contextmanager
def _cut_off(layers: dict[str, nn.Module]) -> Iterator[None]:
    """Let layers compute with copies of their own parameters that no gradient reaches."""
    try:
        for layer in layers.values():
            layer.forward = _detached(layer, layer.forward)
        yield
    finally:
        for layer in layers.values():
            layer.__dict__.pop("forward", None)


def _detached(layer: nn.Module, forward: Callable[..., Tree]) -> Callable[..., Tree]:
    def run(*inputs: Tree, **named: Tree) -> Tree:
        cut = {name: value.detach() for name, value in layer.named_parameters()}
        layer.__dict__.pop("forward")
        try:
            return functional_call(layer, cut, inputs, named)
        finally:
            layer.forward = run

    return run


def _shared(model: nn.Module) -> bool:
    names = [id(value) for _, value in model.named_parameters(remove_duplicate=False)]
    return len(names) != len(set(names))


def key(model: nn.Module, parameters: dict[str, nn.Parameter], inputs: Tree, targets: Tree) -> tuple[object, ...]:
    """What a plan depends on: shapes and types, the mode, and which parameters are trained."""
    parts = [
        (part.shape, part.dtype, part.device) for part in tree_leaves((inputs, targets)) if isinstance(part, Tensor)
    ]
    return (*parts, model.training, tuple(value.requires_grad for value in parameters.values()))
