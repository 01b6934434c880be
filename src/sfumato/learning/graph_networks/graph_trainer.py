"""Training a graph network in a vault: one charge for the model of own features and for what nodes send each other."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.foreign import Array
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.gate.session import SessionGate
from sfumato.learning.clip_groups import Clip
from sfumato.learning.correlated import Correlated
from sfumato.learning.given import GivenRows
from sfumato.learning.given_rows import whole_tensor
from sfumato.learning.graph_networks.graph_run import GraphRun
from sfumato.learning.graph_networks.graph_training import GraphTraining, NoisyGraphSums
from sfumato.learning.graph_networks.network import GraphNetwork, direction
from sfumato.learning.graph_networks.nodes import GraphNodes, linear_scores
from sfumato.learning.graph_networks.reach import MOST_HOPS, MOST_RECIPIENTS
from sfumato.learning.paradigms.persons import Id, canonical_ids
from sfumato.learning.progress import Spending
from sfumato.learning.run import Run
from sfumato.learning.sealed_canaries import RevealedCanaries
from sfumato.learning.trained import Trained
from sfumato.learning.trainer import Trainer
from sfumato.learning.training import Training

__all__ = ["GraphTrainer", "TrainedGraph", "check_scores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedGraph(Trained):
    """A trained graph network and what it cost. Public: all of it, the noisy sums of each name too."""

    places: dict[Id, int]

    def predict(self, features: GivenRows, names: Iterable[object]) -> npt.NDArray[np.float64]:
        """The chances of classes for nodes whose features and names are given; costs nothing.

        What a name was sent is looked up in the noisy sums of the run; a name that is not in the roster was sent
        nothing. Guarantee: what follows from a release costs nothing further, whoever asks for whomever. The features
        are those of the one who asks.
        """
        network = self.model
        assert isinstance(network, GraphNetwork)  # noqa: S101 - for the reader of types
        rows, listed = whole_tensor(features), canonical_ids(names)
        if rows.ndim != 2 or len(rows) != len(listed):
            raise InvalidInput("features and names must have as many rows; nothing was done.")
        places = [self.places.get(each, -1) if each is not None else -1 for each in listed]
        known = torch.tensor([place >= 0 for place in places], dtype=torch.float64)
        was = network.training
        network.eval()
        with torch.no_grad():
            heard = network.gathered[:, [max(place, 0) for place in places]].cpu().double() * known[None, :, None]
            own = direction(network(rows.to(next(network.parameters()).device)).cpu())
            found = torch.softmax(network.combined(own, heard), dim=1)
        network.train(was)
        return np.asarray(found.numpy())

    def classes(self, features: GivenRows, names: Iterable[object]) -> Array:
        """The likeliest class of each node; costs nothing."""
        return self.predict(features, names).argmax(1)


class GraphTrainer(Trainer):
    """Trains a graph network on the nodes of a vault; ``vault.graph_network`` makes it.

    Guarantee: the weights, and the noisy sums for each name of the roster, are (ε, δ)-DP for the record of one node:
    its features, its label and its list, for one charge that is made before anything is read. Assumes: what
    :class:`~sfumato.learning.Trainer` assumes. Public: everything but the nodes. Proof: docs/proofs/graph_networks.md

    >>> import numpy as np, sfumato as sf
    >>> from sfumato.learning import GraphNodes
    >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9, delta=1e-7), name="t")
    >>> names = ["a", "b", "c"]
    >>> nodes = GraphNodes(np.eye(3, dtype="f4"), np.array([0, 1, 1]), names=names, lists=[["b"], ["c"], ["b"]],
    ...               roster=names, classes=2, n_units=3, name="papers", version="1")
    >>> found = vault.graph_network(data=nodes).fit(epsilon=9, delta=1e-7, steps=2, progress=False)
    >>> found.predict(np.eye(3, dtype="f4"), names).shape, vault.left.epsilon
    ((3, 2), Fraction(0, 1))
    """

    _runs: type[Run] = GraphRun

    def __init__(
        self,
        gate: SessionGate,
        model: nn.Module | None = None,
        *,
        data: GraphNodes,
        recipients: int = 3,
        hops: int = 1,
        share: Exact = Fraction(1, 5),
        clip: Clip = 1,
    ) -> None:
        self._check_data(data)
        self._recipients = natural(recipients, "recipients", most=MOST_RECIPIENTS)
        self._hops = natural(hops, "hops", most=MOST_HOPS)
        self._share = positive(share, "share")
        if self._share >= 1:
            raise InvalidInput("share is the part that hops have, above 0 and below 1; nothing was done.")
        if isinstance(clip, dict):
            raise InvalidInput("a graph network has one clip for the whole gradient; nothing was done. Say clip=1.")
        encoder = linear_scores(data.width, data.classes) if model is None else deepcopy(model)
        check_scores(encoder, data)
        network = GraphNetwork(encoder, hops=self._hops, names=len(data.places), classes=data.classes)
        super().__init__(gate, network, nn.functional.cross_entropy, data=data.within(gate.unit), clip=clip)  # type: ignore[arg-type]  # nodes are what a run needs of units
        self._nodes = data

    def __repr__(self) -> str:
        return f"<trainer of a graph network of {self._hops} hops on {self._nodes!r}>"

    def _usual_batch(self, number: int) -> int:
        """All nodes, which suits a few thousand of them."""
        return number

    def _calibrated(self, query: Training, spend: Budget) -> NoisyGraphSums:
        assert isinstance(query, GraphTraining)  # noqa: S101 - for the reader of types
        mechanism = NoisyGraphSums.shared(query, spend, self._share)
        query.message_steps(mechanism, self._gate.unit)  # refuses noise in which no message would be seen
        return mechanism

    def _with_noise(self, query: Training, multiplier: Fraction) -> NoisyGraphSums:
        raise NotDeclared(
            "say epsilon=…: the noise of steps and hops follows from it and from share; nothing was read or spent."
        )

    def _check_data(self, data: object) -> None:
        if type(data) is not GraphNodes:
            raise InvalidInput(
                "a graph network learns from learning.GraphNodes(features, labels, names=…, lists=…, roster=…, "
                "classes=…, n_units=…, name=…); nothing was read or spent."
            )

    def _check_noise(self, noise: Correlated | None) -> None:
        if noise is not None:
            raise InvalidInput("a graph network is trained with fresh noise in each step; nothing was done.")

    def _query(self, *, steps: int, batch: int) -> GraphTraining:
        nodes = self._nodes_declared
        return GraphTraining(
            dataset=nodes.dataset,
            units="record",
            clip=self._clip,
            times=1,
            records=1,
            number=nodes.n_units,
            rate=Fraction(batch, nodes.n_units),
            steps=steps,
            parameters=self._parameters,
            recipients=self._recipients,
            hops=self._hops,
            names_listed=len(nodes.places),
            classes=nodes.classes,
            roster=nodes.roster_digest,
        )

    @property
    def _nodes_declared(self) -> GraphNodes:
        assert isinstance(self._units, GraphNodes)  # noqa: S101 - for the reader of types
        return self._units

    def _trained(self, release: Release, spending: Spending, revealed: RevealedCanaries | None = None) -> TrainedGraph:
        said = release.statement
        return TrainedGraph(
            model=self._model,
            release=release,
            epsilon=said.spend.epsilon,
            delta=said.spend.delta,
            curve=spending.curve,
            places=dict(self._nodes_declared.places),
        )


def check_scores(encoder: object, data: GraphNodes) -> None:
    """Refuse a model that does not give a score for each class; tried on invented nodes."""
    if not isinstance(encoder, nn.Module):
        raise InvalidInput("model is a torch module from features to scores of classes; nothing was done.")
    (features,), _, _ = data.example(2)
    with torch.no_grad():
        shape = tuple(encoder(features.to(next(iter(encoder.parameters())).device)).shape)
    if shape != (2, data.classes):
        raise InvalidInput(
            f"the model must give {data.classes} scores for each node, one for each class, and gives another "
            "shape; nothing was read or spent."
        )
