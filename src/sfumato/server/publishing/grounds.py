"""The grounds of publications in the service's own tables: who put which release on record, why, and on which basis."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from sfumato.reports.publication import Grounds
from sfumato.server.database import Database
from sfumato.server.publishing.tables import PUBLICATIONS

__all__ = ["Publications", "StatedGrounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedGrounds:
    """What somebody put on record for a release, and when."""

    identifier: str
    grounds: Grounds
    by: str
    at: float


class Publications:
    """The publications of a service; what was withdrawn stays in the table, and is not shown."""

    def __init__(self, database: Database, *, now: Callable[[], float]) -> None:
        self._database, self._now = database, now

    def put(self, identifier: str, grounds: Grounds, *, by: str) -> None:
        """Put a release on record for publication; refused while its reason or its legal basis is missing."""
        grounds.check("a release for everybody")
        row = {
            "identifier": identifier,
            "reason": grounds.reason,
            "legal_basis": grounds.legal_basis,
            "by": by,
            "at": self._now(),
            "withdrawn": None,
        }
        with self._database.writing() as connection:
            connection.execute(sa.delete(PUBLICATIONS).where(PUBLICATIONS.c.identifier == identifier))
            connection.execute(sa.insert(PUBLICATIONS).values(**row))

    def withdraw(self, identifier: str) -> None:
        """Show a release no longer; whoever has its certificate keeps it."""
        with self._database.writing() as connection:
            connection.execute(
                sa.update(PUBLICATIONS).where(PUBLICATIONS.c.identifier == identifier).values(withdrawn=self._now())
            )

    def all(self) -> Mapping[str, StatedGrounds]:
        """Those that stand, by the identifier of their release."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(PUBLICATIONS).where(PUBLICATIONS.c.withdrawn.is_(None))).all()
        return {
            row.identifier: StatedGrounds(
                identifier=row.identifier,
                grounds=Grounds(reason=row.reason, legal_basis=row.legal_basis),
                by=row.by,
                at=row.at,
            )
            for row in rows
        }
