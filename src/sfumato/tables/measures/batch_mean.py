"""The mean of a value in each batch, with what a comparison of batches needs: its square is added up too."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.errors import InvalidInput
from sfumato.inference.derived import Derived
from sfumato.tables.clamped import Clamped
from sfumato.tables.conditions import value as value_words
from sfumato.tables.error_preview import ErrorPreview
from sfumato.tables.estimators import Reader
from sfumato.tables.keys import Keys
from sfumato.tables.measure import Measure
from sfumato.tables.measures.average import MeanValue
from sfumato.tables.needs import PowersOf
from sfumato.tables.persons import Step
from sfumato.tables.provenance import ProvenanceColumns, is_still_declared, provenance_of

if TYPE_CHECKING:
    from sfumato.studies.batches import BatchComparison

__all__ = ["BatchMean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMean(Measure):
    """The mean of a value over the rows of each batch, asked for to compare batches (``table.compare_batches``).

    ``field`` says what is compared, ``declared`` all that was declared of where rows come from: a certificate has both.
    """

    KIND: ClassVar[str] = "measure.batch_mean"
    VERSION: ClassVar[int] = 1
    ASKED: ClassVar = {}
    name: str
    of: Clamped
    field: str
    declared: ProvenanceColumns

    def __post_init__(self) -> None:
        Measure.__post_init__(self)
        if self.field not in dict(self.declared) or provenance_of(self.declared) != self.declared:
            raise InvalidInput(f"the {self.field!r} of rows is not declared; nothing was done.")

    @property
    def needs(self) -> tuple[PowersOf]:
        """The number of rows that have the value, its sum and that of its squares."""
        return (PowersOf(self.of, 2),)

    def estimate(self, reader: Reader) -> Derived:
        """The mean of each batch."""
        return self._mean.estimate(reader)

    def margin(self, preview: ErrorPreview) -> Fraction | None:
        """That of a mean in a batch of ``rows`` rows."""
        return self._mean.margin(preview)

    def batch_comparison(self, reader: Reader) -> "BatchComparison":
        """The comparison of all batches."""
        from sfumato.studies.batches import compared_batches

        return compared_batches(
            reader.moments(self.of),
            release=reader.sources[0],
            labels=reader.labels,
            field=self.field,
            declared=self.declared,
            value=value_words(self.of.value),
            low=float(self.of.low),
            width=float(self.of.width),
        )

    def misplaced(self, by: Sequence[Keys], steps: Sequence[Step]) -> str | None:
        """Batches are the groups of the declared column alone, as it is in the data."""
        column = dict(self.declared)[self.field]
        if [(keys.column, keys.value) for keys in by] == [(column, None)] and is_still_declared(column, steps):
            return None
        return f"compares by the {self.field} {column!r}, and the groups are others"

    @property
    def _mean(self) -> MeanValue:
        return MeanValue(name=self.name, of=self.of)

    @property
    def words(self) -> str:
        """The mean."""
        return "measure.mean"

    @property
    def possible(self) -> tuple[Fraction, Fraction]:
        """Within the bounds."""
        return self.of.low, self.of.high
