"""The project speaks the words of its field: phrases that stood in their place do not come back."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
HISTORY = ("docs/decisions", "docs/claims.md")  # decisions stay as they were taken; claims quote what was required

INSTEAD = {
    r"hangs? on\b": "depends on",
    r"\b(?:is|are|be|was) promised\b|\bpromises? (?:of|that|about|holds?)\b": "(privacy) guarantee",
    r"\bso many\b": "this many, as many as, or the number",
    r"\bgot away\b": "was missed",
    r"\bwhat is none\b|\bthat is none of\b": "say what it is instead",
    r"\bmay lose\b": "privacy loss, privacy budget",
    r"\blaws? of (?:its |the |their )?errors?\b": "error distribution, margin of error",
    r"\bnot in the grammar\b": "not supported; instead: …",
    r"\bgroups nobody declared\b|\bfound keys\b": "private key discovery (partition selection)",
    r"\bcouples? people\b": "losses over several people",
    r"\bas far as the limit lets\b|\bkept rows\b": "contribution limit; rows dropped by the limit",
    r"\btells nobody\b": "say what is private, and from whom",
}


def texts() -> dict[str, str]:
    """Everything that people read: source with its docstrings, messages, pages."""
    found = [*(REPOSITORY / "src").rglob("*.py"), *(REPOSITORY / "src").rglob("*.toml")]
    found += [*(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / name for name in PAGES)]
    named = {str(path.relative_to(REPOSITORY)): path for path in sorted(found)}
    return {name: path.read_text("utf-8") for name, path in named.items() if not name.startswith(HISTORY)}


def dialect(text: str) -> list[tuple[str, str]]:
    """Each phrase that a text should not have, with what to say instead."""
    one_line = re.sub(r"\s+", " ", text)
    return [
        (match.group(), instead)
        for phrase, instead in INSTEAD.items()
        for match in re.finditer(phrase, one_line, re.IGNORECASE)
    ]


@pytest.mark.long
def test_nothing_is_said_in_a_dialect_of_our_own() -> None:
    assert {name: found for name, text in texts().items() if (found := dialect(text))} == {}


def test_a_phrase_is_found_across_lines_and_in_any_case() -> None:
    assert dialect("The error\n    Hangs\n    on the data.") == [("Hangs on", "depends on")]
    assert dialect("The error depends on the data.") == []


def test_pages_for_readers_name_what_they_are_about() -> None:
    """Differential privacy, ε and the privacy budget by their names."""
    for name in ("README.md", "docs/index.md", "docs/tutorial/first-release.md"):
        text = (REPOSITORY / name).read_text("utf-8").lower()
        assert [word for word in ("differential privacy", "ε", "privacy budget") if word not in text] == [], name
