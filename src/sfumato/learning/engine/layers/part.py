"""What the rules of layers give: the share of some parameters in each unit's gradient."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from sfumato.learning.engine.accumulate import rows
from sfumato.learning.engine.bounds import ErrorBudget
from sfumato.learning.engine.measure import squares

__all__ = ["BatchShape", "Direct", "LayerPart", "same"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchShape:
    """The leading axis that every layer sees: the rows of all units, unit after unit."""

    units: int
    rows: int
    batches: int

    def split(self, values: Tensor) -> Tensor:
        """Values of all rows by unit: (units, places, …) with the axes between the first and the last as places."""
        return values.reshape(self.units, -1, values.shape[-1])


class LayerPart(Protocol):
    """The share of one layer: measured first, then summed with a factor for each unit."""

    crowded: bool
    """Whether its sum is one of products whose absolute values may add up to more than what is measured."""

    @property
    def way(self) -> str:
        """In words."""

    @property
    def fills(self) -> str | None:
        """The parameter whose sum is overwritten; those of others are added to."""

    def measure(self) -> tuple[Tensor, Tensor]:
        """Squared norms, never below the true ones by more than the slack, and squared sums of absolute values."""

    def put(self, factors: Tensor, into: dict[str, Tensor], budget: ErrorBudget) -> None:
        """Add the weighted sum to the sums of these parameters."""


def same(values: Tensor) -> Tensor:
    """The layout of a parameter as it is."""
    return values


@dataclass(slots=True, kw_only=True)
class Direct:
    """Gradients written out for each unit: what is summed is what was measured.

    ``make`` writes out those of some units. Where they are not to be kept, they are made a second time for the sum.
    """

    units: int
    size: int
    make: Callable[[slice], dict[str, Tensor]]
    layout: Callable[[Tensor], Tensor] = same
    keep: bool = True
    slab: int = 0
    crowded: bool = False
    fills: str | None = None
    kept: dict[str, Tensor] | None = field(default=None, repr=False)

    @property
    def way(self) -> str:
        """In words."""
        return "direct" if self.keep else "direct, made twice"

    def measure(self) -> tuple[Tensor, Tensor]:
        """The squared norms of what will be summed, twice: no absolute values stand behind it."""
        found = []
        for at in self._slabs():
            made = self.make(at)
            self.kept = made if self.keep else None
            found.append(torch.stack([squares(value.flatten(1)) for value in made.values()]).sum(0))
        total = torch.cat(found) if len(found) > 1 else found[0]
        return total, total

    def put(self, factors: Tensor, into: dict[str, Tensor], budget: ErrorBudget) -> None:
        """Sum with the factors; what is made in several slabs is summed in double precision first."""
        slabs, wide = self._slabs(), dict[str, Tensor]()
        for at in slabs:
            for name, value in (self.kept or self.make(at)).items():
                place = into[name]
                if len(slabs) > 1:
                    place = wide[name] if name in wide else torch.zeros_like(place, dtype=torch.float64)
                    wide[name] = place
                place = self.layout(place) if place.dim() > 2 else place
                rows(factors[at], value, place, budget.terms(), clean=budget.clean)
            self.kept = None
        for name, found in wide.items():
            into[name].add_(found)

    def _slabs(self) -> list[slice]:
        step = self.units if self.keep else max(1, self.slab)
        return [slice(at, min(at + step, self.units)) for at in range(0, self.units, step)]
