"""The guard in front of every route: which host is meant, who asks, whether they may, and how large it is.

It runs before any code of a page. What is not allowed by a row of the matrix is refused; what a page answers leaves
with headers that forbid everything that does not come from this service.
"""

import secrets
import time
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any  # messages of ASGI
from urllib.parse import parse_qs, quote

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import Match
from starlette.types import Message, Receive, Scope, Send

from sfumato.server.identity.secrets import form_token, new_secret, same
from sfumato.server.problems import API, problem
from sfumato.server.rendering import FORM_COOKIE, FORM_FIELD, SESSION_COOKIE
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.visitors import Visitor
from sfumato.server.watching import RequestWatch
from sfumato.server.words import language_of

__all__ = ["CSP", "LANGUAGE_COOKIE", "Guard", "check_form", "cookie_of"]

CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
LANGUAGE_COOKIE = "__Host-sfumato-language"
YEAR = 365 * 86_400
BEARER = "bearer "


class Guard:
    """Stands in front of an application.

    Guarantee: no code of a page runs for another Host, for a role without a row, for a form of another site, or for a
    body beyond the limits; who asks is known from a session or a token of this service, never from another header.
    """

    def __init__(
        self,
        app: FastAPI,
        *,
        service: Service,
        routes: tuple[APIRoute, ...],
        matrix: Mapping[str, frozenset[ServiceRole]],
        by_token: frozenset[str],
        uploads: frozenset[str],
        watch: RequestWatch,
    ) -> None:
        self._app, self._service, self._routes, self._matrix = app, service, routes, matrix
        self._by_token, self._uploads, self._watch = by_token, uploads, watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on to the application."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # nothing else is spoken here
            await send({"type": "websocket.close", "code": 1008})
            return
        began, name, status = time.perf_counter(), self._route(scope), 500
        cookies: list[str] = []

        async def answered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._dress(MutableHeaders(scope=message), cookies)
            await send(message)

        scope["app"] = self._app
        try:
            await self._admitted(scope, receive, answered, name, cookies)
        except Exception as bug:  # noqa: BLE001 - a page was sent that says so; the words of a bug might quote a row
            self._watch.failed(bug)
        finally:
            visitor = scope.get("state", {}).get("visitor")
            self._watch.answered(
                route=name or "none",
                method=scope["method"],
                status=status,
                seconds=time.perf_counter() - began,
                who=None if visitor is None else visitor.name,
            )

    async def _admitted(self, scope: Scope, receive: Receive, send: Send, name: str | None, cookies: list[str]) -> None:
        headers, settings = Headers(scope=scope), self._service.settings
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in settings.names:
            await PlainTextResponse("This host name is not served here.", 400)(scope, receive, send)
            return
        scope["scheme"] = settings.scheme
        scope.setdefault("state", {})
        scope["state"] |= {"visitor": Visitor(lang="en"), "form_cookie": new_secret()}  # until more is known
        request = Request(scope, receive)
        refusal = await self._known(request, headers, cookies) or self._refused(request, headers, name)
        if refusal is not None:  # before the body: who may not send one does not fill the memory
            await refusal(scope, receive, send)
            return
        body = await _read(receive, headers, settings.upload_bytes if name in self._uploads else settings.form_bytes)
        if body is None:
            await problem(request, 413, "large")(scope, receive, send)
            return
        await self._app(scope, body, send)

    async def _known(self, request: Request, headers: Headers, cookies: list[str]) -> Response | None:
        """Find out who asks and in which language; a refusal where a program's token is no good."""
        kept = _cookies(headers)
        asked = parse_qs(request.url.query, max_num_fields=100).get("lang", [None])[-1] if request.url.query else None
        language = language_of(asked, kept.get(LANGUAGE_COOKIE), headers.get("accept-language"))
        if asked is not None:
            cookies.append(cookie_of(LANGUAGE_COOKIE, language, seconds=YEAR))
        request.state.visitor = Visitor(lang=language)
        form = kept.get(FORM_COOKIE, "")
        if not 32 <= len(form) <= 64:
            form = secrets.token_urlsafe(32)
            cookies.append(cookie_of(FORM_COOKIE, form))
        request.state.form_cookie = form
        authorization = headers.get("authorization")
        if authorization is not None:
            found = await run_in_threadpool(self._by_secret, authorization, language)
            if found is None:
                return JSONResponse({"error": self._service.words("en").say("problem.token")}, 401)
            request.state.visitor = found
        elif SESSION_COOKIE in kept:
            request.state.visitor = await run_in_threadpool(self._by_session, kept[SESSION_COOKIE], language)
        return None

    def _by_secret(self, authorization: str, language: str) -> Visitor | None:
        if not authorization.lower().startswith(BEARER):
            return None
        token = self._service.tokens.find(authorization[len(BEARER) :].strip())
        person = None if token is None else self._service.people.get(token.login)
        if token is None or person is None or person.closed:
            return None
        return Visitor.of_token(person, token, lang=language)

    def _by_session(self, secret: str, language: str) -> Visitor:
        session = self._service.sessions.find(secret)
        person = None if session is None else self._service.people.get(session.login)
        if session is None or person is None or person.closed:
            return Visitor(lang=language)
        confirmed = self._service.sessions.is_confirmed(session)
        return Visitor.of_session(person, session, lang=language, confirmed=confirmed)

    def _refused(self, request: Request, headers: Headers, name: str | None) -> Response | None:
        """What is said in place of the page, if it is not for this visitor."""
        visitor: Visitor = request.state.visitor
        unsafe, program = request.method not in SAFE, visitor.token is not None
        if unsafe and not program and not self._own_origin(headers):
            return problem(request, 403, "origin")
        if name is None:
            return None  # no route: the application says so
        allowed = self._matrix.get(name, frozenset())
        if visitor.roles & allowed and (not program or name in self._by_token):
            return None
        if visitor.name is None and not unsafe and not request.url.path.startswith(API):
            here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/sign-in?next={quote(here, safe='')}", 303)
        return problem(request, 401 if visitor.name is None else 403, "sign_in" if visitor.name is None else "role")

    def _own_origin(self, headers: Headers) -> bool:
        """Whether a form was sent by a page of this service; browsers say where from, and cannot be made to lie."""
        origins = headers.getlist("origin")
        if origins:
            return len(origins) == 1 and origins[0] in self._service.settings.origins
        return headers.get("sec-fetch-site") == "same-origin"

    def _route(self, scope: Scope) -> str | None:
        if scope["type"] != "http":
            return None
        for route in self._routes:
            if route.matches(scope)[0] is Match.FULL:
                return route.name
        return None

    def _dress(self, headers: MutableHeaders, cookies: list[str]) -> None:
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        headers.setdefault("Cache-Control", "no-store")
        if self._service.settings.scheme == "https":
            headers["Strict-Transport-Security"] = f"max-age={YEAR}"
        for cookie in cookies:
            headers.append("set-cookie", cookie)


async def check_form(request: Request) -> None:
    """Refuse a form without the token that this browser and this session were given; programs have tokens instead."""
    visitor: Visitor = request.state.visitor
    if request.method in SAFE or visitor.token is not None:
        return
    said: object = request.headers.get("x-form-token")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if said is None and kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        said = (await request.form()).get(FORM_FIELD)
    session = None if visitor.session is None else visitor.session.digest
    if not isinstance(said, str) or not same(said, form_token(request.state.form_cookie, session)):
        raise HTTPException(403, "form")


def cookie_of(name: str, value: str, *, seconds: int | None = None) -> str:
    """The header of a cookie that belongs to this host alone and that no script can read."""
    ends = "" if seconds is None else f"; Max-Age={seconds}"
    return f"{name}={value}{ends}; Path=/; Secure; HttpOnly; SameSite=Lax"


def _cookies(headers: Headers) -> dict[str, str]:
    try:
        jar: SimpleCookie = SimpleCookie("; ".join(headers.getlist("cookie"))[:8192])
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in jar.items()}


async def _read(receive: Receive, headers: Headers, most: int) -> Receive | None:
    """The body, read as far as it may go and handed on; None where it is larger than that."""
    stated = headers.get("content-length", "0")
    if not stated.isascii() or not stated.isdecimal() or int(stated[:20]) > most:
        return None
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message: Mapping[str, Any] = await receive()
        if message["type"] != "http.request":
            break
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > most:
            return None
    waiting: list[Message] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

    async def handed() -> Message:
        return waiting.pop() if waiting else await receive()

    return handed
