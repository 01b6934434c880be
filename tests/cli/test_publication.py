"""The gate of publication, as users meet it: reports, from a certificate or a question, and the demonstration."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli.exits import Exit
from sfumato.errors import InvalidInput
from sfumato.reports import publication as gate
from sfumato.reports.verify import load
from sfumato.reports.words import AUDIENCES

Run = Callable[..., Any]
REASON, BASIS = "The plan for winter needs ±40 & no less.", "Section 7 of the <health statistics> act."
BOTH = ("--reason", REASON, "--legal-basis", BASIS)
DRAFT = {"en": "Draft: not for publication", "zh-Hans": "草稿：不得公布"}
MISSING = {
    "en": {"reason": "the reason for this ε", "legal_basis": "the legal basis"},
    "zh-Hans": {"reason": "选定此 ε 的理由", "legal_basis": "法律依据"},
}
SHOWN = {"reason": "The plan for winter needs ±40 &amp; no less.", "legal_basis": "the &lt;health statistics&gt; act."}


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages as they are without the extra that draws: the gate is the same, and a picture takes half a second."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)


def sections(page: str) -> dict[str, str]:
    """The part of a page for each language."""
    return dict(re.findall(r'<section id="([\w-]+)"[^>]*>(.*?)</section>', page, re.DOTALL))


def check_draft(page: str, missing: set[str]) -> None:
    parts = sections(page)
    assert re.search(r"<title>(Draft: not for publication|草稿：不得公布) · ", page)
    for language, part in parts.items():
        said = re.sub(r'<nav class="languages".*?</nav>', "", part, count=1, flags=re.DOTALL)
        first = said.strip().partition("</p>")[0]
        assert first.startswith('<p class="draft"'), "a draft says so before all but the choice of a language"
        assert DRAFT[language] in first
        for name, words in MISSING[language].items():
            assert (words in first) is (name in missing), (language, name)
        assert 'class="recorded"' not in part


def check_published(page: str) -> None:
    assert "Draft:" not in page
    assert "草稿" not in page
    for part in sections(page).values():
        (stated,) = re.findall(r'<p class="recorded">(.*?)</p>', part)
        board = part.rpartition("<summary>")[2]
        for words in SHOWN.values():
            assert words in stated
            assert words in board, "the board reads it too"


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.few(1)
@pytest.mark.claim("S1-25", "S1-26", "S1-33")
@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ((), {"reason", "legal_basis"}),
        pytest.param(("--reason", REASON), {"legal_basis"}, marks=pytest.mark.long),
        pytest.param(("--legal-basis", BASIS), {"reason"}, marks=pytest.mark.long),
        pytest.param(("--reason", " \n", "--legal-basis", BASIS), {"reason"}, marks=pytest.mark.long),
        (("--reason", "\u200b", "--legal-basis", "\u2060 …"), {"reason", "legal_basis"}),  # nothing that can be read
    ],
)
def test_a_report_without_its_grounds_is_a_draft_on_its_face(
    run: Run, place: Path, said: tuple[str, ...], missing: set[str]
) -> None:
    outcome = run("report", place / "ili.json", *said)
    assert outcome.exit_code == 0, outcome.output
    assert DRAFT["en"] in outcome.stdout
    page = (place / "ili.html").read_text("utf-8")
    assert set(sections(page)) == {"en", "zh-Hans"}
    check_draft(page, missing)
    chinese = run("report", place / "ili.json", *said, "--lang", "zh", "--json")
    assert json.loads(chinese.stdout)["publication"]["status"] == "draft"
    assert set(json.loads(chinese.stdout)["publication"]["missing"]) == missing
    check_draft((place / "ili.html").read_text("utf-8"), missing)


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.claim("S1-25", "S1-26", "S1-33")
def test_a_report_with_its_grounds_is_a_publication_and_states_them(run: Run, place: Path) -> None:
    outcome = run("report", place / "ili.json", *BOTH, "--json")
    assert outcome.exit_code == 0, outcome.output
    said = json.loads(outcome.stdout)["publication"]
    assert said == {"status": "publication", "reason": REASON, "legal_basis": BASIS, "missing": []}
    check_published((place / "ili.html").read_text("utf-8"))
    assert "Draft" not in run("report", place / "ili.json", *BOTH).stdout


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.claim("S1-25", "S1-33")
def test_the_report_of_a_release_in_python_has_the_same_gate(place: Path) -> None:
    release = load(place / "ili.json")
    check_draft(release.report(place / "a.html").read_text("utf-8"), {"reason", "legal_basis"})
    check_draft(release.report(place / "b.html", reason=REASON).read_text("utf-8"), {"legal_basis"})
    check_published(release.report(place / "c.html", reason=REASON, legal_basis=BASIS).read_text("utf-8"))
    for wrong in ({"reason": None}, {"legal_basis": 7}, {"reason": "x" * 4_001}, {"reason": "\ud800"}):
        with pytest.raises(InvalidInput, match="must be a text"):
            release.report(place / "d.html", **wrong)  # type: ignore[arg-type]
    assert not (place / "d.html").exists()


@pytest.mark.claim("S1-33")
@pytest.mark.parametrize("reader", AUDIENCES)
def test_no_report_is_published_while_the_text_for_a_reader_is_empty(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    written = gate.write

    def silent(facts: Any, language: str, who: str) -> Any:
        return " " if (who, language) == (reader, "zh-Hans") else written(facts, language, who)

    monkeypatch.setattr(gate, "write", silent)
    outcome = run("report", place / "ili.json", *BOTH)
    assert outcome.exit_code == Exit.REFUSED
    assert re.search(rf"{reader} \(zh-Hans\).*nothing was published", outcome.stderr)
    assert not (place / "ili.html").exists()


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.claim("S1-25")
def test_the_report_of_a_question_has_the_same_gate(run: Run, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "visits.parquet")
    (tmp_path / "visits.toml").write_text(
        'kind = "schema"\nversion = 1\n[dataset]\nname = "visits"\n[unit]\ncolumn = "id"\n[limit]\ngroups = 1\n'
        'rows_per_group = 1\n[columns.id]\ntype = "whole"\n'
    )
    asked = ("query", tmp_path / "visits.parquet", "SELECT COUNT(*) FROM visits", "--schema", tmp_path / "visits.toml")
    for said, check in (((), lambda page: check_draft(page, {"reason", "legal_basis"})), (BOTH, check_published)):
        outcome = run(*asked, "--epsilon", "1", "--report", tmp_path / "page.html", *said)
        assert outcome.exit_code == 0, outcome.output
        check((tmp_path / "page.html").read_text("utf-8"))
    refused = run(*asked, "--epsilon", "1", *BOTH)
    assert refused.exit_code == Exit.REFUSED
    assert "Add --report FILE" in refused.stderr


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.claim("S1-25")
def test_the_demonstration_publishes_invented_data_and_says_on_which_grounds(run: Run, tmp_path: Path) -> None:
    outcome = run("demo", "--folder", tmp_path / "tour", "--patients", "500", "--json")
    assert outcome.exit_code == 0, outcome.output
    page = (tmp_path / "tour" / "report.html").read_text("utf-8")
    assert "Draft:" not in page
    for part in sections(page).values():
        (stated,) = re.findall(r'<p class="recorded">(.*?)</p>', part)
        assert "no real person occurs" in stated
        assert "不涉及任何真实个人" in stated


def test_what_only_the_analyst_sees_needs_no_grounds(place: Path) -> None:
    release = load(place / "ili.json")
    assert release.to_arrow().num_rows == 2
    assert "Draft" not in release.explain()
    assert "Draft" not in release._repr_html_()
