"""The validation report says what claims, faults and audits say, in both languages."""

import re

import pytest

from tests.claims.catalogue import load
from tests.docs import validation


@pytest.mark.parametrize("language", validation.PAGES)
def test_the_page_is_that_of_the_results(language: str) -> None:
    kept = validation.PAGES[language].read_text("utf-8")
    assert kept == validation.page(language), "run .venv/bin/python -m tests.docs.validation"


def test_both_languages_have_the_same_figures() -> None:
    def figures(language: str, part: str) -> list[str]:
        return sorted(re.findall(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w-])", validation.MAKERS[part](language)))

    for part in validation.MAKERS:
        assert figures("en", part) == figures("zh", part), part


def test_every_claim_has_a_result_and_every_area_a_name() -> None:
    catalogue = load().claims
    assert set(validation.results()) == set(catalogue)
    assert {claim.area for claim in catalogue.values()} == set(validation.AREAS)


def test_the_report_for_print_needs_nothing_else_and_asks_for_what_people_must_say() -> None:
    for language in validation.PAGES:
        text = validation.document(language)
        assert not re.search(r"""(?:src|href)=["'](?!#)""", text)
        assert validation.digest(language) in text
        assert text.count("<td></td>") >= 8  # lines to be filled in


@pytest.mark.long  # a browser prints them; a page that changed without its print is found here
@pytest.mark.parametrize("language", validation.PAGES)
def test_the_pdf_was_printed_from_this_page(language: str) -> None:
    title = f"validation {validation.digest(language)}"
    data = validation.PAGES[language].with_suffix(".pdf").read_bytes()
    assert title.encode() in data or title.encode("utf-16-be") in data, "run .venv/bin/python -m tests.docs.validation"
