"""Randomised response: each person reports the truth or a random other value."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core import events
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.query import Answer
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.laws.unstated import Unstated
from sfumato.mechanisms.norms import known

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["RandomizedResponse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse:
    """Report one of ``categories`` values: the true one with probability e^ε/(e^ε + categories − 1).

    Guarantee: ε-DP for the value of one report, replaced by any other; nobody needs to be trusted. T reports of one
    person cost T·ε. Sensitive: the true value. Proof: docs/proofs/randomized_response.md

    >>> RandomizedResponse.calibrated(epsilon=1, categories=2).exponents(0)
    [Fraction(1, 1), Fraction(0, 1)]
    """

    KIND: ClassVar[str] = "mechanism.randomized_response"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    categories: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        natural(self.categories, "categories", least=2)

    @classmethod
    def calibrated(cls, *, epsilon: Exact, categories: int) -> "RandomizedResponse":
        """From ε and the number of values."""
        return cls(epsilon=positive(epsilon, "epsilon"), categories=categories)

    @property
    def law(self) -> Unstated:
        """A choice has no margin of error."""
        return Unstated()

    @property
    def event(self) -> events.RandomizedResponse:
        """What happens to the privacy of one report."""
        return self.loss(1)

    def loss(self, moved: Sensitivity | int) -> events.RandomizedResponse:
        """The event for a person whose value is reported once; several reports are several events.

        A sensitivity tells by its l0 bound whether the report moves at all.
        """
        reports = known(moved.l0, "l0").count if isinstance(moved, Sensitivity) else moved
        if isinstance(moved, Sensitivity) and reports == 0:
            return events.RandomizedResponse(epsilon=Fraction(0), categories=self.categories)
        if reports != 1:
            raise InvalidInput("one randomised response is one report; compose the events of several.")
        return events.RandomizedResponse(epsilon=self.epsilon, categories=self.categories)

    def exponents(self, truth: int) -> list[Fraction]:
        """The exact logarithms, up to a constant, of the probabilities of each report."""
        if natural(truth, "truth", least=0) >= self.categories:
            raise InvalidInput(f"the true value must be one of 0 to {self.categories - 1}; nothing was drawn.")
        return [self.epsilon if value == truth else Fraction(0) for value in range(self.categories)]

    def draw(self, exact: int, words: "Words") -> Answer:
        """The answer: what :meth:`report` gives of one truth. Sensitive: ``exact``."""
        return (self.report(exact, words),), ()

    def report(self, truth: int, words: "Words") -> int:
        """Draw the report of one person."""
        from sfumato.noise import sample_selection

        return int(sample_selection(self.exponents(truth), 1, words)[0])
