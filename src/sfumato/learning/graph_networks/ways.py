"""Which trainer a graph network has, by its method."""

from fractions import Fraction

from torch import nn

from sfumato.core.exact import Exact
from sfumato.core.units import Edge
from sfumato.errors import InvalidInput
from sfumato.gate.session import SessionGate
from sfumato.learning.clip_groups import Clip
from sfumato.learning.graph_networks.edge_trainer import EdgeTrainer
from sfumato.learning.graph_networks.graph_trainer import GraphTrainer
from sfumato.learning.graph_networks.nodes import GraphNodes
from sfumato.learning.graph_networks.subgraph_trainer import SubgraphTrainer

__all__ = ["graph_trainer"]

SHARE, RECIPIENTS = Fraction(1, 5), 3


def graph_trainer(
    gate: SessionGate,
    model: nn.Module | None,
    data: GraphNodes,
    *,
    recipients: int | None,
    hops: int,
    share: Exact | None,
    clip: Clip,
    method: str,
) -> GraphTrainer | SubgraphTrainer | EdgeTrainer:
    """The trainer of a graph network in a vault; reads nothing and spends nothing."""
    if isinstance(gate.unit, Edge):
        if method != "propagate" or recipients is not None or share is not None or clip != 1:
            raise InvalidInput(
                "in a vault of links every link counts, and all that was asked for goes to hops; nothing was done. "
                "Leave recipients, share, clip and method out."
            )
        return EdgeTrainer(gate, model, data=data, hops=hops)
    recipients = RECIPIENTS if recipients is None else recipients
    if method == "propagate":
        part = SHARE if share is None else share
        return GraphTrainer(gate, model, data=data, recipients=recipients, hops=hops, share=part, clip=clip)
    if method != "subgraphs":
        raise InvalidInput("method is 'propagate' or 'subgraphs'; nothing was done.")
    if share is not None:
        raise InvalidInput("share is the part of hops, and subgraphs pass nothing on; nothing was done. Leave it out.")
    return SubgraphTrainer(gate, model, data=data, recipients=recipients, hops=hops, clip=clip)
