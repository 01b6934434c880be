"""Embeddings: the gradients of a unit's places are added up by the row that they look up."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sfumato.learning.engine.bounds import ErrorBudget
from sfumato.learning.engine.layers.part import BatchShape, LayerPart
from sfumato.learning.engine.measure import squares

__all__ = ["TYPES", "Lookup", "part", "unfit"]

TYPES: tuple[type[nn.Module], ...] = (nn.Embedding,)


def unfit(layer: nn.Module) -> str | None:
    """Why a layer of these types has no rule after all."""
    return "its gradient is sparse" if getattr(layer, "sparse", False) else None


def part(layer: nn.Embedding, a: Tensor, g: Tensor, shape: BatchShape, names: dict[str, str]) -> LayerPart:
    """The share of all calls: places (units, places) and gradients (units, places, width)."""
    if layer.padding_idx is not None:
        g = torch.where((a == layer.padding_idx)[..., None], 0.0, g)
    return Lookup(places=a, g=g, name=names["weight"])


@dataclass(slots=True, kw_only=True)
class Lookup:
    """Each unit's gradient without the rows that are 0: the k-th row is for the first place that looks it up."""

    places: Tensor
    g: Tensor
    name: str
    way: str = "direct"
    crowded: bool = False
    fills: str | None = None
    summed: Tensor | None = None

    def measure(self) -> tuple[Tensor, Tensor]:
        """Squared norms of what will be summed."""
        units, places, width = self.g.shape
        first = (self.places[:, :, None] == self.places[:, None, :]).byte().argmax(2)
        first = first + places * torch.arange(units, device=first.device)[:, None]
        self.summed = torch.zeros_like(self.g).view(-1, width).index_add_(0, first.flatten(), self.g.reshape(-1, width))
        found = squares(self.summed.view(units, -1))
        return found, found

    def put(self, factors: Tensor, into: dict[str, Tensor], budget: ErrorBudget) -> None:
        """Sum in double precision."""
        if self.summed is None:
            raise RuntimeError("a share is measured before it is summed")
        values = self.summed.nan_to_num_(0.0, 0.0, 0.0).view_as(self.g).double() * factors[:, None, None]
        wide = torch.zeros_like(into[self.name], dtype=torch.float64)
        into[self.name].add_(wide.index_add_(0, self.places.flatten(), values.flatten(0, 1)))
        self.summed = None
