"""Linear layers, and all that multiplies by a matrix."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from sfumato.learning import device_products
from sfumato.learning.engine.accumulate import chunk, outer, rows
from sfumato.learning.engine.bounds import CROWD, HUGE, OVER, TINY, UNIT_ROUNDOFF, WIDE, ErrorBudget
from sfumato.learning.engine.layers.part import Direct, LayerPart
from sfumato.learning.engine.measure import squares
from sfumato.learning.engine.precision import full_precision

__all__ = ["TYPES", "Gram", "Product", "Streamed", "matrix_part", "unfit"]

TYPES: tuple[type[nn.Module], ...] = (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear)
FAINT = 2.0**-100


def unfit(layer: nn.Module) -> str | None:
    """Why a layer of these types has no rule after all."""
    return None


def matrix_part(a: Tensor, g: Tensor, weight: str | None, bias: str | None, batches: int) -> LayerPart:
    """The share of a matrix and its bias: inputs (units, places, in) and output gradients (units, places, out)."""
    units, places = a.shape[:2]
    if places == 1:
        return Product(a=a, g=g, weight=weight, bias=bias)
    if weight is not None and device_products.fits(g, a):
        return Streamed(a=a, g=g, weight=weight, bias=bias)
    step = chunk(units, places, ErrorBudget(units=units, batches=batches, crowded=True).terms(crowd=CROWD))
    if weight is not None and a.device.type == "cpu" and gram_is_cheaper(places, a.shape[2], g.shape[2], step):
        return Gram(a=a, g=g, weight=weight, bias=bias, double=step == 0)

    def make(at: slice) -> dict[str, Tensor]:
        made = {} if weight is None else {weight: torch.bmm(g[at].transpose(1, 2), a[at])}
        return made if bias is None else made | {bias: g[at].sum(1)}

    return Direct(units=units, size=g.shape[2] * (a.shape[2] + 1), make=make)


def gram_is_cheaper(places: int, width: int, height: int, step: int) -> bool:
    """Whether Gram matrices and one product, ``step`` units at a time, are cheaper than direct gradients, and as sure.

    A rough count of multiplications for each unit; a number that is written out and read again counts like 40.
    """
    if gram_error(width, height) * places > float(OVER):
        return False
    size = width * height
    product = 2 * places * size + 40 * size / step if step else 5 * places * size
    return product + 4 * places**2 * (width + height) < 2.6 * places * size + 40 * size


def gram_error(width: int, height: int) -> float:
    """The most by which a Gram norm is off, in squared sums of absolute values."""
    return 1.01 * (width + height + 8) * float(UNIT_ROUNDOFF)


@dataclass(slots=True, kw_only=True)
class Product:
    """One place a unit: the norm of an outer product is the product of the norms, and nothing cancels."""

    a: Tensor
    g: Tensor
    weight: str | None
    bias: str | None
    way: str = "product"
    crowded: bool = False

    @property
    def fills(self) -> str | None:
        """Its matrix."""
        return self.weight

    def measure(self) -> tuple[Tensor, Tensor]:
        """|g|²·(|a|² + 1)."""
        found = squares(self.g[:, 0])
        if self.weight is not None:
            seen = squares(self.a[:, 0])
            found = torch.where(seen > HUGE**2, torch.inf, found * (seen + (0 if self.bias is None else 1)))
        return found, found

    def put(self, factors: Tensor, into: dict[str, Tensor], budget: ErrorBudget) -> None:
        """One product for all units, in chunks."""
        near = self.g.device.type == "cpu"  # a device has a kernel for what is added up for a bias
        beside = None if self.bias is None or not near else into[self.bias]
        if self.weight is not None:
            outer(factors, self.g, self.a, into[self.weight], budget.terms(), clean=budget.clean, beside=beside)
        if self.bias is not None and (self.weight is None or not near):
            rows(factors, self.g, into[self.bias], budget.terms(), clean=budget.clean)


@dataclass(slots=True, kw_only=True)
class Gram:
    """Many places a unit, few numbers in each: norms from Gram matrices, made safe by a bound on what cancels."""

    a: Tensor
    g: Tensor
    weight: str
    bias: str | None
    double: bool
    way: str = "gram"
    crowded: bool = True

    @property
    def fills(self) -> str | None:
        """Its matrix."""
        return self.weight

    def measure(self) -> tuple[Tensor, Tensor]:
        """The Gram norm, raised where its error could be more than the slack allows."""
        a, g, units = self.a, self.g, len(self.a)
        lengths = squares(a.flatten(0, 1)) + a.shape[2] * FAINT, squares(g.flatten(0, 1)) + g.shape[2] * FAINT
        spread = (lengths[0] * lengths[1]).sqrt().view(units, -1).sum(1).square()
        with full_precision():
            inner = torch.bmm(a, a.transpose(1, 2)).double() * torch.bmm(g, g.transpose(1, 2))
        found = inner.sum((1, 2)).clamp(min=0)
        found = torch.maximum(found, (found + gram_error(a.shape[2], g.shape[2]) * spread) / float(1 + OVER))
        found = torch.where((lengths[0] > HUGE**2).view(units, -1).any(1), torch.inf, found)
        if self.double:
            spread = spread / WIDE**2
        if self.bias is not None:
            bias = squares(g.sum(1))
            found, spread = found + bias, spread + bias
        return found, spread

    def put(self, factors: Tensor, into: dict[str, Tensor], budget: ErrorBudget) -> None:
        """One product for all units, in chunks."""
        outer(factors, self.g, self.a, into[self.weight], budget.terms(crowd=CROWD), clean=budget.clean)
        if self.bias is not None:
            rows(factors, self.g.sum(1), into[self.bias], budget.terms(), clean=budget.clean)


@dataclass(slots=True, kw_only=True)
class Streamed:
    """Many places a unit on a device: gradients are made for their norms and again for the sum, and never written out.

    Both times they are the same floats, so that what is summed is what was measured, as where they are written out.
    """

    a: Tensor
    g: Tensor
    weight: str
    bias: str | None
    way: str = "direct, made twice"
    crowded: bool = False
    kept: tuple[device_products.Turned, device_products.Turned] | None = field(default=None, repr=False)

    @property
    def fills(self) -> str | None:
        """Its matrix."""
        return self.weight

    def measure(self) -> tuple[Tensor, Tensor]:
        """Squared norms; what underflows in single precision is added back as its upper bound."""
        left, right = self.kept = device_products.turned(self.g), device_products.turned(self.a)
        found = device_products.unit_squares(left, right, edge=self.bias is not None)
        found += left.values.shape[1] * (right.values.shape[1] + 1) * TINY
        return found, found

    def put(self, factors: Tensor, into: dict[str, Tensor], budget: ErrorBudget) -> None:
        """Sum few units in single precision, and all of these in double.

        They are half as many as floats allow: a device may compute a unit a little otherwise at another place.
        """
        if self.kept is None:
            raise RuntimeError("a share is measured before it is summed")
        beside = None if self.bias is None else into[self.bias]
        device_products.weighted_products(
            factors, *self.kept, terms=budget.terms() // 2, into=into[self.weight], beside=beside
        )
        self.kept = None
