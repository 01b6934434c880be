"""All ways out that are attacked, in the order of the table."""

from sfumato.audit.ways import WayOut
from sfumato.audit.ways_graphs import GRAPHS, STREAMS
from sfumato.audit.ways_local import LOCAL
from sfumato.audit.ways_tables import SYNTHETIC, TABLES
from sfumato.audit.ways_training import TRAINING

__all__ = ["WAYS"]

WAYS: tuple[WayOut, ...] = (*TABLES, *STREAMS, *GRAPHS, *LOCAL, *SYNTHETIC, *TRAINING)
