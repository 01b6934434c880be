"""Logistic regression whose weights get noise after they were found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
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

__all__ = ["FINENESS", "LogisticWeights", "logistic_weights"]

FINENESS = 2**20
"""Weights lie on a lattice of 1/(number·regularisation·FINENESS)."""

LOOSE = Fraction(1, 100)
MOST = Fraction(2**64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticWeights:
    """The weights that minimise (1/number)·Σ ln(1 + exp(−y·⟨w, x⟩)) + (regularisation/2)·‖w‖², one row of each person.

    Rows are scaled down to ‖x‖ ≤ 1. The weights that are released lie within residual/regularisation of the minimiser,
    since the gradient there is proven to be at most ``residual``, and are rounded to a lattice before they get noise.

    Guarantee: :meth:`sensitivity` bounds the move of the rounded weights. Under *replace* that is
    2/(number·regularisation), under *add/remove* half of it, and 2·residual/regularisation besides; without
    regularisation there is no bound. Public: every field. Proof: docs/proofs/paradigms.md
    """

    KIND: ClassVar[str] = "query.logistic_weights"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    features: int
    number: int
    regularisation: Fraction
    residual: Fraction

    def __post_init__(self) -> None:
        natural(self.features, "features", most=4096)
        natural(self.number, "number", most=2**40)
        object.__setattr__(self, "regularisation", non_negative(self.regularisation, "regularisation"))
        object.__setattr__(self, "residual", positive(self.residual, "residual"))
        if self.regularisation == 0:
            raise Refused(
                "without regularisation one person can move the weights without bound, so no noise would be enough; "
                "nothing was read and nothing was spent. Say regularisation=…, for example 0.01."
            )
        if not 1 / MOST <= self.regularisation <= MOST:
            raise InvalidInput(
                "regularisation must lie between 2^-64 and 2^64; nothing was read and nothing was spent."
            )

    @property
    def pitch(self) -> Fraction:
        """The distance of two neighbouring points of the lattice."""
        return 1 / (self.number * self.regularisation * FINENESS)

    @property
    def size(self) -> int:
        """A number for each feature."""
        return self.features

    @property
    def measure(self) -> None:
        """None: weights are computed from the numbers."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("weight",)

    def labels(self) -> Mapping[str, Sequence[int]]:
        """The features, from 0 on."""
        return {"feature": tuple(range(self.features))}

    def columns(self, release: Release) -> Mapping[str, Figure]:
        """The weights, with the error of their noise."""
        said, pitch = release.statement, self.pitch
        forms = tuple(
            LinearCombination(value * pitch, {Noise(said.identifier, place, said.law): pitch})
            for place, value in enumerate(said.values)
        )
        labels = {name: tuple(column) for name, column in self.labels().items()}
        return {"weight": Figure(forms=forms, labels=labels, measure="weight", sources=(release,))}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return examined(self, said)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of each weight, or of all of them at once."""
        return {"weight": law.margin(confidence, numbers=self.features if joint else 1) * self.pitch}

    def moved(self, unit: Unit, limit: Limit | None) -> Fraction:
        """How far one unit moves the weights before they are rounded, in Euclidean norm.

        >>> from sfumato.core.units import record
        >>> weights = logistic_weights(Dataset(name="visits", edition="1"), features=20, number=1000,
        ...                            regularisation=0.01, residual="1/1000000")
        >>> weights.moved(record(relation="replace"), None)
        Fraction(1001, 5000)
        """
        gradients = 1 if unit.relation is Relation.ADD_REMOVE else 2
        one = gradients * persons(unit, limit) / (self.number * self.regularisation)
        return one + 2 * self.residual / self.regularisation

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves the rounded weights, in steps of the lattice and rounded up.

        Rounding moves each weight by up to one step more.
        """
        steps, width = self.moved(unit, limit) / self.pitch, enclosures.sqrt(self.features).high
        return Sensitivity.of(
            l0=self.features, l1=ceil(width * steps + self.features), l2_squared=ceil(steps + width) ** 2
        )

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The noise of the lower variance on each weight."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def rounded(self, weights: Sequence[float | Fraction]) -> tuple[int, ...]:
        """Weights as whole steps of the lattice, exactly the nearest ones. Sensitive."""
        return tuple(round(Fraction(weight) / self.pitch) for weight in weights)


def logistic_weights(
    dataset: Dataset, *, features: int, number: int, regularisation: Exact, residual: Exact | None = None
) -> LogisticWeights:
    """Declare private logistic regression; the residual is a hundredth of what one row weighs, unless it is given.

    >>> logistic_weights(Dataset(name="visits", edition="1"), features=20, number=1000, regularisation=0)
    Traceback (most recent call last):
    sfumato.errors.Refused: without regularisation one person can move the weights without bound, so no noise would be \
enough; nothing was read and nothing was spent. Say regularisation=…, for example 0.01.
    """
    count = natural(number, "number")
    return LogisticWeights(
        dataset=dataset,
        features=features,
        number=count,
        regularisation=non_negative(regularisation, "regularisation"),
        residual=LOOSE / count if residual is None else positive(residual, "residual"),
    )
