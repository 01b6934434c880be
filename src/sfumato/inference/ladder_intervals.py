"""Counts that a ladder drew, and their ratio: intervals from bounds of an error whose own law is private.

Proof: docs/proofs/ladder.md
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.exact import Exact
from sfumato.core.release import Release
from sfumato.inference.derived import Derived, Label
from sfumato.laws.margins import level_of
from sfumato.mechanisms.ladder import Ladder

__all__ = ["LadderCount", "LadderRatio"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LadderCount(Derived):
    """A count with the noise of a ladder.

    Guarantee: the interval covers the exact count with at least the stated confidence, whatever the graph: by the
    guide that was released with it, or by the widest rung that any graph has. It is wider than it would need to be.
    """

    drawn: tuple[int, ...]
    """The noisy count and, where there is one, the noisy guide."""
    ladder: Ladder
    labels: Mapping[str, tuple[Label, ...]]
    measure: str
    sources: tuple[Release, ...]

    @property
    def values(self) -> tuple[int, ...]:
        """The noisy count."""
        return self.drawn[:1]

    @property
    def method(self) -> str:
        """How the interval was found."""
        return "a private bound of the error" if self.ladder.guide else "a bound of the error for every graph"

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[int, int]]:
        """Low and high; a count is never below 0."""
        margin = self.ladder.margin(self.drawn, level_of(confidence))
        return [(max(0, self.drawn[0] - margin), max(0, self.drawn[0] + margin))]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LadderRatio(Derived):
    """A multiple of one count over another, both from ladders, which is known to lie from 0 to 1.

    Guarantee: both counts lie within their intervals with the stated confidence, each with half of the doubt; so does
    their ratio.
    """

    over: LadderCount
    under: LadderCount
    times: int
    labels: Mapping[str, tuple[Label, ...]]
    measure: str
    sources: tuple[Release, ...]

    @property
    def values(self) -> tuple[float, ...]:
        """The ratio of the noisy counts, held to 0 and 1; 0 where the lower count is not above 0."""
        (over,), (under,) = self.over.values, self.under.values
        return (float(_held(Fraction(self.times * over, under))) if under > 0 else 0.0,)

    @property
    def method(self) -> str:
        """How the interval was found."""
        return "the intervals of both counts, each with half of the doubt"

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[float, float]]:
        """Low and high; from 0 to 1 where the noise leaves open whether there is anything to divide by."""
        each = (1 + level_of(confidence)) / 2
        ((low, high),), ((least, most),) = self.over.interval(each), self.under.interval(each)
        if least <= 0:
            return [(0.0, 1.0)]
        return [(_down(_held(Fraction(self.times * low, most))), _up(_held(Fraction(self.times * high, least))))]


def _held(value: Fraction) -> Fraction:
    return min(max(value, Fraction(0)), Fraction(1))


def _down(value: Fraction) -> float:
    return max(0.0, float(value) * (1 - 2**-50))


def _up(value: Fraction) -> float:
    return min(1.0, float(value) * (1 + 2**-50))
