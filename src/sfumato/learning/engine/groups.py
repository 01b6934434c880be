"""Groups of layers that are clipped each by itself."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sfumato.errors import InvalidInput
from sfumato.learning.engine.clipping import Factors, factors

__all__ = ["ClipGroups", "GroupFactors", "group_factors"]


@dataclass(frozen=True, slots=True)
class ClipGroups:
    """The clip of each group of layers, by the beginning of their names; the longest beginning that fits counts.

    Guarantee: what one unit adds is at most as long as each group's clip in that group, so √Σ clip² in all.

    >>> groups = ClipGroups.of({"": 1.0, "head": 0.5})
    >>> groups.place("body.0"), groups.place("head"), groups.place("header")
    (0, 1, 0)
    """

    names: tuple[str, ...]
    clips: tuple[float, ...]

    @classmethod
    def of(cls, clips: Mapping[str, float]) -> "ClipGroups":
        """Groups by their names."""
        return cls(tuple(clips), tuple(float(clip) for clip in clips.values()))

    @property
    def total(self) -> float:
        """How long what one unit adds is at most."""
        return math.hypot(*self.clips)

    def place(self, layer: str) -> int:
        """The place of the group of a layer; refused where there is none."""
        fits = [
            (len(name), place)
            for place, name in enumerate(self.names)
            if name in ("", layer) or layer.startswith(f"{name}.")
        ]
        if not fits:
            raise InvalidInput(
                f"layer {layer!r} is in no group of clip; nothing was done. Name each layer, or all others by ''."
            )
        return max(fits)[1]

    def check(self, parameters: Iterable[str]) -> None:
        """Refuse groups that leave out a parameter, or that no parameter is in."""
        found = {self.place(owner(name)) for name in parameters}
        empty = [name for place, name in enumerate(self.names) if place not in found]
        if empty:
            raise InvalidInput(
                f"no trained layer is in the group {empty[0]!r} of clip; nothing was done. Groups are named by the "
                "beginning of the names of layers, and have whole layers."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFactors:
    """What each unit's gradient is multiplied by in each group, and its whole norm before that. Sensitive."""

    factors: tuple[Tensor, ...]
    norms: Tensor
    counted: Tensor


def owner(parameter: str) -> str:
    """The name of the layer that a parameter is of.

    >>> owner("body.0.weight"), owner("weight")
    ('body.0', '')
    """
    return parameter.rpartition(".")[0]


def group_factors(
    squared: Sequence[Tensor], spread: Sequence[Tensor] | None, present: Tensor, clips: Sequence[float]
) -> GroupFactors:
    """The factor of each unit in each group; a unit that is not finite in one of them counts in none.

    ``squared`` and ``spread`` are those of the groups, as :func:`~sfumato.learning.engine.clipping.factors` takes them.
    """
    behind: Sequence[Tensor | None] = [None] * len(clips) if spread is None else spread
    found: list[Factors] = [
        factors(own, crowd, present, clip) for own, crowd, clip in zip(squared, behind, clips, strict=True)
    ]
    if len(found) == 1:
        return GroupFactors(factors=(found[0].factors,), norms=found[0].norms, counted=found[0].counted)
    counted = torch.stack([one.counted for one in found]).all(0)
    norms = torch.where(counted, torch.stack(list(squared)).sum(0).sqrt(), 0.0)
    return GroupFactors(
        factors=tuple(torch.where(counted, one.factors, 0.0) for one in found), norms=norms, counted=counted
    )
