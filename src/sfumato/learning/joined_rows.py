"""Units with canaries behind them: the data as it is laid out, and after it the invented units whose coins are in."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from sfumato.learning.laid import Laid, ReadRows

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.learning.sealed_canaries import SealedCanaries
    from sfumato.learning.units import Units

__all__ = ["JoinedUnits"]

AFTER = 1 << 40  # rows of canaries are numbered from here where others are read from a source


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedUnits:
    """The units of a run with canaries. Sensitive: all of it but the example.

    Guarantee: every real unit has the rows that it has without canaries, and each canary is a unit of its own.
    """

    units: "Units"
    canaries: "SealedCanaries"

    def example(self, size: int) -> "tuple[tuple[Tensor, ...], Tensor, Tensor]":
        """Made-up units, as the data has them."""
        return self.units.example(size)

    def laid(self, key: bytes) -> Laid:
        """Read the data and lay it out with the canaries that are in; after the charge. Sensitive: all."""
        return _joined(self.units.laid(key), *self.canaries.inside)


@dataclass(frozen=True, slots=True, kw_only=True)
class _JoinedSource:
    """Rows that are read, and those of canaries from memory."""

    source: ReadRows
    inputs: "tuple[Tensor, ...]"
    targets: "Tensor"

    @property
    def runs_code(self) -> bool:
        return self.source.runs_code

    def blank(self, size: int) -> "tuple[tuple[Tensor, ...], Tensor]":
        return self.source.blank(size)

    def read(self, rows: "Tensor", step: int) -> "tuple[tuple[Tensor, ...], Tensor, Tensor]":
        added = rows >= AFTER
        inputs, targets = self.source.blank(len(rows))
        fine = torch.ones(len(rows), dtype=torch.bool)
        found, aims, read = self.source.read(rows[~added], step)
        at = rows[added] - AFTER
        for whole, some, own in zip((*inputs, targets), (*found, aims), (*self.inputs, self.targets), strict=True):
            whole[~added], whole[added] = some.to(whole), own[at].to(whole)
        fine[~added] = read.to(fine)
        return inputs, targets, fine

    def near(self, device: torch.device) -> None:
        """Rows are read step by step."""


def _joined(laid: Laid, inputs: "tuple[Tensor, ...]", targets: "Tensor") -> Laid:
    added = len(targets)
    held = laid.source is None
    first = len(laid.targets) if held else AFTER
    own = first + torch.arange(added)
    places, present = laid.places, laid.present
    if places is not None or not held or first != laid.number:
        places = torch.arange(laid.number) if places is None else places
        places = torch.cat([places, own if places.ndim == 1 else own[:, None].expand(added, places.shape[1])])
    if present is not None:
        alone = torch.zeros((added, present.shape[1]), dtype=torch.bool)
        alone[:, 0] = True
        present = torch.cat([present, alone])
    number = laid.number + added
    if laid.source is not None:
        source = _JoinedSource(source=laid.source, inputs=inputs, targets=targets)
        return replace(laid, number=number, places=places, present=present, source=source)
    parts = zip((*laid.inputs, laid.targets), (*inputs, targets), strict=True)
    *whole, aims = (torch.cat([part, more.to(part)]) for part, more in parts)
    return Laid(tuple(whole), aims, number, places, present)
