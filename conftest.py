"""Loads what the whole test suite shares."""

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.alpha",
    "tests.built",
    "tests.claims.plugin",
    "tests.compiled",
    "tests.few",
    "tests.fewer_reports",
    "tests.lighter",
    "tests.measured",
    "tests.noisier",
    "tests.servers",
]

# No property fails by the clock: on a busy machine one example in thousands takes longer than Hypothesis allows it.
# And ``make test`` tries the same examples each time, so that its verdict is of the code; long runs look for new ones.
LONG = os.environ.get("SFUMATO_LONG") == "1"
settings.register_profile(
    "sfumato",
    max_examples=100 if LONG else 25,
    derandomize=not LONG,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sfumato")


def pytest_configure() -> None:
    """Let Ctrl-C interrupt: a shell starts what it puts into the background with that signal ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests in the package and the examples alone: tests have none, and looking takes seconds."""
    found = yield
    in_tests = file_path.is_relative_to(Path(__file__).parent / "tests")
    return [one for one in found if not (in_tests and isinstance(one, DoctestModule))]


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Collect without collecting garbage: what is made are a million objects that stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Take what collecting made out of what the garbage collector walks through."""
    gc.enable()
    gc.collect()
    gc.freeze()
