"""Figures: sums, differences, multiples and means of releases, with the error that follows from their noise."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, Union

from sfumato.core.exact import Exact, rational
from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput
from sfumato.inference.cut_alike import check_cut_alike
from sfumato.inference.derived import Derived, Label, joined, level_of
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.inference.population import picked_from

if TYPE_CHECKING:
    from sfumato.inference.population import Population
    from sfumato.inference.ratio import Ratio

__all__ = ["Derived", "Figure", "figure", "same_shape"]

Operand = Union["Figure", Release, Exact]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Figure(Derived):
    """Numbers that are linear in released ones.

    Guarantee: costs nothing, for it is a function of releases alone; the interval covers the noise of all releases in
    it together, noise that they share counted once with its sign. Assumes: releases with different identifiers drew
    their noise independently. What limits cut off is not covered, as in the releases; differences and ratios of
    releases that limits can cut differently are refused (:mod:`sfumato.inference.cut_alike`).
    """

    forms: tuple[LinearCombination, ...]
    labels: Mapping[str, tuple[Label, ...]]
    measure: str
    sources: tuple[Release, ...]
    whole: bool = False
    """Whether the numbers are counts that were drawn finer than that: shown whole, with intervals rounded outward."""
    sampled: "Callable[[], Population] | None" = None
    """What the intervals of a population are worked out from, as for a mean over a public number of people."""

    @property
    def values(self) -> tuple[int | Fraction, ...]:
        """The numbers as they were computed."""
        return tuple(round(form.value) if self.whole else _plain(form.value) for form in self.forms)

    @property
    def method(self) -> str:
        """How the error distribution was computed."""
        if all(len(form.noises) < 2 for form in self.forms):
            return "the noise distribution itself"
        return "convolution of the noise distributions, rounded outward"

    def _data_interval(
        self, confidence: Exact = Fraction(19, 20), *, joint: bool = False
    ) -> list[tuple[int | Fraction, int | Fraction]]:
        """Low and high for each number; with ``joint`` all of them hold at once with this confidence."""
        level = level_of(confidence, self.forms if joint else self.forms[:1])
        alike = {form.shape: form for form in self.forms}
        known = {shape: form.margin(level) for shape, form in alike.items()}
        margins = [known[form.shape] for form in self.forms]
        ends = [(form.value - m, form.value + m) for form, m in zip(self.forms, margins, strict=True)]
        if self.whole:
            return [(floor(low), ceil(high)) for low, high in ends]
        return [(_plain(low), _plain(high)) for low, high in ends]

    @property
    def estimates_population(self) -> bool:
        """Whether it is a mean of a table, whose people are taken for a sample; what is computed of it is not."""
        return self.sampled is not None

    def _population(self) -> "Population | None":
        return None if self.sampled is None else self.sampled()

    def total(self) -> "Figure":
        """The sum of all its numbers."""
        form = self.forms[0]
        for other in self.forms[1:]:
            form = form.plus(other, Fraction(1))
        return replace(self, forms=(form,), labels={}, sampled=None)

    def at(self, **labels: Label) -> "Figure":
        """The numbers whose labels are the given ones."""
        kept, left = self._picked(labels)
        return replace(
            self,
            forms=tuple(self.forms[place] for place in kept),
            labels=left,
            sampled=picked_from(self.sampled, kept),
        )

    def __neg__(self) -> "Figure":
        return self._mapped(lambda form: form.scaled(Fraction(-1)))

    def __add__(self, other: Operand) -> "Figure":
        return self._with(other, Fraction(1))

    __radd__ = __add__

    def __sub__(self, other: Operand) -> "Figure":
        return self._with(other, Fraction(-1))

    def __rsub__(self, other: Operand) -> "Figure":
        return -self + other

    def __mul__(self, factor: Exact) -> "Figure":
        if isinstance(factor, Derived | Release):
            raise InvalidInput("a product of two noisy figures has no simple error; nothing was computed.")
        exact = rational(factor, "factor")
        return self._mapped(lambda form: form.scaled(exact))

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> "Figure | Ratio":
        if isinstance(other, Figure | Release):
            from sfumato.inference.ratio import Ratio

            left, right = same_shape(self, figure(other))
            sources = joined(left.sources, right.sources)
            check_cut_alike(sources, "their ratio")
            return Ratio(over=left.forms, under=right.forms, labels=left.labels, measure="ratio", sources=sources)
        divisor = rational(other, "divisor")
        if divisor == 0:
            raise InvalidInput("nothing can be divided by 0; nothing was computed.")
        return self * (1 / divisor)

    def _mapped(self, change: Callable[[LinearCombination], LinearCombination]) -> "Figure":
        return replace(self, forms=tuple(change(form) for form in self.forms), whole=False, sampled=None)

    def _with(self, other: Operand, times: Fraction) -> "Figure":
        if not isinstance(other, Figure | Release):
            constant = times * rational(other, "number")
            return self._mapped(lambda form: form.shifted(constant))
        left, right = same_shape(self, figure(other))
        sources = joined(left.sources, right.sources)
        if not (_added(left, Fraction(1)) and _added(right, times)):
            check_cut_alike(sources, "their difference")
        return Figure(
            forms=tuple(one.plus(two, times) for one, two in zip(left.forms, right.forms, strict=True)),
            labels=left.labels,
            measure=left.measure if left.measure == right.measure else "value",
            sources=sources,
            whole=left.whole and right.whole,
        )


def figure(given: Release | Figure) -> Figure:
    """A release as a figure, ready for arithmetic; nothing but releases and figures is let through.

    >>> figure([1, 2])
    Traceback (most recent call last):
    sfumato.errors.InvalidInput: post-processing takes releases and was given list; nothing was done.
    """
    if isinstance(given, Figure):
        return given
    said = only_release(given).statement
    if said.query.measure is None:
        if not given.columns:
            raise InvalidInput("this release has no columns of numbers; nothing was computed.")
        (column, *others) = given.columns.values()
        if others or not isinstance(column, Figure):
            raise InvalidInput(
                f"this release cannot be computed with as one figure; nothing was computed. Its columns are "
                f"{', '.join(given.columns)}: pick a count or a sum with release['name']."
            )
        return column
    return Figure(
        forms=tuple(
            LinearCombination(Fraction(value), {Noise(said.identifier, place, said.law): Fraction(1)})
            for place, value in enumerate(said.values)
        ),
        labels={name: tuple(column) for name, column in said.query.labels().items()},
        measure=said.query.measure,
        sources=(given,),
    )


def same_shape(left: Figure, right: Figure) -> tuple[Figure, Figure]:
    """Two figures about the same things; one number goes with any."""
    if dict(left.labels) == dict(right.labels):
        return left, right
    if len(left.forms) == 1 and not left.labels:
        return _repeated(left, right), right
    if len(right.forms) == 1 and not right.labels:
        return left, _repeated(right, left)
    raise InvalidInput(
        "these figures are about different things: their labels differ. Nothing was computed. "
        "Pick what belongs together with at(...), or add up with total()."
    )


def _added(one: Figure, times: Fraction) -> bool:
    """Whether all releases in a figure are added up, and none is taken off another."""
    return all(times * weight >= 0 for form in one.forms for weight in form.noises.values())


def _repeated(one: Figure, like: Figure) -> Figure:
    return replace(one, forms=one.forms * len(like.forms), labels=like.labels, sampled=None)


def _plain(value: Fraction) -> int | Fraction:
    return int(value) if value.denominator == 1 else value
