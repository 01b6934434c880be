"""A toy kind of data, as small as one can be: jars of beads, where a bead is a record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeGuard

from sfumato.core.budget import Budget
from sfumato.core.data_kind import DataKind, DataStore
from sfumato.core.description import Description, Form, phrase
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law, Query, ReleasedQuery
from sfumato.core.question import Question
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput
from sfumato.gate.setting import Setting
from sfumato.inference.figure import Derived, figure
from sfumato.mechanisms import Laplace


@dataclass(frozen=True, slots=True, kw_only=True)
class Beads:
    """How many beads there are in a jar."""

    KIND: ClassVar[str] = "query.beads"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace",)
    size: ClassVar[int] = 1
    measure: ClassVar[str] = "beads"
    names: ClassVar[tuple[str, ...]] = ("beads",)
    dataset: Dataset

    def labels(self) -> Mapping[str, Sequence[str]]:
        return {}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        return Sensitivity.of(l1=1)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        return Laplace.calibrated(l1=1, epsilon=spend.epsilon)

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        return Description(form=Form.NUMBER, numbers=1, asked=phrase("page.beads"), measure="measure.beads")

    def columns(self, release: Release) -> Mapping[str, Derived]:
        return {"beads": figure(release)}

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        return {"beads": Fraction(law.margin(confidence))}


class Jars(DataStore[Beads]):
    """The jars of one vault."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.jars = setting, dict[Dataset, Sequence[Any]]()

    def declare(self, beads: Sequence[Any], *, name: str, version: str = "1") -> Question:
        dataset = Dataset(name=name, edition=version)
        self.jars[dataset] = beads
        return Question(query=Beads(dataset=dataset), gate=self.setting.gate)

    def answers(self, query: Query) -> TypeGuard[ReleasedQuery]:
        return type(query) is Beads

    def check(self, query: Beads) -> None:
        if query.dataset not in self.jars:
            raise InvalidInput(f"there is no jar {query.dataset.name!r}; nothing was read and nothing was spent.")

    def read(self, query: Beads) -> list[int]:
        return [len(self.jars[query.dataset])]


KIND = DataKind(name="jars", declarations=(Beads,), messages="tests.house", plots={}, store="tests.house.toy_kind:Jars")
