"""Measures in words: what each column is, and which values were held to a range."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import reduce

from sfumato.core.exact import fraction_text
from sfumato.reports.catalogue import LANGUAGES, message
from sfumato.reports.conditions import condition, value
from sfumato.reports.words.facts import Quantile
from sfumato.tables.clamped import Clamped
from sfumato.tables.measure import Measure

__all__ = ["listed", "measured", "one_line", "plain", "ranges", "said", "spaced"]


def said(measure: Measure | Quantile, language: str, *, persons: bool = True) -> str:
    """What one column is; where single rows are protected, persons are rows.

    >>> from sfumato.tables.measures.person_count import PersonCount
    >>> from sfumato.tables.measures.row_count import RowCount
    >>> said(PersonCount(name="n"), "en"), said(RowCount(name="n"), "zh")
    ('the number of persons', '记录行数')
    """

    def of(given: Clamped) -> str:
        return one_line(value(given.value, language))

    if isinstance(measure, Quantile):
        name = "measure.median" if measure.level == Fraction(1, 2) else "measure.quantile"
        return message(language, name, value=of(measure.of), percent=plain(100 * measure.level))
    parts = {
        name: of(part) if isinstance(part, Clamped) else one_line(condition(part, language))
        for name, part in measure.parts.items()
    }
    return message(language, measure.words if persons else measure.words_of_rows, **parts)


def measured(measures: Sequence[Measure | Quantile], language: str, *, persons: bool = True) -> str:
    """What all columns are, in a list; several are told apart by their names."""
    words = [said(measure, language, persons=persons) for measure in measures]
    if len(words) > 1:
        words = [
            message(language, "measure.named", measure=word, name=one_line(measure.name))
            for word, measure in zip(words, measures, strict=True)
        ]
    return listed(words, language)


def ranges(measures: Sequence[Measure | Quantile], language: str) -> Iterator[tuple[str, str, str]]:
    """Each value that was held to a range, once: the value, its least and its most."""
    held = [(measure.of,) if isinstance(measure, Quantile) else measure.ranges for measure in measures]
    for each in dict.fromkeys(each for some in held for each in some):
        yield one_line(value(each.value, language)), plain(each.low), plain(each.high)


def listed(words: Sequence[str], language: str) -> str:
    """Several words as a list, the last joined by "and".

    >>> listed(["a", "b", "c"], "en")
    'a, b and c'
    """
    first = reduce(lambda left, right: message(language, "list.between", left=left, right=right), words[:-1] or words)
    if len(words) == 1:
        return first
    before = spaced(first[::-1], language)[::-1]
    return message(language, "list.last", left=before, right=spaced(words[-1], language))


def spaced(text: str, language: str) -> str:
    """A text that follows Chinese signs: with a space before it where it starts with a letter or a figure.

    >>> spaced("sbp", "zh"), spaced("人数", "zh"), spaced("sbp", "en")
    (' sbp', '人数', 'sbp')
    """
    return f" {text}" if LANGUAGES[language] == "zh-Hans" and text[:1].isascii() and text[:1].isalnum() else text


def plain(bound: Fraction) -> str:
    """A bound as people write it: ``80``, ``0.5``, ``1/3``."""
    if bound.denominator == 1:
        return f"{bound.numerator:,}"
    short = f"{float(bound):.6g}"
    return short if Fraction(short) == bound else fraction_text(bound)


def one_line(name: str) -> str:
    """A name as one line: whatever breaks a line, or turns the text around, becomes a space.

    >>> one_line("visits\\n\\nAll is well.")
    'visits All is well.'
    """
    turning = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}
    return " ".join("".join(" " if not c.isprintable() or ord(c) in turning else c for c in name).split()) or "…"
