"""An amount of privacy loss: what is allowed, asked for, spent or left."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.exact import Exact, decimal_up, fraction_text, natural, non_negative, positive, probability
from sfumato.errors import InvalidInput, NotDeclared, Refused

__all__ = ["Budget", "default_delta"]

DEFAULT_DELTA = Fraction(1, 10**6)
MOST_EPSILON = 10**6
LONGEST_TEXT = 24
MOST_PARTS = 10**40  # of a denominator: sums of charges must stay short enough to write down


def default_delta(population: int) -> Fraction:
    """The δ to choose where nobody has a reason for another: the smaller of 10⁻⁶ and a tenth of 1/n.

    >>> default_delta(1_000_000)
    Fraction(1, 10000000)
    """
    return min(DEFAULT_DELTA, Fraction(1, 10 * natural(population, "population")))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Budget:
    """(ε, δ) as exact rationals, compared and added without rounding.

    >>> tenth = Budget(epsilon=0.1)
    >>> sum([tenth] * 10, start=Budget.none()) == Budget(epsilon=1)
    True
    >>> tenth
    Budget(epsilon='1/10')
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
            raise InvalidInput(f"epsilon above {MOST_EPSILON} guarantees nothing; nothing was done. Give less.")
        for number in (wanted.epsilon, wanted.delta):
            if number.denominator > MOST_PARTS:
                raise InvalidInput("epsilon or delta has too many digits; nothing was done.")
        if wanted.delta == 1:
            raise InvalidInput("delta = 1 guarantees nothing; nothing was done. Give a delta below 1.")
        return wanted

    def judged(self, population: int | None) -> "Budget":
        """Refuse a δ that protects nobody: publishing one record at random already has δ = 1/n.

        ``population`` is a declared bound on how many units there are, never the size of a table. Without it only a δ
        of at most 10⁻⁶ is let through.

        >>> Budget(epsilon=1, delta=1e-6).judged(None).delta
        Fraction(1, 1000000)
        """
        if population is None:
            if self.delta > DEFAULT_DELTA:
                raise NotDeclared(
                    f"δ = {self.delta} is above {DEFAULT_DELTA} and can only be judged against the number of people. "
                    "Nothing was done. Declare population=…, a public bound on it, or ask for a smaller δ."
                )
        elif self.delta * natural(population, "population") >= 1:
            raise Refused(
                f"δ = {self.delta} is not below 1/{population}: publishing one person at random would satisfy it. "
                f"Nothing was done. Ask for δ of at most {default_delta(population)}."
            )
        return self

    def __add__(self, other: "Budget") -> "Budget":
        return Budget(epsilon=self.epsilon + other.epsilon, delta=min(Fraction(1), self.delta + other.delta))

    def __sub__(self, other: "Budget") -> "Budget":
        return Budget(epsilon=self.epsilon - other.epsilon, delta=self.delta - other.delta)

    def covers(self, other: "Budget") -> bool:
        """Whether ``other`` fits inside; equality fits."""
        return other.epsilon <= self.epsilon and other.delta <= self.delta

    def __str__(self) -> str:
        return (
            _written("ε", self.epsilon)
            if self.delta == 0
            else f"{_written('ε', self.epsilon)}, {_written('δ', self.delta)}"
        )

    def __repr__(self) -> str:
        exact = {"epsilon": fraction_text(self.epsilon), **({"delta": fraction_text(self.delta)} if self.delta else {})}
        if any(len(text) > LONGEST_TEXT for text in exact.values()):
            return f"<Budget {self}>"
        return f"Budget({', '.join(f'{name}={text!r}' for name, text in exact.items())})"


def _written(name: str, amount: Fraction) -> str:
    """Exactly where that is short; else rounded up, and said so."""
    exact = fraction_text(amount)
    return f"{name} = {exact}" if len(exact) <= LONGEST_TEXT else f"{name} ≤ {decimal_up(amount)}"
