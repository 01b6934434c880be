"""Labels that a drawing can hold: one line, nothing that turns the text around it, no two alike."""

from collections.abc import Sequence
from functools import reduce

from sfumato.core.release import Release
from sfumato.reports.catalogue import message

__all__ = ["clean", "distinct", "labels_of", "listing"]

MOST_SIGNS = 120
TURNING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}  # these order the text around them
NO_XML = {*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF}
REPLACED = dict.fromkeys(TURNING | NO_XML, "\ufffd")


def clean(text: object) -> str:
    """Write a label on one line, without control signs and without signs that reverse what stands beside them.

    An SVG with a control sign is no XML, and an override of direction could show another number than the one drawn.

    >>> clean("a\\n\\tb"), clean("1\\u202e2"), clean("\\x00")
    ('a b', '1\\ufffd2', '\\ufffd')
    """
    kept = " ".join(str(text).split()).translate(REPLACED)
    return kept if len(kept) <= MOST_SIGNS else kept[: MOST_SIGNS - 1] + "…"


def distinct(texts: Sequence[str]) -> list[str]:
    """Number the labels that look alike, since a drawing would put them on one line.

    >>> distinct(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    seen: dict[str, int] = {}
    found: list[str] = []
    for text in texts:
        shown = text
        while shown in seen:
            seen[text] += 1
            shown = f"{text} ({seen[text]})"
        seen[shown] = 1
        found.append(shown)
    return found


def listing(texts: Sequence[str], language: str) -> str:
    """Labels one after the other, between them the sign that the language has for that.

    >>> listing(["n", "mean"], "en"), listing(["n", "mean"], "zh")
    ('n, mean', 'n、mean')
    """
    return reduce(lambda left, right: message(language, "list.between", left=left, right=right), texts)


def labels_of(release: Release, language: str) -> list[tuple[str, ...]]:
    """What each number is about, a text for each label column; one empty tuple if there are no groups."""
    columns = release.labels
    if not columns:
        return [()] if release.measure is None else [() for _ in release.values]
    truths = {value: message(language, f"condition.{name}") for value, name in ((True, "true"), (False, "false"))}
    return [
        tuple(truths[part] if isinstance(part, bool) else clean(part) for part in parts)
        for parts in zip(*columns.values(), strict=True)
    ]
