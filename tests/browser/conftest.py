"""A real browser that reports whatever a page asks for, complains about, or pops up."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import parts
from tests.browser.visiting import Open, Visit


@pytest.fixture(scope="module")  # its driver keeps an event loop running, in which no other test may find itself
def chromium() -> Iterator[Any]:
    program = parts.browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(program), chromium_sandbox=False)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any) -> Open:
    """Open a file as some reader would: wide or on a phone, light or dark. The network is cut."""

    @contextmanager
    def opened(path: Path, *, width: int = 1200, scheme: str = "light") -> Iterator[Visit]:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, is_mobile=width < 500, accept_downloads=True
        )
        context.set_offline(True)
        page = context.new_page()
        made = Visit(page)
        page.on("request", lambda asked: made.requests.append(asked.url))
        page.on("console", lambda said: made.complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda wrong: made.complaints.append(f"error: {wrong}"))
        page.on("dialog", lambda shown: (made.complaints.append(f"dialog: {shown.message}"), shown.dismiss()))
        page.on("popup", lambda other: made.complaints.append(f"popup: {other.url}"))
        try:
            page.goto(path.as_uri())
            yield made
        finally:
            context.close()

    return opened
