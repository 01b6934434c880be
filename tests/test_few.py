"""Which cases of a test make test runs: those that few leaves out are long, and none is lost."""

import secrets
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.few import chosen

ROOT = Path(__file__).parents[1]

SAMPLE = """
import pytest

pytestmark = pytest.mark.few(2)

@pytest.mark.parametrize("number", range(6))
def test_of_the_file(number): pass

@pytest.mark.few(3)
@pytest.mark.parametrize("engine", ["duckdb", "postgresql", "spark"])
@pytest.mark.parametrize("number", range(4))
def test_beside_the_test(engine, number): pass

@pytest.mark.parametrize("number", [pytest.param(0, marks=pytest.mark.long), 1, 2, 3])
def test_with_a_long_case(number): pass

def test_alone(): pass

class TestInAClass:
    @pytest.mark.few(1)
    @pytest.mark.parametrize("number", range(3))
    def test_method(self, number): pass
"""
SHORT = {
    "test_of_the_file[0]",
    "test_of_the_file[5]",
    "test_beside_the_test[0-duckdb]",
    "test_beside_the_test[3-spark]",
    "test_beside_the_test[1-postgresql]",
    "test_with_a_long_case[1]",
    "test_with_a_long_case[3]",
    "test_alone",
    "test_method[0]",
}


class Seen:
    """Remembers the cases that were selected, those that were not, and what went wrong."""

    def __init__(self) -> None:
        self.selected: set[str] = set()
        self.left: set[str] = set()
        self.wrong = ""

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self.left |= {item.name for item in items}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.selected |= {item.name for item in session.items}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.wrong += str(report.longrepr) if report.failed else ""


def collected(folder: Path, source: str, *options: str, of: str = "") -> Seen:
    """What a run of pytest in this process collects of a file."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    few\n    long\n", encoding="utf-8")
    file = folder / f"test_{secrets.token_hex(8)}.py"  # what is imported once is not imported again by this name
    file.write_text(source, encoding="utf-8")
    command = f"-c {folder}/pytest.ini --rootdir={folder} --import-mode=importlib --strict-markers --assert=plain -q"
    command += " --collect-only --noconftest -p tests.few -p no:cacheprovider -p no:xdist"
    seen = Seen()
    pytest.main([*command.split(), *options, f"{file}{of}"], plugins=[seen])
    return seen


def test_the_short_cases_are_spread_and_with_the_long_ones_they_are_all(tmp_path: Path) -> None:
    every = collected(tmp_path, SAMPLE).selected
    assert len(every) == 6 + 12 + 4 + 1 + 3
    short, long = (collected(tmp_path, SAMPLE, "-m", which) for which in ("not long", "long"))
    assert short.selected == long.left == SHORT
    assert short.left == long.selected == every - SHORT


def test_what_else_is_asked_for_changes_no_choice(tmp_path: Path) -> None:
    """Otherwise a case that is run by its name would be short, and long in a run of all."""
    alone = collected(tmp_path, SAMPLE, "-m", "not long", of="::test_of_the_file[1]")
    assert (alone.selected, alone.left) == (set(), {"test_of_the_file[1]"})


@pytest.mark.few(3)
@pytest.mark.parametrize("mark", ["few", "few()", "few(0)", "few(True)", "few(1, 2)", "few(number=1)", "few('2')"])
def test_a_mark_without_a_number_of_cases_is_an_error_of_collection(tmp_path: Path, mark: str) -> None:
    source = f"import pytest\n@pytest.mark.{mark}\ndef test_lost(): pass\n"
    seen = collected(tmp_path, source)
    assert seen.wrong.endswith(".py::test_lost: few takes one whole number, of at least 1")
    assert seen.selected == set()


def lists(draw: st.DrawFn) -> list[frozenset[object]]:
    """The cases of some lists of parameters, as pytest makes them."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    return [frozenset(enumerate(words)) for words in product(*map(range, lengths))]


@given(st.composite(lists)(), st.integers(1, 12))
def test_as_many_are_chosen_as_are_asked_for_and_more_of_them_hold_the_fewer(
    cases: list[frozenset[object]], number: int
) -> None:
    kept = chosen(cases, number)
    assert len(kept) == len(set(kept)) == min(number, len(cases))
    assert kept[0] == 0
    assert chosen(cases, number + 1)[:number] == kept


@given(st.composite(lists)())
def test_as_many_cases_as_the_longest_list_has_values_hold_every_value(cases: list[frozenset[object]]) -> None:
    values = frozenset[object]().union(*cases)
    longest = max(sum(1 for place, _ in values if place == axis) for axis, _ in values)  # type: ignore[misc]
    kept = chosen(cases, longest)
    assert frozenset[object]().union(*(cases[place] for place in kept)) == values


def test_ci_looks_for_long_cases_in_every_folder_of_tests() -> None:
    """A case may be long by a mark of its file, of its fixture or of few: none of them is found by its text."""
    assert "for folder in tests/[a-z]*/; do long" in (ROOT / ".ci" / "run").read_text("utf-8")
    beside = {file.name: file.read_text("utf-8") for file in (ROOT / "tests").glob("test_*.py")}
    assert [name for name, text in beside.items() if "\n@pytest.mark.long\n" in text] == [], "it belongs into a folder"
