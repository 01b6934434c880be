"""The kinds of data that come with Sfumato: one line for each."""

from sfumato import boxes, federated, graphs, learning, local, streams, studies, synthesis, tables
from sfumato.core.data_kind import register

for kind in (
    boxes.KIND,
    federated.KIND,
    graphs.KIND,
    learning.KIND,
    local.KIND,
    streams.KIND,
    studies.KIND,
    synthesis.KIND,
    tables.KIND,
):
    register(kind)
