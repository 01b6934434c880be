"""Who may open what: every route has a row, and a route without one stops the service at its start."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import ModuleType

from fastapi import APIRouter
from fastapi.routing import APIRoute

from sfumato.errors import NotDeclared

__all__ = ["EVERYONE", "SIGNED_IN", "ServiceRole", "by_token", "matrix_of", "routes_of"]


class ServiceRole(StrEnum):
    """What somebody is here; one person can be several. Everybody is public, signed in or not."""

    PUBLIC = "public"
    ANALYST = "analyst"
    STEWARD = "steward"
    BOARD = "board"
    AUDITOR = "auditor"
    RESEARCHER = "researcher"
    ADMIN = "admin"


EVERYONE = frozenset(ServiceRole)
SIGNED_IN = EVERYONE - {ServiceRole.PUBLIC}


def routes_of(modules: Iterable[ModuleType]) -> tuple[APIRoute, ...]:
    """The routes of modules, in their order."""
    found: list[APIRoute] = []
    for module in modules:
        router: APIRouter = module.router
        for route in router.routes:
            if not isinstance(route, APIRoute):
                raise NotDeclared(f"{module.__name__} has a route that is no page; the service was not started.")
            found.append(route)
    return tuple(found)


def matrix_of(modules: Iterable[ModuleType]) -> Mapping[str, frozenset[ServiceRole]]:
    """The roles that may open each route, by its name.

    Guarantee: a route that no module has a row for, a row without a route, and a name that is given twice are refused.
    """
    matrix: dict[str, frozenset[ServiceRole]] = {}
    for module in modules:
        rows: Mapping[str, frozenset[ServiceRole]] = module.ROUTES
        names = {route.name for route in routes_of([module])}
        for name in sorted(names ^ set(rows)):
            what = "has no row in ROUTES" if name in names else "has a row and no route"
            raise NotDeclared(f"{name!r} of {module.__name__} {what}; the service was not started.")
        for name, roles in rows.items():
            if name in matrix or not roles:
                raise NotDeclared(f"{name!r} is declared twice, or for nobody; the service was not started.")
            matrix[name] = frozenset(roles)
    return matrix


def by_token(modules: Iterable[ModuleType]) -> frozenset[str]:
    """The routes that programs may open with a token; all others are for people who signed in."""
    found: set[str] = set()
    for module in modules:
        found |= getattr(module, "BY_TOKEN", frozenset())
    return frozenset(found)
