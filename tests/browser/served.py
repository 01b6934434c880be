"""A service on a port of this machine, for a browser; nothing of it is left at the end."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sfumato.server.rendering import SESSION_COOKIE

__all__ = ["PATIENCE", "become", "free_port", "listening", "opened"]

PATIENCE = 60_000


def free_port() -> socket.socket:
    """A line on a port that nobody else has."""
    return socket.create_server(("127.0.0.1", 0))


@contextmanager
def listening(service: Any, line: socket.socket) -> Iterator[str]:
    """Serve a service on a line; its address."""
    import uvicorn

    from sfumato.server.app import make_app

    server = uvicorn.Server(uvicorn.Config(make_app(service), log_level="critical"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [line]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the service did not start"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{line.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        service.close()
        line.close()


@contextmanager
def opened(
    chromium: Any,
    service: Any,
    address: str,
    who: str | None,
    *,
    script: bool = True,
    width: int = 1280,
    dark: bool = False,
) -> Iterator[tuple[Any, list[str]]]:
    """A browser of somebody who has signed in, and what it complained about or asked of others."""
    context = chromium.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        java_script_enabled=script,
        accept_downloads=True,
        reduced_motion="reduce",
    )
    if who is not None:
        become(context, service, who)
    page, complaints = context.new_page(), list[str]()
    page.set_default_timeout(PATIENCE)
    page.on("console", lambda said: complaints.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda wrong: complaints.append(str(wrong)))
    page.on("request", lambda asked: complaints.extend([] if asked.url.startswith(address) else [asked.url]))
    try:
        yield page, complaints
    finally:
        context.close()


def become(context: Any, service: Any, who: str) -> None:
    """Have the browser hold a session of somebody, as if they had signed in just now."""
    secret = service.sessions.begin(who, how="password")
    cookie = {"name": SESSION_COOKIE, "value": secret, "domain": "127.0.0.1", "path": "/", "secure": True}
    context.add_cookies([cookie])
