"""Fills the templates of the pages: a frozen dataclass holds all that a page shows, and catalogues its words."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from typing import Any  # pages are dataclasses of any kind

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, meta, nodes
from markupsafe import Markup
from starlette.datastructures import URL

from sfumato.errors import NotDeclared
from sfumato.server.identity.secrets import form_token
from sfumato.server.roles import EVERYONE, ServiceRole
from sfumato.server.visitors import Visitor
from sfumato.server.words import OFFERED

__all__ = [
    "FORM_COOKIE",
    "FORM_FIELD",
    "SESSION_COOKIE",
    "MenuLink",
    "PageFrame",
    "names_used",
    "render",
    "static_files",
]

SESSION_COOKIE, FORM_COOKIE = "__Host-sfumato", "__Host-sfumato-form"
FORM_FIELD = "form_token"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuLink:
    """A place in the menu: the route, its words, and where among the others it stands; areas declare their own.

    It is shown to whoever may open the route, and only to ``roles`` where these are said.
    """

    route: str
    words: str
    place: int
    roles: frozenset[ServiceRole] = EVERYONE
    about: str | None = None
    """Words that say on the first page what one finds there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuItem:
    """A link as it is shown."""

    address: str
    words: str
    here: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFrame:
    """What stands around every page."""

    language: str
    title: str
    demo: bool
    visitor: Visitor
    menu: tuple[MenuItem, ...]
    languages: tuple[tuple[str, str, str, bool], ...]
    """Each with its code, its own name, the address of this page in it, and whether it is the one shown."""
    here: str


def render(request: Request, template: str, page: Any, *, status: int = 200) -> HTMLResponse:
    """A page: the template, filled with the fields of ``page``, in the language of whoever asks.

    Guarantee: text is escaped; a fact that is missing, or one that the page does not have, is an error.
    """
    visitor: Visitor = request.state.visitor
    say = request.app.state.service.words(visitor.lang).say
    _check(template, page.__class__)
    text = (
        environment()
        .get_template(template)
        .render(
            page=page,
            frame=_frame(request, visitor, say),
            say=say,
            url=lambda route, /, **parts: str(request.app.url_path_for(route, **parts)),
            static=_static,
            form_token=lambda: _form_token(request),
        )
    )
    return HTMLResponse(text, status_code=status, headers={"Content-Language": visitor.lang})


def names_used(template: str) -> frozenset[str]:
    """The fields of its page that a template uses, with those of the templates that it includes."""
    loader, found = environment(), set()
    tree = loader.parse(loader.loader.get_source(loader, template)[0])  # type: ignore[union-attr]  # it has one
    for node in tree.find_all(nodes.Getattr):
        if isinstance(node.node, nodes.Name) and node.node.name == "page":
            found.add(node.attr)
    for other in meta.find_referenced_templates(tree):
        if other is not None:
            found |= names_used(other)
    return frozenset(found)


@cache
def static_files() -> dict[str, tuple[bytes, str, str]]:
    """The files that pages ask for, by name: their bytes, their type and a digest."""
    found = {}
    for file in resources.files("sfumato.server").joinpath("static").iterdir():
        kind = TYPES.get(PurePosixPath(file.name).suffix)
        if kind is not None:
            body = file.read_bytes()
            found[file.name] = (body, kind, hashlib.sha256(body).hexdigest()[:16])
    return found


@cache
def environment() -> Environment:
    """Templates of this package: escaped, and strict about what is missing."""
    made = Environment(
        loader=PackageLoader("sfumato.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["zip_same"] = lambda names: [(name, name) for name in names]
    return made


@cache
def _check(template: str, page: type) -> None:
    """Refuse a page whose dataclass has other fields than its template uses."""
    declared, used = {field.name for field in fields(page)}, names_used(template)
    wrong = (declared - used) | {name for name in used - declared if not hasattr(page, name)}
    if wrong:
        raise NotDeclared(f"{template} and {page.__name__} differ in {', '.join(sorted(wrong))}; nothing was shown.")


def _static(name: str) -> str:
    return f"/static/{name}?v={static_files()[name][2]}"


def _form_token(request: Request) -> Markup:
    visitor: Visitor = request.state.visitor
    token = form_token(request.state.form_cookie, None if visitor.session is None else visitor.session.digest)
    return Markup('<input type="hidden" name="{}" value="{}">').format(FORM_FIELD, token)


def _frame(request: Request, visitor: Visitor, say: Callable[..., str]) -> PageFrame:
    here, settings = request.url.path, request.app.state.service.settings
    matrix, links = request.app.state.matrix, request.app.state.links
    return PageFrame(
        language=visitor.lang,
        title=settings.title,
        demo=settings.demo,
        visitor=visitor,
        menu=tuple(_menu(request, visitor, matrix, links, say)),
        languages=tuple((code, name, _in(request.url, code), code == visitor.lang) for code, name in OFFERED.items()),
        here=here,
    )


def _menu(
    request: Request,
    visitor: Visitor,
    matrix: dict[str, frozenset[ServiceRole]],
    links: Iterable[MenuLink],
    say: Callable[..., str],
) -> Iterable[MenuItem]:
    shown = [
        (str(request.app.url_path_for(link.route)), say(link.words))
        for link in links
        if visitor.roles & matrix[link.route] & link.roles
    ]
    here = request.url.path
    above = [address for address, _ in shown if here == address or (address != "/" and here.startswith(f"{address}/"))]
    longest = max(above, key=len, default=None)
    for address, words in shown:
        yield MenuItem(address=address, words=words, here=address == longest)


def _in(url: URL, language: str) -> str:
    """This page in a language, by an address without host."""
    changed = url.include_query_params(lang=language)
    return f"{changed.path}?{changed.query}"
