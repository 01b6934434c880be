"""Which of two public models is closer to private votes, in the Kullback–Leibler divergence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core import enclosures
from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import Exact, natural, non_negative, positive
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Relation, Unit
from sfumato.errors import InvalidInput, Refused
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.learning.describe import examined
from sfumato.learning.paradigms.persons import persons
from sfumato.mechanisms.advisor import least_noise

__all__ = ["FLOOR", "STEPS", "CloserModel", "floored"]

FLOOR = Fraction(1, 2**20)
"""The least probability that a model may give a class: without a floor one vote could move the answer without bound."""

STEPS = 2**20
"""Log ratios are whole numbers of 1/STEPS."""


def floored(shares: Sequence[Exact], floor: Exact = Fraction(1, 1000)) -> tuple[Fraction, ...]:
    """Shares of classes as a distribution with at least ``floor`` for each: a mixture with the even one.

    >>> floored([3, 1, 0], floor="1/100")
    (Fraction(59, 80), Fraction(101, 400), Fraction(1, 100))
    >>> sum(floored([0.2, 0.7, 0.1]))
    Fraction(1, 1)
    """
    given, least = [non_negative(share, "a share") for share in shares], positive(floor, "floor")
    if len(given) < 2 or not any(given):
        raise InvalidInput("a model needs shares of at least two classes, not all 0; nothing was done.")
    if not FLOOR <= least <= Fraction(1, len(given)):
        raise InvalidInput(f"floor must lie between {FLOOR} and 1/{len(given)}; nothing was done.")
    total = sum(given)
    return tuple(least + (1 - least * len(given)) * share / total for share in given)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloserModel:
    """KL(p‖first) − KL(p‖second), where p are the shares of private votes, one of each person, for each class.

    It is Σ pₖ·rₖ with rₖ = ln(secondₖ/firstₖ): linear in the votes. What is protected is the whole number
    Σ cₖ·Rₖ, where cₖ counts votes and Rₖ is rₖ·STEPS, rounded; above 0 the second model is closer.

    Guarantee: :meth:`sensitivity` is attained: one vote exchanged moves the sum by max R − min R, one more or less by
    max |R|. Assumes: ``first`` and ``second`` were fixed without the votes; that they are at least :data:`FLOOR`
    is enforced. Public: every field. Proof: docs/proofs/paradigms.md
    """

    KIND: ClassVar[str] = "query.closer_model"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    first: tuple[Fraction, ...]
    second: tuple[Fraction, ...]
    number: int

    def __post_init__(self) -> None:
        natural(self.number, "number", most=2**40)
        if len(self.first) != len(self.second) or not 2 <= len(self.first) <= 2**16:
            raise InvalidInput("both models give shares for the same classes, at least two; nothing was done.")
        for model in (self.first, self.second):
            if any(type(share) is not Fraction for share in model) or sum(model) != 1:
                raise InvalidInput(
                    "the shares of a model are fractions that add up to exactly 1; nothing was done. Pass floored(…)."
                )
            if min(model) < FLOOR:
                raise Refused(
                    f"a model that gives a class less than {FLOOR} has no bounded log ratio: one vote could move the "
                    "answer without bound. Nothing was read and nothing was spent. Pass floored(…)."
                )

    @property
    def ratios(self) -> tuple[int, ...]:
        """ln(second/first) of each class in whole steps, rounded."""
        exact = (enclosures.log(b / a) for a, b in zip(self.first, self.second, strict=True))
        return tuple(round((each.low + each.high) / 2 * STEPS) for each in exact)

    @property
    def size(self) -> int:
        """One number."""
        return 1

    @property
    def measure(self) -> None:
        """None: the difference is computed from the number."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("difference",)

    def labels(self) -> Mapping[str, Sequence[int]]:
        """None: there is one number."""
        return {}

    def columns(self, release: Release) -> Mapping[str, Figure]:
        """The difference of the two divergences, with the error of its noise; above 0 the second model is closer."""
        said, part = release.statement, Fraction(1, self.number * STEPS)
        form = LinearCombination(said.values[0] * part, {Noise(said.identifier, 0, said.law): part})
        return {"difference": Figure(forms=(form,), labels={}, measure="difference", sources=(release,))}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return examined(self, said)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of the difference."""
        return {"difference": Fraction(law.margin(confidence), self.number * STEPS)}

    def exact(self, counts: Sequence[int]) -> tuple[int, ...]:
        """The sum of the ratios of all votes. Sensitive: the counts and the sum."""
        return (sum(count * ratio for count, ratio in zip(counts, self.ratios, strict=True)),)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves the sum: (max r − min r)/number of the difference under *replace*.

        >>> from sfumato.core.units import record
        >>> half, most = Fraction(1, 2), Fraction(3, 4)
        >>> closer = CloserModel(dataset=Dataset(name="votes", edition="1"), number=100,
        ...                      first=(half, half), second=(most, 1 - most))
        >>> moved = closer.sensitivity(record(relation="replace"), None).l1.value
        >>> round(float(moved / STEPS), 4)  # ln 3
        1.0986
        """
        ratios = self.ratios
        alone, exchanged = max(max(ratios), -min(ratios)), max(ratios) - min(ratios)
        moved = (exchanged if unit.relation is Relation.REPLACE else alone) * persons(unit, limit)
        if moved == 0:
            raise Refused("the two models are the same on every class; nothing was read and nothing was spent.")
        return Sensitivity.of(l0=1, l1=moved, l2_squared=moved**2, linf=moved)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The noise of the lower variance."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def choice(self, release: Release) -> str:
        """Which model the noisy number says is closer: ``first`` or ``second``; post-processing."""
        return "second" if release.statement.values[0] > 0 else "first"
