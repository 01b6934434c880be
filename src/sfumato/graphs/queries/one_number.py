"""What questions share whose answer is one number with noise of a public law: edges, stars, triangles of nodes."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.query import DrawnMechanism, Law
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit
from sfumato.inference.derived import Derived
from sfumato.inference.figure import figure
from sfumato.mechanisms.advisor import least_noise

__all__ = ["OneNumber"]


class OneNumber:
    """One number, called ``MEASURE``; its sensitivity, its cap and what is counted are the question's own."""

    __slots__ = ()
    MEASURE: ClassVar[str]
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")

    @property
    def size(self) -> int:
        """One number."""
        return 1

    @property
    def measure(self) -> str:
        """The name of the number."""
        return self.MEASURE

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return (self.MEASURE,)

    def labels(self) -> Mapping[str, Sequence[str | int]]:
        """None: there is one number."""
        return {}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The number as a figure."""
        return {self.MEASURE: figure(release)}

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin, which depends on the noise alone."""
        return {self.MEASURE: Fraction(law.margin(confidence))}

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise, whichever is smaller."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)
