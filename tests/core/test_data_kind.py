"""The registry of kinds of data: each once, in one order, and nothing heavy behind it."""

import subprocess
import sys

import pytest

from sfumato.core import data_kind
from sfumato.core.data_kind import DataKind, kinds, register
from sfumato.errors import InvalidInput


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds()
    monkeypatch.setattr(data_kind, "_known", dict(data_kind._known))


def kind(name: str, **plots: str) -> DataKind:
    return DataKind(name=name, declarations=(), messages=None, plots=plots)


def test_the_kinds_that_come_with_it_are_listed_by_name() -> None:
    assert [each.name for each in kinds()] == [
        "boxes",
        "federated",
        "graphs",
        "learning",
        "local",
        "streams",
        "studies",
        "synthesis",
        "tables",
    ]


def test_the_order_is_that_of_names_whoever_comes_first() -> None:
    register(kind("zebras"))
    register(kind("ants"))
    names = [each.name for each in kinds()]
    assert names == sorted(names)
    assert {"zebras", "ants"} <= set(names)


def test_a_second_kind_of_one_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'tables' is registered already; nothing was changed"):
        register(kind("tables"))


def test_a_second_plot_of_one_name_is_refused() -> None:
    register(kind("ants", trails="ants.plots:trails"))
    with pytest.raises(InvalidInput, match="trails: another kind has a plot of this name"):
        register(kind("bees", trails="bees.plots:trails"))


@pytest.mark.parametrize("place", ["ants.plots", "ants.plots:", ":trails", "ants:tra ils"])
def test_a_plot_says_where_its_function_is(place: str) -> None:
    with pytest.raises(InvalidInput, match="not module:function"):
        kind("ants", trails=place)


def test_asking_for_the_kinds_imports_nothing_heavy() -> None:
    heavy = ("torch", "ibis", "duckdb", "numpy", "pyarrow", "altair")
    code = "import sys, sfumato; from sfumato.core.data_kind import kinds; assert len(kinds()) == 9\n"
    code += f"print([name for name in {heavy!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_threads_that_ask_first_at_once_all_get_all_kinds() -> None:
    """An owner process reads certificates in many threads: none of them may meet half a registry."""
    script = (
        "import threading\n"
        "import sfumato\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from sfumato.core.data_kind import kinds\n"
        "together = threading.Barrier(20)\n"
        "def asked(_):\n"
        "    together.wait()\n"
        "    return len(kinds())\n"
        "with ThreadPoolExecutor(20) as pool:\n"
        "    assert len(set(pool.map(asked, range(20)))) == 1\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
