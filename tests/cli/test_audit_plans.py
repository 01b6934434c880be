"""``sfumato audit plans``: a schema and nothing else goes in; broken declarations of sensitivity come out."""

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.audit import PlansAudit, PlanTried
from tests.cli.test_app import DECLARED

ONE = dict.fromkeys(("l0", "l1", "l2 squared", "linf"), Fraction(1))


@pytest.fixture
def schema(tmp_path: Path) -> str:
    """A schema beside no data."""
    (tmp_path / "declared.toml").write_text(DECLARED, "utf-8")
    return str(tmp_path / "declared.toml")


def test_a_schema_is_fuzzed(run: Any, schema: str) -> None:
    outcome = run("audit", "plans", schema, "--plans", "1", "--seed", "6", "--unit-relation", "replace")
    assert outcome.exit_code == 0, outcome.stderr
    assert "user (patient_id), replace (seed 6); 30 pair(s)" in outcome.stdout
    assert "That is no proof" in outcome.stdout


def test_what_is_refuted_is_told_and_exits_with_4(run: Any, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = PlanTried(words="count of visits", pairs=10, ratios={**ONE, "l1": Fraction(3, 2)})
    found = PlansAudit(dataset="visits", unit="user", seed=1, tried=(tried,), refused=0, alone=1)
    module = sys.modules["sfumato.audit.plans"]  # the package has the function by that name
    monkeypatch.setattr(module, "plans", lambda *_, **__: found)
    outcome = run("audit", "plans", schema)
    assert (outcome.exit_code, "count of visits: moved beyond" in outcome.stdout) == (4, True)
    told = json.loads(run("audit", "plans", schema, "--json").stdout)
    assert (told["refuted"], told["largest"], told["beyond"][0]["ratios"]["l1"]) == (True, 1.5, "3/2")


def test_a_schema_of_persons_is_not_asked_about_rows(run: Any, schema: str) -> None:
    outcome = run("audit", "plans", schema, "--unit", "record")
    assert (outcome.exit_code, "would protect single rows" in " ".join(outcome.stderr.split())) == (1, True)
