"""The demonstration in a real browser: every page by the rules of accessibility, and journeys through several roles."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests import parts

parts.package("fastapi")
parts.package("uvicorn")

from sfumato.server.app import areas  # noqa: E402
from sfumato.server.demo import opened_demo  # noqa: E402
from sfumato.server.roles import matrix_of, routes_of  # noqa: E402
from sfumato.server.service import Service  # noqa: E402
from tests.browser.accessibility import broken_rules, unreached  # noqa: E402
from tests.browser.served import become, free_port, listening, opened  # noqa: E402

VISITORS = (None, "ada", "ben", "stella", "mira", "otto", "rosa", "nils")
"""Nobody in particular, and somebody of every role; two analysts, since one has a stream and the other none."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str]]:
    line = free_port()
    made = opened_demo(tmp_path_factory.mktemp("demo") / "service", port=line.getsockname()[1], patients=400)
    with listening(made.service, line) as address:
        yield made.service, address


def route_of(path: str) -> str | None:
    """The name of the route that a path leads to by a click; None where there is none."""
    for route in routes_of(areas()):
        if "GET" in route.methods and re.fullmatch(route.path_regex, path):
            return str(route.name)
    return None


def links_of(page: Any, address: str) -> list[str]:
    """The addresses on a page that lead to other pages of the service; not those that download something."""
    found = page.evaluate("[...document.querySelectorAll('a[href]:not([download])')].map((each) => each.href)")
    return [each.removeprefix(address).partition("#")[0] for each in found if each.startswith(f"{address}/")]


def test_every_page_of_every_role_keeps_the_rules_of_accessibility(chromium: Any, demo: tuple[Service, str]) -> None:
    """From the first page on, by links: each route once for each role, light at first and dark where it is new."""
    service, address = demo
    broken: dict[str, list[str]] = {}
    seen_at_all: set[str] = set()
    with opened(chromium, service, address, None) as (page, complaints):
        for who in VISITORS:
            if who is not None:
                become(page.context, service, who)
            waiting, seen = ["/"], set[str]()
            while waiting:
                path = waiting.pop(0)
                name = route_of(path.partition("?")[0])
                if name is None or name in seen or name in FILES:
                    continue
                seen.add(name)
                answer = page.goto(f"{address}{path}")
                assert answer.status == 200, path
                waiting += links_of(page, address)
                if who is not None and name in seen_at_all:
                    continue
                found = [f"light, {each}" for each in broken_rules(page)] + unreached(page)
                page.emulate_media(color_scheme="dark")
                found += [f"dark, {each}" for each in broken_rules(page) if "contrast" in each]
                page.emulate_media(color_scheme="light")
                if name not in seen_at_all:
                    page.goto(f"{address}{path}{'&' if '?' in path else '?'}lang=zh")
                    found += [f"in Chinese, {each}" for each in broken_rules(page) if "contrast" not in each]
                    page.goto(f"{address}/?lang=en")
                seen_at_all.add(name)
                if found:
                    broken[f"{who} {path}"] = found
    assert broken == {}
    assert complaints == []
    reachable = {name for name in matrix_of(areas()) if name in {route.name for route in PAGES}}
    assert reachable - seen_at_all <= FILES | UNLINKED


FILES = frozenset[str]()
PAGES = [route for route in routes_of(areas()) if "GET" in route.methods]
UNLINKED = frozenset[str]()
