"""Where lines are measured: in every test until it has run for a while, and no longer.

Measuring doubles the time of a test. Its first cases show which lines it reaches; a test of many slow cases runs the
rest of them at full speed. The total is a lower bound of what is covered. Nothing happens where nothing is measured.
"""

from collections import Counter
from collections.abc import Generator
from time import process_time

import pytest

ENOUGH = 2.0  # seconds of one test function, all its cases together

spent: Counter[str] = Counter()


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outside of the plugin that measures
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    if not item.config.pluginmanager.hasplugin("_cov"):
        return (yield)
    function = item.nodeid.partition("[")[0]
    if spent[function] > ENOUGH:
        item.add_marker("no_cover")
    begun = process_time()
    try:
        return (yield)
    finally:
        spent[function] += process_time() - begun
