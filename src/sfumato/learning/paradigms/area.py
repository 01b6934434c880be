"""Examples that a vault holds for learning: inputs and targets of persons, and how questions are answered."""

import secrets
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING, Any

from sfumato.core.area import Answer
from sfumato.core.budget import Budget
from sfumato.core.exact import natural
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Mechanism, Query
from sfumato.core.question import Gate
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Family, Record, Relation, Unit, User
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.learning import EXAMPLE_QUERIES
from sfumato.learning.paradigms.distillation import CloserModel
from sfumato.learning.paradigms.examples import Examples
from sfumato.learning.paradigms.learning_curves import LearningCurve
from sfumato.learning.paradigms.output_perturbation import LogisticWeights
from sfumato.learning.paradigms.persons import persons
from sfumato.learning.paradigms.teachers import Train, counted, part_of, seed_of, vote
from sfumato.learning.paradigms.voting import ConfidentVotes, TeacherVotes

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["Lessons"]

ExampleQuery = TeacherVotes | ConfidentVotes | LearningCurve | CloserModel | LogisticWeights


@dataclass(slots=True, kw_only=True, repr=False, eq=False)
class _Holding:
    """What is kept of declared examples. Sensitive: inputs, targets, ids."""

    inputs: Any
    targets: Any
    ids: Any
    number: int | None
    ensembles: dict[str, tuple[Train, int, int]] = field(default_factory=dict)
    questions: dict[str, Any] = field(default_factory=dict)
    models: dict[str, tuple[Any, ...]] = field(default_factory=dict)


class Lessons:
    """Declared examples, and the secret that tells which part of them a person belongs to."""

    def __init__(self, *, unit: Unit, name: str, secret: Callable[[], bytes]) -> None:
        self._unit, self._name, self._secret = unit, name, secret
        self._holdings: dict[Dataset, _Holding] = {}

    def declare(
        self,
        gate: Gate,
        inputs: Any,
        targets: Any,
        *,
        ids: Any,
        name: str | None,
        version: str | None,
        number: int | None,
    ) -> Examples:
        """Keep examples as they are now; no value is read."""
        persons(self._unit, None)
        if name is None:
            raise NotDeclared("examples need a public name, which their releases state. Say name='test set'.")
        dataset = Dataset(name=name, edition=secrets.token_hex(8) if version is None else version)
        if dataset in self._holdings:
            raise Refused(
                f"{name!r} version {version!r} is declared already, and stored answers would be mixed with those of "
                "other examples. Nothing was done. Give the new state of the data a version of its own."
            )
        if number is not None:
            natural(number, "number", most=2**40)
        if isinstance(self._unit, User | Family) and ids is None:
            raise NotDeclared("persons are protected: say who each example is of, ids=…. Nothing was done.")
        held = _Holding(inputs=_taken(inputs), targets=_taken(targets), ids=_listed(ids), number=number)
        if len({len(held.inputs), len(held.targets)} | (set() if held.ids is None else {len(held.ids)})) != 1:
            raise InvalidInput("inputs, targets and ids are not of the same examples; nothing was done.")
        if self._unit.relation is Relation.REPLACE and isinstance(self._unit, Record):
            held.number = len(held.inputs) if number is None else number  # the number of records is public here
            if held.number != len(held.inputs):
                raise InvalidInput("number is not that of the records, which is public here; nothing was done.")
        self._holdings[dataset] = held
        return Examples(area=self, gate=gate, dataset=dataset, number=held.number, shape=tuple(held.inputs.shape[1:]))

    def teach(self, dataset: Dataset, name: str, train: Train, parts: int, classes: int) -> None:
        """Keep the way to train an ensemble under a name; a name stays what it is."""
        if self._holdings[dataset].ids is None:
            raise NotDeclared(
                "which part a record belongs to is told by its name and never by its place; nothing was done. Declare "
                "the examples with ids=…."
            )
        _kept(self._holdings[dataset].ensembles, name, (train, parts, classes))

    def ask(self, dataset: Dataset, name: str, questions: Any) -> int:
        """Keep public questions under a name; how many there are."""
        held = self._holdings[dataset].questions
        taken = _taken(questions)
        _kept(held, name, taken)
        return len(taken)

    def examine(self, dataset: Dataset, name: str, models: Sequence[Any]) -> int:
        """Keep models under a name, each tried on zeros; how many there are."""
        from sfumato.learning.paradigms.predictions import rehearsed

        held = self._holdings[dataset]
        _kept(held.models, name, tuple(rehearsed(model, held.inputs) for model in models))
        return len(models)

    def answers(self, query: Query) -> bool:
        """Whether this is a question about examples; a subclass could state a sensitivity of its own."""
        return type(query) in EXAMPLE_QUERIES

    def check(self, query: ExampleQuery) -> None:
        """Refuse a question about examples that are not declared, or with facts that were not."""
        if type(query.dataset) is not Dataset or query.dataset not in self._holdings:
            raise InvalidInput(
                f"vault {self._name!r} holds no such examples; nothing was read and nothing was spent. Declare them "
                "with vault.examples(...)."
            )
        held = self._holdings[query.dataset]
        match query:
            case TeacherVotes() | ConfidentVotes():
                known = query.ensemble in held.ensembles and query.asked in held.questions
                fits = known and (
                    held.ensembles[query.ensemble][1:] == (query.parts, query.classes)
                    and len(held.questions[query.asked]) == query.questions
                )
            case LearningCurve():
                fits = len(held.models.get(query.models, ())) == query.epochs and query.number == held.number
            case CloserModel():
                fits = query.number == held.number
            case LogisticWeights():
                fits = (query.number, query.features) == (held.number, *held.inputs.shape[1:])
        if not fits:
            raise Refused(
                f"the public facts that this asks with are not those declared for {query.dataset.name!r}; nothing was "
                "read and nothing was spent. Make questions with the methods of the examples."
            )

    def limit(self, query: ExampleQuery) -> Limit | None:
        """None: of each person one record, or one teacher, counts."""
        return None

    def private(self, query: ExampleQuery) -> list[Dataset]:
        """The examples that are asked."""
        return [query.dataset]

    def mechanism(self, query: ExampleQuery, moved: Sensitivity, spend: Budget) -> Mechanism:
        """The mechanism with the least error that a spend allows."""
        return query.mechanism(moved, self._unit, spend)

    def check_fit(self, query: ExampleQuery) -> None:
        """Nothing is left to check: the shapes were, when the question was made."""

    def read(self, query: ExampleQuery) -> Any:
        """Read the examples and compute. Sensitive: the result is exact.

        What teachers and models print or warn of meanwhile can hang on the data, and is not shown.
        """
        with _silence():
            return self._computed(query, self._holdings[query.dataset])

    def _computed(self, query: ExampleQuery, held: _Holding) -> Any:
        match query:
            case TeacherVotes():
                return [count for row in self._votes(query, held) for count in row]
            case ConfidentVotes():
                return self._votes(query, held)
            case LearningCurve():
                from sfumato.learning.paradigms.predictions import right

                places = self._places(held)
                return [right(model, held.inputs, held.targets, places) for model in held.models[query.models]]
            case CloserModel():
                counts = [0] * len(query.first)
                for place in self._places(held):
                    chosen = _class(held.targets[place])
                    if 0 <= chosen < len(counts):
                        counts[chosen] += 1
                return list(query.exact(counts))
            case LogisticWeights():
                return list(self._weights(query, held))

    def draw(self, mechanism: Mechanism, exact: Any, words: "Words") -> Answer:
        """Draw the answer from what was computed. Sensitive: ``exact``."""
        if hasattr(mechanism, "choose"):
            return mechanism.choose(exact, words), ()
        return mechanism.add_noise(exact, words), ()  # type: ignore[attr-defined]

    def _votes(self, query: TeacherVotes | ConfidentVotes, held: _Holding) -> list[list[int]]:
        """Train every teacher on its own part and count the votes. Sensitive."""
        train, parts, classes = held.ensembles[query.ensemble]
        secret = self._secret()
        places: list[list[int]] = [[] for _ in range(parts)]
        for place, person in enumerate(held.ids):
            if _told(person):
                places[part_of(person, parts, secret)].append(place)
        questions = held.questions[query.asked]
        votes = [
            vote(train, held.inputs[own], held.targets[own], questions, classes=classes, seed=seed_of(part, secret))
            for part, own in enumerate(places)
        ]
        return counted(votes, classes=classes, questions=len(questions))

    def _weights(self, query: LogisticWeights, held: _Holding) -> tuple[int, ...]:
        from sfumato.learning.paradigms.logistic import held_to_one, minimiser

        places = self._places(held)
        signs = [1 if _class(held.targets[place]) > 0 else -1 for place in places]
        found = minimiser(
            held_to_one(held.inputs[places]).reshape(len(places), query.features),
            signs,
            number=query.number,
            regularisation=query.regularisation,
            residual=query.residual,
        )
        return query.rounded(found)

    def _places(self, held: _Holding) -> list[int]:
        """Which records count: all of them, or the first of each person. Sensitive."""
        if isinstance(self._unit, Record):
            return list(range(len(held.inputs)))
        first: dict[Any, int] = {}
        for place, person in enumerate(held.ids):
            if _told(person):
                first.setdefault((type(person), person), place)
        return list(first.values())


@contextmanager
def _silence() -> Iterator[None]:
    """Let nothing that is printed, and no warning, get out."""
    with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        yield


def _taken(given: Any) -> Any:
    """What was handed over, as it is now: a tensor, or an array."""
    if hasattr(given, "clone"):
        return given.detach().clone()
    import numpy as np

    return np.array(given)


def _listed(ids: Any) -> list[Any] | None:
    if ids is None:
        return None
    return list(ids.tolist() if hasattr(ids, "tolist") else ids)


def _told(person: Any) -> bool:
    """Whether it is told whose a record is; one of nobody does not count."""
    return person is not None and person == person  # what is not a number is not itself


def _class(target: Any) -> int:
    try:
        return int(target)
    except (TypeError, ValueError, OverflowError):
        return -1


def _same(one: Any, other: Any) -> bool:
    if not hasattr(one, "shape"):
        return bool(one == other)
    return type(one) is type(other) and one.shape == other.shape and bool((one == other).all())


def _kept(names: dict[str, Any], name: str, what: Any) -> None:
    """Keep something under a public name that stored answers go by."""
    if name in names and not _same(names[name], what):
        raise Refused(f"{name!r} is the name of something else here; nothing was done. Give it another name.")
    names[name] = what
