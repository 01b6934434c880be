"""How large values are: how many persons' largest value, in magnitude, lies where; bounds follow from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description, plain
from sfumato.core.exact import natural
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.engines.expressions import Expression
from sfumato.engines.lattice import Lattice
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Derived
from sfumato.inference.figure import figure
from sfumato.mechanisms import ADDED_NOISE, ANY_NOISE
from sfumato.mechanisms.advisor import least_noise
from sfumato.tables import describe_limits
from sfumato.tables.clamped import Clamped
from sfumato.tables.contribution import one_cell_each
from sfumato.tables.persons import Step

__all__ = ["Magnitudes"]

HALF = 2**29  # lattice steps from 0 to the declared maximum
SIGNS = ("positive", "negative", "both")
DOUBT = Fraction(1, 100)  # that a bin where nobody is stands out, and makes bounds far too wide


@dataclass(frozen=True, slots=True, kw_only=True)
class Magnitudes:
    """How many persons' largest magnitude of a value lies in each bin, for persons with values of each sign.

    The value is held to ± a declared maximum; the bins halve from it downward ``octaves`` times, two bins in each. A
    person is ``positive`` (no value below 0), ``negative`` (none above) or ``both``.

    Guarantee: each person is in one cell (sign × magnitude), so one person moves one count by 1 under add/remove, and
    two of them under replace; rows do not add up. Assumes: the user unit. Public: every field. Proof:
    docs/proofs/choosing_limits.md
    """

    KIND: ClassVar[str] = "query.magnitudes"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ANY_NOISE
    UNLIMITED: ClassVar[bool] = True
    dataset: Dataset
    of: Clamped
    octaves: int = 16
    where: Expression | None = None
    joins: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        natural(self.octaves, "octaves", most=26)
        if self.of.low != -self.of.high:
            raise InvalidInput("magnitudes are looked for up to one maximum on both sides of 0; nothing was done.")

    @property
    def most(self) -> Fraction:
        """The declared maximum."""
        return self.of.high

    @property
    def lattice(self) -> Lattice:
        """Where magnitudes are compared."""
        return Lattice(value=self.of.value, low=self.of.low, high=self.of.high, steps=2 * HALF)

    @property
    def edges(self) -> tuple[int, ...]:
        """The top of each bin but the last, in steps of the lattice."""
        steps = [top for octave in range(self.octaves, 0, -1) for top in (HALF >> octave, 3 * HALF >> octave + 1)]
        return tuple(steps)

    @property
    def tops(self) -> tuple[Fraction, ...]:
        """The top of each bin; that of the last is the declared maximum."""
        return tuple(self.most * Fraction(edge, HALF) for edge in (*self.edges, HALF))

    @property
    def by(self) -> tuple[()]:
        """There are no groups."""
        return ()

    @property
    def size(self) -> int:
        """One number for each sign and bin."""
        return len(SIGNS) * len(self.tops)

    @property
    def measure(self) -> str:
        """The name of the value column."""
        return "persons"

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return (self.measure,)

    def labels(self) -> Mapping[str, Sequence[str]]:
        """The sign of a person's values, and the top of the bin of the largest."""
        tops = [plain(top) for top in self.tops]
        return {"sign": [sign for sign in SIGNS for _ in tops], "up_to": tops * len(SIGNS)}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one person moves the counts, whatever the limit."""
        return one_cell_each(unit, self.joins, cells=self.size)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise or another, whichever is smallest."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta, among=ADDED_NOISE)

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The counts of persons as a figure."""
        return {self.measure: figure(release)}

    def bounds_of(self, said: Statement) -> tuple[Fraction, Fraction]:
        """The bounds that an answer suggests: post-processing.

        On each side of 0 the top of the highest bin whose count stands out from the noise of all: where nobody is,
        none does in 99 of 100 releases. A side without such a bin ends at 0; where no bin stands out at all, nothing
        is known, and the declared range is given.
        """
        least = said.law.margin(1 - 2 * DOUBT / self.size)
        bins = len(self.tops)
        sides = [[said.values[sign * bins + place] > least for place in range(bins)] for sign in range(len(SIGNS))]
        high, low = (_highest([one or both for one, both in zip(side, sides[2], strict=True)]) for side in sides[:2])
        if high is None and low is None:
            return self.of.low, self.of.high
        return (
            Fraction(0) if low is None else -self.tops[low],
            Fraction(0) if high is None else self.tops[high],
        )

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return describe_limits.magnitudes(said, self.of, self.bounds_of(said), where=self.where)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of the counts."""
        return {self.measure: Fraction(law.margin(confidence, numbers=self.size if joint else 1))}


def _highest(shown: Sequence[bool]) -> int | None:
    return max((place for place, one in enumerate(shown) if one), default=None)
