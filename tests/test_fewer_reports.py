"""What somebody reads of a test arrives, through real workers."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import fewer_reports

ROOT = Path(__file__).parents[1]
TESTS = """
import time
import pytest

@pytest.fixture
def slow():
    time.sleep(0.05)
    yield
    time.sleep(0.05)

@pytest.fixture
def broken():
    raise ValueError("in front")

@pytest.fixture
def broken_after():
    yield
    raise ValueError("behind")

def test_passes(): pass
def test_takes(slow): pass
def test_fails(): assert 1 == 2
def test_in_front(broken): pass
def test_behind(broken_after): pass
def test_skips(): pytest.skip("with a reason")
"""


@pytest.mark.parametrize(
    ("when", "passed", "took", "sent"),
    [
        ("call", True, 0.0, True),
        ("setup", True, 0.0, False),
        ("teardown", True, 0.0, False),
        ("setup", True, 1.0, True),
        ("setup", False, 0.0, True),
        ("teardown", False, 0.0, True),
    ],
)
def test_what_says_nothing_is_not_sent(when: str, *, passed: bool, took: float, sent: bool) -> None:
    arrived: list[Any] = []
    sender = fewer_reports.Sender(SimpleNamespace(pytest_runtest_logreport=arrived.append))
    report: Any = SimpleNamespace(when=when, passed=passed, duration=took)
    sender.pytest_runtest_logreport(report)
    assert arrived == [report] * sent


def test_failures_before_in_and_after_a_test_arrive_and_so_do_slow_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-n", "1", "-p", "tests.fewer_reports", "-p", "no:cacheprovider", "-rA"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [*command, "--durations=0", "--rootdir=.", "test_it.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 3 passed, 1 skipped, 2 errors" in done.stdout
    assert set(re.findall(r"^(FAILED|ERROR) test_it.py::(\w+)", done.stdout, re.MULTILINE)) == {
        ("FAILED", "test_fails"),
        ("ERROR", "test_in_front"),
        ("ERROR", "test_behind"),
    }
    assert len(re.findall(r"0\.\d\ds (setup|teardown) +test_it.py::test_takes", done.stdout)) == 2
