import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.claims.catalogue import Catalogue, CatalogueError, Claim, load, parse
from tests.claims.page import Result, page, problems, result

ROOT = Path(__file__).parents[2]

PASSES_FAILS_SKIPS = """
import unittest
import pytest

@pytest.mark.claim("S2-06", "S2-04")
def test_passes(): pass

@pytest.mark.claim("S2-10")
@pytest.mark.claim("S2-04")
def test_fails(): assert False

@pytest.mark.claim("S2-12")
def test_skips(): raise unittest.SkipTest("not here")

@pytest.fixture
def falls_over_afterwards():
    yield
    raise RuntimeError

@pytest.mark.claim("S2-09")
def test_fails_in_teardown(falls_over_afterwards): pass

def test_without_claim(): pass
"""


def run_pytest(folder: Path, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    test = folder / "test_sample.py"
    test.write_text(source, encoding="utf-8")
    command = ["-m", "pytest", "-c", "pyproject.toml", "-p", "tests.claims.plugin", "-p", "no:cacheprovider"]
    command += ["--rootdir", str(folder)]
    return subprocess.run(
        [sys.executable, *command, *options, str(test)], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_there_are_144_numbers_and_each_owner_has_its_own() -> None:
    claims = load().claims
    assert len(claims) == 144
    assert Counter(claim.owner for claim in claims.values()) == {
        "calculus": 39,
        "releases": 8,
        "tables": 6,
        "ledger": 15,
        "graphs": 15,
        "streams": 10,
        "learning": 13,
        "studies": 8,
        "generative": 9,
        "synthesis": 4,
        "audit": 5,
        "research": 8,
        "tables (second)": 1,
        "training (second)": 1,
        "service": 1,
        "documentation": 1,
    }


def entry(**changes: str) -> str:
    fields = {
        "number": "S2-06",
        "area": "a",
        "owner": "calculus",
        "verdict": "true",
        "statement": "s",
        "check": "c",
    }
    return "[[claim]]\n" + "".join(f'{name} = "{value}"\n' for name, value in (fields | changes).items())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (entry() + entry(), "S2-06 stands twice"),
        (entry(owner="nobody"), "S2-06 has the owner 'nobody'"),
        (entry(verdict="maybe"), "S2-06 has the verdict 'maybe'"),
        (entry(statement=" "), "S2-06 leaves empty: statement"),
        (entry(remark="r"), "S2-06 has missing or unknown fields: remark"),
        ('finished = ["nobody"]\n' + entry(), "finished names the owner 'nobody'"),
    ],
)
def test_a_wrong_catalogue_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(CatalogueError, match=re.escape(message)):
        parse(text)


@pytest.mark.long
@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_unknown_number_is_an_error_of_collection(tmp_path: Path, workers: str) -> None:
    source = 'import pytest\n@pytest.mark.claim("S2-06", "S9-99")\ndef test_lost(): pass\n'
    report = tmp_path / "report.json"
    run = run_pytest(tmp_path, source, "-n", workers, "--claims-report", str(report))
    assert run.returncode in (1, 2), run.stdout + run.stderr
    assert "ERROR" in run.stdout
    assert "test_sample.py::test_lost: claim('S9-99') is not in claims/catalogue.toml" in run.stdout
    assert "passed" not in run.stdout
    assert not report.exists()


@pytest.mark.long
def test_a_marker_without_number_is_an_error_of_collection(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, "import pytest\n@pytest.mark.claim\ndef test_lost(): pass\n", "-n", "0")
    assert run.returncode == 2
    assert "test_sample.py::test_lost: claim(None) is not in claims/catalogue.toml" in run.stdout


@pytest.mark.long
@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_report_holds_every_outcome(tmp_path: Path, workers: str) -> None:
    report = tmp_path / "report.json"
    run = run_pytest(tmp_path, PASSES_FAILS_SKIPS, "-n", workers, "--claims-report", str(report))
    assert run.returncode == 1, run.stdout + run.stderr
    text = report.read_text(encoding="utf-8")
    recorded = {
        number: {test.rpartition("::")[2]: outcome for test, outcome in tests.items()}
        for number, tests in json.loads(text).items()
    }
    assert recorded == {
        "S2-04": {"test_fails": "failed", "test_passes": "passed"},
        "S2-06": {"test_passes": "passed"},
        "S2-09": {"test_fails_in_teardown": "failed"},
        "S2-10": {"test_fails": "failed"},
        "S2-12": {"test_skips": "skipped"},
    }
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")) + "\n"


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ({}, Result.OPEN),
        ({"a": "passed", "b": "passed"}, Result.PASSES),
        ({"a": "passed", "b": "failed", "c": "skipped"}, Result.FAILS),
        ({"a": "skipped"}, Result.OPEN),
        ({"a": "passed", "b": "skipped"}, Result.OPEN),
    ],
)
def test_a_claim_passes_only_when_all_its_tests_passed(outcomes: dict[str, str], expected: Result) -> None:
    assert result(outcomes) is expected


def small_catalogue(*finished: str) -> Catalogue:
    claims = {
        number: Claim(number=number, area="A", owner=owner, verdict="true", statement="|x| ≤ a_b", check="x < 1")
        for number, owner in [("S2-06", "calculus"), ("S1-05", "tables")]
    }
    return Catalogue(claims=claims, finished=frozenset(finished))


def test_an_open_claim_of_a_finished_owner_is_a_problem() -> None:
    passed = {"S2-06": {"test": "passed"}}
    assert problems(small_catalogue(), passed) == []
    assert problems(small_catalogue("calculus"), passed) == []
    assert problems(small_catalogue("tables"), passed) == ["S1-05 is open, but tables is listed as finished"]
    assert problems(small_catalogue("calculus"), {"S2-06": {"test": "skipped"}}) == [
        "S2-06 is open, but calculus is listed as finished"
    ]


def test_a_failing_claim_is_a_problem_whoever_is_finished() -> None:
    assert problems(small_catalogue(), {"S2-06": {"test": "failed"}}) == ["S2-06 (calculus) fails"]


def test_a_row_of_the_page() -> None:
    tests = {"S2-06": {"tests/a/test_b.py::test_c[1]": "passed", "tests/a/test_b.py::test_c[2]": "passed"}}
    assert (
        "| S2-06 | \\|x\\| ≤ a\\_b<br>*Check:* x &lt; 1 | true | calculus | `test_b.py::test_c` | passes |"
        in page(small_catalogue(), tests).splitlines()
    )


def test_the_written_page_agrees_with_the_catalogue() -> None:
    rows = set()
    for line in (ROOT / "docs" / "claims.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) == 8 and re.fullmatch(r"(S\d|X)-\d\d", cells[1]):
            statement = re.sub(r"\\(.)", r"\1", cells[2].partition("<br>*Check:*")[0]).replace("&lt;", "<")
            rows.add((cells[1], statement, cells[3], cells[4]))
    stale = "docs/claims.md is stale: run `make claims`"
    assert rows == {(c.number, c.statement, c.verdict, c.owner) for c in load().claims.values()}, stale
