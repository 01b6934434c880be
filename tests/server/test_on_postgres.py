"""The service's own tables in PostgreSQL, by one setting: what people do works there as it does in a file."""

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.errors import Refused
from sfumato.reports.publication import Grounds
from sfumato.server.asking.desk import open_desk
from sfumato.server.backup import backup, restore
from sfumato.server.database import METADATA, Database
from sfumato.server.jobs.queue import JobOutcome, JobQueue, Slots
from sfumato.server.publishing.grounds import Publications
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.settings import ServiceSettings
from sfumato.tables.queries.count import Count
from tests.server.asked_services import ACCOUNT, AskedService, MovedClock, furnished
from tests.server.visiting import Visiting

PASSWORD = "correct horse battery"  # noqa: S105 - of nobody
DATABASES = ("ledger.db", "ledger.db-wal", "ledger.db-shm")


@pytest.fixture(scope="module")
def url(postgres_url: str) -> Iterator[str]:
    """An empty database of its own, on the private server of the tests."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS sfumato_service")
        connection.execute("CREATE DATABASE sfumato_service")
    head, _, _ = postgres_url.rpartition("/")
    yield f"{head}/sfumato_service"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP DATABASE sfumato_service WITH (FORCE)")


def test_people_ask_sign_in_and_are_shut_out_and_a_backup_comes_back(url: str, tmp_path: Path) -> None:
    service = furnished(tmp_path / "service", settings=ServiceSettings(slot_seconds=1, workers=1, database=url))
    try:
        assert not (service.folder / "service.db").exists()
        desk, clock = open_desk(service, Slots(length=120.0, lanes=1)), MovedClock()
        desk.queue.now = clock
        service.start()
        made = AskedService(service=service, desk=desk, clock=clock)
        ended = made.ended(made.submitted().name)
        assert ended.outcome is JobOutcome.RELEASED
        service.people.add("nils", shown="Nils 尼尔斯", roles=[ServiceRole.ADMIN], password=PASSWORD)
        with pytest.raises(Refused):
            service.people.add("nils", shown="another", roles=[])
        browser = Visiting(service)
        assert browser.post("/sign-in", {"login": "nils", "password": PASSWORD}).status_code == 303
        assert "尼尔斯" in browser.get("/admin").text
        ada = browser.other().sign_in("ada")
        assert ended.title in ada.get("/questions").text
        browser.post("/admin/people/ada", {"roles": "analyst", "closed": "true"}, page="/admin/people/ada")
        assert ada.get("/questions").url.path == "/sign-in"
        token = made.token("ben", "hospital/kitchen")
        assert browser.ask("GET", "/api/v1/session", headers={"authorization": f"Bearer {token}"}).status_code == 200
        grounds = Grounds(reason="beds are planned by it", legal_basis="section 7")
        Publications(service.database, now=service.now).put(str(ended.release), grounds, by="stella")
        assert browser.get("/public").status_code == 200
        assert backup(service.folder, tmp_path / "now.tar").entries > 5
    finally:
        service.close()
    _emptied(url)
    for name in DATABASES:
        (service.folder / name).unlink(missing_ok=True)
    assert restore(service.folder, tmp_path / "now.tar").ledger.lost is False
    again = Service.open(service.folder)
    try:
        assert again.people.by_password("nils", PASSWORD) is not None
        assert again.people.get("ada").closed is True  # type: ignore[union-attr]
        assert again.ledger.balance(ACCOUNT).spent == Budget(epsilon="1/10")
        assert again.tokens.find(token) is None
        assert str(ended.release) not in Publications(again.database, now=again.now).all()
        assert list(again.datasets) == []
    finally:
        again.close()


def _emptied(url: str) -> None:
    database = Database(url)
    with database.writing() as connection:
        for table in reversed(METADATA.sorted_tables):
            connection.execute(sa.delete(table))
    database.close()


def test_writers_come_one_after_the_other_and_readers_see_one_state(url: str) -> None:
    database = Database(url)
    database.create()
    queue = JobQueue(database, slots=Slots(length=10, lanes=2, most_each=99), now=lambda: 1000.25)
    query = Count(dataset=Dataset(name="visits", edition="1"), where=None, by=(), joins=())
    found: list[tuple[int, float]] = []

    def submitted() -> None:
        for _ in range(4):
            job = queue.submit(login="ada", account=ACCOUNT, query=query, spend=Budget(epsilon=1), title="n")
            found.append((job.lane, job.starts))

    threads = [threading.Thread(target=submitted) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 16  # no lane was given out twice for one time
    with database.reading() as connection:
        before = connection.execute(sa.text("SELECT count(*) FROM jobs")).scalar_one()
        queue.submit(login="ada", account=ACCOUNT, query=query, spend=Budget(epsilon=1), title="n")
        assert connection.execute(sa.text("SELECT count(*) FROM jobs")).scalar_one() == before
        with pytest.raises(sa.exc.InternalError, match="read-only"):
            connection.execute(sa.text("DELETE FROM jobs"))
    database.close()
