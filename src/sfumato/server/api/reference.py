"""The description of the API: as OpenAPI for machines, and as a page that needs no network and no script."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any  # OpenAPI is JSON

from fastapi import APIRouter, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response

from sfumato.server.api import questions, works
from sfumato.server.rendering import MenuLink, render
from sfumato.server.roles import EVERYONE, ServiceRole
from sfumato.server.visitors import AskedService
from sfumato.version import __version__

__all__ = ["MENU", "ROUTES", "description", "router"]

router = APIRouter()
ROUTES = {"api.page": EVERYONE, "api.description": EVERYONE}
MENU = (MenuLink(route="api.page", words="asking.api_menu", place=33, roles=frozenset({ServiceRole.ANALYST})),)
BY_TOKEN = frozenset({"api.description"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteFacts:
    """One route as the page shows it."""

    method: str
    path: str
    summary: str
    parameters: tuple[tuple[str, str], ...]
    body: str
    answers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencePage:
    """All routes, and how a program in Python begins."""

    routes: tuple[RouteFacts, ...]
    python: str
    curl: str


@router.get("/api", name="api.page")
def page(*, request: Request, service: AskedService) -> Response:
    """The page."""
    address = service.settings.address.rstrip("/")
    python = "\n".join(
        (
            "import os\n\nimport sfumato as sf\n",
            f'service = sf.connect("{address}", token=os.environ["SFUMATO_TOKEN"])',
            'answer = service.table("visits").count().release(epsilon=0.1)',
            "print(answer)",
        )
    )
    curl = f'curl -H "Authorization: Bearer $SFUMATO_TOKEN" {address}/api/v1/session'
    return render(request, "api.html", ReferencePage(routes=_routes(), python=python, curl=curl))


@router.get("/api/v1/openapi.json", name="api.description")
def described() -> Response:
    """The description for machines."""
    return JSONResponse(description())


@cache
def description() -> dict[str, Any]:
    """The API as OpenAPI."""
    found = get_openapi(
        title="Sfumato",
        version=__version__,
        summary="Questions about people under differential privacy.",
        routes=[*questions.router.routes, *works.router.routes],
    )
    found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    found["security"] = [{"token": []}]
    return found


@cache
def _routes() -> tuple[RouteFacts, ...]:
    whole = description()
    return tuple(
        RouteFacts(
            method=method.upper(),
            path=path,
            summary=str(said.get("description", said.get("summary", ""))),
            parameters=tuple((each["name"], each["in"]) for each in said.get("parameters", ())),
            body=_example(whole, said.get("requestBody", {}).get("content", {})),
            answers=tuple(
                (code, _name(answer.get("content", {})) or str(answer.get("description", "")))
                for code, answer in sorted(said["responses"].items())
            ),
        )
        for path, methods in whole["paths"].items()
        for method, said in methods.items()
    )


def _name(content: dict[str, Any]) -> str:
    shape = content.get("application/json", {}).get("schema", {})
    reference = shape.get("$ref") or shape.get("items", {}).get("$ref", "")
    return str(reference).rpartition("/")[2]


def _example(whole: dict[str, Any], content: dict[str, Any]) -> str:
    """The fields of a body, each with what it may be."""
    name = _name(content)
    if not name:
        return ""
    shape = whole["components"]["schemas"][name]
    fields = {
        field: " | ".join(_kinds(part)) + ("" if field in shape.get("required", ()) else "?")
        for field, part in shape["properties"].items()
    }
    return json.dumps(fields, indent=2)


def _kinds(part: dict[str, Any]) -> list[str]:
    options = part.get("anyOf", [part])
    return [str(each.get("type") or str(each.get("$ref", "")).rpartition("/")[2]) for each in options]
