"""Who asks: the person behind a request, or nobody in particular, with the roles that count for it."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from sfumato.server.identity.people import Person, charges
from sfumato.server.identity.sessions import Session
from sfumato.server.identity.tokens import Token
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service

__all__ = [
    "NOBODY_ROLES",
    "AskedBy",
    "AskedService",
    "ConfirmedBy",
    "NotConfirmed",
    "Visitor",
    "confirmed_visitor",
    "service_of",
    "visitor_of",
]

NOBODY_ROLES = frozenset({ServiceRole.PUBLIC})


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Who asks. ``name`` is how they sign in, None for who did not; ``accounts`` are what they may charge.

    ``signed_in`` is when their session began, ``confirmed`` whether they proved a short while ago who they are;
    ``token`` is the number of the token of a program.
    """

    lang: str
    name: str | None = None
    shown: str | None = None
    roles: frozenset[ServiceRole] = NOBODY_ROLES
    accounts: tuple[str, ...] = ()
    signed_in: float | None = None
    confirmed: bool = False
    session: Session | None = None
    token: int | None = None

    def is_any(self, *roles: ServiceRole) -> bool:
        """Whether they have one of these roles."""
        return not self.roles.isdisjoint(roles)

    def may_charge(self, account: str) -> bool:
        """Whether an account of the ledger is theirs to charge."""
        return charges(self.accounts, account)

    @classmethod
    def of_session(cls, person: Person, session: Session, *, lang: str, confirmed: bool) -> "Visitor":
        """Somebody who signed in."""
        return cls(
            lang=lang,
            name=person.login,
            shown=person.shown,
            roles=person.roles,
            accounts=person.accounts,
            signed_in=session.began,
            confirmed=confirmed,
            session=session,
        )

    @classmethod
    def of_token(cls, person: Person, token: Token, *, lang: str) -> "Visitor":
        """A program of somebody: with the roles of its token that its owner still has, and accounts likewise."""
        paths = tuple(path for path in token.accounts if path in person.accounts or charges(person.accounts, path))
        return cls(
            lang=lang,
            name=person.login,
            shown=person.shown,
            roles=(token.roles & person.roles) | NOBODY_ROLES,
            accounts=paths,
            token=token.number,
        )


def visitor_of(request: Request) -> Visitor:
    """Who asks, as the guard found it."""
    found: Visitor = request.state.visitor
    return found


def service_of(request: Request) -> Service:
    """The service that is asked."""
    found: Service = request.app.state.service
    return found


class NotConfirmed(Exception):
    """Somebody has to prove once more who they are before they go on."""


def confirmed_visitor(request: Request) -> Visitor:
    """Whoever asks, if they proved a short while ago who they are; otherwise they are asked to, and then come back.

    It is for what cannot be undone, such as votes: say it in the page with the form and in the route that it sends to.
    """
    visitor = visitor_of(request)
    if not visitor.confirmed:
        raise NotConfirmed
    return visitor


AskedService = Annotated[Service, Depends(service_of)]
AskedBy = Annotated[Visitor, Depends(visitor_of)]
ConfirmedBy = Annotated[Visitor, Depends(confirmed_visitor)]
"""What the routes of pages take: the service, who asks, and who asks and proved a short while ago who they are."""
