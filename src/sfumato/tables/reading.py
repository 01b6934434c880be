"""From noisy numbers to the columns of an answer: each measure read off the block that tells it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.query import Law
from sfumato.core.release import Release
from sfumato.engines.gauges import Everyone, Powers, Products, Signed
from sfumato.inference.derived import Derived
from sfumato.inference.figure import Figure
from sfumato.inference.form import Form, Noise
from sfumato.inference.moments import Correlation, Covariance, Moments, Variance, sums_of
from sfumato.inference.ratio import Ratio
from sfumato.tables.blocks import Block, key_of
from sfumato.tables.keys import KeyValue
from sfumato.tables.measures import (
    Association,
    Average,
    Measure,
    PersonCount,
    Proportion,
    Quotient,
    Ranged,
    RowCount,
    Total,
    Variation,
)

__all__ = ["Reader"]

ONE, HALF = Fraction(1), Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The noisy numbers of an answer, block after block, part after part, cell after cell."""

    blocks: tuple[Block, ...]
    cells: int
    number: int | None
    identifier: str
    law: Law
    values: Sequence[int]
    labels: Mapping[str, tuple[KeyValue, ...]]
    sources: tuple[Release, ...]

    def column(self, measure: Measure) -> Derived:
        """The column of one measure."""
        match measure:
            case RowCount() | PersonCount():
                return self._figure(measure, [_all(parts) for parts in self._parts(measure)])
            case Total(of=of):
                return self._figure(measure, self._sums(of, self._block(measure)))
            case Average(of=of):
                return self._mean(measure, of)
            case Proportion():
                parts = self._parts(measure)
                return self._ratio(
                    measure, [part[0] for part in parts], [_all(part) for part in parts], within=(0.0, 1.0)
                )
            case Quotient(over=over, under=under):
                tops, bottoms = (self._sums(of, self._told(of)) for of in (over, under))
                return self._ratio(measure, tops, bottoms, within=(-math.inf, math.inf))
            case Variation(of=of, root=root):
                return Variance(
                    moments=tuple(self._variances(measure)),
                    scale=of.width**2,
                    within=(0.0, float(of.width**2 / 4)),
                    labels=self.labels,
                    measure=measure.name,
                    sources=self.sources,
                    root=root,
                )
            case Association():
                return self._association(measure)

    def _mean(self, measure: Average, of: Ranged) -> Derived:
        block = self._block(measure)
        if isinstance(block.gauge, Everyone):
            sums = self._sums(of, block)
            return self._figure(measure, [form.scaled(Fraction(1, self.number or 1)) for form in sums])
        counts = [_all(parts) for parts in self._valued(block)]
        return self._ratio(measure, self._sums(of, block), counts, within=(float(of.low), float(of.high)))

    def _sums(self, of: Ranged, block: Block) -> list[Form]:
        """The sum of a value in each cell."""
        match block.gauge:
            case Signed(lattice=lattice):
                step = (lattice.high - lattice.low) / lattice.steps
                return [part.scaled(step) for (part,) in self._of(block)]
            case Powers(degree=degree):
                weights = [of.low + of.width * Fraction(place, degree) for place in range(degree + 1)]
                return [sums_of(parts, weights) for parts in self._valued(block)]
            case Everyone(degree=degree):
                number = Fraction(self.number or 1)
                weights = [of.width * Fraction(place, degree) for place in range(1, degree + 1)]
                return [sums_of(parts, weights).shifted(number * of.low) for parts in self._of(block)]
        raise AssertionError(block)

    def _variances(self, measure: Variation) -> list[Moments]:
        block = self._block(measure)
        if isinstance(block.gauge, Everyone):
            rows = Form(Fraction(self.number or 1), {})
            firsts = [sums_of(parts, [HALF, ONE]) for parts in self._of(block)]
            return [
                Moments(number=rows, first=first, second=first, product=parts[-1])
                for first, parts in zip(firsts, self._of(block), strict=True)
            ]
        found = []
        for parts in self._valued(block):
            first = sums_of(parts, [Fraction(0), HALF, ONE])
            found.append(Moments(number=_all(parts), first=first, second=first, product=parts[2]))
        return found

    def _association(self, measure: Association) -> Derived:
        block = self._block(measure)
        gauge = block.gauge
        assert isinstance(gauge, Products)  # noqa: S101 - for the reader of types
        spots = range(gauge.degree + 1)
        together, ones, twos = [], [], []
        for parts in self._of(block):
            number = _all(parts)
            places = [(Fraction(a, gauge.degree), Fraction(b, gauge.degree)) for a in spots for b in spots]
            first, second = sums_of(parts, [a for a, _ in places]), sums_of(parts, [b for _, b in places])
            product = sums_of(parts, [a * b for a, b in places])
            together.append(Moments(number=number, first=first, second=second, product=product))
            if measure.scaled:
                squares = [sums_of(parts, [Fraction(place[side] == 1) for place in places]) for side in (0, 1)]
                ones.append(Moments(number=number, first=first, second=first, product=squares[0]))
                twos.append(Moments(number=number, first=second, second=second, product=squares[1]))
        if measure.scaled:
            return Correlation(
                together=tuple(together),
                first=tuple(ones),
                second=tuple(twos),
                labels=self.labels,
                measure=measure.name,
                sources=self.sources,
            )
        scale = measure.first.width * measure.second.width
        return Covariance(
            moments=tuple(together),
            scale=scale,
            within=(-float(scale) / 4, float(scale) / 4),
            labels=self.labels,
            measure=measure.name,
            sources=self.sources,
        )

    def _figure(self, measure: Measure, forms: Sequence[Form]) -> Figure:
        return Figure(forms=tuple(forms), labels=self.labels, measure=measure.name, sources=self.sources)

    def _ratio(
        self, measure: Measure, over: Sequence[Form], under: Sequence[Form], *, within: tuple[float, float]
    ) -> Ratio:
        return Ratio(
            over=tuple(over),
            under=tuple(under),
            labels=self.labels,
            measure=measure.name,
            sources=self.sources,
            within=within,
        )

    def _block(self, measure: Measure) -> Block:
        wanted = key_of(measure, self.blocks)
        return next(block for block in self.blocks if block.key == wanted)

    def _told(self, of: Ranged) -> Block:
        return self._block(Total(name="sum", of=of))

    def _parts(self, measure: Measure) -> list[list[Form]]:
        return self._of(self._block(measure))

    def _valued(self, block: Block) -> list[list[Form]]:
        """The parts of the rows that have a value."""
        missing = isinstance(block.gauge, Powers) and block.gauge.missing
        return [parts[:-1] if missing else parts for parts in self._of(block)]

    def _of(self, block: Block) -> list[list[Form]]:
        """The parts of a block in each cell, in rows: a part that is full of one row is 1."""
        first = 0
        for other in self.blocks:
            if other.key == block.key:
                break
            first += other.reach.numbers * self.cells
        unit = Fraction(1, block.height)
        return [
            [self._form(first + part * self.cells + cell, unit) for part in range(block.reach.numbers)]
            for cell in range(self.cells)
        ]

    def _form(self, place: int, unit: Fraction) -> Form:
        return Form(self.values[place] * unit, {Noise(self.identifier, place, self.law): unit})


def _all(parts: Sequence[Form]) -> Form:
    return sums_of(parts, [ONE] * len(parts))
