"""Hospitals and a coordinator as real processes, some of which are killed: nothing is lost or charged twice."""

from pathlib import Path

import pytest

from tests.federated.hospitals import without_noise
from tests.federated.kills import run


@pytest.mark.long
def test_killed_processes_lose_nothing_and_are_charged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    found = run(8, tmp_path)
    assert sum(found["kills"].values()) == 8  # type: ignore[attr-defined]
