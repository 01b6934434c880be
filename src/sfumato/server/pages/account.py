"""What people see of themselves: what they are here, their sessions, their tokens for programs, their password."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from sfumato.server.identity.people import listed
from sfumato.server.identity.sessions import Session
from sfumato.server.identity.tokens import Token
from sfumato.server.problems import problem
from sfumato.server.rendering import SESSION_COOKIE, render
from sfumato.server.roles import SIGNED_IN, ServiceRole
from sfumato.server.security import cookie_of
from sfumato.server.service import Service
from sfumato.server.visitors import AskedBy, AskedService, ConfirmedBy, Visitor

__all__ = ["ROUTES", "router", "written"]

router = APIRouter()
ROUTES = {
    "account": SIGNED_IN,
    "account.token": SIGNED_IN,
    "account.revoke": SIGNED_IN,
    "account.password": SIGNED_IN,
    "account.sign_out_everywhere": SIGNED_IN,
}
DAYS = (7, 30, 90, 366)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """A token as it is listed."""

    number: int
    label: str
    roles: tuple[str, ...]
    accounts: tuple[str, ...]
    ends: str
    used: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A session as it is listed."""

    began: str
    how: str
    this: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPage:
    """What somebody sees of themselves; ``secret`` is that of a token that was made just now, shown once."""

    login: str
    roles: tuple[str, ...]
    accounts: tuple[str, ...]
    tokens: tuple[TokenRow, ...]
    sessions: tuple[SessionRow, ...]
    days: tuple[int, ...]
    by_password: bool
    by_link: bool
    secret: str | None


def written(seconds: float) -> str:
    """A moment, in universal time.

    >>> written(0)
    '1970-01-01 00:00 UTC'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


@router.get("/account", name="account")
def account(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """The page."""
    return render(request, "account.html", _page(service, visitor, secret=None))


@router.post("/account/tokens", name="account.token")
def make_token(
    *,
    request: Request,
    label: Annotated[str, Form(max_length=100)],
    roles: Annotated[list[ServiceRole], Form()],
    accounts: Annotated[str, Form(max_length=4_096)] = "",
    days: Annotated[int, Form()] = 30,
    service: AskedService,
    visitor: ConfirmedBy,
) -> Response:
    """Make a token, and show its secret this once."""
    person = service.people.get(str(visitor.name))
    if person is None:
        return problem(request, 403, "role")
    secret, _ = service.tokens.make(person, label=label, roles=roles, accounts=listed(accounts), days=days)
    return render(request, "account.html", _page(service, visitor, secret=secret), status=201)


@router.post("/account/tokens/{number}/revoke", name="account.revoke")
def revoke(*, number: int, service: AskedService, visitor: AskedBy) -> Response:
    """End a token of one's own."""
    service.tokens.revoke(str(visitor.name), number)
    return RedirectResponse("/account", 303)


@router.post("/account/password", name="account.password")
def password(
    *,
    request: Request,
    new: Annotated[str, Form(max_length=1_000)],
    now: Annotated[str, Form(max_length=1_000)] = "",
    service: AskedService,
    visitor: AskedBy,
) -> Response:
    """Take another password: every session ends, and this browser has a new one."""
    login = str(visitor.name)
    if not service.sign_ins.taken(f"login {login}"):
        return problem(request, 429, "often")
    if not _by_link(visitor) and service.people.by_password(login, now) is None:
        return problem(request, 403, "password")
    service.people.set_password(login, new)
    answer = RedirectResponse("/account", 303)
    secret = service.sessions.begin(login, how="password")
    answer.headers.append("set-cookie", cookie_of(SESSION_COOKIE, secret))
    return answer


@router.post("/account/sign-out-everywhere", name="account.sign_out_everywhere")
def sign_out_everywhere(*, service: AskedService, visitor: AskedBy) -> Response:
    """End all sessions of oneself, this one too."""
    service.sessions.end_all(str(visitor.name))
    answer = RedirectResponse("/", 303)
    answer.headers.append("set-cookie", cookie_of(SESSION_COOKIE, "", seconds=0))
    return answer


def _page(service: Service, visitor: Visitor, *, secret: str | None) -> AccountPage:
    login, person = str(visitor.name), service.people.get(str(visitor.name))
    return AccountPage(
        login=login,
        roles=tuple(sorted(role.value for role in visitor.roles - {ServiceRole.PUBLIC})),
        accounts=visitor.accounts,
        tokens=tuple(map(_token, service.tokens.of(login))),
        sessions=tuple(_session_row(each, visitor.session) for each in service.sessions.of(login)[:20]),
        days=DAYS,
        by_password=person is not None and person.by_password,
        by_link=_by_link(visitor),
        secret=secret,
    )


def _by_link(visitor: Visitor) -> bool:
    """Whether somebody came by a link a short while ago, as those do who are new or forgot their password."""
    return visitor.session is not None and visitor.session.how == "link" and visitor.confirmed


def _token(token: Token) -> TokenRow:
    return TokenRow(
        number=token.number,
        label=token.label,
        roles=tuple(sorted(role.value for role in token.roles)),
        accounts=token.accounts,
        ends=written(token.ends),
        used=None if token.used is None else written(token.used),
    )


def _session_row(session: Session, this: Session | None) -> SessionRow:
    mine = this is not None and session.digest == this.digest
    return SessionRow(began=written(session.began), how=session.how, this=mine)
