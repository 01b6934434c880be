"""Examples that a vault holds for learning: inputs and targets of persons, and how questions are answered.

Over 600 lines because a vault has one store for learning: each way in stands beside the checks of what can be asked.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeGuard, TypeVar, cast

from sfumato.core.deprecation import renamed
from sfumato.core.exact import Exact, natural
from sfumato.core.extras import need
from sfumato.core.foreign import Array
from sfumato.core.interrupts import attempt
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Law, Query, ReleasedQuery
from sfumato.core.stored import Stored
from sfumato.core.units import Family, Record, Relation, User
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.gate.setting import Setting
from sfumato.learning import EXAMPLE_QUERIES, TRAINING_QUERIES
from sfumato.learning.given import GivenRows, Predictor, Thing
from sfumato.learning.paradigms.attention_release import AttentionKey, AttentionLogits
from sfumato.learning.paradigms.content import content_of
from sfumato.learning.paradigms.distillation import CloserModel
from sfumato.learning.paradigms.examples import Examples
from sfumato.learning.paradigms.learning_curves import LearningCurve
from sfumato.learning.paradigms.output_perturbation import LogisticWeights
from sfumato.learning.paradigms.own_rows import public_questions
from sfumato.learning.paradigms.persons import Id, persons, whose
from sfumato.learning.paradigms.soft_labels import SoftLabels
from sfumato.learning.paradigms.student_choice import CloserStudent
from sfumato.learning.paradigms.teachers import Train, counted, part_of, seed_of, shared_vote, summed, vote
from sfumato.learning.paradigms.voting import ConfidentVotes, TeacherVotes
from sfumato.learning.silence import silence
from sfumato.learning.units import Units, listed_ids, typed

if TYPE_CHECKING:
    from datetime import date

    from torch import Tensor, nn

    from sfumato.learning.clip_groups import Clip
    from sfumato.learning.evaluation import Evaluator
    from sfumato.learning.generative.course import GeneratorSettings
    from sfumato.learning.generative.trainer import GeneratorTrainer
    from sfumato.learning.graph_networks.edge_trainer import EdgeTrainer
    from sfumato.learning.graph_networks.graph_trainer import GraphTrainer
    from sfumato.learning.graph_networks.nodes import GraphNodes
    from sfumato.learning.graph_networks.subgraph_trainer import SubgraphTrainer
    from sfumato.learning.multiplicity import Multiplied
    from sfumato.learning.paradigms.logit_clipped_step import InBatchContrast
    from sfumato.learning.sealed_canaries import Canaries
    from sfumato.learning.trainer import Trainer
    from sfumato.learning.tuner import Tuner
    from sfumato.tables.table import Table

__all__ = ["ExampleStore"]

VotesQuery = TeacherVotes | ConfidentVotes | SoftLabels | CloserStudent
ExampleQuery = VotesQuery | LearningCurve | CloserModel | LogisticWeights | AttentionLogits | AttentionKey


Held = TypeVar("Held")
Content = TypeVar("Content")


@dataclass(slots=True, kw_only=True, repr=False, eq=False)
class _Holding:
    """What is kept of declared examples. Sensitive: inputs, targets, ids."""

    inputs: GivenRows
    targets: GivenRows
    ids: list[Id | None] | None
    n_units: int | None
    secret: Callable[[], bytes]
    ensembles: dict[str, tuple[Train, tuple[int, int, str]]] = field(default_factory=dict)
    questions: dict[str, tuple[GivenRows, str]] = field(default_factory=dict)
    models: dict[str, tuple[list[Predictor], str]] = field(default_factory=dict)
    heads: dict[str, tuple[Predictor, tuple[int, str]]] = field(default_factory=dict)

    def voted(self, ensemble: str, asked: str) -> str:
        """The digest of teachers and questions as they are now, and of a secret: nobody learns them by trying."""
        return content_of(self.secret(), self.ensembles[ensemble][0], self.questions[asked][0])

    def examined(self, models: str) -> str:
        """The digest of models as they are now, with the secret as well."""
        return content_of(self.secret(), *self.models[models][0])

    def attended(self, model: str) -> str:
        """The digest of a model of attention as it is now, with the secret as well."""
        return content_of(self.secret(), self.heads[model][0])

    @property
    def numeric(self) -> bool:
        """Whether inputs are numbers by their type, which is public; no value is read."""
        if hasattr(self.inputs, "is_complex"):
            return not (self.inputs.is_complex() or self.inputs.is_quantized or self.inputs.is_sparse)
        return self.inputs.dtype.kind in "biuf"


class _Keeper:
    """What an analyst may lay beside declared examples; there is no way to read them here."""

    __slots__ = ("_held",)

    def __init__(self, held: _Holding) -> None:
        self._held = held

    def teach(self, name: str, train: Train, parts: int, classes: int) -> None:
        """Keep the way to train an ensemble under a name; a name stays what it is."""
        if self._held.ids is None:
            raise NotDeclared(
                "the name of a record decides its part, never its place; nothing was done. Declare "
                "the examples with ids=…."
            )
        _kept(self._held.ensembles, name, train, (parts, classes, content_of(train)))

    def ask(self, name: str, questions: GivenRows) -> int:
        """Keep public questions under a name; how many there are."""
        taken = public_questions(questions)
        _kept(self._held.questions, name, taken, content_of(taken))
        return len(taken)

    def examine(self, name: str, models: Sequence[Predictor]) -> int:
        """Keep models under a name, each tried on zeros; how many there are."""
        from sfumato.learning.paradigms.predictions import rehearsed

        ready = [rehearsed(model, self._held.inputs) for model in models]
        _kept(self._held.models, name, ready, content_of(*models))
        return len(models)

    def attend(self, name: str, model: Predictor, keys: int) -> None:
        """Keep a model of attention under a name, tried on zeros."""
        from sfumato.learning.paradigms.predictions import rehearsed_head

        _kept(self._held.heads, name, rehearsed_head(model, self._held.inputs, keys), (keys, content_of(model)))

    def voted(self, ensemble: str, asked: str) -> str:
        """The digest of what was kept under the names of an ensemble and of some questions."""
        return self._held.voted(ensemble, asked)

    def examined(self, models: str) -> str:
        """The digest of what was kept under the name of some models."""
        return self._held.examined(models)

    def attended(self, model: str) -> str:
        """The digest of what was kept under the name of a model of attention."""
        return self._held.attended(model)


class ExampleStore:
    """Declared examples, and the secret that decides which part of them a person belongs to."""

    def __init__(self, setting: Setting) -> None:
        self._setting, self._unit, self._name = setting, setting.unit, setting.name
        self._secret = partial(setting.secret, "parts of teachers")
        self._sessions = setting.sessions(TRAINING_QUERIES, what="training run")
        self._holdings: dict[Dataset, _Holding] = {}

    @renamed(number="n_units")
    def declare(
        self,
        inputs: object,
        targets: object,
        *,
        name: str | None = None,
        version: str | None = None,
        ids: object = None,
        n_units: int | None = None,
    ) -> Examples:
        """Declare examples for learning: inputs, their targets, and whose they are.

        Inputs and targets are arrays, tensors or data frames, taken over as they are now; nothing is spent. Of all
        values only ``ids`` are looked at, each by itself, to tell persons apart: a record whose id is null, or is
        neither text, bytes nor a whole number, counts for nobody. ``n_units`` is the public number of persons,
        or of records, that shares and means are over. Where it is asked about records, of each person the first one
        counts; teachers are trained on all of them.

        >>> import sfumato as sf
        >>> import numpy as np
        >>> vault = sf.Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=1), name="trial")
        >>> test = vault.examples(np.array([[0.2], [0.8]]), np.array([0, 1]), name="test set", version="1")
        >>> str(test.accuracy(lambda record: record[0] > 0.5, name="a rule").preview(epsilon=1))[:30]
        '1 number(s) at ε = 1: each wit'
        """
        persons(self._unit, None)
        if name is None:
            raise NotDeclared("examples need a public name, which their releases state. Say name='test set'.")
        dataset = Dataset(name=name, edition=secrets.token_hex(8) if version is None else version)
        if dataset in self._holdings:
            raise Refused(
                f"{name!r} version {version!r} is declared already, and stored answers would be mixed with those of "
                "other examples. Nothing was done. Give the new state of the data a new version."
            )
        if n_units is not None:
            natural(n_units, "n_units", most=2**40)
        if isinstance(self._unit, User | Family) and ids is None:
            raise NotDeclared("persons are protected: say who each example is of, ids=…. Nothing was done.")
        who = None if ids is None else [whose(each) for each in listed_ids(ids)]
        held = _Holding(inputs=_taken(inputs), targets=_taken(targets), ids=who, n_units=n_units, secret=self._secret)
        if not held.inputs.shape or not held.targets.shape:
            raise InvalidInput("inputs and targets are rows, one for each example; nothing was done.")
        if len({len(held.inputs), len(held.targets)} | (set() if held.ids is None else {len(held.ids)})) != 1:
            raise InvalidInput("inputs, targets and ids are not of the same examples; nothing was done.")
        if self._unit.relation is Relation.REPLACE and isinstance(self._unit, Record):
            held.n_units = len(held.inputs) if n_units is None else n_units  # the number of records is public here
            if held.n_units != len(held.inputs):
                raise InvalidInput("n_units is not that of the records, which is public here; nothing was done.")
        self._holdings[dataset] = held
        return Examples(
            keeper=_Keeper(held),
            gate=self._setting.gate,
            dataset=dataset,
            n_units=held.n_units,
            shape=tuple(held.inputs.shape[1:]),
            numeric=held.numeric,
        )

    @renamed(way="grad_mode", copies="augmentations")
    def trainer(
        self,
        model: "nn.Module",
        loss: "Callable[..., Tensor] | InBatchContrast",
        *,
        data: Units,
        clip: "Clip" = 1,
        grad_mode: str = "auto",
        augmentations: "Multiplied | None" = None,
        canaries: "Canaries | None" = None,
    ) -> "Trainer":
        """Declare a training run: a torch model, a loss of outputs and targets, and the units to learn from.

        ``clip`` is the l2 norm that the gradient of one unit is held to; it bounds what one unit can do in a step. With
        a dict, ``{"body": 1, "head": 0.5}``, layers whose names begin like this are held to a norm of their own.
        ``grad_mode`` says how gradients are computed (``auto``, ``fast`` or ``semantic``), and ``augmentations`` how
        each unit is augmented and how often (:class:`~sfumato.learning.Multiplied`). ``canaries`` are invented units
        for an audit of the run (:class:`~sfumato.learning.Canaries`). Nothing is read and nothing is spent;
        :meth:`~sfumato.learning.Trainer.fit` charges.

        With in-batch negatives the loss is ``learning.InBatchContrast(model, …)``: a unit is a pair, its anchor in the
        inputs and its positive in the targets, and ``each`` of the contrast takes the place of ``clip``.

        >>> import torch, sfumato as sf
        >>> from sfumato.learning import Units
        >>> budget = sf.Budget(epsilon=2, delta=1e-6)
        >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=budget, name="trial")
        >>> data = Units(torch.zeros(50, 3), torch.zeros(50), n_units=50, name="visits", version="1")
        >>> trainer = vault.trainer(torch.nn.Linear(3, 1), lambda out, y: (out[:, 0] - y).square().mean(), data=data)
        >>> trainer.fit(epochs=1, epsilon=1, delta=1e-7).release.charged.epsilon, vault.left.epsilon
        (Fraction(1, 1), Fraction(1, 1))
        """
        need("torch", "pip install 'sfumato[learning]'")
        from sfumato.learning.paradigms.logit_clipped_step import InBatchContrast
        from sfumato.learning.trainer import Trainer

        made: type[Trainer] = Trainer
        if isinstance(loss, InBatchContrast):
            from sfumato.learning.paradigms.contrast_trainer import ContrastTrainer

            made = ContrastTrainer
        how = cast("Callable[..., Tensor]", loss)
        return made(
            self._sessions,
            model,
            how,
            data=data,
            clip=clip,
            grad_mode=grad_mode,
            augmentations=augmentations,
            canaries=canaries,
        )

    def generator(
        self,
        table: "Table",
        columns: Sequence[str] | None = None,
        *,
        bins: "Mapping[str, int | Sequence[Exact | date]] | None" = None,
        missing: Sequence[str] = (),
        marginals: Exact = Fraction(1, 10),
        n_units: int | None = None,
        clip: Exact | None = None,
        settings: "GeneratorSettings | None" = None,
    ) -> "GeneratorTrainer":
        """Declare a generator of synthetic rows: a generative adversarial network whose critic is private.

        Columns, ``bins`` and ``missing`` are as for ``table.synthesize``. ``marginals`` is the part of ε that buys
        noisy shares of the values of each column, by which rows are conditioned while the generator learns; with 0
        there are none, and no conditions. ``clip`` is the l2 norm that the gradient of one unit is held
        to; by default the number of columns, which cuts nothing off. Nothing is read and nothing is spent;
        :meth:`~sfumato.learning.GeneratorTrainer.fit` charges. On the data that it was tried on it loses to
        ``table.synthesize``, which is the first thing to ask for.

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9, delta=1e-6), name="t")
        >>> people = pa.table({"sex": ["F", "M"] * 40, "ill": [True, False] * 40})
        >>> table = vault.table(people, name="people", version="1", keys={"sex": ["F", "M"], "ill": [True, False]})
        >>> made = vault.generator(table, n_units=80).fit(epsilon=5, delta=1e-6, steps=2, rows=30, progress=False)
        >>> made.rows.num_rows, vault.spent == sf.Budget(epsilon=5, delta=1e-6)
        (30, True)
        """
        need("torch", "pip install 'sfumato[learning]'")
        from sfumato.learning.generative.trainer import GeneratorTrainer

        return GeneratorTrainer(
            self._sessions,
            table,
            columns,
            bins=bins,
            missing=missing,
            marginals=marginals,
            n_units=n_units,
            clip=clip,
            settings=settings,
        )

    def graph_network(
        self,
        model: "nn.Module | None" = None,
        *,
        data: "GraphNodes",
        recipients: int | None = None,
        hops: int = 1,
        share: Exact | None = None,
        clip: "Clip" = 1,
        method: str = "propagate",
    ) -> "GraphTrainer | SubgraphTrainer | EdgeTrainer":
        """Declare a graph network: a model of own features, whose predictions nodes send to others of their own list.

        ``model`` is a torch module from features to a score for each class; without one, a linear layer. In each of
        ``hops`` hops every node sends to at most ``recipients`` names of its list (3 if nothing is said), chosen by a
        secret key; ``share`` is the part of the guarantee that hops have, a fifth if nothing is said; training has the
        rest. With ``method="subgraphs"`` the model learns from what reached each node, (hops + 1) times as many
        features, and noise pays for all subgraphs that a node is in; it needs a vault of users.
        In a vault of edges links alone are protected, and features and labels of nodes are **not**. Nothing is read or
        spent; :meth:`~sfumato.learning.GraphTrainer.fit` charges. A graph can be worth less than it costs: compare with
        ``vault.trainer`` on the features alone (docs/explanation/graph_networks.md).
        """
        need("torch", "pip install 'sfumato[learning]'")
        from sfumato.learning.graph_networks.ways import graph_trainer

        return graph_trainer(
            self._sessions, model, data, recipients=recipients, hops=hops, share=share, clip=clip, method=method
        )

    @renamed(right="metric")
    def evaluator(
        self,
        *,
        data: Units,
        evaluations: int,
        epsilon: Exact,
        delta: Exact,
        metric: "Callable[[Tensor, Tensor], Tensor] | None" = None,
    ) -> "Evaluator":
        """Pay for a number of evaluations of models on held-out units; charged now, as a whole.

        ``metric(outputs, targets)`` says of one record whether the model is right; if not said, whether the highest
        output is that of its class.

        >>> import torch, sfumato as sf
        >>> from sfumato.learning import Units
        >>> budget = sf.Budget(epsilon=2, delta=1e-6)
        >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=budget, name="trial")
        >>> held = Units(torch.zeros(50, 3), torch.zeros(50), n_units=50, name="held out", version="1")
        >>> vault.evaluator(data=held, evaluations=4, epsilon=1, delta=1e-7), vault.left.epsilon
        (<evaluator on 'held out': 4 of 4 left>, Fraction(1, 1))
        """
        need("torch", "pip install 'sfumato[learning]'")
        from sfumato.learning.evaluation import Evaluator

        return Evaluator(
            self._sessions, data=data, evaluations=evaluations, epsilon=epsilon, delta=delta, metric=metric
        )

    def tuning(
        self,
        build: "Callable[..., nn.Module]",
        loss: "Callable[..., Tensor]",
        *,
        data: Units,
        candidates: Sequence[Mapping[str, Thing]],
        held_out: Exact = Fraction(1, 5),
        metric: "Callable[[Tensor, Tensor], Tensor] | None" = None,
        grad_mode: str = "auto",
    ) -> "Tuner":
        """Declare a search over settings of training runs, of which the best model is released for one charge.

        Each of ``candidates`` is a dict: ``lr``, ``clip``, ``batch``, ``steps``, ``epochs`` and ``optimizer`` are those
        of its run, all other settings are what ``build(**settings)`` makes its model with. Each unit is held out with
        probability ``held_out``, and models are judged by how many of these they get right, with noise; ``metric`` is
        that of an :meth:`evaluator`. Nothing is read and nothing is spent; :meth:`~sfumato.learning.Tuner.fit` charges.

        >>> import torch, sfumato as sf
        >>> from sfumato.learning import Units
        >>> budget = sf.Budget(epsilon=2, delta=1e-6)
        >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=budget, name="trial")
        >>> data = Units(torch.zeros(50, 3), torch.zeros(50).long(), n_units=50, name="visits", version="1")
        >>> search = vault.tuning(lambda: torch.nn.Linear(3, 2), torch.nn.functional.cross_entropy, data=data,
        ...                       candidates=[{"lr": 0.1}, {"lr": 1.0}])
        >>> found = search.fit(steps=2, batch=40, expected_runs=2, most=3, epsilon=1, delta=1e-7)
        >>> found.release.charged.epsilon, vault.left.epsilon, found.settings["lr"] in (0.1, 1.0)
        (Fraction(1, 1), Fraction(1, 1), True)
        """
        need("torch", "pip install 'sfumato[learning]'")
        from sfumato.learning.tuner import Tuner

        return Tuner(
            self._sessions,
            build,
            loss,
            data=data,
            candidates=candidates,
            held_out=held_out,
            metric=metric,
            grad_mode=grad_mode,
        )

    def answers(self, query: Query) -> TypeGuard[ReleasedQuery]:
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
            case TeacherVotes() | ConfidentVotes() | SoftLabels() | CloserStudent():
                known = query.ensemble in held.ensembles and query.asked in held.questions
                fits = known and (
                    held.ensembles[query.ensemble][1][:2] == (query.parts, query.classes)
                    and len(held.questions[query.asked][0]) == query.questions
                    and query.content == held.voted(query.ensemble, query.asked)
                )
            case LearningCurve():
                known = query.models in held.models and query.number == held.n_units
                fits = known and (
                    len(held.models[query.models][0]) == query.epochs and query.content == held.examined(query.models)
                )
            case AttentionLogits() | AttentionKey():
                known = query.model in held.heads and query.number == held.n_units
                fits = known and (
                    held.heads[query.model][1][0] == query.keys and query.content == held.attended(query.model)
                )
            case CloserModel():
                fits = query.number == held.n_units
            case LogisticWeights():
                fits = held.numeric and (query.number, query.features) == (held.n_units, *held.inputs.shape[1:])
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

    def says_nothing(self, query: ExampleQuery, law: Law) -> None:
        """Nothing is known beforehand of what a figure can be."""

    def derived(self, query: ExampleQuery) -> list[Dataset]:
        """None: examples are rows in memory."""
        return []

    def check_fit(self, query: ExampleQuery) -> None:
        """Nothing is left to check: the shapes were, when the question was made."""

    def stored(self, query: ExampleQuery) -> dict[Dataset, Stored]:
        """Nothing: where examples in memory came from is not known."""
        return {}

    def read(self, query: ExampleQuery) -> object:
        """Read the examples and compute. Sensitive: the result is exact.

        What teachers and models print, log or warn of meanwhile can depend on the data, and is not shown.
        """
        with silence():
            return self._computed(query, self._holdings[query.dataset])

    def _computed(self, query: ExampleQuery, held: _Holding) -> object:
        match query:
            case TeacherVotes():
                return [count for row in self._votes(query, held) for count in row]
            case ConfidentVotes():
                return self._votes(query, held)
            case SoftLabels():
                return [total for row in self._votes(query, held) for total in row]
            case CloserStudent():
                return list(query.exact(self._votes(query, held)))
            case LearningCurve():
                from sfumato.learning.paradigms.predictions import right

                places = self._places(held)
                return [right(model, held.inputs, held.targets, places) for model in held.models[query.models][0]]
            case CloserModel():
                from sfumato.learning.paradigms.predictions import class_of

                counts = [0] * len(query.first)
                for place in self._places(held):
                    chosen = class_of(held.targets[place])
                    if chosen is not None and 0 <= chosen < len(counts):
                        counts[chosen] += 1
                return list(query.exact(counts))
            case LogisticWeights():
                return list(self._weights(query, held))
            case AttentionLogits() | AttentionKey():
                from sfumato.learning.paradigms.predictions import attended

                together = isinstance(query, AttentionLogits)
                return attended(
                    held.heads[query.model][0],
                    held.inputs,
                    self._places(held),
                    keys=query.keys,
                    limit=query.clip if isinstance(query, AttentionLogits) else query.bound,
                    together=together,
                )

    def _votes(self, query: VotesQuery, held: _Holding) -> list[list[int]]:
        """Train every teacher on its own part and count the votes, or add up their parts. Sensitive."""
        train, (parts, classes, _) = held.ensembles[query.ensemble]
        secret = self._secret()
        places: list[list[int]] = [[] for _ in range(parts)]
        for place, person in enumerate(held.ids or ()):
            if person is not None:
                places[part_of(person, parts, secret)].append(place)
        questions, _ = held.questions[query.asked]
        steps = query.steps if isinstance(query, SoftLabels) else 1
        rows = ((held.inputs[own], held.targets[own], questions) for own in places)
        seeds = [seed_of(part, secret) for part in range(parts)]
        if steps == 1:
            votes = [vote(train, *own, classes=classes, seed=seed) for own, seed in zip(rows, seeds, strict=True)]
            return counted(votes, classes=classes, questions=len(questions))
        shares = [
            shared_vote(train, *own, classes=classes, steps=steps, seed=seed)
            for own, seed in zip(rows, seeds, strict=True)
        ]
        return summed(shares, classes=classes, questions=len(questions))

    def _weights(self, query: LogisticWeights, held: _Holding) -> tuple[int, ...]:
        from sfumato.learning.paradigms.logistic import held_to_one, minimiser

        places = self._places(held)
        signs = [1 if _above(held.targets[place]) else -1 for place in places]
        found = minimiser(
            held_to_one(_doubles(held.inputs[places])).reshape(len(places), query.features),
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
        first: dict[Id, int] = {}
        for place, person in enumerate(held.ids or ()):
            if person is not None:
                first.setdefault(person, place)
        return list(first.values())


def _taken(given: GivenRows) -> GivenRows:
    """What was handed over, as it is now: a tensor, or an array."""
    if hasattr(given, "clone"):
        return given.detach().clone()
    import numpy as np

    return np.array(typed(given))


def _doubles(rows: GivenRows) -> Array:
    """Rows of numbers as doubles, whatever type of number they have."""
    if hasattr(rows, "clone"):
        import torch

        return rows.to("cpu", torch.float64).numpy()
    return rows


def _above(target: GivenRows) -> bool:
    """Whether a target is above 0; a value that is not a number is not."""
    return attempt(lambda: bool(float(target) > 0)) is True


def _kept(names: dict[str, tuple[Held, Content]], name: str, what: Held, content: Content) -> None:
    """Keep something under a public name, which stays what it is: what has another content is refused."""
    if names.setdefault(name, (what, content))[1] != content:
        raise Refused(f"{name!r} is the name of something else here; nothing was done. Give it another name.")
