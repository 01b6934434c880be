"""In the demonstration: be somebody else, to see what each role sees. Elsewhere there is no such page."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import Response

from sfumato.server.pages.identity import signed_in
from sfumato.server.rendering import render
from sfumato.server.roles import SIGNED_IN, ServiceRole
from sfumato.server.visitors import AskedBy, AskedService

__all__ = ["ROUTES", "router"]

router = APIRouter()
ROUTES = {"demo.people": SIGNED_IN, "demo.become": SIGNED_IN}


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPerson:
    """Somebody whom a visitor of the demonstration can be."""

    login: str
    shown: str
    roles: tuple[str, ...]
    this: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPeoplePage:
    """All people of the demonstration."""

    people: tuple[DemoPerson, ...]


@router.get("/people", name="demo.people")
def people(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """Choose whom to be."""
    if not service.settings.demo:
        raise HTTPException(404)
    found = tuple(
        DemoPerson(
            login=person.login,
            shown=person.shown,
            roles=tuple(sorted(role.value for role in person.roles - {ServiceRole.PUBLIC})),
            this=person.login == visitor.name,
        )
        for person in service.people.all()
        if not person.closed
    )
    return render(request, "demo_people.html", DemoPeoplePage(people=found))


@router.post("/people", name="demo.become")
def become(*, request: Request, login: Annotated[str, Form(max_length=100)], service: AskedService) -> Response:
    """Be somebody else: a session of theirs takes the place of this one."""
    person = service.people.get(login) if service.settings.demo else None
    if person is None or person.closed:
        raise HTTPException(404)
    return signed_in(request, service, person, how="demo", to="/")
