"""Loads what the whole test suite shares."""

pytest_plugins = ["tests.claims.plugin", "tests.measured", "tests.servers"]
