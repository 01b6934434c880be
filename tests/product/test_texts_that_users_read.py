"""What users read about δ, in the documentation and from a release: never that it is the probability of a leak."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.reports.words.audiences import AUDIENCES

ROOT = Path(__file__).parents[2]
WRONG = re.compile(
    r"(?:δ|\bdelta\b)[^.。]{0,80}?(?:\b(?:probability|chance|odds) of (?:a |any )?(?:leak|breach|failure|disclosure)"
    r"|(?:泄露|泄漏|失败)的?(?:概率|可能性))",
    re.IGNORECASE,
)
# these pages say it of others, or that it must not be said
SAID_TO_BE_WRONG = {"docs/explanation/reading-a-release.md": 1, "docs/claims.md": 1, "docs/sharp-edges/index.md": 1}


@pytest.mark.parametrize(
    "words",
    [
        "delta is the probability of a leak",
        "δ, the chance of a breach,",
        "δ 是泄露的概率",
        "Δ: δ = the odds of disclosure",
    ],
)
def test_the_wrong_words_are_found(words: str) -> None:
    assert WRONG.search(f"ε and what follows. {words}")


@pytest.mark.claim("S2-02")
def test_no_page_calls_delta_the_probability_of_a_leak() -> None:
    pages = [ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")]
    hits = {str(page.relative_to(ROOT)): len(WRONG.findall(page.read_text("utf-8"))) for page in pages}
    assert {page: times for page, times in hits.items() if times} == SAID_TO_BE_WRONG


@pytest.mark.claim("S2-02")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_reader_of_a_release_with_a_delta_is_told_so(language: str) -> None:
    wards = [f"ward {place}" for place in range(40)]
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=1, delta=1e-6), name="trial")
    limit = sf.Limit(groups=30, rows_per_group=1)
    rows = pa.table({"id": [1], "ward": ["ward 1"]})
    stays = vault.table(rows, name="stays", version="1", limit=limit, keys={"ward": wards})
    release = stays.group_by("ward").count().release(epsilon=1, delta=1e-6)
    for audience in AUDIENCES:
        text = release.explain(language, audience)
        assert not WRONG.search(text)
        assert not re.search(r"\bleak|泄露|泄漏", text)
    assert "δ" in release.explain(language, "board")
