"""Rooted subgraphs as units: each labelled node with the means of what reached it, hop by hop."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato.learning.graph_networks.nodes import GraphNodes
from sfumato.learning.graph_networks.recipients import Sent
from sfumato.learning.graph_networks.subgraph_training import check_one_row_a_name
from sfumato.learning.laid import Laid

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.core.units import Unit

__all__ = ["Subgraphs", "reached"]

FloatRows = npt.NDArray[np.float32]


def reached(features: FloatRows, places: npt.NDArray[np.int64], sent: Sent, names: int, hops: int) -> FloatRows:
    """The features of each node and, for each hop, the mean of what its senders had: (nodes, width · (hops + 1)).

    ``places`` is where each node is in the roster. Guarantee: a row depends on the nodes of its own rooted subgraph
    alone, to the last bit: sums go in the order of the senders. Sensitive.

    >>> to = Sent(rows=np.array([0, 1]), places=np.array([2, 2]))
    >>> reached(np.array([[1.0], [3.0], [5.0]], dtype="f4"), np.arange(3), to, 3, 1).tolist()
    [[1.0, 0.0], [3.0, 0.0], [5.0, 2.0]]
    """
    counts = np.maximum(1, np.bincount(sent.places, minlength=names))[:, None].astype(np.float32)
    found = [np.asarray(features, dtype=np.float32)]
    for _ in range(hops):
        total = np.zeros((names, features.shape[1]), dtype=np.float32)
        np.add.at(total, sent.places, found[-1][sent.rows])
        found.append((total / counts)[places])
    return np.concatenate(found, axis=1)


class Subgraphs:
    """Nodes whose units are rooted subgraphs, in a vault of users. Sensitive: what is laid out, after the charge.

    Guarantee: of each name one row is a root, whatever the data hold.
    """

    kind, times, max_records_per_unit = "record", 1, 1

    def __init__(self, nodes: GraphNodes, unit: "Unit", *, recipients: int, hops: int) -> None:
        check_one_row_a_name(unit)
        self._nodes, self._recipients, self._hops = nodes.within(unit), recipients, hops
        self.dataset, self.n_units = nodes.dataset, nodes.n_units

    def __repr__(self) -> str:
        return f"<rooted subgraphs of {self._nodes!r}>"

    def check(self, unit: "Unit") -> None:
        """Refuse a vault that does not protect users; reads nothing."""
        check_one_row_a_name(unit)

    def check_home(self, notary: object) -> None:
        """As nodes."""

    def example(self, size: int) -> "tuple[tuple[Tensor, ...], Tensor, Tensor]":
        """Made-up subgraphs. Public."""
        import torch

        (features,), targets, present = self._nodes.example(size)
        return (torch.cat([features] * (self._hops + 1), dim=1),), targets, present

    def laid(self, key: bytes) -> Laid:
        """The roots with a label, each with what reached it. Called after the charge. Sensitive: all."""
        import torch

        rows = self._nodes.read(key, recipients=self._recipients)
        places = np.array([self._nodes.places.get(name, 0) for name in rows.names], dtype=np.int64)  # type: ignore[arg-type]  # nobody is in no roster
        found = reached(rows.features.numpy(), places, rows.sent, len(self._nodes.places), self._hops)
        known = (rows.labels >= 0) & (rows.labels < self._nodes.classes)
        return Laid((torch.from_numpy(found)[known],), rows.labels[known], int(known.sum()))
