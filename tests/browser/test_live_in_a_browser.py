"""A stream from Redis in a real browser: a steward declares its feed, an analyst opens it, and its chart grows."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from tests import parts

parts.package("fastapi")
parts.package("uvicorn")

from sfumato.server.roles import ServiceRole  # noqa: E402 - after what may be missing
from sfumato.server.service import Service  # noqa: E402
from tests.browser.served import become, free_port, listening, opened  # noqa: E402

CANARY = "zanzibar4711"
EVENT = sf.event(relation="add/remove")
LARGE = sf.Budget(epsilon=10_000, delta="1/1000000")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Service, str]]:
    line = free_port()
    Service.create(tmp_path / "ward").close()
    service = Service.open(tmp_path / "ward", port=line.getsockname()[1])
    service.ledger.declare_population("arrivals", unit=EVENT, cap=LARGE, reason="test")
    service.ledger.open_account("hospital", unit=EVENT, cap=LARGE, reason="test")
    service.people.add("ada", shown="Ada", roles=[ServiceRole.ANALYST], accounts=["hospital"])
    service.people.add("sam", shown="Sam", roles=[ServiceRole.STEWARD])
    with listening(service, line) as address:
        yield service, address


@pytest.mark.parametrize("script", [True, pytest.param(False, marks=pytest.mark.long)], ids=["script", "no script"])
def test_a_chart_grows_while_events_arrive(
    chromium: Any, served: tuple[Service, str], redis_url: str, script: bool
) -> None:
    import redis

    service, address = served
    with opened(chromium, service, address, "sam", script=script) as (page, complaints):
        page.goto(f"{address}/live/feeds")
        for name, said in (("name", "er"), ("url", redis_url), ("key", "er"), ("time", "at"), ("epsilon", "9000")):
            page.locator(f"#{name}").fill(said)
        page.get_by_role("button", name="Declare").click()
        page.locator("tbody th", has_text="er").wait_for()
        assert redis_url not in page.inner_text("main table")
        page.locator("#name").fill("secrets")
        page.locator("#url").fill(f"file:{service.folder / 'service.toml'}")
        page.locator("#key").fill("any")
        page.get_by_role("button", name="Declare").click()
        page.get_by_text("cannot have files of this machine read").wait_for()
        complaints.clear()  # that a form was refused is a line in the console
        become(page.context, service, "ada")
        page.goto(f"{address}/live/new")
        page.locator("#title").fill("Emergency room")
        page.locator("#every").select_option("1")
        for name, said in (("horizon", "6"), ("epsilon", "4000"), ("delta", "0.000000001")):
            page.locator(f"#{name}").fill(said)
        page.get_by_role("button", name="Show").click()
        page.get_by_text("±").first.wait_for()
        page.locator("button[formaction]").click()
        page.locator(".live-now").wait_for()
        begins = datetime.now(UTC)
        with redis.Redis.from_url(redis_url) as broker:
            for place in range(80):
                broker.xadd("er", {"at": (begins + timedelta(seconds=place / 10)).isoformat(), "person": CANARY})
        page.locator("svg.live-chart polyline").wait_for()
        page.locator("[data-phase=ended]").wait_for()
        total = int(page.locator(".live-number").inner_text().split()[0])
        assert 20 <= total <= 70, "those of its six seconds, with next to no noise at this ε"
        assert page.locator("svg.live-chart polyline").get_attribute("points").count(",") == 6
        assert CANARY not in page.content()
        assert complaints == []
    assert service.ledger.balance("hospital").spent.epsilon == 4000
