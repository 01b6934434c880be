"""Soft labels: the mean of what teachers say of public questions, a share for each class, with noise on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import natural
from sfumato.core.finding import check_numbers
from sfumato.core.foreign import Array
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.learning.describe import examined
from sfumato.learning.paradigms.voting import check_votes, moved_teachers
from sfumato.mechanisms.advisor import least_noise

__all__ = ["PARTS_OF_A_VOTE", "SoftLabels", "whole_shares"]

PARTS_OF_A_VOTE = 2**16
"""Into how many whole parts a teacher splits its vote where it says probabilities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftLabels:
    """How ``parts`` teachers share their votes among ``classes`` classes, on each of a list of public questions.

    Each teacher gives ``steps`` whole parts of a vote to the classes of a question: all to one where ``steps`` is 1
    (shares of votes), by its probabilities else. What is protected is the vector of all sums; a share is a sum over
    parts · steps. The other fields are those of :class:`~sfumato.learning.TeacherVotes`.

    Guarantee: :meth:`sensitivity` is attained: it bounds the move of all sums together, whatever a teacher says.
    Assumes: as :class:`~sfumato.learning.TeacherVotes`. Public: every field. Proof: docs/proofs/paradigms.md
    """

    KIND: ClassVar[str] = "query.soft_labels"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    ensemble: str
    parts: int
    classes: int
    asked: str
    questions: int
    steps: int
    content: str

    def __post_init__(self) -> None:
        check_votes(self)
        natural(self.steps, "steps", most=PARTS_OF_A_VOTE)

    @property
    def size(self) -> int:
        """A sum for each class of each question."""
        return self.questions * self.classes

    @property
    def measure(self) -> None:
        """None: shares are computed from the sums."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("share",)

    def labels(self) -> Mapping[str, Sequence[int]]:
        """The questions and the classes, both from 0 on."""
        questions = tuple(place for place in range(self.questions) for _ in range(self.classes))
        return {"question": questions, "class": tuple(range(self.classes)) * self.questions}

    def columns(self, release: Release) -> Mapping[str, Figure]:
        """The share of each class, with the error of its noise; as they were measured, so some may be below 0."""
        said, part = release.statement, Fraction(1, self.parts * self.steps)
        forms = tuple(
            LinearCombination(value * part, {Noise(said.identifier, place, said.law): part})
            for place, value in enumerate(said.values)
        )
        labels = {name: tuple(column) for name, column in self.labels().items()}
        return {"share": Figure(forms=forms, labels=labels, measure="share", sources=(release,))}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return examined(self, said)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of each share, or of all of them at once."""
        margin = law.margin(confidence, numbers=self.size if joint else 1)
        return {"share": Fraction(margin, self.parts * self.steps)}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves the sums: a teacher takes all parts of its vote from some classes to others.

        >>> from sfumato.core.units import user
        >>> soft = SoftLabels(dataset=Dataset(name="scans", edition="1"), ensemble="cnn", parts=250, classes=10,
        ...                   asked="public scans", questions=1, steps=100, content="")
        >>> moved = soft.sensitivity(user("patient", relation="add/remove"), None)
        >>> moved.l1, moved.l2
        (L1(value=Fraction(200, 1)), L2(squared=Fraction(20000, 1)))
        """
        reach = moved_teachers(unit, limit) * self.steps
        return Sensitivity.of(
            l0=self.questions * min(self.classes, 2 * reach),
            l1=self.questions * 2 * reach,
            l2_squared=self.questions * 2 * reach**2,
            linf=reach,
        )

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The noise of the lower variance on each sum."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def distributions(self, release: Release) -> list[list[float]]:
        """For each question the nearest distribution to its noisy shares: what a student learns. Post-processing.

        Nearest in l2: shares are lowered by one number and held at 0, so that they add up to 1.
        """
        import numpy as np

        noisy = np.array([float(value) for value in release.statement.values]).reshape(self.questions, self.classes)
        shares = noisy / float(self.parts * self.steps)
        falling = -np.sort(-shares, axis=1)
        excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, self.classes + 1)
        last = (falling > excess).sum(axis=1) - 1
        held = np.maximum(shares - excess[np.arange(self.questions), last][:, None], 0)
        made: list[list[float]] = (held / held.sum(axis=1, keepdims=True)).tolist()
        return made


def whole_shares(said: Array, *, questions: int, classes: int, steps: int) -> list[list[int]]:
    """What a teacher says of each question as ``steps`` whole parts of a vote, by the largest remainders.

    Guarantee: each row is of ``classes`` whole numbers of at least 0 that add up to exactly ``steps``, whatever
    was said. Scores that are no distribution are divided by their sum; a row with a negative one or one that is not a
    number, or of zeros alone, is even, and so are all rows of something that has another shape.

    >>> whole_shares([[0.5, 0.25, 0.25], [1, 0, 0], [-1, 1, 1]], questions=3, classes=3, steps=10)
    [[5, 3, 2], [10, 0, 0], [4, 3, 3]]
    """
    import numpy as np

    even = np.full(classes, steps // classes, dtype=np.int64)
    even[: steps % classes] += 1
    made = np.tile(even, (questions, 1))
    scores = np.asarray(said, dtype=np.float64)
    if scores.shape == (questions, classes):
        largest = scores.max(axis=1, keepdims=True)
        sound = np.isfinite(scores).all(axis=1) & (scores >= 0).all(axis=1) & (largest[:, 0] > 0)
        scaled = scores[sound] / largest[sound]
        exact = scaled / scaled.sum(axis=1, keepdims=True) * steps
        whole = np.floor(exact).astype(np.int64)
        order = np.argsort(whole - exact, axis=1, kind="stable")
        missing = steps - whole.sum(axis=1)
        rank = np.argsort(order, axis=1, kind="stable")
        whole += rank < missing[:, None]
        fits = (whole >= 0).all(axis=1) & (whole.sum(axis=1) == steps)  # held to exactly, whatever floats did
        made[sound] = np.where(fits[:, None], whole, even)
    rows: list[list[int]] = made.tolist()
    return rows
