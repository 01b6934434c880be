"""Quantiles: each is chosen from a lattice by how near its rank is; several are chosen one inside the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from sfumato.core import enclosures, events
from sfumato.core.exact import Exact, natural, positive, probability
from sfumato.core.query import Answer
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput
from sfumato.laws.unstated import Unstated
from sfumato.mechanisms.norms import known

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["QuantileChoice", "RankChoice"]

MOST_STEPS = 2**36
PARTS = 2**24  # into how many slots the rows of one value are spread where several quantiles are asked for
MOST_QUANTILES = 1000
MOST_ROWS = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class RankChoice:
    """One choice: of which quantile, between which others (by place; −1 and their number are the ends of all rows),
    and which share of the rows between those lies below it."""

    place: int
    below: int
    above: int
    share: Fraction
    level: int

    @property
    def weight(self) -> Fraction:
        """How far one row more or less moves a rank from its target, at most: the larger of the shares beside it."""
        return max(self.share, 1 - self.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileChoice:
    """Choose a value of the lattice 0, 1, …, ``steps`` for each of ``quantiles``, by its rank among a group's rows.

    A value z is wrong by how far q·n lies outside of the ranks from #{x < z} to #{x ≤ z}; it is chosen with probability
    proportional to exp(−ε·wrong/(2·max(q, 1 − q))). Several quantiles: the middle one first, then on each side of it
    those of the rows there, and so on, so that a row counts in one choice of each level. For that the rows of one value
    are spread evenly over ``parts`` slots, and a slot is chosen; the values never fall from one quantile to the next.

    Guarantee: one row more or less costs ``epsilon`` for each level; see :meth:`moved` for units. Each level is an
    ε-bounded-range choice, ε²/8-zCDP. Assumes: the lattice is public. Sensitive: the counts, the time of a draw and how
    wrong a drawn value is. Proof: docs/proofs/quantiles.md

    >>> one = QuantileChoice.moved(quantiles=[0.5], relation=Relation.ADD_REMOVE, groups=None, rows=1)
    >>> median = QuantileChoice.calibrated(quantiles=[0.5], steps=1000, sensitivity=one, epsilon=1)
    >>> median.event.to_json()
    '{"event":{"epsilon":"1/1","kind":"event.bounded_range","version":1},"kind":"event.repeated","times":1,"version":1}'
    """

    KIND: ClassVar[str] = "mechanism.quantile_choice"
    VERSION: ClassVar[int] = 1
    quantiles: tuple[Fraction, ...]
    steps: int
    parts: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantiles", _checked(self.quantiles))
        natural(self.steps, "steps", most=MOST_STEPS)
        natural(self.parts, "parts", most=PARTS)
        if len(self.quantiles) > 1 and self.parts < 2:
            raise InvalidInput("several quantiles need rows spread over at least 2 parts; nothing was done.")
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))

    @classmethod
    def calibrated(
        cls, *, quantiles: Sequence[Exact], steps: int, sensitivity: Sensitivity, epsilon: Exact
    ) -> "QuantileChoice":
        """The choices that cost ε in all for a unit within ``sensitivity``, as :meth:`moved` states it."""
        several = _checked(quantiles)
        rows = known(sensitivity.l0, "l0").count * known(sensitivity.linf, "linf").value
        each = positive(epsilon, "epsilon") / (positive(rows, "sensitivity") * _levels(several))
        return cls(quantiles=several, steps=steps, parts=1 if len(several) == 1 else PARTS, epsilon=each)

    @staticmethod
    def moved(
        *, quantiles: Sequence[Exact], relation: Relation, groups: int | None, rows: int, persons: int = 1
    ) -> Sensitivity:
        """How far a unit moves the choices: ``persons`` persons, of each ``rows`` rows in each of ``groups`` groups.

        ``groups`` is None where nothing is grouped.
        Guarantee: the groups that a unit touches fall into l0 lots, in each of which it moves the ranks as far as linf
        added or removed rows do. Replacing takes rows out and puts rows in, in the same groups or in others. Only one
        quantile without groups is spared some of that: there a replaced row moves a rank by 1. What several persons
        touch is one lot.

        >>> QuantileChoice.moved(quantiles=[0.75], relation=Relation.REPLACE, groups=None, rows=3).linf
        LInf(value=Fraction(4, 1))
        """
        several, grouped = _checked(quantiles), 1 if groups is None else natural(groups, "groups")
        lots = grouped if natural(persons, "persons") == 1 else 1
        count = natural(rows, "rows") * persons * grouped // lots
        match relation:
            case Relation.ADD_REMOVE:
                linf = Fraction(count)
            case Relation.REPLACE:
                alone = groups is None and len(several) == 1
                linf = count / max(choice.weight for choice in _choices(several)) if alone else Fraction(2 * count)
        return Sensitivity.of(l0=lots, linf=linf)

    @property
    def law(self) -> Unstated:
        """The error depends on the data; :meth:`rank_margin` bounds the rank, whatever they are."""
        return Unstated()

    @property
    def event(self) -> events.Repeated:
        """What happens to the privacy of one row more or less."""
        return self.loss(Sensitivity.of(l0=1, linf=1))

    def loss(self, moved: Sensitivity) -> events.Repeated:
        """The event for a unit that moves ranks as :meth:`moved` states: a number of bounded-range choices."""
        choice = events.BoundedRange(epsilon=self.epsilon * known(moved.linf, "linf").value)
        return events.Repeated(event=choice, times=known(moved.l0, "l0").count * _levels(self.quantiles))

    @property
    def choices(self) -> tuple[RankChoice, ...]:
        """All choices, those between which others lie first."""
        return _choices(self.quantiles)

    def rate(self, choice: RankChoice) -> Fraction:
        """The exponent of one rank: ε over the range that one row gives to the scores."""
        return self.epsilon / (2 * choice.weight)

    def exponents(self, counts: Sequence[int]) -> list[Fraction]:
        """The exact logarithms, up to a constant, of the probabilities of 0, 1, …, for one quantile.

        ``counts`` has the rows of each value of the lattice.

        >>> QuantileChoice(quantiles=(Fraction(1, 2),), steps=2, parts=1, epsilon=Fraction(1)).exponents([1, 1, 1])
        [Fraction(-1, 2), Fraction(0, 1), Fraction(-1, 2)]
        """
        if len(self.quantiles) > 1 or len(counts) != self.steps + 1:
            raise InvalidInput("one quantile and a count for each value of the lattice are needed; nothing was done.")
        rate, target = self.rate(self.choices[0]), self.quantiles[0] * sum(counts)
        below, found = 0, []
        for count in counts:
            wrong = max(below - target, target - below - count, Fraction(0))
            found.append(-rate * wrong)
            below += count
        return found

    def draw(self, exact: Sequence[tuple[Sequence[int], Sequence[int]]], words: "Words") -> Answer:
        """The answer: what :meth:`choose` gives for each group, values with their counts. Sensitive: ``exact``."""
        return tuple(place for values, counts in exact for place in self.choose(values, counts, words)), ()

    def choose(self, values: Sequence[int], counts: Sequence[int], words: "Words") -> tuple[int, ...]:
        """Draw the quantiles of one group: its values on the lattice, rising, and how many rows have each.

        The arguments may be NumPy arrays of 64 bits. A group without rows gives any values, all equally likely.
        """
        from sfumato.noise.quantile_search import Group, slot

        group = Group(values, counts, steps=self.steps, parts=self.parts, most=MOST_ROWS)
        cuts = {-1: 0, len(self.quantiles): (self.steps + 1) * self.parts}
        for choice in self.choices:
            first, end = cuts[choice.below], cuts[choice.above]
            rate = self.rate(choice)
            cuts[choice.place] = slot(group, first, end, choice.share, rate, words) if first < end else first
        return tuple(cuts[place] // self.parts for place in range(len(self.quantiles)))

    def rank_margin(self, confidence: Exact, *, groups: int = 1, rows: int = PARTS) -> int:
        """How far from q·n the ranks of the chosen values are at most, all at once and whatever the data.

        Guarantee: with this confidence, for all quantiles of this many groups of at most ``rows`` rows each, some rank
        from #{x < z} to #{x ≤ z} lies within ± this of q·n. Most data do far better. Public: everything.

        >>> QuantileChoice(quantiles=(Fraction(1, 2),), steps=1000, parts=1, epsilon=Fraction(1)).rank_margin(0.95)
        10
        """
        wrong = 1 - probability(confidence, "confidence")
        if not wrong:
            raise InvalidInput("no margin holds with certainty; nothing was done. Ask for a confidence below 1.")
        choices = natural(groups, "groups") * len(self.quantiles)
        slots = (self.steps + 1) * self.parts
        lost = Fraction(natural(rows, "rows", least=0), self.parts) if len(self.quantiles) > 1 else Fraction(0)
        nats = enclosures.log(slots * choices / wrong).high
        margins = {-1: Fraction(0), len(self.quantiles): Fraction(0)}
        for choice in self.choices:
            inherited = max(margins[choice.below], margins[choice.above])
            margins[choice.place] = nats / self.rate(choice) + lost + inherited
        largest = max(margins.values())
        return -(-largest.numerator // largest.denominator)


def _checked(quantiles: Sequence[Exact]) -> tuple[Fraction, ...]:
    several = tuple(probability(q, "quantile") for q in quantiles)
    if not several or len(several) > MOST_QUANTILES:
        raise InvalidInput(f"from 1 to {MOST_QUANTILES} quantiles can be asked for; nothing was done.")
    if not (several[0] > 0 and several[-1] < 1 and all(a < b for a, b in pairwise(several))):
        raise InvalidInput(
            "quantiles must rise and lie strictly between 0 and 1: the smallest and the largest value are one person's "
            "own. Nothing was done."
        )
    return several


def _levels(quantiles: Sequence[Fraction]) -> int:
    """How many choices deep the last quantile is: the middle one goes first."""
    return len(quantiles).bit_length()


def _choices(quantiles: Sequence[Fraction]) -> tuple[RankChoice, ...]:
    ends = {-1: Fraction(0), len(quantiles): Fraction(1)} | dict(enumerate(quantiles))
    found, ahead = [], [(-1, len(quantiles), 1)]
    for below, above, level in ahead:
        if above - below < 2:
            continue
        place = (below + above) // 2
        share = (ends[place] - ends[below]) / (ends[above] - ends[below])
        found.append(RankChoice(place=place, below=below, above=above, share=share, level=level))
        ahead += [(below, place, level + 1), (place, above, level + 1)]
    return tuple(found)
