"""Results of planning and of comparing results: tables, words in two languages and a picture; no release is needed."""

from sfumato.core.description import Word
from sfumato.studies.result import StudyResult

__all__ = ["DesignResult", "Facts"]

Facts = tuple[tuple[Word, Word], ...]


class DesignResult(StudyResult):
    """A result that prints itself: title, facts, tables and notes.

    Guarantee: computed from figures that were given and from releases alone; nothing is read and nothing is spent.
    """

    __slots__ = ()
