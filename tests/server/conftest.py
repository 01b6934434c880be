"""A service with people of every role, made once for a module and never started."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.server.identity import passwords
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from tests import parts
from tests.server.visiting import Visiting

parts.package("fastapi")
parts.package("httpx")
PASSWORD = "correct horse battery"  # noqa: S105 - of nobody
PEOPLE = {role.value: role for role in ServiceRole if role is not ServiceRole.PUBLIC}


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords() -> Iterator[None]:
    """Hash passwords with little work; what the product does is looked at in a test of its own."""
    from argon2 import PasswordHasher

    patch = pytest.MonkeyPatch()
    patch.setattr(passwords, "_hasher", lambda: PasswordHasher(time_cost=1, memory_cost=64, parallelism=1))
    passwords._nobody.cache_clear()
    yield
    patch.undo()
    passwords._nobody.cache_clear()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    made = Service.create(tmp_path_factory.mktemp("service") / "hospital")
    try:
        for login, role in PEOPLE.items():
            made.people.add(login, shown=f"The {login}", roles=[role], accounts=["hospital/heart"])
        made.people.add("ada", shown="Ada", roles=[ServiceRole.ANALYST], accounts=["hospital/heart"], password=PASSWORD)
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def application(service: Service) -> Visiting:
    return Visiting(service)


@pytest.fixture
def browser(application: Visiting) -> Visiting:
    return application.other()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Service]:
    """A service of one's own, with nobody in it."""
    made = Service.create(tmp_path / "service")
    try:
        yield made
    finally:
        made.close()
