"""Training on rooted subgraphs in a vault: a clip for each root, and noise for all roots that one node is in."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from sfumato.core.budget import Budget
from sfumato.core.exact import natural
from sfumato.core.foreign import Array
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, Refused
from sfumato.gate.session import SessionGate
from sfumato.learning.clip_groups import Clip
from sfumato.learning.correlated import Correlated
from sfumato.learning.given import GivenRows
from sfumato.learning.given_rows import whole_tensor
from sfumato.learning.graph_networks.nodes import GraphNodes, given_lists, linear_scores
from sfumato.learning.graph_networks.reach import MOST_HOPS, MOST_RECIPIENTS, influenced
from sfumato.learning.graph_networks.recipients import sent_by
from sfumato.learning.graph_networks.sampled_roots import NoisyRootSums
from sfumato.learning.graph_networks.subgraph_training import SubgraphTraining, check_one_row_a_name
from sfumato.learning.graph_networks.subgraphs import Subgraphs, reached
from sfumato.learning.noisy_sums import NoisySums
from sfumato.learning.paradigms.persons import canonical_ids
from sfumato.learning.progress import Spending
from sfumato.learning.run import Run
from sfumato.learning.sealed_canaries import RevealedCanaries
from sfumato.learning.trained import Trained
from sfumato.learning.trainer import Trainer
from sfumato.learning.training import Training

__all__ = ["SubgraphRun", "SubgraphTrainer", "TrainedSubgraphs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedSubgraphs(Trained):
    """A model of rooted subgraphs and what it cost. Public: all of it."""

    hops: int

    def predict(
        self, features: GivenRows, names: Iterable[object] = (), lists: Sequence[object] = ()
    ) -> npt.NDArray[np.float64]:
        """The chances of classes for the nodes of a graph of the one who asks, with all their lists; costs nothing.

        ``features``, ``names`` and ``lists`` are as those of :class:`~sfumato.learning.GraphNodes`, and every name is
        another. Guarantee: what is read is what is given here, and nothing that a vault holds. Assumes: this graph is
        not private. To predict over private neighbours is a release, and this makes none: GraphNodes are refused.
        """
        if isinstance(features, GraphNodes):
            raise Refused(
                "GraphNodes are private, and to predict over them would be a release that nobody charged; nothing was "
                "read. Give a graph of your own that is public: predict(features, names, lists)."
            )
        rows, named, given = whole_tensor(features), canonical_ids(names), given_lists(lists)
        places = {each: place for place, each in enumerate(named) if each is not None}
        if rows.ndim != 2 or not len(rows) == len(places) == len(named) == len(given):
            raise InvalidInput(
                "features, names and lists must have as many rows, each with another name; nothing was done."
            )
        sent = sent_by(named, given, places, most=MOST_RECIPIENTS, key=b"")
        found = reached(rows.cpu().numpy(), np.arange(len(named)), sent, len(named), self.hops)
        was = self.model.training
        self.model.eval()
        with torch.no_grad():
            scores = self.model(torch.from_numpy(found).to(next(self.model.parameters()).device))
        self.model.train(was)
        return np.asarray(torch.softmax(scores.cpu().double(), dim=1).numpy())

    def classes(self, features: GivenRows, names: Iterable[object], lists: Sequence[object]) -> Array:
        """The likeliest class of each node of a graph of the one who asks; costs nothing."""
        return self.predict(features, names, lists).argmax(1)


class SubgraphRun(Run):
    """One charged run on rooted subgraphs. Sensitive: all of it until it is released."""

    RUNS: ClassVar[type[Training]] = SubgraphTraining


class SubgraphTrainer(Trainer):
    """Trains a model of rooted subgraphs on nodes; ``vault.graph_network`` makes it with ``method="subgraphs"``.

    Guarantee: the weights are (ε, δ)-DP for all rows of one name, of which one counts, for one charge that is made
    before anything is read, with the sensitivity of :class:`SubgraphTraining`. A vault that does not protect users is
    refused. Assumes: what :class:`~sfumato.learning.Trainer` assumes. Public: everything but the nodes.
    Proof: docs/proofs/graph_networks.md
    """

    _runs: type[Run] = SubgraphRun

    def __init__(
        self,
        gate: SessionGate,
        model: nn.Module | None = None,
        *,
        data: GraphNodes,
        recipients: int = 3,
        hops: int = 1,
        clip: Clip = 1,
    ) -> None:
        check_one_row_a_name(gate.unit)
        self._recipients = natural(recipients, "recipients", most=MOST_RECIPIENTS)
        self._hops = natural(hops, "hops", most=MOST_HOPS)
        if type(data) is not GraphNodes or isinstance(clip, dict):
            raise InvalidInput("rooted subgraphs are of learning.GraphNodes(…), with one clip; nothing was done.")
        found = linear_scores(data.width * (self._hops + 1), data.classes) if model is None else deepcopy(model)
        units = Subgraphs(data, gate.unit, recipients=self._recipients, hops=self._hops)
        super().__init__(gate, found, nn.functional.cross_entropy, data=units, clip=clip)  # type: ignore[arg-type]  # what a run needs of units

    def _usual_batch(self, number: int) -> int:
        """All roots, which suits a few thousand of them."""
        return number

    def _calibrated(self, query: Training, spend: Budget) -> NoisySums:
        if query.rate == 1:
            return super()._calibrated(query, spend)
        return NoisyRootSums.for_roots(query, spend, influenced(self._recipients, self._hops))

    def _with_noise(self, query: Training, multiplier: Fraction) -> NoisySums:
        if query.rate == 1:
            return super()._with_noise(query, multiplier)
        return NoisyRootSums(
            multiplier=multiplier,
            steps=query.steps,
            rate=query.rate,
            parameters=query.parameters,
            roots=influenced(self._recipients, self._hops),
        )

    def _check_data(self, data: object) -> None:
        """Made here, of nodes."""

    def _check_noise(self, noise: Correlated | None) -> None:
        if noise is not None:
            raise InvalidInput("rooted subgraphs are trained with fresh noise in each step; nothing was done.")

    def _query(self, *, steps: int, batch: int) -> SubgraphTraining:
        number = self._units.n_units
        return SubgraphTraining(
            dataset=self._units.dataset,
            units="record",
            clip=self._clip,
            times=1,
            records=1,
            number=number,
            rate=Fraction(batch, number),
            steps=steps,
            parameters=self._parameters,
            recipients=self._recipients,
            hops=self._hops,
        )

    def _step_length(self, query: Training) -> Fraction:
        return query.reach * self._clip if isinstance(query, SubgraphTraining) else self._clip

    def _trained(
        self, release: Release, spending: Spending, revealed: RevealedCanaries | None = None
    ) -> TrainedSubgraphs:
        found = super()._trained(release, spending, revealed)
        return TrainedSubgraphs(
            model=found.model,
            release=found.release,
            epsilon=found.epsilon,
            delta=found.delta,
            curve=found.curve,
            hops=self._hops,
        )
