"""Declared examples, as an analyst holds them: the questions that can be asked of inputs and targets."""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import Protocol

from sfumato.core.deprecation import renamed, withdrawn
from sfumato.core.exact import Exact, natural, rational
from sfumato.core.query import Dataset, check_name
from sfumato.core.question import Gate, Question
from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.learning.given import GivenRows, Predictor
from sfumato.learning.paradigms.attention_release import AttentionKey, AttentionLogits
from sfumato.learning.paradigms.distillation import CloserModel, floored
from sfumato.learning.paradigms.learning_curves import LearningCurve
from sfumato.learning.paradigms.output_perturbation import logistic_weights
from sfumato.learning.paradigms.soft_labels import PARTS_OF_A_VOTE, SoftLabels
from sfumato.learning.paradigms.student_choice import CloserStudent, log_ratios
from sfumato.learning.paradigms.teachers import Train
from sfumato.learning.paradigms.voting import NO_ANSWER, SHARE, ConfidentVotes, TeacherVotes

__all__ = ["Examples", "Teachers", "lesson"]


class Keeper(Protocol):
    """Where things are laid beside examples; it gives nothing back but digests of them."""

    def teach(self, name: str, train: Train, parts: int, classes: int) -> None:
        """Keep a way to train teachers."""
        ...

    def ask(self, name: str, questions: GivenRows) -> int:
        """Keep public questions."""
        ...

    def examine(self, name: str, models: Sequence[Predictor]) -> int:
        """Keep models."""
        ...

    def attend(self, name: str, model: Predictor, keys: int) -> None:
        """Keep a model of attention."""
        ...

    def voted(self, ensemble: str, asked: str) -> str:
        """The digest of teachers and questions that were kept."""
        ...

    def examined(self, models: str) -> str:
        """The digest of models that were kept."""
        ...

    def attended(self, model: str) -> str:
        """The digest of a model of attention that was kept."""
        ...


@withdrawn(gate="the vault that declared the examples")
@renamed(number="n_units")
@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Private inputs and targets at a gate; asking for a question reads nothing and costs nothing.

    ``n_units`` is the public number of persons, or of records, that shares and means are over.
    """

    keeper: Keeper = field(repr=False)
    gate: InitVar[Gate]
    _gate: Gate = field(init=False, repr=False)
    dataset: Dataset
    n_units: int | None
    shape: tuple[int, ...]
    numeric: bool = True

    def __post_init__(self, gate: Gate) -> None:
        object.__setattr__(self, "_gate", gate)

    def teachers(self, train: Train, *, parts: int, classes: int, name: str) -> "Teachers":
        """Teachers, one for each of ``parts`` fixed parts of the persons; none is trained yet.

        ``train(inputs, targets, seed)`` gets one part and returns a function from public questions to their classes.
        Assumes: it is a function of what it is given, and keeps nothing from one part for another. A teacher that fails
        votes for class 0 without an error, so try ``train`` on invented data first.
        """
        natural(parts, "parts")
        natural(classes, "classes", least=2)
        check_name(name, "the name of an ensemble")
        self.keeper.teach(name, train, parts, classes)
        return Teachers(examples=self, name=name, parts=parts, classes=classes)

    def learning_curve(self, models: Sequence[Predictor], *, name: str) -> Question:
        """The accuracy of several models, such as those after each epoch, for one charge.

        Assumes: the models do not depend on these examples. A torch module gives a score for each of two
        or more classes, anything else is called with one input and gives a class.
        """
        check_name(name, "the name of some models")
        if not models:
            raise InvalidInput("a learning curve needs at least one model; nothing was done.")
        number, epochs = self._counted(), self.keeper.examine(name, models)
        content = self.keeper.examined(name)
        query = LearningCurve(dataset=self.dataset, models=name, epochs=epochs, number=number, content=content)
        return Question(query=query, gate=self._gate)

    def accuracy(self, model: Predictor, *, name: str) -> Question:
        """The share of examples that one model gets right: moved by 1/number under *replace*."""
        return self.learning_curve([model], name=name)

    def closer_model(
        self, first: Sequence[Exact], second: Sequence[Exact], *, floor: Exact = Fraction(1, 1000)
    ) -> Question:
        """Which of two public distributions over classes is closer to the private targets; above 0 it is the second.

        To choose a student by what teachers say, ask them: :meth:`Teachers.closer_student`.
        """
        number = self._counted()
        query = CloserModel(
            dataset=self.dataset, first=floored(first, floor), second=floored(second, floor), number=number
        )
        return Question(query=query, gate=self._gate)

    def logistic_regression(self, *, regularisation: Exact, residual: Exact | None = None) -> Question:
        """The weights of a regularised logistic regression of the targets, above 0 or not, with noise on them."""
        if len(self.shape) != 1 or not self.numeric:
            raise InvalidInput("logistic regression takes inputs that are rows of numbers; nothing was done.")
        query = logistic_weights(
            self.dataset,
            features=self.shape[0],
            number=self._counted(),
            regularisation=regularisation,
            residual=residual,
        )
        return Question(query=query, gate=self._gate)

    def attention_logits(self, model: Predictor, *, keys: int, clip: Exact, name: str) -> Question:
        """The mean logits that a public model gives the records for ``keys`` keys, with their error.

        ``model`` is a function from one input to its logits, or a torch module; each record is seen alone, and its
        logits are cut to the l2 norm ``clip`` together. One person moves the means by clip/n_units, or by twice as
        much under *replace*. Assumes: the model does not depend on these examples. For the ε that keeps a margin, see
        :class:`~sfumato.learning.LogitRelease`.
        """
        number, content = self._counted(), self._attended(name, model, keys)
        query = AttentionLogits(
            dataset=self.dataset, model=name, keys=keys, clip=rational(clip, "clip"), number=number, content=content
        )
        return Question(query=query, gate=self._gate)

    def attention_key(self, model: Predictor, *, keys: int, bound: Exact, name: str) -> Question:
        """Which of ``keys`` keys has the largest mean logit, and nothing else: pure ε, and less than for all logits.

        Each logit of a record is held within ±``bound`` by itself; the rest is as for :meth:`attention_logits`.
        """
        number, content = self._counted(), self._attended(name, model, keys)
        query = AttentionKey(
            dataset=self.dataset, model=name, keys=keys, bound=rational(bound, "bound"), number=number, content=content
        )
        return Question(query=query, gate=self._gate)

    def _attended(self, name: str, model: Predictor, keys: int) -> str:
        check_name(name, "the name of a model")
        natural(keys, "keys", least=2)
        self.keeper.attend(name, model, keys)
        return self.keeper.attended(name)

    def _counted(self) -> int:
        if self.n_units is None:
            raise NotDeclared(
                "a share or a mean is over a public number of persons, and none is declared; nothing was done. "
                "Say n_units=… when the examples are declared."
            )
        return self.n_units


@dataclass(frozen=True, slots=True, kw_only=True)
class Teachers:
    """An ensemble that can be asked; public, for it holds no teacher."""

    examples: Examples
    name: str
    parts: int
    classes: int

    def labels(self, questions: GivenRows, *, name: str) -> Question:
        """A label for every public question, by the most noisy votes; all of them for one charge."""
        asked = self._asked(questions, name)
        query = TeacherVotes(
            dataset=self.examples.dataset,
            ensemble=self.name,
            parts=self.parts,
            classes=self.classes,
            asked=name,
            questions=asked,
            content=self.examples.keeper.voted(self.name, name),
        )
        return Question(query=query, gate=self.examples._gate)

    def confident_labels(
        self, questions: GivenRows, *, name: str, answers: int, threshold: int, share: Exact = SHARE
    ) -> Question:
        """Labels for at most ``answers`` of the questions: those on which about ``threshold`` teachers agree.

        The charge is for all checks and ``answers`` answers, whether they are given or not.
        """
        asked = self._asked(questions, name)
        query = ConfidentVotes(
            dataset=self.examples.dataset,
            ensemble=self.name,
            parts=self.parts,
            classes=self.classes,
            asked=name,
            questions=asked,
            answers=answers,
            threshold=threshold,
            share=rational(share, "share"),
            content=self.examples.keeper.voted(self.name, name),
        )
        return Question(query=query, gate=self.examples._gate)

    def soft_labels(self, questions: GivenRows, *, name: str, of: str = "votes") -> Question:
        """A share for each class of every public question, with its error; all of them for one charge.

        ``of`` says what is shared: ``votes``, where a teacher says a class of each question, or ``probabilities``,
        where it says a row of them. A teacher that fails says that all classes are alike.
        """
        if of not in ("votes", "probabilities"):
            raise InvalidInput("soft labels are of='votes' or of='probabilities'; nothing was done.")
        asked = self._asked(questions, name)
        query = SoftLabels(
            dataset=self.examples.dataset,
            ensemble=self.name,
            parts=self.parts,
            classes=self.classes,
            asked=name,
            questions=asked,
            steps=1 if of == "votes" else PARTS_OF_A_VOTE,
            content=self.examples.keeper.voted(self.name, name),
        )
        return Question(query=query, gate=self.examples._gate)

    def closer_student(
        self,
        questions: GivenRows,
        first: GivenRows,
        second: GivenRows,
        *,
        name: str,
        students: tuple[str, str] = ("first", "second"),
        floor: Exact = Fraction(1, 1000),
    ) -> Question:
        """Which of two students is closer to the teachers' votes on public questions; above 0 it is the second.

        ``first`` and ``second`` are what the students say: a row of probabilities for each question, mixed with even
        ones so that no class has less than ``floor``. Assumes: the students were made without these votes, or from
        releases of them. ``release.statement.query.choice(release)`` names the student.
        """
        asked = self._asked(questions, name)
        query = CloserStudent(
            dataset=self.examples.dataset,
            ensemble=self.name,
            parts=self.parts,
            classes=self.classes,
            asked=name,
            questions=asked,
            first=students[0],
            second=students[1],
            ratios=log_ratios(first, second, questions=asked, classes=self.classes, floor=floor),
            content=self.examples.keeper.voted(self.name, name),
        )
        return Question(query=query, gate=self.examples._gate)

    def _asked(self, questions: GivenRows, name: str) -> int:
        check_name(name, "the name of a list of questions")
        if len(questions) == 0:
            raise InvalidInput("teachers need at least one question; nothing was done.")
        return self.examples.keeper.ask(name, questions)


def lesson(release: Release, questions: GivenRows) -> tuple[GivenRows, list[int] | list[list[float]]]:
    """What a student is taught: the public questions that were answered, and their labels. It costs nothing.

    Soft labels are a distribution over the classes for each question, the nearest one to the noisy shares.
    """
    asked = only_release(release).statement.query
    if isinstance(asked, SoftLabels):
        if asked.questions != len(questions):
            raise InvalidInput("these are not the questions of this release; nothing was done.")
        return questions, asked.distributions(release)
    labels = only_release(release)["label"].values
    if len(labels) != len(questions):
        raise InvalidInput("these are not the questions of this release; nothing was done.")
    kept = [place for place, label in enumerate(labels) if label != NO_ANSWER]
    return questions[kept], [labels[place] for place in kept]
