"""Learning curves: how many test records each of several models gets right, released as one answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import natural
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law, check_name
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Relation, Unit
from sfumato.errors import Refused
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.learning.describe import accuracies
from sfumato.learning.paradigms.persons import persons
from sfumato.mechanisms.advisor import least_noise

__all__ = ["LearningCurve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningCurve:
    """The accuracy of ``epochs`` models, one after the other, on ``number`` private test records, one of each person.

    What is protected is the vector of counts of records that a model gets right; shares are these over ``number``.
    ``models`` is the public name of the models, and ``content`` their digest: other models under the same name make
    another question. (Curves of version 1 have none.)

    Guarantee: :meth:`sensitivity` bounds the move of all counts together: under *replace* one person moves each share
    by 1/number, so the curve by √epochs/number in l2 and by epochs/number in l1. Assumes: the models do not depend on
    the test records, and a model says of one record what it would say of it alone. Public: every field.
    Proof: docs/proofs/paradigms.md
    """

    KIND: ClassVar[str] = "query.learning_curve"
    VERSION: ClassVar[int] = 2
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    models: str
    epochs: int
    number: int
    content: str | None = None

    def __post_init__(self) -> None:
        check_name(self.models, "the name of some models")
        natural(self.epochs, "epochs", most=2**20)
        natural(self.number, "number", most=2**40)

    @property
    def size(self) -> int:
        """A count for each epoch."""
        return self.epochs

    @property
    def measure(self) -> None:
        """None: shares are computed from the counts."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("accuracy",)

    def labels(self) -> Mapping[str, Sequence[int]]:
        """The epochs, from 1 on."""
        return {"epoch": tuple(range(1, self.epochs + 1))}

    def columns(self, release: Release) -> Mapping[str, Figure]:
        """The share that each model gets right, with the error of its noise."""
        said, part = release.statement, Fraction(1, self.number)
        forms = tuple(
            LinearCombination(value * part, {Noise(said.identifier, place, said.law): part})
            for place, value in enumerate(said.values)
        )
        labels = {name: tuple(column) for name, column in self.labels().items()}
        return {"accuracy": Figure(forms=forms, labels=labels, measure="accuracy", sources=(release,))}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return accuracies(self, said, number=self.number)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of each share, or of all of them at once."""
        return {"accuracy": Fraction(law.margin(confidence, numbers=self.epochs if joint else 1), self.number)}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves the counts (not the shares): by one in every epoch.

        >>> from sfumato.core.units import record
        >>> curve = LearningCurve(dataset=Dataset(name="test", edition="1"), models="run 1", epochs=9, number=1000)
        >>> curve.sensitivity(record(relation="replace"), None).l2
        L2(squared=Fraction(9, 1))
        """
        if unit.relation is not Relation.REPLACE:
            raise Refused(
                "an accuracy divides by the number of test records, which is public under replace alone; nothing was "
                "read and nothing was spent. Open a vault whose unit has relation='replace'."
            )
        moved = persons(unit, limit)
        return Sensitivity.of(l0=self.epochs, l1=self.epochs * moved, l2_squared=self.epochs * moved**2, linf=moved)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The noise of the lower variance on each count."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)
