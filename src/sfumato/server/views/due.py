"""The ledger as pages show it: without what came of jobs whose deadline has not come."""

from sfumato.server.asking.desk import desk_of
from sfumato.server.service import Service
from sfumato.server.views.snapshot import Snapshot, snapshot_of

__all__ = ["due_snapshot"]


def due_snapshot(service: Service) -> Snapshot:
    """The snapshot of a service's ledger without charges and answers that are not due; all pages take it."""
    return desk_of(service).undue.without(snapshot_of(service.ledger))
