"""A section of the pack: what is asked, what was found, in a table, and what only a person can answer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato.core.documents import Json

__all__ = ["NOT_DECLARED", "Section", "distinct"]

NOT_DECLARED = "not declared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A title, where the question comes from, plain paragraphs, one table, and questions that stay open."""

    title: str
    source: str
    says: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    questions: tuple[str, ...]

    @property
    def document(self) -> Json:
        """The section as plain JSON."""
        return {
            "title": self.title,
            "source": self.source,
            "says": list(self.says),
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "questions": list(self.questions),
        }


def distinct(values: Iterable[str | None]) -> str:
    """Different values in the order in which they come; what was not declared is named too.

    >>> distinct(["research", None, "research"]), distinct([])
    ('research; not declared', 'none')
    """
    found: Sequence[str] = list(dict.fromkeys(NOT_DECLARED if value is None else value for value in values))
    return "; ".join(found) or "none"
