"""Every route has its row, and is opened by the roles of that row and by no others."""

from types import ModuleType

import pytest
from fastapi import APIRouter

from sfumato.errors import NotDeclared
from sfumato.server.app import areas, make_app
from sfumato.server.rendering import FORM_FIELD
from sfumato.server.roles import EVERYONE, ServiceRole, matrix_of, routes_of
from sfumato.server.service import Service
from tests.server.visiting import ORIGIN, Visiting

MATRIX, FOUND = matrix_of(areas()), routes_of(areas())
CASES = [(route.name, sorted(route.methods)[0]) for route in FOUND]


def address_of(name: str) -> str:
    route = next(route for route in FOUND if route.name == name)
    return route.path_format.format(**dict.fromkeys(route.param_convertors, "1"))


def admitted(status: int, location: str | None) -> bool:
    """Whether the code of a page ran: it was not sent to sign in, nor told that the page is for others."""
    return not (status in (401, 403) or (status == 303 and location is not None and location.startswith("/sign-in")))


@pytest.mark.parametrize("role", list(ServiceRole))
def test_every_route_is_opened_by_the_roles_of_its_row_alone(role: ServiceRole, application: Visiting) -> None:
    wrong = []
    for name, method in CASES:
        browser = application.other()
        if role is not ServiceRole.PUBLIC:
            browser.sign_in(role.value)
        said = {}
        if method != "GET":  # without the token of a form nothing is done, and the refusal says which it was
            said = {"headers": {"origin": ORIGIN}, "data": {FORM_FIELD: "none"}}
        answer = browser.ask(method, address_of(name), **said)
        refused = not admitted(answer.status_code, answer.headers.get("location"))
        about_form = "The form was open for too long" in answer.text
        if (role in MATRIX[name]) is (refused and not about_form) or (
            method != "GET" and role in MATRIX[name] and not about_form
        ):
            wrong.append((name, role, answer.status_code))
    assert wrong == []


def test_there_is_something_for_everybody_and_something_for_few() -> None:
    assert MATRIX["home"] == EVERYONE
    assert ServiceRole.PUBLIC not in MATRIX["account"]
    assert len(CASES) >= 15


def module(**said: object) -> ModuleType:
    made = ModuleType("pages")
    router = APIRouter()

    @router.get("/extra", name="extra")
    def extra() -> None: ...

    made.router = router  # type: ignore[attr-defined]
    made.ROUTES = said  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("rows", [{}, {"extra": EVERYONE, "gone": EVERYONE}, {"extra": frozenset()}])
def test_a_route_without_a_row_stops_the_service(rows: dict[str, object], service: Service) -> None:
    with pytest.raises(NotDeclared, match="was not started"):
        make_app(service, more=[module(**rows)])


def test_a_name_that_is_given_twice_stops_the_service(service: Service) -> None:
    with pytest.raises(NotDeclared, match="declared twice"):
        make_app(service, more=[module(extra=EVERYONE), module(extra=EVERYONE)])


def test_with_its_row_a_route_is_served(service: Service) -> None:
    browser = Visiting(service, make_app(service, more=[module(extra=frozenset({ServiceRole.BOARD}))]))
    assert browser.ask("GET", "/extra").status_code == 303
    assert browser.other().sign_in("analyst").ask("GET", "/extra").status_code == 403
    assert browser.other().sign_in("board").ask("GET", "/extra").status_code == 200
