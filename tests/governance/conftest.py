from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.governance.homes import Home, dropped, postgres_home, sqlite_home


@pytest.fixture(params=["sqlite", "postgresql"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """An empty place for a ledger, on each store in turn."""
    if request.param == "sqlite":
        yield sqlite_home(tmp_path)
    else:
        server = request.getfixturevalue("postgres_url")
        place = postgres_home(tmp_path, server)
        yield place
        dropped(place, server)
