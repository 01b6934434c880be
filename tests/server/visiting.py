"""A browser without a window: it keeps cookies, sends the forms of pages, and says where from, as browsers do."""

import asyncio
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

import httpx

from sfumato.server.app import make_app
from sfumato.server.rendering import FORM_FIELD, SESSION_COOKIE
from sfumato.server.service import Service

__all__ = ["HOST", "ORIGIN", "Visiting", "fields_of"]

HOST = "127.0.0.1:8400"
ORIGIN = f"http://{HOST}"


class Visiting:
    """One browser at a service, spoken to in this process."""

    def __init__(self, service: Service, app: Any = None) -> None:
        self.service = service
        self.app = make_app(service) if app is None else app
        self.cookies: dict[str, str] = {}

    def other(self) -> "Visiting":
        """Another browser at the same application."""
        return Visiting(self.service, self.app)

    def ask(
        self, method: str, address: str, *, headers: Mapping[str, str] | None = None, **said: Any
    ) -> httpx.Response:
        """Send a request as it is, with the cookies of this browser; redirects are not followed."""
        sent = dict(headers or {})
        if self.cookies:
            sent.setdefault("cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        answer = asyncio.run(_sent(self.app, method, address, sent, said))
        for cookie in answer.headers.get_list("set-cookie"):
            name, _, rest = cookie.partition("=")
            value = rest.partition(";")[0]
            if "Max-Age=0" in cookie:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return answer

    def get(self, address: str, **said: Any) -> httpx.Response:
        """Ask for a page, and follow where it sends."""
        answer = self.ask("GET", address, **said)
        for _ in range(5):
            if answer.status_code not in (302, 303):
                break
            answer = self.ask("GET", answer.headers["location"], **said)
        return answer

    def form_token(self, page: str = "/sign-in") -> str:
        """What forms of this browser carry."""
        return fields_of(self.get(page).text)[FORM_FIELD]

    def post(self, address: str, data: Mapping[str, Any], *, page: str = "/sign-in", **said: Any) -> httpx.Response:
        """Send a form of ``page``; redirects are not followed."""
        sent = {FORM_FIELD: self.form_token(page), **data}
        return self.ask("POST", address, data=sent, headers={"origin": ORIGIN, **said.pop("headers", {})}, **said)

    def sign_in(self, login: str) -> "Visiting":
        """Sign somebody in, without the work of a password."""
        self.cookies[SESSION_COOKIE] = self.service.sessions.begin(login, how="password")
        return self


class _Fields(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag == "input" and said.get("name"):
            self.found.setdefault(str(said["name"]), said.get("value") or "")


def fields_of(text: str) -> dict[str, str]:
    """The fields of the forms of a page, with what they hold; a page without a form has none."""
    reader = _Fields()
    reader.feed(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))
    return reader.found


async def _sent(
    app: Any, method: str, address: str, headers: Mapping[str, str], said: Mapping[str, Any]
) -> httpx.Response:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        return await client.request(method, address, headers=headers, **said)
