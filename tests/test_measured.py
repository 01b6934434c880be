"""Which cases of a test are measured."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from tests import measured


def marks(nodeid: str, *, took: float, measuring: bool, clock: list[float]) -> list[str]:
    """Run a case that takes so long; the marks that it was given."""
    given: list[str] = []
    manager = SimpleNamespace(hasplugin=lambda name: measuring and name == "_cov")
    item: Any = SimpleNamespace(nodeid=nodeid, config=SimpleNamespace(pluginmanager=manager), add_marker=given.append)
    case = measured.pytest_runtest_call(item)
    next(case)
    clock[0] += took
    with pytest.raises(StopIteration):
        case.send(None)
    return given


@pytest.mark.parametrize("measuring", [True, False])
def test_cases_are_measured_until_the_test_has_taken_long_enough(
    monkeypatch: pytest.MonkeyPatch, *, measuring: bool
) -> None:
    clock = [0.0]
    monkeypatch.setattr(measured, "process_time", lambda: clock[0])
    monkeypatch.setattr(measured, "spent", Counter())
    names = ["a.py::slow[0]", "a.py::slow[1]", "a.py::slow[2]", "a.py::quick[0]", "b.py::slow[0]"]
    took = [0.75 * measured.ENOUGH] * 3 + [0.0, 0.0]
    found = [marks(name, took=it, measuring=measuring, clock=clock) for name, it in zip(names, took, strict=True)]
    assert found == [[], [], ["no_cover"] if measuring else [], [], []]


def test_a_case_that_fails_counts_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(measured, "process_time", lambda: clock[0])
    monkeypatch.setattr(measured, "spent", Counter())
    manager = SimpleNamespace(hasplugin=lambda _: True)
    item: Any = SimpleNamespace(nodeid="a.py::it[0]", config=SimpleNamespace(pluginmanager=manager))
    case = measured.pytest_runtest_call(item)
    next(case)
    clock[0] += 2 * measured.ENOUGH
    with pytest.raises(ValueError, match="failed"):
        case.throw(ValueError("failed"))
    assert marks("a.py::it[1]", took=0.0, measuring=True, clock=clock) == ["no_cover"]
