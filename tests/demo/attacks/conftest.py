"""One hospital for all demonstrations."""

import pytest

from sfumato.demo.attacks.hospital import Register, register


@pytest.fixture(scope="session")
def hospital() -> Register:
    return register()
