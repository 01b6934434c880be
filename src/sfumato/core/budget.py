"""An amount of privacy loss: what is allowed, asked for, spent or left."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.exact import Exact, fraction_text, non_negative, positive, probability
from sfumato.errors import InvalidInput

__all__ = ["Budget"]

MOST_EPSILON = 10**6
MOST_PARTS = 10**40  # of a denominator: sums of charges must stay short enough to write down


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """(ε, δ) as exact rationals, compared and added without rounding.

    >>> tenth = Budget(epsilon=0.1)
    >>> sum([tenth] * 10, start=Budget.none()) == Budget(epsilon=1)
    True
    """

    KIND: ClassVar[str] = "budget"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    delta: Fraction

    def __init__(self, *, epsilon: Exact, delta: Exact = 0) -> None:
        object.__setattr__(self, "epsilon", non_negative(epsilon, "epsilon"))
        object.__setattr__(self, "delta", probability(delta, "delta"))

    @classmethod
    def none(cls) -> "Budget":
        """Nothing at all, the start of every sum."""
        return cls(epsilon=0)

    @classmethod
    def asked(cls, *, epsilon: Exact, delta: Exact = 0) -> "Budget":
        """What a release asks for: ε above 0, δ below 1."""
        wanted = cls(epsilon=positive(epsilon, "epsilon"), delta=delta)
        if wanted.epsilon > MOST_EPSILON:
            raise InvalidInput(f"epsilon above {MOST_EPSILON} promises nothing; nothing was done. Give a smaller one.")
        for number in (wanted.epsilon, wanted.delta):
            if number.denominator > MOST_PARTS:
                raise InvalidInput("epsilon or delta is written with absurdly many digits; nothing was done.")
        if wanted.delta == 1:
            raise InvalidInput("delta = 1 promises nothing; nothing was done. Give a delta below 1.")
        return wanted

    def __add__(self, other: "Budget") -> "Budget":
        return Budget(epsilon=self.epsilon + other.epsilon, delta=min(Fraction(1), self.delta + other.delta))

    def __sub__(self, other: "Budget") -> "Budget":
        return Budget(epsilon=self.epsilon - other.epsilon, delta=self.delta - other.delta)

    def covers(self, other: "Budget") -> bool:
        """Whether ``other`` fits inside; equality fits."""
        return other.epsilon <= self.epsilon and other.delta <= self.delta

    def __str__(self) -> str:
        epsilon = f"ε = {fraction_text(self.epsilon)}"
        return epsilon if self.delta == 0 else f"{epsilon}, δ = {fraction_text(self.delta)}"
