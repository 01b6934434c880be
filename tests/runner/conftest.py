from pathlib import Path

import pytest

from tests.runner.clinic import Clinic, built


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    """A clinic with a ledger, without a plan and without data."""
    return built(tmp_path)
