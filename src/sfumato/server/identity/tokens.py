"""Tokens: what a program says in place of signing in. Each has some of its owner's roles, and an end."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from sfumato.core.query import check_name
from sfumato.errors import InvalidInput, Refused
from sfumato.server.database import Database
from sfumato.server.identity.people import Person, charges, listed, written_roles
from sfumato.server.identity.secrets import digest_of, new_secret
from sfumato.server.identity.tables import TOKENS
from sfumato.server.roles import ServiceRole

__all__ = ["PREFIX", "Token", "Tokens"]

PREFIX = "sfm_"
"""So that programs which look for secrets in files find it."""
MOST_DAYS = 366
MOST_TOKENS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is known of a token; its secret is not kept."""

    number: int
    login: str
    label: str
    roles: frozenset[ServiceRole]
    accounts: tuple[str, ...]
    made: float
    ends: float
    used: float | None


class Tokens:
    """All tokens. Guarantee: a token never opens more than its owner may at that moment."""

    def __init__(self, database: Database, *, now: Callable[[], float]) -> None:
        self._database, self._now = database, now

    def make(
        self, owner: Person, *, label: str, roles: Iterable[ServiceRole], accounts: Iterable[str], days: int
    ) -> tuple[str, Token]:
        """Make a token and return its secret, which is shown once, and what is kept of it."""
        check_name(label, "the label of a token")
        wanted, paths = frozenset(roles) - {ServiceRole.PUBLIC}, tuple(accounts)
        if not 1 <= days <= MOST_DAYS:
            raise InvalidInput(f"a token lasts from 1 to {MOST_DAYS} days; none was made.")
        if not wanted or not wanted <= owner.roles:
            raise Refused("a token has one or more of the roles that you have; none was made. Choose among yours.")
        if not all(path in owner.accounts or charges(owner.accounts, path) for path in paths):
            raise Refused("a token charges accounts that you may charge; none was made. Choose among yours.")
        secret, now = PREFIX + new_secret(), self._now()
        with self._database.writing() as connection:
            held = connection.scalar(sa.select(sa.func.count()).where(TOKENS.c.login == owner.login))
            if held is not None and held >= MOST_TOKENS:
                raise Refused(f"you have {held} tokens; none was made. Revoke one that is not used any more.")
            number = (connection.scalar(sa.select(sa.func.max(TOKENS.c.number))) or 0) + 1
            row = {
                "digest": digest_of(secret),
                "number": number,
                "login": owner.login,
                "label": label[:100],
                "roles": written_roles(wanted),
                "accounts": "\n".join(paths),
                "made": now,
                "ends": now + days * 86_400.0,
                "used": None,
            }
            connection.execute(sa.insert(TOKENS).values(row))
            made = connection.execute(sa.select(TOKENS).where(TOKENS.c.number == number)).one()
        return secret, _token(made)

    def find(self, secret: str) -> Token | None:
        """The token with a secret, if it has not ended."""
        if not secret.startswith(PREFIX):
            return None
        chosen = sa.select(TOKENS).where(TOKENS.c.digest == digest_of(secret))
        with self._database.reading() as connection:
            row = connection.execute(chosen).first()
        now = self._now()
        if row is None or row.ends < now:
            return None
        if row.used is None or row.used < now - 60:
            with self._database.writing() as connection:
                connection.execute(sa.update(TOKENS).where(TOKENS.c.digest == row.digest).values(used=now))
        return _token(row)

    def of(self, login: str) -> tuple[Token, ...]:
        """The tokens of somebody, the newest first."""
        chosen = sa.select(TOKENS).where(TOKENS.c.login == login).order_by(TOKENS.c.number.desc())
        with self._database.reading() as connection:
            return tuple(_token(row) for row in connection.execute(chosen))

    def revoke(self, login: str, number: int) -> None:
        """End a token of somebody; one of another is left alone, without a word."""
        with self._database.writing() as connection:
            connection.execute(sa.delete(TOKENS).where(TOKENS.c.login == login, TOKENS.c.number == number))


def _token(row: sa.Row[tuple[object, ...]]) -> Token:
    return Token(
        number=row.number,
        login=row.login,
        label=row.label,
        roles=frozenset(map(ServiceRole, row.roles.split())),
        accounts=listed(row.accounts),
        made=row.made,
        ends=row.ends,
        used=row.used,
    )
