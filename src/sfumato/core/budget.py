"""An amount of privacy loss: what is allowed, asked for, spent or left."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from sfumato.core.documents import UNWRITTEN
from sfumato.core.exact import (
    Exact,
    decimal_down,
    decimal_up,
    fraction_text,
    natural,
    non_negative,
    positive,
    probability,
)
from sfumato.core.guarantees import ZCDP
from sfumato.errors import InvalidInput, NotDeclared, Refused

__all__ = ["Budget", "default_delta"]

DEFAULT_DELTA = Fraction(1, 10**6)
MOST_EPSILON = 10**6
LONGEST_TEXT = 24
SHORT_TEXT = 6
DIGITS = 20  # of the ε that a ρ comes to: more than readers are shown
IN_RHO = (
    "a budget in ρ is one of a vault, or the cap of an account or a population when it is opened; nothing was written. "
    "State this amount as ε and δ."
)
MOST_PARTS = 10**40  # of a denominator: sums of charges must stay short enough to write down


def default_delta(population: int) -> Fraction:
    """The δ to choose where nobody has a reason for another: the smaller of 10⁻⁶ and a tenth of 1/n.

    >>> default_delta(1_000_000)
    Fraction(1, 10000000)
    """
    return min(DEFAULT_DELTA, Fraction(1, 10 * natural(population, "population")))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Budget:
    """(ε, δ) as exact rationals, compared and added without rounding; or ρ, of zero-concentrated differential privacy.

    A budget that is stated as ``rho=…`` is kept in ρ: each release counts the ρ of its noise, exactly, Gaussian noise
    Δ²/(2σ²) and what has an ε alone ε²/2; what has no ρ is refused. Its ε is what ρ comes to at ``delta``, rounded up;
    δ is 10⁻⁶ where none is given. Of what is left, ε is the most that one release without a δ can ask for.

    >>> tenth = Budget(epsilon=0.1)
    >>> sum([tenth] * 10, start=Budget.none()) == Budget(epsilon=1)
    True
    >>> tenth
    Budget(epsilon='1/10')
    >>> print(Budget(rho="1/2", delta=1e-5))
    ρ = 1/2 (ε ≤ 4.729, δ = 1/100000)
    """

    KIND: ClassVar[str] = "budget"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None = field(default=None, metadata={UNWRITTEN: IN_RHO})

    def __init__(self, *, epsilon: Exact | None = None, delta: Exact | None = None, rho: Exact | None = None) -> None:
        if (epsilon is None) is (rho is None):
            raise NotDeclared("a budget is stated as epsilon=…, or as rho=…, one of the two; nothing was done.")
        size = None if rho is None else non_negative(rho, "rho")
        if size is None:
            part = probability(0 if delta is None else delta, "delta")
            amount = non_negative(epsilon, "epsilon")  # type: ignore[arg-type]  # one of the two is given
        else:
            part = positive(probability(DEFAULT_DELTA if delta is None else delta, "delta"), "delta")
            if size.denominator > MOST_PARTS:
                raise InvalidInput("rho has too many digits; nothing was done.")
            amount = Fraction(decimal_up(ZCDP(rho=size).epsilon_at(part), DIGITS))
        self._set(amount, part, size)

    def _set(self, epsilon: Fraction, delta: Fraction, rho: Fraction | None) -> None:
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "rho", rho)

    @classmethod
    def of_rho(cls, rho: Fraction, comes_to: "Budget") -> "Budget":
        """An amount of ρ beside what it comes to as ε and δ, which whoever keeps the account knows."""
        made = cls.none()
        made._set(comes_to.epsilon, comes_to.delta, rho)
        return made

    @property
    def without_rho(self) -> "Budget":
        """The same as ε and δ alone, which is what documents state."""
        return self if self.rho is None else Budget(epsilon=self.epsilon, delta=self.delta)

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
        self._check_sums(other)
        return Budget(epsilon=self.epsilon + other.epsilon, delta=min(Fraction(1), self.delta + other.delta))

    def __sub__(self, other: "Budget") -> "Budget":
        self._check_sums(other)
        return Budget(epsilon=self.epsilon - other.epsilon, delta=self.delta - other.delta)

    def covers(self, other: "Budget") -> bool:
        """Whether ``other`` fits inside; equality fits."""
        if self.rho is not None and other.rho is not None:
            return other.rho <= self.rho
        self._check_sums(other)
        return other.epsilon <= self.epsilon and other.delta <= self.delta

    def _check_sums(self, other: "Budget") -> None:
        if self.rho is not None or other.rho is not None:
            raise InvalidInput(
                "amounts of ρ are added up by the account that is kept in ρ, for an ε has another ρ in each kind of "
                "noise; nothing was done. Compare their rho."
            )

    def __str__(self) -> str:
        both = [_written("ε", self.epsilon), *([_written("δ", self.delta)] if self.delta else [])]
        if self.rho is None:
            return ", ".join(both)
        up = bool(self.delta)  # without a δ it is what is left, which is rounded down
        shown = [_rounded("ε", self.epsilon, up=up), *both[1:]]
        return f"{_rounded('ρ', self.rho, up=up, longest=LONGEST_TEXT)} ({', '.join(shown)})"

    def __repr__(self) -> str:
        first = {"epsilon": self.epsilon} if self.rho is None else {"rho": self.rho}
        exact = {
            name: fraction_text(part)
            for name, part in (first | {"delta": self.delta}).items()
            if part or name != "delta"
        }
        if any(len(text) > LONGEST_TEXT for text in exact.values()) or (self.rho is not None and not self.delta):
            return f"<Budget {self}>"
        return f"Budget({', '.join(f'{name}={text!r}' for name, text in exact.items())})"


def _rounded(name: str, amount: Fraction, *, up: bool, longest: int = SHORT_TEXT) -> str:
    """Exactly where that is short; else rounded, and said so."""
    exact = fraction_text(amount)
    if len(exact) <= longest:
        return f"{name} = {exact}"
    return f"{name} ≤ {decimal_up(amount)}" if up else f"{name} ≥ {decimal_down(amount)}"


def _written(name: str, amount: Fraction) -> str:
    """Exactly where that is short; else rounded up, and said so."""
    exact = fraction_text(amount)
    return f"{name} = {exact}" if len(exact) <= LONGEST_TEXT else f"{name} ≤ {decimal_up(amount)}"
