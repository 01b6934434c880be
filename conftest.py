"""Loads what the whole test suite shares."""

import gc
import os
import signal

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.alpha", "tests.claims.plugin", "tests.few", "tests.measured", "tests.servers"]

# No property fails by the clock: on a busy machine one example in thousands takes longer than Hypothesis allows it.
MANY = 100 if os.environ.get("SFUMATO_LONG") == "1" else 25
settings.register_profile("sfumato", max_examples=MANY, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sfumato")


def pytest_configure() -> None:
    """Let Ctrl-C interrupt: a shell starts what it puts into the background with that signal ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Take what collecting made, a million objects that stay, out of what the garbage collector walks through."""
    gc.collect()
    gc.freeze()
