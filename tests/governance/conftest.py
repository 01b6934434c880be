from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.governance.homes import Home, dropped, postgres_home, sqlite_home


# On a server a test takes five times as long. What is about the store itself asks for both (STORES of homes.py).
@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """An empty place for a ledger, on each store in turn."""
    if request.param == "sqlite":
        yield sqlite_home(tmp_path)
    else:
        server = request.getfixturevalue("postgres_url")
        place = postgres_home(tmp_path, server)
        yield place
        dropped(place, server)
