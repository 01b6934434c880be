"""Votes of teachers on public questions: what one person moves, and the confident way to ask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Protocol

from sfumato.core import enclosures, events
from sfumato.core.budget import Budget
from sfumato.core.description import Description, Word, phrase
from sfumato.core.exact import decimal_up, natural, positive
from sfumato.core.finding import check_fit, check_numbers
from sfumato.core.guarantees import GDP
from sfumato.core.limits import Limit
from sfumato.core.noise_multiplier import exact_multiplier
from sfumato.core.query import Answer, Dataset, DrawnMechanism, Law, Mechanism, check_name
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Relation, Unit
from sfumato.errors import InvalidInput, WrongNorm
from sfumato.inference.selected_values import SelectedValues
from sfumato.laws.unstated import Unstated
from sfumato.learning.describe import examined
from sfumato.learning.paradigms.persons import persons
from sfumato.mechanisms.advisor import least_noise

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["NO_ANSWER", "ConfidentMax", "ConfidentVotes", "TeacherVotes", "check_votes", "moved_teachers"]

NO_ANSWER = -1
"""What a confident release says of a question that the teachers do not agree on."""

DIGITS = 7
SHARE = Fraction(1, 3)


def moved_teachers(unit: Unit, limit: Limit | None) -> int:
    """How many teachers one unit can move, where all data of a person lie in the part that the person's name hashes to.

    Guarantee: whoever comes or goes changes one part. Whoever is replaced leaves one part and may enter another, so
    two teachers change. Proof: docs/proofs/paradigms.md

    >>> from sfumato.core.units import user
    >>> [moved_teachers(user("id", relation=how), None) for how in ("add/remove", "replace")]
    [1, 2]
    """
    parts = 1 if unit.relation is Relation.ADD_REMOVE else 2
    return parts * persons(unit, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherVotes:
    """How many of ``parts`` teachers vote for each of ``classes`` classes, on each of a list of public questions.

    What is protected is the vector of all counts; the label of a question is the class with the most noisy votes, which
    is post-processing. ``ensemble`` and ``asked`` are public names of the teachers and of the list, and ``content`` the
    digest of both: other teachers or questions under the same names make another question. (Questions of version 1 have
    none.)

    Guarantee: :meth:`sensitivity` bounds the move of all counts together, whatever a teacher says and however many
    teachers or classes there are. Assumes: the parts are fixed by a keyed hash of the person, and a teacher is a
    function of its own part alone. Public: every field. Proof: docs/proofs/paradigms.md
    """

    KIND: ClassVar[str] = "query.teacher_votes"
    VERSION: ClassVar[int] = 2
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    ensemble: str
    parts: int
    classes: int
    asked: str
    questions: int
    content: str | None = None

    def __post_init__(self) -> None:
        check_votes(self)

    @property
    def size(self) -> int:
        """A count for each class of each question."""
        return self.questions * self.classes

    @property
    def measure(self) -> None:
        """None: labels are read off the counts."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("label",)

    def labels(self) -> Mapping[str, Sequence[int]]:
        """The questions, from 0 on."""
        return {"question": tuple(range(self.questions))}

    def columns(self, release: Release) -> Mapping[str, SelectedValues]:
        """The class with the most noisy votes, the first of several."""
        said, many = release.statement.values, self.classes
        rows = [said[at : at + many] for at in range(0, len(said), many)]
        return _labelled(tuple(row.index(max(row)) for row in rows), self.labels(), release)

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return examined(self, said, named="accuracy.noisy_votes")

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """A label has no margin."""
        return {}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves the counts: a teacher takes its vote from one class and gives it to another.

        >>> from sfumato.core.units import user
        >>> votes = TeacherVotes(dataset=Dataset(name="scans", edition="1"), ensemble="cnn", parts=250, classes=10,
        ...                      asked="public scans", questions=1)
        >>> moved = votes.sensitivity(user("patient", relation="add/remove"), None)
        >>> moved.l1, moved.l2
        (L1(value=Fraction(2, 1)), L2(squared=Fraction(2, 1)))
        """
        teachers = moved_teachers(unit, limit)
        return Sensitivity.of(
            l0=self.questions * min(self.classes, 2 * teachers),
            l1=self.questions * 2 * teachers,
            l2_squared=self.questions * 2 * teachers**2,
            linf=teachers,
        )

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The noise of the lower variance on each count."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidentVotes:
    """Labels for those public questions that the teachers agree on: at most ``answers`` of them.

    A question is answered where its largest count, with noise of its own, reaches ``threshold``. Checks get ``share``
    of what is spent, answers the rest. The other fields are those of :class:`TeacherVotes`.

    Guarantee: :meth:`sensitivity` is that of one question: the largest count by its linf, all counts by their l2.
    Assumes: as :class:`TeacherVotes`. Public: every field, and which questions were answered: the cost is fixed
    beforehand and depends on neither. Proof: docs/proofs/paradigms.md
    """

    KIND: ClassVar[str] = "query.confident_votes"
    VERSION: ClassVar[int] = 2
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.confident_max",)
    dataset: Dataset
    ensemble: str
    parts: int
    classes: int
    asked: str
    questions: int
    answers: int
    threshold: int
    share: Fraction = SHARE
    content: str | None = None

    def __post_init__(self) -> None:
        check_votes(self)
        natural(self.answers, "answers", most=self.questions)
        natural(self.threshold, "threshold", least=0)
        object.__setattr__(self, "share", positive(self.share, "share"))
        if self.share >= 1:
            raise InvalidInput("share is the part that checks get: above 0 and below 1. Nothing was done.")

    @property
    def size(self) -> int:
        """A label, or :data:`NO_ANSWER`, for each question."""
        return self.questions

    @property
    def measure(self) -> None:
        """None: labels are chosen."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("label",)

    def labels(self) -> Mapping[str, Sequence[int]]:
        """The questions, from 0 on."""
        return {"question": tuple(range(self.questions))}

    def columns(self, release: Release) -> Mapping[str, SelectedValues]:
        """The labels as they were chosen."""
        return _labelled(release.statement.values, self.labels(), release)

    check_answer = check_fit

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        facts: dict[str, Word] = {}
        if isinstance(said.mechanism, ConfidentMax):
            noise = {"check": decimal_up(said.mechanism.check_sigma), "sigma": decimal_up(said.mechanism.sigma)}
            facts["noise"] = phrase("fact.noise_confident", **noise)
        return examined(self, said, named="accuracy.noisy_votes", facts=facts)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """A label has no margin."""
        return {}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves the counts of one question, and the largest of them."""
        teachers = moved_teachers(unit, limit)
        return Sensitivity.of(
            l0=min(self.classes, 2 * teachers), l1=2 * teachers, l2_squared=2 * teachers**2, linf=teachers
        )

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> "ConfidentMax":
        """Noise for checks and answers that keeps what is spent exactly, whatever the teachers say."""
        if spend.delta == 0:
            raise InvalidInput("confident answers have Gaussian noise and need a δ; nothing was done. Say delta=1e-6.")
        if moved.linf is None or moved.l2 is None:
            raise WrongNorm("confident answers need the linf and the l2 bound of a question; nothing was done.")
        times = exact_multiplier(epsilon=spend.epsilon, delta=spend.delta) ** 2
        check = times * self.questions * moved.linf.value**2 / self.share
        count = times * self.answers * moved.l2.squared / (1 - self.share)
        return ConfidentMax(
            questions=self.questions,
            classes=self.classes,
            answers=self.answers,
            threshold=self.threshold,
            check_sigma=Fraction(decimal_up(enclosures.sqrt(check).high, DIGITS)),
            sigma=Fraction(decimal_up(enclosures.sqrt(count).high, DIGITS)),
        )

    def misfit(self, mechanism: Mechanism, unit: Unit, values: tuple[int, ...]) -> str | None:
        """What is wrong with an answer, if anything."""
        if type(mechanism) is not ConfidentMax:
            return "must be the confident noisy max"
        for name in ("questions", "classes", "answers", "threshold"):
            if getattr(mechanism, name) != getattr(self, name):
                return f"must have the {name} of the query"
        if not all(NO_ANSWER <= value < self.classes for value in values):
            return "must have given classes of the query"
        if sum(value != NO_ANSWER for value in values) > self.answers:
            return f"must have answered at most {self.answers} questions"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidentMax:
    """Answer a question with its class of most noisy votes, where the largest count with other noise is large enough.

    Each of ``questions`` questions is checked: its largest count gets N(0, check_sigma²), rounded. While fewer than
    ``answers`` were given, one that reaches ``threshold`` is answered: every count gets N(0, sigma²), rounded.

    Guarantee: μ-GDP with μ² = questions·linf²/check_sigma² + answers·l2²/sigma², for the moves of one question. Which
    questions are answered is an output, and the cost does not depend on it. Proof: docs/proofs/paradigms.md
    """

    KIND: ClassVar[str] = "mechanism.confident_max"
    VERSION: ClassVar[int] = 1
    questions: int
    classes: int
    answers: int
    threshold: int
    check_sigma: Fraction
    sigma: Fraction

    def __post_init__(self) -> None:
        natural(self.questions, "questions")
        natural(self.classes, "classes", least=2)
        natural(self.answers, "answers", most=self.questions)
        natural(self.threshold, "threshold", least=0)
        object.__setattr__(self, "check_sigma", positive(self.check_sigma, "check_sigma"))
        object.__setattr__(self, "sigma", positive(self.sigma, "sigma"))

    @property
    def law(self) -> Unstated:
        """A choice has no margin of error."""
        return Unstated()

    def loss(self, moved: Sensitivity) -> events.Stated:
        """The event for a unit that moves the counts of each question by at most ``moved``.

        >>> confident = ConfidentMax(questions=8, classes=10, answers=4, threshold=200, check_sigma=2, sigma=2)
        >>> confident.loss(Sensitivity.of(linf=1, l2_squared=2)).guarantee
        GDP(mu=Fraction(2, 1))
        """
        if moved.linf is None or moved.l2 is None:
            raise WrongNorm("confident answers need the linf and the l2 bound of a question; nothing was done.")
        checks = self.questions * moved.linf.value**2 / self.check_sigma**2
        counts = self.answers * moved.l2.squared / self.sigma**2
        return events.Stated(guarantee=GDP(mu=enclosures.sqrt(checks + counts).high))

    def draw(self, exact: Sequence[Sequence[int]], words: "Words") -> Answer:
        """The answer: :meth:`choose`. Sensitive: ``exact``."""
        return self.choose(exact, words), ()

    def choose(self, exact: Sequence[Sequence[int]], words: "Words") -> tuple[int, ...]:
        """Check and answer the questions in their order. Sensitive: ``exact``, the counts of each question."""
        from sfumato.noise import sample_rounded_gaussian

        if len(exact) != self.questions or any(len(row) != self.classes for row in exact):
            raise InvalidInput("there must be a count for each class of each question; nothing was drawn.")
        checks = sample_rounded_gaussian(self.check_sigma, self.questions, words).tolist()
        noise = sample_rounded_gaussian(self.sigma, self.questions * self.classes, words).tolist()
        told: list[int] = []
        left = self.answers
        for place, row in enumerate(exact):
            sure = max(row) + checks[place] >= self.threshold
            if not sure or left == 0:
                told.append(NO_ANSWER)
                continue
            noisy = [count + noise[place * self.classes + k] for k, count in enumerate(row)]
            told.append(noisy.index(max(noisy)))
            left -= 1
        return tuple(told)


def _labelled(
    chosen: tuple[int, ...], labels: Mapping[str, Sequence[int]], release: Release
) -> Mapping[str, SelectedValues]:
    named: dict[str, tuple[str | int | bool, ...]] = {name: tuple(column) for name, column in labels.items()}
    return {"label": SelectedValues(chosen=chosen, labels=named, measure="label", sources=(release,))}


class Votes(Protocol):
    """The public facts that all questions about votes have."""

    @property
    def ensemble(self) -> str:
        """The name of the teachers."""
        ...

    @property
    def asked(self) -> str:
        """The name of the questions."""
        ...

    @property
    def parts(self) -> int:
        """How many teachers there are."""
        ...

    @property
    def classes(self) -> int:
        """How many classes they vote for."""
        ...

    @property
    def questions(self) -> int:
        """How many questions they vote on."""
        ...


def check_votes(query: Votes) -> None:
    """Refuse facts about votes that are out of range."""
    check_name(query.ensemble, "the name of an ensemble")
    check_name(query.asked, "the name of a list of questions")
    natural(query.parts, "parts", most=2**20)
    natural(query.classes, "classes", least=2, most=2**20)
    natural(query.questions, "questions", most=2**24)
    if query.questions * query.classes > 2**26:
        raise InvalidInput("there are too many counts for one release; nothing was done. Ask fewer questions at once.")
