"""Administration: who may sign in and as what, how the service is, and why somebody may open a page or charge."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from sfumato.core.exact import decimal_up
from sfumato.errors import SfumatoError
from sfumato.governance.health import Health, health
from sfumato.server.identity.people import Person, charges, listed
from sfumato.server.identity.secrets import new_secret
from sfumato.server.rendering import MenuLink, render
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.visitors import AskedBy, AskedService, ConfirmedBy

__all__ = ["MENU", "ROUTES", "router"]

router = APIRouter()
ADMIN = frozenset({ServiceRole.ADMIN})
ROUTES = {
    "admin": ADMIN,
    "admin.person": ADMIN,
    "admin.add": ADMIN,
    "admin.change": ADMIN,
    "admin.link": ADMIN,
    "admin.why": ADMIN | {ServiceRole.AUDITOR},
    "admin.health": ADMIN | {ServiceRole.AUDITOR},
}
MENU = (
    MenuLink(route="admin", words="admin.menu", about="admin.about", place=80),
    MenuLink(route="admin.why", words="admin.why", about="admin.why_about", place=81),
    MenuLink(route="admin.health", words="admin.health", about="admin.health_about", place=82),
)
Say = Callable[..., str]
OFFERED = tuple(role for role in ServiceRole if role is not ServiceRole.PUBLIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRow:
    """Somebody as they are listed."""

    login: str
    shown: str
    roles: tuple[str, ...]
    accounts: tuple[str, ...]
    closed: bool
    way: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplePage:
    """Everybody who may sign in, and the form that lets one more in."""

    people: tuple[PersonRow, ...]
    roles: tuple[str, ...]
    issuer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonPage:
    """The form about somebody; ``link`` signs them in once, and is shown once."""

    person: PersonRow
    roles: tuple[str, ...]
    link: str | None
    myself: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A step on the way to an answer: what was asked, whether it holds, and what it rests on."""

    holds: bool
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyPage:
    """Why somebody may do something, or may not."""

    people: tuple[tuple[str, str], ...]
    routes: tuple[str, ...]
    login: str
    route: str
    account: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthPage:
    """How the service and its ledger are."""

    down: bool
    facts: tuple[tuple[str, str], ...]
    held: tuple[tuple[str, str, str, str], ...]
    """Charges without an answer whose slot is over: the entry, the account, ε, and for how long."""
    near: tuple[tuple[str, float, str], ...]
    attention: tuple[str, ...]


@router.get("/admin", name="admin")
def people(*, request: Request, service: AskedService) -> Response:
    """Everybody."""
    return render(request, "admin/people.html", _people(service))


@router.post("/admin/people", name="admin.add")
def add(
    *,
    request: Request,
    service: AskedService,
    visitor: ConfirmedBy,
    login: Annotated[str, Form(max_length=100)],
    shown: Annotated[str, Form(max_length=200)],
    roles: Annotated[tuple[ServiceRole, ...], Form()] = (),
    accounts: Annotated[str, Form(max_length=8_192)] = "",
    subject: Annotated[str, Form(max_length=300)] = "",
) -> Response:
    """Let somebody in: by a link that they use once and then choose a password, or as a subject of the provider."""
    provider = service.settings.oidc
    by_provider = bool(subject.strip()) and provider is not None
    person = service.people.add(
        login,
        shown=shown,
        roles=roles,
        accounts=listed(accounts),
        password=None if by_provider else new_secret(),
        issuer=provider.issuer if by_provider and provider is not None else None,
        subject=subject.strip() if by_provider else None,
    )
    return RedirectResponse(f"/admin/people/{person.login}", 303)


@router.get("/admin/people/{login}", name="admin.person")
def person(*, request: Request, service: AskedService, visitor: AskedBy, login: str) -> Response:
    """Somebody."""
    return render(request, "admin/person.html", _person(service, login, visitor.name, link=None))


@router.post("/admin/people/{login}", name="admin.change")
def change(
    *,
    service: AskedService,
    visitor: ConfirmedBy,
    login: str,
    roles: Annotated[tuple[ServiceRole, ...], Form()] = (),
    accounts: Annotated[str, Form(max_length=8_192)] = "",
    closed: Annotated[bool, Form()] = False,
) -> Response:
    """Say anew what somebody is; nobody shuts themselves out."""
    mine = login == visitor.name
    wanted = {*roles, ServiceRole.ADMIN} if mine else set(roles)
    service.people.change(login, roles=wanted, accounts=listed(accounts), closed=closed and not mine)
    return RedirectResponse(f"/admin/people/{login}", 303)


@router.post("/admin/people/{login}/link", name="admin.link")
def link(*, request: Request, service: AskedService, visitor: ConfirmedBy, login: str) -> Response:
    """Make a link that signs somebody in once, so that they can choose a password."""
    page = _person(service, login, visitor.name, link=None)
    if page.person.closed or page.myself:
        raise HTTPException(404)
    address = f"{service.settings.address}enter?secret={service.sessions.new_link(login)}"
    return render(request, "admin/person.html", _person(service, login, visitor.name, link=address), status=201)


@router.get("/admin/why", name="admin.why")
def why(*, request: Request, service: AskedService, login: str = "", route: str = "", account: str = "") -> Response:
    """Say why somebody may open a page, or charge an account, step by step."""
    matrix: Mapping[str, frozenset[ServiceRole]] = request.app.state.matrix
    say = service.words(request.state.visitor.lang).say
    person = service.people.get(login) if login else None
    reasons: list[Reason] = []
    if login:
        reasons.append(Reason(holds=person is not None, words=say("admin.why_known", name=login)))
    if person is not None:
        reasons.append(Reason(holds=not person.closed, words=say("admin.why_open")))
        if route in matrix:
            reasons.append(_by_role(say, person, route, matrix[route]))
        if account.strip():
            reasons += _by_account(service, say, person, account.strip())
    page = WhyPage(
        people=tuple((each.login, each.shown) for each in service.people.all()),
        routes=tuple(sorted(matrix)),
        login=login,
        route=route,
        account=account,
        reasons=tuple(reasons),
    )
    return render(request, "admin/why.html", page)


@router.get("/admin/health", name="admin.health")
def how_it_is(*, request: Request, service: AskedService) -> Response:
    """How the service is."""
    say = service.words(request.state.visitor.lang).say
    try:
        found = health(service.ledger)
    except SfumatoError:
        return render(request, "admin/health.html", HealthPage(down=True, facts=(), held=(), near=(), attention=()))
    facts = (
        (say("admin.entries"), f"{found.entries:,}"),
        (say("admin.unanchored"), f"{found.unanchored:,}"),
        (say("admin.open_charges"), f"{found.open_charges:,}"),
        (say("admin.people_count"), f"{len(service.people.all()):,}"),
        (say("admin.datasets"), f"{len(service.datasets):,}"),
        (say("admin.key"), service.ledger.public_key),
        (say("admin.release_key"), service.release_public_key),
    )
    used = sorted(found.used, key=lambda each: -each[2])[:8]
    page = HealthPage(
        down=False,
        facts=facts,
        held=tuple(_held(service, found)),
        near=tuple((f"{kind} {name}", float(share), f"{float(share):.0%}") for kind, name, share in used),
        attention=found.attention(),
    )
    return render(request, "admin/health.html", page)


def _held(service: Service, found: Health) -> Iterator[tuple[str, str, str, str]]:
    """Open charges whose slot is over; while it is not, how long an answer takes would be seen."""
    for charge in found.held:
        if charge.seconds > 2 * service.settings.slot_seconds:
            age = str(timedelta(seconds=charge.seconds))
            yield f"{charge.number:,}", charge.account, decimal_up(charge.cost.epsilon), age


def _by_role(say: Say, person: Person, route: str, allowed: frozenset[ServiceRole]) -> Reason:
    names = ", ".join(say(f"role.{role}") for role in sorted(allowed))
    held = ", ".join(say(f"role.{role}") for role in sorted(person.roles - {ServiceRole.PUBLIC} or person.roles))
    return Reason(holds=bool(person.roles & allowed), words=say("admin.why_role", route=route, roles=names, held=held))


def _by_account(service: Service, say: Say, person: Person, account: str) -> list[Reason]:
    """Whether an account is theirs to charge, whether it is there, and what is left in it and above it."""
    reasons = []
    try:
        held = charges(person.accounts, account)
        analyst = ServiceRole.ANALYST in person.roles
        reasons.append(Reason(holds=held and analyst, words=say("admin.why_account", account=account)))
        levels = account.split("/")
        for place in range(len(levels)):
            path = "/".join(levels[: place + 1])
            left = service.ledger.balance(path).left
            words = say("admin.why_left", account=path, left=decimal_up(left.epsilon))
            reasons.append(Reason(holds=left.epsilon > 0, words=words))
    except SfumatoError:
        reasons.append(Reason(holds=False, words=say("admin.why_no_account", account=account)))
    return reasons


def _people(service: Service) -> PeoplePage:
    provider = service.settings.oidc
    return PeoplePage(
        people=tuple(map(_row, service.people.all())),
        roles=tuple(role.value for role in OFFERED),
        issuer=None if provider is None else provider.label,
    )


def _person(service: Service, login: str, myself: str | None, *, link: str | None) -> PersonPage:
    found = service.people.get(login)
    if found is None:
        raise HTTPException(404)
    return PersonPage(
        person=_row(found), roles=tuple(role.value for role in OFFERED), link=link, myself=login == myself
    )


def _row(person: Person) -> PersonRow:
    return PersonRow(
        login=person.login,
        shown=person.shown,
        roles=tuple(sorted(role.value for role in person.roles - {ServiceRole.PUBLIC})),
        accounts=person.accounts,
        closed=person.closed,
        way="provider" if person.by_provider else "password",
    )
