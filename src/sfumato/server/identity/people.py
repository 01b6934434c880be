"""People: who may sign in, what they are here, and which accounts of the ledger they may charge."""

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from sfumato.core.query import check_name
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.governance.terms import levels_of
from sfumato.server.database import Database
from sfumato.server.identity import passwords
from sfumato.server.identity.tables import PEOPLE, SESSIONS, TOKENS
from sfumato.server.roles import ServiceRole

__all__ = ["BELOW", "Person", "PersonRegister", "charges", "listed", "written_roles"]

BELOW = "/*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who may sign in. ``accounts`` are paths of the ledger; with ``/*`` all below one."""

    login: str
    shown: str
    roles: frozenset[ServiceRole]
    accounts: tuple[str, ...] = ()
    closed: bool = False
    by_password: bool = False
    by_provider: bool = False


class PersonRegister:
    """All people of a service."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> tuple[Person, ...]:
        """Everybody, by name."""
        with self._database.reading() as connection:
            return tuple(_person(row) for row in connection.execute(sa.select(PEOPLE).order_by(PEOPLE.c.login)))

    def get(self, login: str) -> Person | None:
        """Somebody by the name that they sign in with."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(PEOPLE).where(PEOPLE.c.login == login)).first()
        return None if row is None else _person(row)

    def add(
        self,
        login: str,
        *,
        shown: str,
        roles: Iterable[ServiceRole],
        accounts: Iterable[str] = (),
        password: str | None = None,
        issuer: str | None = None,
        subject: str | None = None,
    ) -> Person:
        """Let somebody sign in, by a password or as a subject of an institution's provider."""
        check_name(shown, "the name of a person")
        if not login.isascii() or not login.replace("-", "").replace(".", "").replace("_", "").isalnum():
            raise InvalidInput(
                "a sign-in name has letters of ASCII, digits, dots and hyphens; nobody was added. Choose another one."
            )
        row = {
            "login": login.lower()[:100],
            "shown": shown[:200],
            "roles": written_roles(roles),
            "accounts": "\n".join(_checked(accounts)),
            "password": None if password is None else passwords.hashed(password),
            "issuer": issuer,
            "subject": subject,
            "closed": False,
        }
        try:
            with self._database.writing() as connection:
                connection.execute(sa.insert(PEOPLE).values(row))
        except sa.exc.IntegrityError:
            raise Refused(f"there is somebody called {login!r} already; nobody was added.") from None
        return self._known(login.lower())

    def change(self, login: str, *, roles: Iterable[ServiceRole], accounts: Iterable[str], closed: bool) -> Person:
        """Say anew what somebody is; whoever is closed is signed out everywhere, and their tokens end."""
        self._known(login)
        changed = {"roles": written_roles(roles), "accounts": "\n".join(_checked(accounts)), "closed": closed}
        with self._database.writing() as connection:
            connection.execute(sa.update(PEOPLE).where(PEOPLE.c.login == login).values(changed))
            if closed:
                connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.login == login))
                connection.execute(sa.delete(TOKENS).where(TOKENS.c.login == login))
        return self._known(login)

    def set_password(self, login: str, password: str) -> None:
        """Give somebody a new password; all their sessions end."""
        self._known(login)
        kept = passwords.hashed(password)
        with self._database.writing() as connection:
            connection.execute(sa.update(PEOPLE).where(PEOPLE.c.login == login).values(password=kept))
            connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.login == login))

    def by_password(self, login: str, password: str) -> Person | None:
        """Whoever signs in with this name and this password; as slow where there is no such name."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(PEOPLE).where(PEOPLE.c.login == login.lower())).first()
        right = passwords.checked(None if row is None or row.closed else row.password, password)
        return _person(row) if right and row is not None else None

    def by_subject(self, issuer: str, subject: str) -> Person | None:
        """Whoever a provider means by a subject; names and addresses of mail that it states are not looked at."""
        chosen = sa.select(PEOPLE).where(PEOPLE.c.issuer == issuer, PEOPLE.c.subject == subject)
        with self._database.reading() as connection:
            row = connection.execute(chosen).first()
        return None if row is None or row.closed else _person(row)

    def _known(self, login: str) -> Person:
        person = self.get(login)
        if person is None:
            raise NotDeclared(f"nobody is called {login!r} here; nothing was changed.")
        return person


def charges(accounts: Iterable[str], path: str) -> bool:
    """Whether an account of the ledger is among those listed, by itself or below one.

    >>> charges(["hospital/heart/*"], "hospital/heart/stents"), charges(["hospital/heart/*"], "hospital/heart")
    (True, False)
    """
    above = levels_of(path)[:-1]
    return any(each == path or each in {f"{level}{BELOW}" for level in above} for each in accounts)


def written_roles(roles: Iterable[ServiceRole]) -> str:
    """Roles as one word each; everybody is public, and that is not written."""
    return " ".join(sorted({ServiceRole(role).value for role in roles} - {ServiceRole.PUBLIC.value}))


def listed(text: str) -> tuple[str, ...]:
    """The lines of a text that are not blank."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _checked(accounts: Iterable[str]) -> list[str]:
    found = [account.strip() for account in accounts]
    for account in found:
        levels_of(account.removesuffix(BELOW))
    return found


def _person(row: sa.Row[tuple[object, ...]]) -> Person:
    return Person(
        login=row.login,
        shown=row.shown,
        roles=frozenset({ServiceRole.PUBLIC, *map(ServiceRole, row.roles.split())}),
        accounts=listed(row.accounts),
        closed=row.closed,
        by_password=row.password is not None,
        by_provider=row.subject is not None,
    )
