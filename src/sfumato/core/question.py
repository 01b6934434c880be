"""A question: a query at a gate, which is what an analyst holds.

The query is a declaration without data; the gate alone can answer it. Asking for the price, the margin or the least
ε never opens the data.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, decimal_down, decimal_up
from sfumato.core.limits import Limit
from sfumato.core.query import Mechanism, Query
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit

__all__ = ["Gate", "Preview", "Question"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The error to expect of a release, worked out from public facts alone."""

    spend: Budget
    unit: Unit
    limit: Limit | None
    sensitivity: Sensitivity
    mechanism: Mechanism
    numbers: int
    confidence: Fraction
    margin: int
    joint_margin: int

    def __str__(self) -> str:
        percent = decimal_down(100 * self.confidence)
        error = decimal_up(self.mechanism.law.mean_absolute_error)
        return (
            f"{self.numbers} number(s) at {self.spend}: each within ±{self.margin} with {percent}% confidence, "
            f"all at once within ±{self.joint_margin}; mean absolute error {error}. Nothing was read or spent."
        )


class Gate(Protocol):
    """The one way to data: whoever charges, reads, draws, signs and stores."""

    def release(self, query: Query, spend: Budget, *, fresh: bool) -> Release:
        """Charge, then read; store, then deliver."""
        ...

    def preview(self, query: Query, spend: Budget, *, confidence: Exact) -> Preview:
        """Say what error to expect, from public facts alone."""
        ...

    def epsilon_for(self, query: Query, *, margin: int, confidence: Exact, joint: bool, delta: Exact) -> Fraction:
        """Find the least ε that reaches a margin, from public facts alone."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query and the gate that can answer it."""

    query: Query
    gate: Gate

    def release(self, *, epsilon: Exact, delta: Exact = 0, fresh: bool = False) -> Release:
        """Publish the answer for ε, and at most δ, which is the whole cost.

        Where a δ is allowed and makes the error smaller the noise is Gaussian; else it is Laplace and no δ is charged.
        The same question at the same cost gives the stored answer, charged 0, unless ``fresh`` asks (and pays) for a
        new draw.
        """
        return self.gate.release(self.query, Budget.asked(epsilon=epsilon, delta=delta), fresh=fresh)

    def preview(self, *, epsilon: Exact, delta: Exact = 0, confidence: Exact = Fraction(19, 20)) -> Preview:
        """Say what error to expect; opens no data and spends nothing."""
        return self.gate.preview(self.query, Budget.asked(epsilon=epsilon, delta=delta), confidence=confidence)

    def epsilon_for(
        self, *, margin: int, confidence: Exact = Fraction(19, 20), joint: bool = False, delta: Exact = 0
    ) -> Fraction:
        """Find the least ε, to four digits and rounded up, that keeps each number (or all) within ±``margin``."""
        return self.gate.epsilon_for(self.query, margin=margin, confidence=confidence, joint=joint, delta=delta)
