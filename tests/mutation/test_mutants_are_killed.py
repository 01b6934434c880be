"""Changing any operator or constant in a function that states a privacy fact is caught by some test."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.mutants import (
    EQUIVALENT,
    EXTRA,
    PRIVACY_FUNCTIONS,
    module_files,
    mutants_of,
    mutants_under,
    watched_under,
)

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src"


def definitions_by_plain_search() -> set[tuple[str, int]]:
    """Module and line of each definition, found without the parser that the mutator uses."""
    definition = re.compile(rf"\s*(async\s+)?def\s+({'|'.join(sorted(PRIVACY_FUNCTIONS))})\b")
    return {
        (module, number)
        for module, path in module_files(SOURCE).items()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if definition.match(line)
    }


@pytest.mark.long
def test_the_mutator_finds_every_definition_that_a_plain_search_finds() -> None:
    found = {(function.module, function.line) for function in watched_under(SOURCE)}
    assert definitions_by_plain_search() <= found


def test_the_package_is_where_it_is_looked_for() -> None:
    assert "sfumato.errors" in module_files(SOURCE)


@pytest.mark.long
def test_every_extra_name_is_a_function_of_the_package() -> None:
    found = {f"{function.module}.{function.qualname}" for function in watched_under(SOURCE)}
    assert set(EXTRA) <= found


@pytest.mark.long
def test_every_excuse_matches_a_mutant_and_has_a_reason() -> None:
    files = module_files(SOURCE)
    excused = {key.partition(":")[0] for key in EQUIVALENT}  # other modules have no excuse to match
    keys = {mutant.key for module in excused for mutant in mutants_of(files[module].read_text("utf-8"), module)}
    assert EQUIVALENT.keys() <= keys
    assert all(reason.strip() for reason in EQUIVALENT.values())


@pytest.mark.long
def test_every_mutant_is_killed() -> None:
    command = [sys.executable, "-m", "tests.mutation.run"]
    lines = []
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    assert running.returncode == 0, "".join(lines)
    judged = {line.partition(":")[0] for line in lines}
    assert mutants_under(SOURCE).keys() <= judged
