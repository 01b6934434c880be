"""Loads what the whole test suite shares."""

import signal

pytest_plugins = ["tests.claims.plugin", "tests.measured", "tests.servers"]


def pytest_configure() -> None:
    """Let Ctrl-C interrupt: a shell starts what it puts into the background with that signal ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
