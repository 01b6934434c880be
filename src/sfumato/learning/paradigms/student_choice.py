"""Which of two students is closer to the votes of teachers, in the Kullback–Leibler divergence over public inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description, OneLine
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.finding import check_numbers
from sfumato.core.foreign import Array
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law, check_name
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, Refused
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.learning.describe import examined
from sfumato.learning.paradigms.distillation import FLOOR, STEPS
from sfumato.learning.paradigms.voting import check_votes, moved_teachers
from sfumato.mechanisms.advisor import least_noise

__all__ = ["CloserStudent", "log_ratios"]

MOST = 14 * STEPS
"""The largest log ratio of two shares that are at least :data:`FLOOR`, ln 2^20 = 13.87, rounded up, in steps."""

LARGEST = 2**61  # of a sum: with noise below 2^61 it stays within 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class CloserStudent:
    """The mean over public questions of KL(p‖first) − KL(p‖second), where p are the shares of the teachers' votes.

    It is Σ p·r with r = ln(second/first) for each class of each question: linear in the votes. ``ratios`` are these in
    whole steps of 1/STEPS, question by question; what is protected is the whole number Σ c·R over all counts c. Above
    0 the student named ``second`` is closer. The other fields are those of :class:`~sfumato.learning.TeacherVotes`.

    Guarantee: :meth:`sensitivity` is attained: a teacher that votes otherwise on every question moves the sum by
    Σ (max R − min R). Assumes: as :class:`~sfumato.learning.TeacherVotes`; the students were made without the votes, or
    from what was released of them. Public: every field. Proof: docs/proofs/paradigms.md
    """

    KIND: ClassVar[str] = "query.closer_student"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    ensemble: str
    parts: int
    classes: int
    asked: str
    questions: int
    first: str
    second: str
    ratios: tuple[int, ...]
    content: str

    def __post_init__(self) -> None:
        check_votes(self)
        check_name(self.first, "the name of a student")
        check_name(self.second, "the name of a student")
        if self.first == self.second:
            raise InvalidInput("two students have two names; nothing was done.")
        if len(self.ratios) != self.questions * self.classes or any(type(each) is not int for each in self.ratios):
            raise InvalidInput("there is one whole log ratio for each class of each question; nothing was done.")
        if max(map(abs, self.ratios)) > MOST:
            raise Refused(
                f"a student that gives a class less than {FLOOR} has no bounded log ratio: one vote could move the "
                "answer without bound. Nothing was read and nothing was spent. Say floor=…."
            )
        natural(self.parts * self.questions * MOST, "teachers times questions, in steps,", most=LARGEST)

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
        """The mean difference of the divergences, with the error of its noise; above 0 the second is closer."""
        said, part = release.statement, self._part
        form = LinearCombination(said.values[0] * part, {Noise(said.identifier, 0, said.law): part})
        return {"difference": Figure(forms=(form,), labels={}, measure="difference", sources=(release,))}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return examined(self, said, figures={"first": OneLine(self.first), "second": OneLine(self.second)})

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of the difference."""
        return {"difference": law.margin(confidence) * self._part}

    def exact(self, counts: Sequence[Sequence[int]]) -> tuple[int, ...]:
        """The sum of the ratios of all votes, from the counts of each question. Sensitive: the counts and the sum."""
        flat = [count for row in counts for count in row]
        return (sum(count * ratio for count, ratio in zip(flat, self.ratios, strict=True)),)

    @property
    def reach(self) -> int:
        """How far one teacher that votes otherwise on every question moves the sum."""
        rows = [self.ratios[at : at + self.classes] for at in range(0, len(self.ratios), self.classes)]
        return sum(max(row) - min(row) for row in rows)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves the sum: the reach of each teacher that it changes.

        >>> from sfumato.core.units import user
        >>> asked = CloserStudent(dataset=Dataset(name="scans", edition="1"), ensemble="cnn", parts=50, classes=2,
        ...     asked="public scans", questions=2, first="a", second="b", ratios=(-3, 5, 1, -1), content="")
        >>> [asked.sensitivity(user("id", relation=how), None).l1.value for how in ("add/remove", "replace")]
        [Fraction(10, 1), Fraction(20, 1)]
        """
        moved = moved_teachers(unit, limit) * self.reach
        if moved == 0:
            raise Refused("the two students are the same on every question; nothing was read and nothing was spent.")
        return Sensitivity.of(l0=1, l1=moved, l2_squared=moved**2, linf=moved)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The noise of the lower variance."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def choice(self, release: Release) -> str:
        """The name of the student that the noisy number says is closer; post-processing."""
        return self.second if release.statement.values[0] > 0 else self.first

    @property
    def _part(self) -> Fraction:
        return Fraction(1, self.parts * self.questions * STEPS)


def log_ratios(
    first: Array, second: Array, *, questions: int, classes: int, floor: Exact = Fraction(1, 1000)
) -> tuple[int, ...]:
    """ln(second/first) of each class of each question in whole steps, of shares that are mixed with even ones.

    Both are a row of shares for each question; ``floor`` is the least share that a class has after mixing.

    >>> log_ratios([[1, 1]], [[3, 1]], questions=1, classes=2, floor="1/4")
    (233983, -301657)
    """
    import numpy as np

    least = positive(floor, "floor")
    if not FLOOR <= least <= Fraction(1, classes):
        raise InvalidInput(f"floor must lie between {FLOOR} and 1/{classes}; nothing was done.")
    mixed = []
    for given in (first, second):
        shares = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given, dtype=np.float64)
        if shares.shape != (questions, classes) or not np.isfinite(shares).all() or (shares < 0).any():
            raise InvalidInput(
                f"a student has a share of at least 0 for each of {classes} classes of each of {questions} questions; "
                "nothing was done."
            )
        largest = shares.max(axis=1, keepdims=True)
        if (largest <= 0).any():
            raise InvalidInput("a student gives some class of each question a share above 0; nothing was done.")
        shares = shares / largest
        shares = shares / shares.sum(axis=1, keepdims=True)
        mixed.append(float(least) + (1 - float(least) * classes) * shares)
    steps = np.rint(np.log(mixed[1] / mixed[0]) * STEPS).astype(np.int64)
    return tuple(steps.ravel().tolist())
