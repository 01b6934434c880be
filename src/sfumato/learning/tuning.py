"""A search over training runs: the declaration of what is tried on whom, how it is judged, and what leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.description import Description
from sfumato.core.exact import natural, positive, probability
from sfumato.core.finding import check_fit
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Law, Mechanism
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.inference.figure import Figure
from sfumato.learning.best_of_runs import BestOfRuns
from sfumato.learning.describe_tuning import tuned
from sfumato.learning.training import DIGEST, MOST, Training

if TYPE_CHECKING:
    from sfumato.core.release import Release

__all__ = ["Tuning"]

KINDS = ("record", "user")
MOST_CANDIDATES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Of ``candidates``, training runs with other settings, find one that does well; one charge and one model.

    Each of ``number`` units is held out with probability ``held_out``, by a coin of its own that nobody sees. Models
    are trained on the others and judged by how many of those held out they get right, with noise. ``chosen`` is the
    place of the settings of the model that did best, from 1 on, ``score`` its noisy count and ``weights`` the SHA-256
    of what was trained; they are 0, 0 and empty until that is known.

    Guarantee: :meth:`sensitivity` bounds the move of a count; how far a step moves is what each candidate says.
    Assumes: neither candidates nor metric were chosen by looking at the data. Public: every field. Sensitive: who is
    held out, how many runs counted, and all models and scores but the best. Proof: docs/proofs/tuning.md
    """

    KIND: ClassVar[str] = "query.tuning"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.best_of_runs",)
    dataset: Dataset
    number: int
    held_out: Fraction
    candidates: tuple[Training, ...]
    chosen: int = 0
    score: int = 0
    weights: str = ""

    def __post_init__(self) -> None:
        natural(self.number, "number", most=MOST)
        object.__setattr__(self, "held_out", positive(probability(self.held_out, "held_out"), "held_out"))
        if self.held_out == 1:
            raise InvalidInput("held_out = 1 leaves nobody to train on; nothing was done.")
        natural(len(self.candidates), "the number of candidates", most=MOST_CANDIDATES)
        natural(self.chosen, "chosen", least=0, most=len(self.candidates))
        first = self.candidates[0]
        for one in self.candidates:
            if one.dataset != self.dataset or (one.units, one.records) != (first.units, first.records):
                raise InvalidInput("all candidates of a search train on the same units; nothing was done.")
            if one.units not in KINDS or one.times != 1:
                raise InvalidInput(
                    "a search holds out units, and whoever is protected must be in one of them: records, or persons "
                    "with all of their rows; nothing was done. Say ids=… and max_records_per_unit=…."
                )
            if one.weights or one.done:
                raise InvalidInput("candidates are runs that have not begun; nothing was done.")
        if self.weights and (len(self.weights) != DIGEST or set(self.weights) - set("0123456789abcdef")):
            raise InvalidInput("weights are identified by 64 hexadecimal digits; nothing was done.")

    @property
    def units(self) -> str:
        """The kind of the units: *record* or *user*."""
        return self.candidates[0].units

    @property
    def judges(self) -> Fraction:
        """How many units are held out, as far as the public knows."""
        return self.number * self.held_out

    @property
    def size(self) -> int:
        """0: a model is no list of numbers that have an error each."""
        return 0

    @property
    def measure(self) -> None:
        """None: there are no columns."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """No columns."""
        return ()

    def labels(self) -> Mapping[str, Sequence[str | int | bool]]:
        """No rows."""
        return {}

    def columns(self, release: "Release") -> Mapping[str, Figure]:
        """No columns: the best of several noisy counts is not a count with noise, and has no interval."""
        return {}

    check_answer = check_fit

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        noise = said.mechanism
        if not isinstance(noise, BestOfRuns) or not self.chosen:
            raise Unsupported(f"a {self.KIND} by a {noise.KIND} is not a search that has ended; no text was made.")
        return tuned(said, self, noise)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """How good a model will be is not known beforehand."""
        return {}

    def limit(self, unit: Unit) -> Limit | None:
        """How much of each person counts: what the runs say, and in each the same."""
        return self.candidates[0].limit(unit)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one protected unit moves the count of held-out units that a model gets right: by 1.

        >>> from sfumato.core.units import record
        >>> data = Dataset(name="visits", edition="1")
        >>> run = Training(dataset=data, units="record", clip=Fraction(3), times=1, records=1, number=80,
        ...                rate=Fraction(1), steps=10, parameters=7)
        >>> search = Tuning(dataset=data, number=100, held_out=Fraction(1, 5), candidates=(run,))
        >>> search.sensitivity(record(relation="add/remove"), None).l2
        L2(squared=Fraction(1, 1))
        """
        for one in self.candidates:
            one.sensitivity(unit, limit)  # refuses whom a run does not protect
        return Sensitivity.of(l0=1, l1=1, l2_squared=1, linf=1)

    def mismatch(self, mechanism: Mechanism, unit: Unit) -> str | None:
        """What is wrong with a mechanism for this search, if anything."""
        if not isinstance(mechanism, BestOfRuns):
            return f"must be one of {', '.join(self.ANSWERED_BY)}"
        if len(mechanism.runs) != len(self.candidates):
            return "must have one run for each candidate"
        if mechanism.score.l2_squared != 1:
            return "must have a score for one unit that moves it by 1"
        found = (one.mismatch(run, unit) for one, run in zip(self.candidates, mechanism.runs, strict=True))
        return next((problem for problem in found if problem is not None), None)

    def misfit(self, mechanism: Mechanism, unit: Unit, values: tuple[int, ...]) -> str | None:
        """What is wrong with a finished search, if anything."""
        problem = self.mismatch(mechanism, unit)
        if problem is None and not (self.weights and self.chosen):
            problem = "must have chosen a candidate, and trained weights that are identified by their digest"
        return problem


def check_searched(unit: Unit, times: int, kind: str) -> None:
    """Refuse units that cannot be held out one by one; reads nothing."""
    if kind not in KINDS or times != 1:
        raise Refused(
            f"a search holds out units by coins, and whoever is protected must be in one of them; these are {kind}s, "
            f"each person in up to {times}. Nothing was read and nothing was spent. Search over records, or over "
            "persons (ids=…, max_records_per_unit=…)."
        )
