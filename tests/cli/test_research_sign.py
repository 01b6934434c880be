"""The paper of a program is signed on the command line, with neither ledger nor network, and no other way."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.errors import SfumatoError
from sfumato.governance.program_paper import ProgramPaper
from tests.governance.signers import key_of

RUN = CliRunner()
PAPER = ProgramPaper(
    ledger="l" * 32,
    project="wards",
    subject=f"project {'0' * 64}",
    by="rosa",
    job="script",
    code="import sfumato as sf\n",
)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paper, key = tmp_path / "counts.paper", tmp_path / "rosa.key"
    PAPER.save(paper)
    key_of("rosa").save(key)
    return paper, key


def test_it_is_written_beside_the_paper_and_says_what_was_signed(files: tuple[Path, Path]) -> None:
    paper, key = files
    done = RUN.invoke(app, ["research", "sign", str(paper), "--key", str(key)])
    assert done.exit_code == 0, done.output
    signed = ProgramPaper.load(paper.with_name("counts-signed.paper"))
    assert signed.program("now").holds(PAPER.ledger, key_of("rosa").public_text)
    assert not signed.program("now").holds("another ledger", key_of("rosa").public_text)
    assert "SHA-256" in done.output
    again = RUN.invoke(app, ["research", "sign", str(paper), "--key", str(key)])
    assert again.exit_code != 0, "nothing is overwritten"


def test_words_that_are_not_those_of_the_paper_are_not_signed(files: tuple[Path, Path]) -> None:
    paper, _ = files
    body = json.loads(paper.read_text("utf-8"))
    for changed in ({"code": "import os\n"}, {"by": "sven"}, {"ledger": "m" * 32}, {"words": []}, {"code": " "}):
        with pytest.raises(SfumatoError, match=r"(?:n|N)othing was done"):
            ProgramPaper.read(json.dumps({**body, **changed}))
