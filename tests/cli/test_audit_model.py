"""``sfumato audit model``: the invented model, and a run of one's own from its certificate."""

import json
import re
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
        ([certificate, "--evidence", str(tmp_path / "list.json")], "neither a certificate nor the evidence"),
        ([certificate, "--evidence", certificate], "is a certificate, and not the evidence"),
        ([certificate, "--evidence", str(tmp_path / "none.json")], "cannot be read"),
        ([certificate], "go together"),
    ):
        outcome = run("audit", "model", *arguments)
        assert outcome.exit_code == 1
        assert why in " ".join(outcome.stderr.split())


def test_swapped_files_and_what_is_no_certificate_are_told_apart(run: Any, kept: Path, tmp_path: Path) -> None:
    certificate, evidence = str(kept / "model.json"), str(kept / "evidence.json")
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    (tmp_path / "half.json").write_text('{"a":', encoding="utf-8")
    for first, second, why in (
        (evidence, certificate, f"these files are swapped.*sfumato audit model {certificate} --evidence {evidence}"),
        (evidence, evidence, "is the evidence of an audit, and not a certificate"),
        (str(tmp_path / "half.json"), evidence, "be read as JSON"),
        (str(tmp_path / "other.json"), evidence, "does not verify"),
    ):
        outcome = run("audit", "model", first, "--evidence", second)
        said = " ".join(outcome.stderr.split())
        assert outcome.exit_code == 1
        assert re.search(why, said), said
        assert "othing was verified" not in said


@pytest.mark.parametrize(
    "given", [("--canaries", "200"), ("--score", "loss"), ("--canaries", "200", "--score", "loss")]
)
def test_options_of_the_invented_model_are_refused_with_a_run_of_ones_own(
    run: Any, kept: Path, given: tuple[str, ...]
) -> None:
    outcome = run("audit", "model", str(kept / "model.json"), "--evidence", str(kept / "evidence.json"), *given)
    assert outcome.exit_code == 1
    assert "for the invented model" in outcome.stderr
    assert all(name in outcome.stderr for name in given[::2])
    assert not outcome.stdout


def test_a_picture_that_could_not_be_written_is_refused_before_the_work(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.audit.one_run_demo.demonstrated", lambda **_: pytest.fail("it was computed"))
    (tmp_path / "taken.svg").mkdir()
    for file, why in (
        ("x.gif", ".svg, .png"),
        ("x", "without an ending"),
        ("no/x.svg", "no folder"),
        ("taken.svg", "be written"),
    ):
        outcome = run("audit", "model", "--picture", tmp_path / file)
        assert outcome.exit_code == 1
        assert why in " ".join(outcome.stderr.split())
        assert "othing was computed" in " ".join(outcome.stderr.split())


@pytest.mark.parametrize("refuted", [True, False])
def test_figures_come_first_and_a_refuted_run_stays_refuted_where_its_picture_fails(
    run: Any, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuted: bool
) -> None:
    package("altair")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(audit.OneRunAudit, "refuted", property(lambda _: refuted))
    monkeypatch.setattr(audit.OneRunAudit, "refuted_if_gaussian", property(lambda _: False))
    files = (kept / "model.json", "--evidence", kept / "evidence.json", "--picture", tmp_path / "a.svg", "--lang", "zh")
    monkeypatch.setattr("sfumato.audit.one_run_plot.audit_chart", full)
    outcome = run("audit", "model", *files)
    assert outcome.exit_code == (4 if refuted else 1)
    assert "发布证书声明" in outcome.stdout
    assert "No space left" in outcome.stderr
    monkeypatch.setattr("sfumato.audit.one_run_plot.audit_chart", lambda *_: None)
    monkeypatch.setattr("sfumato.reports.plots.save", lambda _chart, path: path)
    outcome = run("audit", "model", *files)
    assert outcome.exit_code == (4 if refuted else 0)
    assert outcome.stdout.splitlines()[-1] == f"已写入：{tmp_path / 'a.svg'}"
