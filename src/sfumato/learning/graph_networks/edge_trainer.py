"""A graph network in a vault of links: a model of features without noise, and noisy sums of what links carry."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, natural
from sfumato.core.interrupts import FAILED, attempt
from sfumato.core.units import Edge, describe
from sfumato.errors import EngineFailed, InvalidInput, Refused
from sfumato.gate.session import Opened, SessionGate
from sfumato.learning.graph_networks.edge_training import EdgeTraining
from sfumato.learning.graph_networks.graph_run import sent_rows
from sfumato.learning.graph_networks.graph_trainer import TrainedGraph, check_scores
from sfumato.learning.graph_networks.hops import gathered, noisy
from sfumato.learning.graph_networks.network import GraphNetwork, direction, with_labels
from sfumato.learning.graph_networks.nodes import GraphNodes, NodeRows, linear_scores
from sfumato.learning.graph_networks.reach import MOST_HOPS, MOST_RECIPIENTS
from sfumato.learning.noisy_sums import NoisySums
from sfumato.learning.rounding_error import WIDTH
from sfumato.learning.silence import silence
from sfumato.learning.weights import weights_digest
from sfumato.noise import SystemWords, Words

__all__ = ["EdgeTrainer"]


class EdgeTrainer:
    """Trains a graph network in a vault of links; ``vault.graph_network`` makes it where the unit is an edge.

    Guarantee: the noisy sums are (ε, δ)-DP for one link, a pair of names in one list or in both, for one charge that is
    made before any list is read. **Nothing else is protected**: the model learns from features and labels without
    noise, labels are sent as they are, and whoever has the model may find out what it learned from. To protect nodes,
    open a vault of records. Assumes: names, features and labels of nodes may be known to whoever gets the model.
    Sensitive: the lists. Proof: docs/proofs/graph_networks.md

    >>> import numpy as np, sfumato as sf
    >>> from sfumato.learning import GraphNodes
    >>> vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=9, delta=1e-7), name="t")
    >>> names = ["a", "b", "c"]
    >>> nodes = GraphNodes(np.eye(3, dtype="f4"), np.array([0, 1, 1]), names=names, lists=[["b"], ["c"], ["b"]],
    ...               roster=names, classes=2, n_units=3, name="papers", version="1")
    >>> found = vault.graph_network(data=nodes).fit(epsilon=9, delta=1e-7)
    >>> found.predict(np.eye(3, dtype="f4"), names).shape, vault.left.epsilon
    ((3, 2), Fraction(0, 1))
    """

    _words: Callable[[], Words] = SystemWords  # tests put a source here that can be put back

    def __init__(self, gate: SessionGate, model: nn.Module | None = None, *, data: GraphNodes, hops: int = 1) -> None:
        if not isinstance(gate.unit, Edge):
            raise Refused(f"this protects links (edges), not {describe(gate.unit)}; nothing was read or spent.")
        if type(data) is not GraphNodes:
            raise InvalidInput("links are those of learning.GraphNodes(…); nothing was read or spent.")
        self._gate, self._nodes, self._hops = gate, data, natural(hops, "hops", most=MOST_HOPS)
        if len(data.places) > MOST_RECIPIENTS:
            raise Refused(f"a roster has at most {MOST_RECIPIENTS:,} names here; nothing was read or spent.")
        data.check_names()
        encoder = linear_scores(data.width, data.classes) if model is None else deepcopy(model)
        check_scores(encoder, data)
        self._model = GraphNetwork(encoder, hops=self._hops, names=len(data.places), classes=data.classes)

    def __repr__(self) -> str:
        return f"<trainer of a graph network of {self._hops} hops, for links, on {self._nodes!r}>"

    def fit(
        self, *, epsilon: Exact, delta: Exact, steps: int = 60, lr: float = 0.1, weight_decay: float = 1e-3
    ) -> TrainedGraph:
        """Learn from features without noise; charge all hops; then read the lists and tell the noisy sums.

        ``steps`` steps of Adam take all labelled nodes each. What a model raises comes before the charge.
        """
        query = self._query()
        spend = Budget.asked(epsilon=epsilon, delta=delta)
        mechanism = NoisySums.calibrated(query, spend)
        most = query.message_steps(mechanism, self._gate.unit)
        rows = self._nodes.unlisted()
        _learn(self._model.encoder, rows, self._nodes.classes, natural(steps, "steps"), lr, weight_decay)
        own = _told(self._model.encoder, rows)
        opened = self._gate.open(query, mechanism, None, spend, idempotency=None)
        found = attempt(lambda: self._passed_on(own, rows, most))
        if found is FAILED:
            raise self._failed(opened)
        with torch.no_grad():
            self._model.gathered.copy_(torch.from_numpy(found))
            self._model.spread.fill_(WIDTH / most)
        ended = replace(query, weights=weights_digest(self._model), done=query.steps)
        return TrainedGraph(
            model=self._model,
            release=self._gate.close(opened, ended, ()),
            epsilon=spend.epsilon,
            delta=spend.delta,
            curve=((query.steps, spend.epsilon),),
            places=dict(self._nodes.places),
        )

    def _query(self) -> EdgeTraining:
        nodes = self._nodes
        return EdgeTraining(
            dataset=nodes.dataset,
            units="record",
            clip=Fraction(1),
            times=1,
            records=1,
            number=len(nodes.places),
            rate=Fraction(1),
            steps=self._hops,
            parameters=len(nodes.places) * nodes.classes,
            names_listed=len(nodes.places),
            classes=nodes.classes,
            roster=nodes.roster_digest,
        )

    def _passed_on(
        self, own: list[Tensor], rows: NodeRows, most: int
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """The noisy sums of all hops. No code of the user runs while the lists are read."""
        spread, words = WIDTH / most, self._words()
        with silence():
            sent = self._nodes.read(b"", recipients=MOST_RECIPIENTS).sent  # a list has no more names than the roster
            places = np.array([self._nodes.places.get(name, 0) for name in rows.names], dtype=np.int64)  # type: ignore[arg-type]  # nobody is in no roster
            heard, made = np.zeros((len(rows.names), self._nodes.classes)), []
            for _ in range(self._hops):
                messages = sent_rows(own, heard / (1 + spread**2), most)
                made.append(noisy(gathered(messages, sent, len(self._nodes.places)), words) / most)
                heard = heard + made[-1][places]
        return np.stack(made)

    def _failed(self, opened: Opened) -> EngineFailed:
        self._gate.fail(opened)
        return EngineFailed(
            f"the engine stopped while it read {opened.query.dataset.name!r}. Lists were read, so the charge of "
            f"{opened.charged} is kept; nothing was released, and this version of the data is closed. Check the data, "
            "then declare it as a new version."
        )


def _learn(encoder: nn.Module, rows: NodeRows, classes: int, steps: int, lr: float, decay: float) -> None:
    """Learn classes from features, without noise: neither is protected."""
    known = (rows.labels >= 0) & (rows.labels < classes)
    if not bool(known.any()):
        return
    device = next(iter(encoder.parameters())).device
    features, labels = rows.features[known].to(device), rows.labels[known].to(device)
    optimiser = torch.optim.Adam(encoder.parameters(), lr=lr, weight_decay=decay)
    encoder.train()
    for _ in range(steps):
        optimiser.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(encoder(features), labels))
        optimiser.step()
    encoder.eval()
    for one in encoder.parameters():
        one.grad = None


def _told(encoder: nn.Module, rows: NodeRows) -> list[Tensor]:
    """What each node says of its class: its label where it has one, and else what the model says of its features."""
    with torch.no_grad():
        said = direction(encoder(rows.features.to(next(iter(encoder.parameters())).device)).cpu())
    return list(with_labels(said, rows.labels))
