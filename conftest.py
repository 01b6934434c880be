"""Loads what the whole test suite shares."""

import signal

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.alpha", "tests.claims.plugin", "tests.measured", "tests.servers"]

# No property fails by the clock: on a busy machine one example in thousands takes longer than Hypothesis allows it.
settings.register_profile("sfumato", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sfumato")


def pytest_configure() -> None:
    """Let Ctrl-C interrupt: a shell starts what it puts into the background with that signal ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
