"""What layers see and where their output gradients will pass, written down during one forward pass."""

from dataclasses import dataclass, field

from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn import functional as F

__all__ = ["Call", "ForwardRecord", "Site"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A place of the model where parameters are used: a layer, and a matrix of it where it has several."""

    layer: str
    matrix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One use: the input, and the edge at which the gradient of the output will be caught."""

    inputs: Tensor
    edge: GradientEdge
    version: int

    def intact(self) -> bool:
        """Whether the input still is what the layer saw."""
        return self.inputs._version == self.version


@dataclass(slots=True, kw_only=True)
class ForwardRecord:
    """All calls of one forward pass, in order; with ``writes`` false, none."""

    writes: bool = True
    calls: dict[Site, list[Call]] = field(default_factory=dict)

    def note(self, site: Site, inputs: Tensor, output: Tensor) -> None:
        """Write one call down."""
        if self.writes and output.requires_grad:
            seen = inputs.detach()
            call = Call(inputs=seen, edge=get_gradient_edge(output), version=seen._version)
            self.calls.setdefault(site, []).append(call)

    def linear(self, site: Site, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Multiply by a matrix, and write it down."""
        output = F.linear(inputs, weight, bias)
        self.note(site, inputs, output)
        return output
