"""What the figures of a release are figures of, and what their intervals cover: said wherever they are shown."""

from collections.abc import Sequence
from typing import Protocol

from sfumato.reports.catalogue import message
from sfumato.reports.columns import AnswerColumn
from sfumato.reports.words.population import qualities
from sfumato.reports.words.rendering import listed, one_line
from sfumato.reports.words.voice import paragraph

__all__ = ["covers", "covers_lines", "limit_lines", "truth"]


class Limited(Protocol):
    """A release, or what was computed from releases."""

    def limit_words(self, language: str = "en") -> str:
        """What of one person counts; empty where all of it does."""
        ...

    def limit_cuts(self) -> bool:
        """Whether a limit can have cut something off."""
        ...


def truth(shown: Limited, language: str, noun: str = "figure", columns: Sequence[AnswerColumn] = ()) -> str:
    """What an interval holds: the exact figure of these data, or where a limit can cut, that under the limit.

    Of ``columns`` that estimate a population it holds that.
    """
    if any(column.sampled for column in columns):
        return message(language, f"population.truth{'' if all(column.sampled for column in columns) else '_some'}")
    return message(language, f"truth.{noun}_limited" if shown.limit_cuts() else f"truth.{noun}")


def covers_lines(shown: Limited, language: str, columns: Sequence[AnswerColumn] = ()) -> list[str]:
    """What of one person counts at the most, where a limit can cut, and what is not in the intervals of columns."""
    limit = shown.limit_words(language)
    counted = [message(language, "cut.counted", limit=limit)] if limit else []
    sampled = [one_line(column.name) for column in columns if column.sampled]
    if sampled:
        alone = all(column.sampled or column.chosen for column in columns)
        key = "population.covers" if alone else "population.covers_some"
        cut = [message(language, "population.covers_cut")] if shown.limit_cuts() else []
        known = [(column.name, column.quality) for column in columns if column.quality is not None]
        said = message(language, key, names=listed(sampled, language))
        return [*counted, said, *cut, *qualities(known, language)]
    return [*counted, message(language, "cut.covers_limited" if shown.limit_cuts() else "cut.covers")]


def limit_lines(shown: Limited, language: str) -> list[str]:
    """The same where a limit can cut; nothing else."""
    return covers_lines(shown, language) if shown.limit_cuts() else []


def covers(shown: Limited, language: str, *, measured: bool = True, columns: Sequence[AnswerColumn] = ()) -> str:
    """The same as one paragraph; of what was chosen and not ``measured``, which has no interval, the first alone."""
    lines = covers_lines(shown, language, columns)
    return paragraph(lines if measured else lines[:-1], language)
