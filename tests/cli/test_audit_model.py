"""``sfumato audit model``: the invented model, and a run of one's own from its certificate."""

import json
from pathlib import Path
from typing import Any

import pytest

from sfumato import audit
from sfumato.audit.one_run_demo import demonstrated
from tests.parts import package

package("torch")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate and its evidence."""
    folder = tmp_path_factory.mktemp("audited")
    done = demonstrated(canaries=40, weights=60)
    done.release.certificate.save(folder / "model.json")
    (folder / "evidence.json").write_text(json.dumps(audit.canary_evidence(done)), encoding="utf-8")
    return folder


def test_a_run_is_audited_from_its_certificate_and_evidence(run: Any, kept: Path) -> None:
    outcome = run("audit", "model", str(kept / "model.json"), "--evidence", str(kept / "evidence.json"), "--json")
    found = json.loads(outcome.stdout)
    assert outcome.exit_code in (0, 4)
    assert (found["canaries"], found["guesses"], found["epsilon"]) == (40, 4, 4.0)
    assert (outcome.exit_code == 4) is (found["refuted"] or found["refuted_if_gaussian"])


def test_other_coins_and_half_of_the_files_are_refused(run: Any, kept: Path, tmp_path: Path) -> None:
    told = json.loads((kept / "evidence.json").read_text(encoding="utf-8"))
    told["coins"] = told["coins"][::-1] if told["coins"] != told["coins"][::-1] else "1" * 40
    (tmp_path / "other.json").write_text(json.dumps(told), encoding="utf-8")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    certificate = str(kept / "model.json")
    for arguments, why in (
        ([certificate, "--evidence", str(tmp_path / "other.json")], "sealed before"),
        ([certificate, "--evidence", str(tmp_path / "list.json")], "not the evidence"),
        ([certificate, "--evidence", str(tmp_path / "none.json")], "cannot be read"),
        ([certificate], "go together"),
    ):
        outcome = run("audit", "model", *arguments)
        assert outcome.exit_code == 1
        assert why in " ".join(outcome.stderr.split())
