"""What we corrected, with the figures of the catalogue; and the page of attacks, with the counts of the audits."""

import re
from pathlib import Path

import pytest

from tests.claims.catalogue import load
from tests.docs import attacks

CORRECTED = Path(__file__).parents[2] / "docs" / "explanation" / "what-we-corrected.md"
ENTRY = re.compile(r"^\*\*.*?\((S\d-\d\d)\)\.\*\*(.*)$", re.MULTILINE)
FIGURE = re.compile(r"(?<![\w.^])\d+\.\d+(?![\w.])|(?<![\w.^/])\d{3,}(?![\w./])")


def entries() -> dict[str, str]:
    return dict(ENTRY.findall(CORRECTED.read_text("utf-8")))


def test_every_corrected_claim_has_an_entry_and_no_other() -> None:
    corrected = {claim.number for claim in load().claims.values() if claim.verdict == "corrected"}
    assert set(entries()) == corrected
    assert len(ENTRY.findall(CORRECTED.read_text("utf-8"))) == len(corrected)


@pytest.mark.parametrize("number", sorted(entries()))
def test_the_figures_are_those_of_the_claim_and_a_proof_is_linked(number: str) -> None:
    claim, text = load().claims[number], entries()[number]
    known = f"{claim.statement} {claim.check}"
    assert [figure for figure in figures(text) if figure not in figures(known)] == []
    assert re.search(r"\]\(\.\./proofs/\w+[\w-]*\.md\)", text)


def figures(text: str) -> list[str]:
    return FIGURE.findall(re.sub(r"\]\([^)]*\)", "]", text))


def test_a_figure_that_is_not_in_the_catalogue_is_noticed() -> None:
    assert figures("a factor of 17.3 at n = 1234, [a link](../x/2.55.md)") == ["17.3", "1234"]


def test_the_page_of_attacks_is_that_of_the_results() -> None:
    assert attacks.PAGE.read_text("utf-8") == attacks.page(), "run .venv/bin/python -m tests.docs.attacks"


def test_no_honest_way_is_refuted_and_every_broken_copy_is() -> None:
    found = attacks.measured()
    assert not [row["name"] for row in found if row["flaw"] is None and row["refuted"]]
    assert not [row["name"] for row in found if row["flaw"] is not None and not row["refuted"]]


@pytest.mark.parametrize("figure", ["200 of 200", "14 of 72", "one row, with sex, age and blood pressure"])
def test_what_practices_give_away_is_what_their_page_says(figure: str) -> None:
    assert figure in attacks.PAGE.read_text("utf-8")
    assert figure in (attacks.DOCS / "explanation" / "anonymisation.md").read_text("utf-8")


def test_the_area_of_an_unprotected_model_is_that_of_its_page() -> None:
    assert "0.863" in attacks.PAGE.read_text("utf-8")
    assert "| unprotected | LiRA, 64 references | 0.863 |" in (
        attacks.DOCS / "how-to" / "membership-of-a-model.md"
    ).read_text("utf-8")
