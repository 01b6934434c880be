"""The pytest side of the claims: checks the numbers that tests name, and records how those tests ended.

``--claims-report FILE`` writes ``{number: {test: "passed" | "failed" | "skipped"}}`` as canonical JSON. Under
pytest-xdist the numbers travel to the controller in ``user_properties``, and the controller writes.
"""

import json
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest

from tests.claims.catalogue import load

PROPERTY = "claims"


@cache
def known() -> frozenset[object]:
    """The numbers in the catalogue."""
    return frozenset(load().claims)


def numbers(item: pytest.Item) -> list[object]:
    """All numbers that the markers of a test name; a marker without numbers counts as a wrong one."""
    return [number for marker in item.iter_markers("claim") for number in marker.args or (None,)]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("claims")
    group.addoption("--claims-report", type=Path, metavar="FILE", help="record the result of each claim's tests")


def pytest_configure(config: pytest.Config) -> None:
    path: Path | None = config.getoption("--claims-report")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(path))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    # An error of collection, unlike one raised when the list of tests is complete, is shown the same way
    # by every xdist worker.
    wrong = [
        f"{item.nodeid}: claim({number!r}) is not in claims/catalogue.toml"
        for item in report.result or ()
        if isinstance(item, pytest.Item)
        for number in numbers(item)
        if number not in known()
    ]
    if wrong:
        report.outcome, report.longrepr, report.result = "failed", "\n".join(wrong), []
    return report


def pytest_itemcollected(item: pytest.Item) -> None:
    if named := sorted({str(number) for number in numbers(item)}):
        item.user_properties.append((PROPERTY, named))


class Recorder:
    """Collects the reports of tests that carry claims and writes them down at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[str, dict[str, str]] = {}
        self.complete = True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.complete = self.complete and not report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        named = [value for key, value in report.user_properties if key == PROPERTY]
        for number in (number for value in named if isinstance(value, list) for number in value):
            tests = self.outcomes.setdefault(number, {})
            if outcome := _outcome(report, before=tests.get(report.nodeid)):
                tests[report.nodeid] = outcome

    def pytest_sessionfinish(self) -> None:
        # Half a collection would make claims look open that only were not looked at.
        if self.complete:
            text = json.dumps(self.outcomes, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            self.path.write_text(text + "\n", encoding="utf-8")


def _outcome(report: pytest.TestReport, *, before: str | None) -> str | None:
    """What is known of a test after this report of its setup, call or teardown."""
    if report.failed or before == "failed":
        return "failed"
    # A test that is expected to fail shows nothing, whichever way it ends.
    if report.skipped or before == "skipped" or hasattr(report, "wasxfail"):
        return "skipped"
    return "passed" if report.when == "call" else before
