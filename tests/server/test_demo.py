"""The demonstration is made by the ways that users have, and goes on where it was."""

from pathlib import Path

import pytest

from sfumato.errors import Refused
from sfumato.governance.overview import overview
from sfumato.reports.stored import stored_release
from sfumato.server.demo import HOSPITAL, PEOPLE_OF_THE_DEMO, SURVEILLANCE, opened_demo
from sfumato.server.rendering import SESSION_COOKIE
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from tests.server.visiting import Visiting


@pytest.mark.long
def test_the_demonstration_has_people_of_every_role_and_a_month_of_releases(tmp_path: Path) -> None:
    said: list[str] = []
    made = opened_demo(tmp_path / "demo", patients=2_000, say=said.append)
    try:
        service = made.service
        assert len(said) == 3
        assert {role for _, _, roles, _ in PEOPLE_OF_THE_DEMO for role in roles} == set(ServiceRole) - {
            ServiceRole.PUBLIC
        }
        stands = overview(service.ledger)
        charges = {level.name: level.balance.charges for level in stands.accounts}
        assert charges[HOSPITAL] >= 35
        assert charges[SURVEILLANCE] >= 30
        assert len(stands.waiting) == 1
        assert stands.board
        assert sorted(service.datasets) == ["arrivals", "visits"]
        certificates = list((service.folder / "published").rglob("*.certificate.json"))
        assert len(certificates) >= 30
        release = stored_release(certificates[0].read_text("utf-8").strip())
        assert release.statement.account.name.startswith("demonstration")
        browser = Visiting(service)
        assert browser.post("/enter", {"secret": made.secret}).status_code == 303
        assert "Ada, heart unit" in browser.get("/").text
        assert browser.post("/people", {"login": "otto"}, page="/people").status_code == 303
        assert "Otto, auditor" in browser.get("/account").text
        other = browser.other()
        assert other.post("/sign-in", {"login": "mira", "password": made.password}).status_code == 303
    finally:
        made.service.close()
    again = opened_demo(tmp_path / "demo", say=said.append)
    try:
        assert len(said) == 3
        assert again.password != made.password
        assert overview(again.service.ledger).entries == stands.entries
    finally:
        again.service.close()


def test_a_service_that_is_no_demonstration_is_not_opened_as_one(tmp_path: Path) -> None:
    Service.create(tmp_path / "hospital").close()
    with pytest.raises(Refused, match="no demonstration"):
        opened_demo(tmp_path / "hospital")


def test_elsewhere_nobody_becomes_somebody_else(empty: Service) -> None:
    for login in ("ada", "nils"):
        empty.people.add(login, shown=login, roles=[ServiceRole.ANALYST])
    browser = Visiting(empty).sign_in("ada")
    assert browser.get("/people").status_code == 404
    kept = browser.cookies[SESSION_COOKIE]
    assert browser.post("/people", {"login": "nils"}, page="/account").status_code == 404
    assert browser.cookies[SESSION_COOKIE] == kept
