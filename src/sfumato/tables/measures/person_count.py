"""The number of persons."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.inference.derived import Derived
from sfumato.tables.error_preview import ErrorPreview
from sfumato.tables.estimators import Reader
from sfumato.tables.measure import Asked, Measure
from sfumato.tables.needs import CountPersons

__all__ = ["PersonCount", "persons"]


def persons() -> Asked:
    """How many persons have a row.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(persons=sf.persons()).query.measures[0].KIND
    'measure.persons'
    """
    return Asked(lambda name, _: PersonCount(name=name))


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonCount(Measure):
    """How many persons have a row; under a unit of single rows, how many rows there are."""

    KIND: ClassVar[str] = "measure.persons"
    VERSION: ClassVar[int] = 1
    ASKED: ClassVar = {"persons": persons}
    counts: ClassVar[bool] = True
    name: str

    @property
    def needs(self) -> tuple[CountPersons]:
        """One number, in which a person counts once."""
        return (CountPersons(),)

    def estimate(self, reader: Reader) -> Derived:
        """The number itself."""
        return reader.figure(self.name, reader.counts(*self.needs), whole=True)

    def margin(self, preview: ErrorPreview) -> Fraction:
        """Of one noise."""
        return preview.margin([Fraction(1, preview.block(*self.needs).height)])

    @property
    def words(self) -> str:
        """Persons."""
        return "measure.persons"

    @property
    def words_of_rows(self) -> str:
        """Where single rows are protected, persons are rows."""
        return "measure.rows"
