"""The error to expect of each measure before anything is read: from the law of the noise and public facts alone."""

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.query import Law
from sfumato.engines.gauges import Everyone, Powers, Products, Signed
from sfumato.inference.derived import level_of
from sfumato.inference.form import Form, Noise
from sfumato.tables.blocks import Block, key_of
from sfumato.tables.measures import Association, Average, Measure, Proportion, Quotient, Ranged, Total, Variation

if TYPE_CHECKING:
    from sfumato.tables.queries.aggregate import Aggregate

__all__ = ["expected"]


def expected(
    query: "Aggregate", law: Law, confidence: Fraction, *, joint: bool, rows: int | None
) -> Mapping[str, Fraction]:
    """The margin of each measure that can be told.

    Counts and sums have exact margins. Means, shares, variances and covariances are ratios: for them ``rows`` is how
    many rows a group is expected to have, and the margin is what the noise alone makes of that many, at the worst
    place of the range. Ratios of two sums and correlations cannot be told beforehand.
    """
    blocks, found = query.blocks, {}
    level = level_of(confidence, [Form(Fraction(0), {})] * (query.cells if joint else 1))
    for measure in query.measures:
        margin = _margin(measure, blocks, law, level, rows)
        if margin is not None:
            found[measure.name] = margin
    return found


def _margin(
    measure: Measure, blocks: tuple[Block, ...], law: Law, level: Fraction, rows: int | None
) -> Fraction | None:
    if isinstance(measure, Quotient) or (isinstance(measure, Association) and measure.scaled):
        return None
    block = next(block for block in blocks if block.key == key_of(measure, blocks))
    if isinstance(measure, Average | Proportion | Variation | Association) and not rows:
        return None
    match measure:
        case Total(of=of):
            return _form(_sum_weights(of, block), law).margin(level)
        case Average(of=of) if isinstance(block.gauge, Everyone):
            return _form([weight / (rows or 1) for weight in _sum_weights(of, block)], law).margin(level)
        case Average(of=of):
            degree = block.gauge.degree if isinstance(block.gauge, Powers) else 1
            weights = [Fraction(place, degree) for place in range(degree + 1)]
            return _form([of.width * weight / (block.height * (rows or 1)) for weight in weights], law).margin(level)
        case Proportion():
            return Fraction(law.margin(level), block.height * (rows or 1))
        case Variation(of=of, root=False):
            noises = 2 if isinstance(block.gauge, Everyone) else 1
            each = of.width**2 / (block.height * (rows or 1))
            return _form([each] * noises, law).margin(level)
        case Variation():
            return None
        case Association(first=first, second=second):
            degree = block.gauge.degree if isinstance(block.gauge, Products) else 1
            spots = [Fraction(place, degree) for place in range(degree + 1)]
            each = first.width * second.width / (block.height * (rows or 1))
            return _form([each * a * b for a in spots for b in spots], law).margin(level)
    return _form([Fraction(1, block.height)] * block.reach.numbers, law).margin(level)


def _sum_weights(of: Ranged, block: Block) -> list[Fraction]:
    """What each part of a block counts for in the sum of a value."""
    match block.gauge:
        case Signed(lattice=lattice):
            return [(lattice.high - lattice.low) / lattice.steps]
        case Powers(degree=degree):
            spots = [of.low + of.width * Fraction(place, degree) for place in range(degree + 1)]
        case Everyone(degree=degree):
            spots = [of.width * Fraction(place, degree) for place in range(1, degree + 1)]
        case _:
            raise AssertionError(block)
    return [spot / block.height for spot in spots]


def _form(weights: list[Fraction], law: Law) -> Form:
    return Form(Fraction(0), {Noise("expected", place, law): weight for place, weight in enumerate(weights) if weight})
