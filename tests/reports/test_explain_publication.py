"""Before a release is published: nothing may be missing. And the comparison with the Safe Harbor rule."""

import re
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import NotDeclared, Refused
from sfumato.reports.catalogue import messages
from sfumato.reports.publication import Publication, publication
from sfumato.reports.words import AUDIENCES, safe_harbor
from sfumato.reports.words.safe_harbor import ASPECTS
from tests.reports.test_explain import UNITS, gaussian_release, release_of
from tests.reports.test_explain_messages import FORBIDDEN

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "safe-harbor.md"
RECORD = {"reason": "The plan for winter needs ±40.", "legal_basis": "Section 7 of the health statistics act."}


@pytest.fixture(scope="module")
def release() -> Any:
    return release_of(UNITS["user, add/remove"])


@pytest.mark.claim("S1-25", "S1-33")
@pytest.mark.parametrize("field", ["reason", "legal_basis"])
@pytest.mark.parametrize("value", ["", "  ", "\n", None, "\u200b", "\u2060\ufeff", "\u3164", "\u2800", "…", "- ?"])
def test_publication_is_blocked_while_a_reason_or_a_legal_basis_is_missing(
    release: Any, field: str, value: object
) -> None:
    with pytest.raises(NotDeclared, match=f"needs its {field}.*nothing was published"):
        publication(release, **RECORD | {field: value})  # type: ignore[arg-type]
    with pytest.raises(NotDeclared, match="nothing was published"):
        publication(release)


@pytest.mark.claim("S1-33")
def test_publication_is_blocked_while_a_reader_has_no_text(release: Any) -> None:
    whole = publication(release, **RECORD)
    assert set(whole.texts) == {(language, reader) for language in ("en", "zh") for reader in AUDIENCES}
    for missing in whole.texts:
        fewer = {place: text for place, text in whole.texts.items() if place != missing}
        with pytest.raises(Refused, match=rf"{missing[1]} \({missing[0]}\).*nothing was published"):
            Publication(release=release, texts=fewer, **RECORD)
    with pytest.raises(Refused, match="every reader"):
        Publication(release=release, texts={}, **RECORD)


def test_the_board_reads_what_was_recorded(release: Any) -> None:
    whole = publication(release, **RECORD)
    english, chinese = whole.text("en", "board"), whole.text("zh", "board")
    assert english.endswith(
        "Reason for ε = 1/2, δ = 0: The plan for winter needs ±40. Legal basis, as named by the publisher: Section 7 "
        "of the health statistics act."
    )
    assert "选定 ε = 1/2、δ = 0 的理由：The plan" in chinese
    assert whole.text("en", "public") == release.explain("en")
    with_delta = publication(gaussian_release(), **RECORD).text("en", "board")
    assert "Reason for ε = 1, δ = 1/10,000,000:" in with_delta


@pytest.mark.claim("S1-25")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_safe_harbor_is_compared_aspect_by_aspect_and_nothing_is_said_to_be_lawful(language: str) -> None:
    rows = safe_harbor(language)
    assert len(rows) == len(ASPECTS) == 8
    text = " ".join(part for row in rows for part in (row.aspect, row.rule, row.noise))
    assert not re.search(FORBIDDEN[language], text, re.IGNORECASE)
    assert not re.search(
        r"(?<!Whether a publication) (is|are|makes? it) lawful|satisf|meets? the (rule|law)|满足.{0,4}法|就是合法", text
    )
    last = {"en": "a small ε alone does not decide it", "zh": "仅凭 ε 小并不能决定"}[language]
    assert rows[-1].noise.endswith(f"{last}.") or rows[-1].noise.endswith(f"{last}。")
    worst = {"en": "The worst case is", "zh": "对最坏情形作了限定"}[language]
    assert worst in text


@pytest.mark.claim("S1-25")
def test_the_page_has_the_whole_comparison_and_claims_nothing_about_the_law() -> None:
    text = " ".join(PAGE.read_text("utf-8").split())
    for name, words in messages("en").items():
        if name.startswith("safe_harbor."):
            assert words in text, name
    assert not re.search(r"\b(compliant|complies|anonymous|anonymi[sz]ed)\b|is HIPAA|meets HIPAA", text)
    assert "not a legal opinion" in text


@pytest.mark.claim("S1-26")
def test_the_pages_name_the_limits_of_the_promise() -> None:
    pages = {name: (PAGE.parent / f"{name}.md").read_text("utf-8") for name in ("guarantee", "reading-a-release")}
    text = " ".join(pages["guarantee"].split())
    for words in ("one unit", "resemble you", "conclude something about you", "small counts", "rare diseases"):
        assert words in text, words
