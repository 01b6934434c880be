"""Signing in and out, and proving once more who one is."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from sfumato.server.identity.people import Person
from sfumato.server.identity.sessions import NOW
from sfumato.server.problems import problem
from sfumato.server.rendering import SESSION_COOKIE, render
from sfumato.server.roles import EVERYONE, SIGNED_IN
from sfumato.server.security import cookie_of
from sfumato.server.service import Service
from sfumato.server.visitors import AskedBy, AskedService, Visitor

__all__ = ["ROUTES", "router", "safe_next", "signed_in"]

router = APIRouter()
ROUTES = {
    "identity.sign_in": EVERYONE,
    "identity.sign_in.submit": EVERYONE,
    "identity.link": EVERYONE,
    "identity.link.submit": EVERYONE,
    "identity.sign_out": SIGNED_IN,
    "identity.confirm": SIGNED_IN,
    "identity.confirm.submit": SIGNED_IN,
}
MOST = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInPage:
    """The form in which people say who they are. ``wrong`` is said in the same words whatever was wrong."""

    login: str
    next: str
    wrong: bool
    demo: tuple[Person, ...]
    provider: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmPage:
    """The form in which somebody proves once more who they are."""

    next: str
    wrong: bool
    by_password: bool
    provider: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPage:
    """The one button of a link that signs somebody in once: a program that only looks at links must not use it up."""

    secret: str


def safe_next(address: str) -> str:
    """Where to go afterwards: a path of this service, and nothing else.

    >>> safe_next("/ask?x=1"), safe_next("//elsewhere.example"), safe_next("https://elsewhere.example")
    ('/ask?x=1', '/', '/')
    """
    inside = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if inside and len(address) <= MOST and address.isprintable() else "/"


def signed_in(
    request: Request, service: Service, person: Person, *, how: str, to: str, confirmed: float | None = NOW
) -> Response:
    """Begin a session for somebody, in place of the one that this browser had, and go on.

    ``confirmed`` is when they proved who they are, where that was not here and now.
    """
    before = request.cookies.get(SESSION_COOKIE)
    secret = service.sessions.begin(person.login, how=how, before=before, confirmed=confirmed)
    answer = RedirectResponse(safe_next(to), 303)
    answer.headers.append("set-cookie", cookie_of(SESSION_COOKIE, secret))
    return answer


@router.get("/sign-in", name="identity.sign_in")
def form(*, request: Request, next: str = "/", service: AskedService) -> Response:
    """The form."""
    return render(request, "identity/sign_in.html", _page(service, login="", to=next, wrong=False))


@router.post("/sign-in", name="identity.sign_in.submit")
def submit(
    *,
    request: Request,
    login: Annotated[str, Form(max_length=100)],
    password: Annotated[str, Form(max_length=1_000)],
    next: Annotated[str, Form()] = "/",
    service: AskedService,
) -> Response:
    """Look at a name and a password, as often as the throttle allows."""
    if not _may_try(request, service, login):
        return problem(request, 429, "often")
    person = service.people.by_password(login, password)
    if person is None:
        return render(request, "identity/sign_in.html", _page(service, login=login, to=next, wrong=True), status=403)
    service.sign_ins.forget(f"login {login.lower()}")
    return signed_in(request, service, person, how="password", to=next)


@router.get("/enter", name="identity.link")
def link(*, request: Request, secret: str = "") -> Response:
    """The page of a link that signs somebody in once."""
    return render(request, "identity/link.html", LinkPage(secret=secret[:200]))


@router.post("/enter", name="identity.link.submit")
def enter(*, request: Request, secret: Annotated[str, Form(max_length=200)], service: AskedService) -> Response:
    """Use such a link up."""
    login = service.sessions.use_link(secret)
    person = None if login is None else service.people.get(login)
    if person is None or person.closed:
        return problem(request, 403, "link")
    return signed_in(request, service, person, how="link", to="/")


@router.post("/sign-out", name="identity.sign_out")
def sign_out(*, service: AskedService, visitor: AskedBy) -> Response:
    """End this session."""
    if visitor.session is not None:
        service.sessions.end(visitor.session)
    answer = RedirectResponse("/", 303)
    answer.headers.append("set-cookie", cookie_of(SESSION_COOKIE, "", seconds=0))
    return answer


@router.get("/confirm", name="identity.confirm")
def confirm(
    *,
    request: Request,
    next: str = "/",
    service: AskedService,
    visitor: AskedBy,
) -> Response:
    """The form that is shown before a vote."""
    return render(request, "identity/confirm.html", _confirming(service, visitor, to=next, wrong=False))


@router.post("/confirm", name="identity.confirm.submit")
def confirmed(
    *,
    request: Request,
    password: Annotated[str, Form(max_length=1_000)],
    next: Annotated[str, Form()] = "/",
    service: AskedService,
    visitor: AskedBy,
) -> Response:
    """Look at a password once more; the session gets a new secret, so that an older copy of it is worth nothing."""
    login = str(visitor.name)
    if not _may_try(request, service, login):
        return problem(request, 429, "often")
    person = service.people.by_password(login, password)
    if person is None:
        page = _confirming(service, visitor, to=next, wrong=True)
        return render(request, "identity/confirm.html", page, status=403)
    return signed_in(request, service, person, how="password", to=next)


def _may_try(request: Request, service: Service, login: str) -> bool:
    """Take one try of a name, and one of the machine that asks where no proxy stands between."""
    where = None if request.client is None or service.settings.proxied else request.client.host
    return service.sign_ins.taken(f"login {login.lower()}") and (
        where is None or service.addresses.taken(f"from {where}")
    )


def _page(service: Service, *, login: str, to: str, wrong: bool) -> SignInPage:
    provider = service.settings.oidc
    return SignInPage(
        login=login,
        next=safe_next(to),
        wrong=wrong,
        demo=service.people.all() if service.settings.demo else (),
        provider=None if provider is None else provider.label,
    )


def _confirming(service: Service, visitor: Visitor, *, to: str, wrong: bool) -> ConfirmPage:
    person, provider = service.people.get(str(visitor.name)), service.settings.oidc
    return ConfirmPage(
        next=safe_next(to),
        wrong=wrong,
        by_password=person is not None and person.by_password,
        provider=provider.label if provider is not None and person is not None and person.by_provider else None,
    )
