"""What the intervals of a population are for, and how far they can be relied on, in words for every reader."""

from collections.abc import Sequence
from functools import reduce

from sfumato.core.units import Record
from sfumato.reports.catalogue import message
from sfumato.reports.words.facts import Facts, Sampled
from sfumato.reports.words.rendering import listed, one_line
from sfumato.reports.words.voice import paragraph

__all__ = ["population_words", "qualities"]


def population_words(facts: Facts, language: str) -> str:
    """The interval for the population of each column that estimates one, or where to find it; then what it rests on."""
    told = [each for each in facts.sampled if each.ends is not None]
    rest = [one_line(each.name) for each in facts.sampled if each.ends is None]
    words = []
    if told:
        spans = reduce(
            lambda left, right: message(language, "span.between", left=left, right=right),
            [_span(each, language) for each in told],
        )
        words.append(message(language, "population.told", spans=spans))
    if rest:
        words.append(message(language, "population.in_table", names=listed(rest, language)))
    clipped = ["population.range"] if facts.description.ranges else []
    rows = ["population.rows"] if isinstance(facts.unit, Record) else []
    known = [(each.name, each.quality) for each in facts.sampled]
    return paragraph(
        [*words, *(message(language, key) for key in (*clipped, *rows)), *qualities(known, language)], language
    )


def qualities(known: Sequence[tuple[str, str]], language: str) -> list[str]:
    """How far the intervals of columns can be relied on, each sentence once; with the names where columns differ."""
    names: dict[str, list[str]] = {}
    for name, quality in known:
        names.setdefault(quality, []).append(one_line(name))
    if len(names) == 1:
        return [message(language, quality) for quality in names]
    return [
        message(language, "population.of", names=listed(each, language), words=message(language, quality))
        for quality, each in names.items()
    ]


def _span(each: Sampled, language: str) -> str:
    low, high = each.ends or ("", "")
    interval = message(language, "page.interval", low=low, high=high)
    return message(language, "span.line", name=one_line(each.name), figure=interval)
