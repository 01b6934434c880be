"""What CI may run once more after it failed, and what it may not."""

import runpy

from tests.parts import ROOT

standing = runpy.run_path(str(ROOT / "scripts" / "retry_flaky.py"))["standing"]


def test_a_failed_command_may_run_once_more():
    assert standing(["tests/cli/test_app.py::test_a", "tests/browser/test_b.py::test_b[1]"], {}) == []


def test_a_law_a_statistical_test_or_a_claim_may_not():
    law, draws = "tests/laws/test_count_fuzz.py::test_x", "tests/statistical/test_coverage.py::test_y"
    claim = "tests/cli/test_query.py::test_z"
    claims = {"S1-04": {claim: "failed"}}
    assert standing([law, draws, claim, "tests/cli/test_app.py::test_a"], claims) == [law, draws, claim]
