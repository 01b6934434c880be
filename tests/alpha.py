"""The chance that a run of the tests fails although all is well: each statistical test states its own, and they add up.

``@pytest.mark.alpha(1e-9)`` bounds the probability that one case of a test fails on a correct product in one run. It
takes in every draw of the case: the limits on sound noise, and the chance that a deliberately broken copy is not seen.
A number beside the test counts before one for its file. ``pytest.param(..., marks=pytest.mark.alpha(…))`` is of a case.
"""

from collections.abc import Generator, Iterable, Sequence
from typing import Any

import pytest

LIMIT = 1e-6
"""Of all cases together that ``make test`` runs."""
MARK = "alpha"
KEY = "stated alpha"


def likely(seen: int, of: int, chance: float, *, alpha: float) -> bool:
    """Whether a count has a binomial law, by that law itself: half of α is for too few, and half for too many."""
    return surprise([seen, of - seen], [chance, 1 - chance]) > alpha


def surprise(counts: Sequence[int], law: Sequence[float]) -> float:
    """The p-value of a law of finitely many outcomes, whatever their numbers: of the outcome that is furthest off.

    χ² is finer where all outcomes are expected a hundred times or more. With an outcome that is expected three times, a
    χ² of which its law says 1e-9 is met in 1e-7 of the runs.
    """
    from scipy.stats import binom

    draws, cells = sum(counts), len(law) if len(law) > 2 else 1
    found = (min(binom.cdf(seen, draws, p), binom.sf(seen - 1, draws, p)) for seen, p in zip(counts, law, strict=True))
    return float(min(1.0, 2 * cells * min(found)))


def problem(item: pytest.Item) -> str | None:
    """What is wrong with the number that a case states: it is one argument, above 0 and at most ``LIMIT``."""
    for mark in item.iter_markers(MARK):
        match mark.args, mark.kwargs:
            case (float(value),), {} if 0 < value <= LIMIT:
                pass
            case _:
                return f"{item.nodeid}: alpha takes one number, above 0 and at most {LIMIT}"
    return None


def stated(item: pytest.Item) -> float:
    """The probability that one case fails by chance; 0 where none is stated."""
    mark = item.get_closest_marker(MARK)
    return float(mark.args[0]) if mark else 0.0


def together(items: Iterable[pytest.Item], *, long: bool) -> float:
    """The probability that any of these cases fails by chance: at most their sum."""
    return sum(stated(item) for item in items if long or not item.get_closest_marker("long"))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    wrong = [found for item in report.result or () if isinstance(item, pytest.Item) and (found := problem(item))]
    if wrong:
        report.outcome, report.longrepr, report.result = "failed", "\n".join(wrong), []
    return report


class Sum:
    """Adds up what is collected; under pytest-xdist a worker does, and the controller shows it."""

    def __init__(self) -> None:
        self.found: float | None = None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[KEY] = together(session.items, long=True)
        elif not session.config.getoption("numprocesses", None):
            self.found = together(session.items, long=True)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        self.found = getattr(node, "workeroutput", {}).get(KEY, self.found)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.found:
            terminalreporter.write_line(f"chance of a false alarm in this run: below {self.found:.1e}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Sum())
