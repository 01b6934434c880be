"""One charged run of a graph network: steps of training, and after the last of them the hops."""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.interrupts import FAILED
from sfumato.core.release import Release
from sfumato.learning.graph_networks.graph_training import GraphTraining, NoisyGraphSums
from sfumato.learning.graph_networks.hops import IntRows, gathered, held_message, noisy
from sfumato.learning.graph_networks.network import GraphNetwork, direction, with_labels
from sfumato.learning.graph_networks.nodes import GraphNodes, NodeRows
from sfumato.learning.library_code import LibraryCode
from sfumato.learning.listeners import Unheard, check_nobody_listens
from sfumato.learning.rounding_error import WIDTH
from sfumato.learning.run import Run
from sfumato.learning.shielded import shielded
from sfumato.learning.silence import silence
from sfumato.learning.training import Training
from sfumato.learning.unchanged import Unchanged

__all__ = ["GraphRun", "sent_rows"]


class GraphRun(Run):
    """One charged run of a graph network. Sensitive: all of it until it is released.

    Guarantee: that of :class:`~sfumato.learning.run.Run`, and what the hops tell is covered by the same charge: they
    are made once, after the last step and before the state that the end is read from. A process that dies before that
    state was written has told nothing of them. The message of a node is computed from its row alone, by itself, so that
    nobody else's row changes a bit of it; one that the model cannot compute is all zeros.
    """

    RUNS: ClassVar[type[Training]] = GraphTraining

    def finish(self, model: nn.Module) -> Release:
        """Make the hops, if they were not made; then as every run."""
        self._check_usable()
        network = self._network
        if not torch.isfinite(network.spread):
            check_nobody_listens(strict=self._strict)
            with self._unbroken():
                self._attempted(self._passed_on)
        return super().finish(model)

    def _prepare(self) -> None:
        super()._prepare()
        self._recorded, self._on_device = None, None

    @property
    def _network(self) -> GraphNetwork:
        assert isinstance(self._model, GraphNetwork)  # noqa: S101 - for the reader of types
        return self._model

    def _passed_on(self) -> None:
        """All hops, with their noise, into the private copy of the network."""
        query, noise, nodes = self._run, self._opened.mechanism, self._units
        assert isinstance(query, GraphTraining) and isinstance(noise, NoisyGraphSums)  # noqa: PT018, S101 - as above
        assert isinstance(nodes, GraphNodes)  # noqa: S101 - as above
        most = query.message_steps(noise, self._gate.unit)
        spread = WIDTH / most
        with silence():
            rows = nodes.read(self._gate.secret(f"rows of {query.dataset.name}"), recipients=query.recipients)
            own = list(with_labels(torch.stack(self._directions(rows)), rows.labels)) if len(rows.names) else []
            places = np.array([nodes.places.get(name, 0) for name in rows.names], dtype=np.int64)  # type: ignore[arg-type]  # nobody is in no roster
            heard, made = np.zeros((len(rows.names), query.classes)), []
            for _ in range(query.hops):
                messages = sent_rows(own, heard / (1 + spread**2), most)
                told = noisy(gathered(messages, rows.sent, query.names_listed), self._words)
                made.append(told / most)
                heard = heard + made[-1][places]
        network = self._network
        with torch.no_grad():
            network.gathered.copy_(torch.from_numpy(np.stack(made)))
            network.spread.fill_(spread)

    def _directions(self, rows: NodeRows) -> list[Tensor]:
        """Where each node points by its own features, each computed by itself."""
        encoder = self._network.encoder
        was = encoder.training
        encoder.eval()
        code = LibraryCode(encoder, nn.functional.cross_entropy)
        kept = Unchanged(self._model)
        nothing = torch.zeros(self._network.gathered.shape[2], dtype=torch.float64)

        def one(row: Tensor) -> Tensor:
            def scored() -> Tensor:
                with torch.no_grad():
                    found = encoder(row[None].to(self._device))
                    return direction(found.reshape(nothing.shape).detach().cpu())

            with self._draws.used():
                found = shielded(scored, code.kept() if code else kept, Unheard())
            return nothing if found is FAILED else found

        try:
            return [one(row) for row in rows.features.clone()]
        finally:
            encoder.train(was)


def sent_rows(own: list[Tensor], heard: np.ndarray[tuple[int, int], np.dtype[np.float64]], most: int) -> IntRows:
    """What each node sends: its own direction and what it heard so far, held to the length of a message."""
    found = [held_message(one.numpy() + other, most) for one, other in zip(own, heard, strict=True)]
    return np.array(found, dtype=np.int64).reshape(len(own), heard.shape[1])
