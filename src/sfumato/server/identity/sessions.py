"""Sessions: kept by the service, found by the digest of a cookie, and ended at once where somebody says so."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

from sfumato.server.database import Database
from sfumato.server.identity.secrets import digest_of, new_secret
from sfumato.server.identity.tables import LINKS, SESSIONS

__all__ = ["NOW", "Session", "Sessions"]

NOW = math.inf
"""No time is later: whoever begins a session now has proved now who they are."""
RARELY = 30.0
"""Seconds after which it is written again that a session is still used."""
LINK_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A browser in which somebody signed in. ``confirmed`` is when they last proved again who they are."""

    digest: str
    login: str
    began: float
    seen: float
    confirmed: float | None
    how: str


class Sessions:
    """All sessions. Guarantee: an ended session is refused from the next request on, in every process."""

    def __init__(
        self, database: Database, *, idle: float, longest: float, confirmed: float, now: Callable[[], float]
    ) -> None:
        self._database, self._idle, self._longest, self._now = database, idle, longest, now
        self._confirmed = confirmed

    def begin(self, login: str, *, how: str, before: str | None = None, confirmed: float | None = NOW) -> str:
        """Begin a session and return its secret; the one ``before`` ends, so that nobody keeps what they planted.

        ``confirmed`` is when somebody proved who they are, where that was not here and now, and None if nobody knows.
        """
        secret, now = new_secret(), self._now()
        proven = None if confirmed is None else min(confirmed, now)
        row = {"digest": digest_of(secret), "login": login, "began": now, "seen": now, "confirmed": proven, "how": how}
        with self._database.writing() as connection:
            if before is not None:
                connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.digest == digest_of(before)))
            connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.began < now - self._longest))
            connection.execute(sa.insert(SESSIONS).values(row))
        return secret

    def find(self, secret: str) -> Session | None:
        """The session of a cookie, if it has not ended and was used of late."""
        chosen = sa.select(SESSIONS).where(SESSIONS.c.digest == digest_of(secret))
        with self._database.reading() as connection:
            row = connection.execute(chosen).first()
        now = self._now()
        if row is None or row.seen < now - self._idle or row.began < now - self._longest:
            return None
        if row.seen < now - RARELY:
            with self._database.writing() as connection:
                connection.execute(sa.update(SESSIONS).where(SESSIONS.c.digest == row.digest).values(seen=now))
        return Session(**row._mapping)

    def confirm(self, session: Session) -> None:
        """Write that somebody has just proved again who they are."""
        with self._database.writing() as connection:
            chosen = sa.update(SESSIONS).where(SESSIONS.c.digest == session.digest)
            connection.execute(chosen.values(confirmed=self._now()))

    def is_confirmed(self, session: Session) -> bool:
        """Whether somebody proved who they are a short while ago, as votes ask for."""
        return session.confirmed is not None and session.confirmed >= self._now() - self._confirmed

    def end(self, session: Session) -> None:
        """End a session."""
        with self._database.writing() as connection:
            connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.digest == session.digest))

    def end_all(self, login: str) -> None:
        """End all sessions of somebody."""
        with self._database.writing() as connection:
            connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.login == login))

    def of(self, login: str) -> tuple[Session, ...]:
        """The sessions of somebody, the newest first."""
        chosen = sa.select(SESSIONS).where(SESSIONS.c.login == login).order_by(SESSIONS.c.began.desc())
        with self._database.reading() as connection:
            return tuple(Session(**row._mapping) for row in connection.execute(chosen))

    def new_link(self, login: str) -> str:
        """A secret that signs somebody in once, within an hour."""
        secret = new_secret()
        row = {"digest": digest_of(secret), "login": login, "ends": self._now() + LINK_SECONDS}
        with self._database.writing() as connection:
            connection.execute(sa.insert(LINKS).values(row))
        return secret

    def use_link(self, secret: str) -> str | None:
        """Whom a link signs in; it is gone afterwards."""
        digest = digest_of(secret)
        with self._database.writing() as connection:
            row = connection.execute(sa.select(LINKS).where(LINKS.c.digest == digest)).first()
            connection.execute(sa.delete(LINKS).where(LINKS.c.digest == digest))
        return None if row is None or row.ends < self._now() else str(row.login)
