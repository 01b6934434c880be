"""Workers of pytest-xdist send three messages for each test and not six: most tests are shorter than what is sent.

A test begins, is set up, called, torn down, ends and is done: six messages. That it begins is shown nowhere, and that
it was set up or torn down says nothing unless that failed or took long. All else is sent as before.
"""

import pytest

LONG = 0.005  # seconds: shorter ones are in no list of the slowest
WORKER = "WorkerInteractor"


class Sender:
    """Sends what somebody reads."""

    def __init__(self, worker: object) -> None:
        self.worker = worker

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed or report.duration >= LONG:
            self.worker.pytest_runtest_logreport(report)  # type: ignore[attr-defined]  # the class is sent over a pipe


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    hook, manager = session.config.hook, session.config.pluginmanager
    for worker in [each for each in manager.get_plugins() if type(each).__name__ == WORKER]:
        hook.pytest_runtest_logstart._remove_plugin(worker)
        hook.pytest_runtest_logreport._remove_plugin(worker)
        manager.register(Sender(worker))
