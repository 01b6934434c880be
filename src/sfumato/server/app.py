"""The application: every module of pages and of the API is found by itself, and no route is without its row."""

import importlib
import pkgutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import cache
from types import ModuleType
from typing import Any  # parts of an address

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from starlette.datastructures import URLPath
from starlette.routing import NoMatchFound

from sfumato.server import pages, problems
from sfumato.server.rendering import MenuLink
from sfumato.server.roles import by_token, matrix_of, routes_of
from sfumato.server.security import Guard, check_form
from sfumato.server.service import Service
from sfumato.server.watching import RequestWatch

__all__ = ["areas", "make_app"]

PLACES = (pages.__name__, "sfumato.server.api")


class _Application(FastAPI):
    """An application that finds the address of a page by its name at once; looking through all routes took longest."""

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        """The path of a route."""
        route: APIRoute | None = self.state.named.get(name)
        if route is None:
            raise NoMatchFound(name, path_params)
        return route.url_path_for(name, **path_params)


def make_app(service: Service, *, more: Iterable[ModuleType] = ()) -> Guard:
    """The application of a service, with its guard in front; ``more`` are modules of pages from elsewhere.

    Guarantee: a route without a row in the matrix of roles is refused here, before anything is served.
    """
    modules = (*areas(), *more)
    matrix, routes, watch = matrix_of(modules), routes_of(modules), RequestWatch()
    for module in modules:
        attach = getattr(module, "attach", None)
        if attach is not None:
            attach(service)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        try:
            yield
        finally:
            service.stop()

    app = _Application(title=service.settings.title, openapi_url=None, docs_url=None, redoc_url=None, lifespan=running)
    app.state.service, app.state.matrix, app.state.watch = service, matrix, watch
    app.state.modules, app.state.named = modules, {route.name: route for route in routes}
    app.state.links = sorted(_links(modules), key=lambda link: link.place)
    for module in modules:
        app.include_router(module.router, dependencies=[Depends(check_form)])
    problems.install(app)
    return Guard(
        app,
        service=service,
        routes=routes,
        matrix=matrix,
        by_token=by_token(modules),
        uploads=frozenset(name for module in modules for name in getattr(module, "UPLOADS", ())),
        watch=watch,
    )


@cache
def areas() -> tuple[ModuleType, ...]:
    """All modules with pages, in the order of their names: what has a ``router`` and its ``ROUTES``."""
    return tuple(module for place in PLACES for module in _modules(place) if hasattr(module, "router"))


def _modules(place: str) -> Iterable[ModuleType]:
    if importlib.util.find_spec(place) is None:
        return
    package = importlib.import_module(place)
    yield package
    for found in sorted(pkgutil.walk_packages(package.__path__, f"{place}."), key=lambda each: each.name):
        yield importlib.import_module(found.name)


def _links(modules: Iterable[ModuleType]) -> Iterable[MenuLink]:
    for module in modules:
        yield from getattr(module, "MENU", ())
