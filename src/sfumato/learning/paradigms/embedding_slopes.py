"""The slopes of an embedding in all weights of a model, one input at a time, in 64 bits.

A linear layer that sees one vector has an outer product for a Jacobian, so only its two factors are kept; the weights
of all other layers have theirs written out.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

__all__ = ["EmbeddingSlopes", "Slopes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slopes:
    """Slopes of some units. Sensitive.

    ``outer`` has, by the name of a linear layer, the slopes of the embedding in its outputs (units × dimensions ×
    outputs) and its inputs (units × inputs); ``whole`` the slopes in other weights (units × dimensions × …).
    """

    outer: dict[str, tuple[Tensor, Tensor]]
    whole: dict[str, Tensor]
    biased: frozenset[str]

    def gram(self) -> Tensor:
        """J Jᵀ of each unit (units × dimensions × dimensions)."""
        parts = [
            (slope @ slope.mT) * (inputs.square().sum(1) + (1 if name in self.biased else 0))[:, None, None]
            for name, (slope, inputs) in self.outer.items()
        ]
        parts += [value.flatten(2) @ value.flatten(2).mT for value in self.whole.values()]
        return torch.stack(parts).sum(0)

    def add(self, turned: Tensor, sums: dict[str, Tensor]) -> None:
        """Add Σ Jᵀt over the units, with one t (dimensions) for each, to sums by the name of a weight."""
        for name, (slope, inputs) in self.outer.items():
            through = torch.einsum("id,ido->io", turned, slope)
            sums[f"{name}weight"] += through.T @ inputs
            if name in self.biased:
                sums[f"{name}bias"] += through.sum(0)
        for name, value in self.whole.items():
            sums[name] += torch.einsum("id,id...->...", turned, value)


class EmbeddingSlopes:
    """Embeds inputs with a model, and tells the slopes of what comes out. The model sees one input at a time.

    Assumes: a linear layer's weights are used in that layer alone. Where they are not, what is missing is missing from
    the slopes everywhere: what is learned is then another gradient, with the same guarantee.

    >>> slopes = EmbeddingSlopes(nn.Linear(3, 2))
    >>> slopes.embedded(torch.zeros(5, 3).double()).shape
    torch.Size([5, 2])
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.parameters = {
            name: value.detach().double() for name, value in model.named_parameters() if value.requires_grad
        }
        fixed = [*model.named_parameters(), *model.named_buffers()]
        self._fixed = {
            name: value.detach().double() if value.is_floating_point() else value
            for name, value in fixed
            if name not in self.parameters
        }

    def embedded(self, inputs: Tensor) -> Tensor:
        """One vector for each input."""
        with torch.no_grad():
            return vmap(lambda x: self._one(self.parameters, x))(inputs)

    def of(self, inputs: Tensor) -> Slopes:
        """The slopes of each input's embedding; values that are not finite are 0."""
        layers = self._linear(inputs)
        inside = {f"{name}{weight}" for name in layers for weight in ("weight", "bias")}
        whole = {name: value for name, value in self.parameters.items() if name not in inside}
        nothing = {
            name: torch.zeros(layer.out_features, dtype=torch.float64, device=inputs.device)
            for name, layer in layers.items()
        }

        def embed(added: dict[str, Tensor], whole: dict[str, Tensor], x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            with _watched(layers, added) as seen:
                return self._one({**self.parameters, **whole}, x), {name: each[0] for name, each in seen.items()}

        jacobian = jacrev(embed, argnums=(0, 1), has_aux=True)
        (outer, written), seen = vmap(jacobian, in_dims=(None, None, 0))(nothing, whole, inputs)
        return Slopes(
            outer={name: (_finite(outer[name]), _finite(seen[name])) for name in layers},
            whole={name: _finite(value) for name, value in written.items()},
            biased=frozenset(name for name, layer in layers.items() if layer.bias is not None),
        )

    def _one(self, parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        made: Tensor = functional_call(self.model, {**self._fixed, **parameters}, (x[None],))
        return made[0]

    def _linear(self, inputs: Tensor) -> dict[str, nn.Linear]:
        """Linear layers that see one vector once, and whose weights are trained and nobody else's, by their prefix."""
        owners = [id(value) for _, value in self.model.named_parameters(remove_duplicate=False)]
        found = {}
        for name, layer in self.model.named_modules():
            trained = all(value.requires_grad and owners.count(id(value)) == 1 for value in layer.parameters())
            if type(layer) is nn.Linear and trained and not layer._forward_hooks and not layer._forward_pre_hooks:
                found[f"{name}." if name else ""] = layer
        zero = torch.zeros_like(inputs[:1])
        with torch.no_grad(), _watched(found, {}) as seen:
            self._one(self.parameters, zero[0])
        return {name: layer for name, layer in found.items() if [each.shape[:-1] for each in seen[name]] == [(1,)]}


@contextmanager
def _watched(layers: dict[str, nn.Linear], added: dict[str, Tensor]) -> Iterator[dict[str, list[Tensor]]]:
    """Note what goes into each layer, row by row, and add something to what comes out."""
    seen: dict[str, list[Tensor]] = {name: [] for name in layers}

    def hook(name: str) -> Callable[..., Tensor]:
        def note(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            seen[name].append(inputs[0][0] if name in added else inputs[0])
            return output + added[name] if name in added else output

        return note

    handles = [layer.register_forward_hook(hook(name)) for name, layer in layers.items()]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _finite(value: Tensor) -> Tensor:
    made: Tensor = value.nan_to_num(0.0, 0.0, 0.0)
    return made
